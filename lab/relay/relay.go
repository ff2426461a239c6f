// Package relay carries the connections of `rnic proxy`: from its listener to the target, with the faults of a
// plan between.
//
//	connection -> Startup: its MPA Request -- Queue --> in the backlog -- a place --> carried to the target
//
// A connection that has not sent its Request costs the target nothing, and goes for others (package admission): silent
// peers keep nobody out.
package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/admission"
	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/lab/internal/interpose"
	"github.com/softrnic/softrnic/mpa"
)

// MaxConnections is how many connections are carried at once.
const MaxConnections = 1024

// requestTimeout is how long a client may take for its Request, and the target for TCP's connect.
const requestTimeout = 10 * time.Second

// Config is how connections are carried. The zero value carries them as they are.
type Config struct {
	// Faults, if set, are between the two ends.
	Faults *fault.Injector
	// Between, if set, makes the connection to write to of one to the target: a capture.
	Between func(client, server net.Conn) net.Conn
	// Logger, if set, gets a warning for each connection that came to nothing, ten a second at most, but for clients that went before
	// they had asked for one, or that had to go for others.
	Logger *slog.Logger
}

// Server carries connections. Make one with New.
type Server struct {
	target string
	config Config
	log    *slog.Logger

	places chan struct{}  // a token for each that is carried
	all    sync.WaitGroup // those that are carried
}

// New makes a Server that carries to a target.
func New(target string, c Config) *Server {
	if c.Faults == nil {
		c.Faults, _ = fault.New(&fault.Plan{}, nil) // there is nothing wrong with no rules
	}
	return &Server{target: target, config: c, log: cm.LimitLogger(c.Logger), places: make(chan struct{}, MaxConnections)}
}

// Serve carries the connections that come to l until ctx ends, then ends them, closes l, and returns nil. Its error is that of l
// otherwise.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	in := admission.New(l, admission.Config{Serve: func(st *admission.Startup) error { return s.take(ctx, st) }, Failed: s.failed})
	select {
	case <-ctx.Done():
	case <-in.Context().Done():
	}
	err := ctx.Err()
	cause := context.Cause(in.Context())
	cancel()
	_ = in.Close()
	s.all.Wait()
	if err != nil {
		return nil // stopped by the user
	}
	return fmt.Errorf("proxy: %w", cause)
}

// Carried is how many connections have a place.
func (s *Server) Carried() int { return len(s.places) }

// errGone is of a client that went before it had asked for a connection.
var errGone = errors.New("the client went before its MPA Request was complete")

func (s *Server) failed(remote net.Addr, err error) {
	switch {
	case errors.Is(err, errGone), errors.Is(err, admission.ErrCrowded):
	case remote == nil:
		s.log.Warn("proxy: accepting a connection failed", "error", err)
	default:
		s.log.Warn("proxy: a connection came to nothing", "remote", remote, "error", err)
	}
}

// take takes a connection from its first octet to where it is carried. It owns it until then.
func (s *Server) take(ctx context.Context, st *admission.Startup) error {
	stop := context.AfterFunc(st.Context(), func() { interpose.Drop(st.Conn) })
	c, err := s.asked(st)
	if err != nil {
		stop()
		interpose.Drop(st.Conn)
		return err
	}
	st.Leave()
	if !stop() { // the listener has ended, and the connection with it
		<-s.places
		return st.Context().Err()
	}
	s.all.Go(func() {
		defer func() { <-s.places }()
		if err := s.carry(ctx, c); err != nil {
			s.failed(c.RemoteAddr(), err)
		}
	})
	return nil
}

// asked returns the connection when it has asked for one at the target, and has a place.
func (s *Server) asked(st *admission.Startup) (net.Conn, error) {
	c, err := request(st.Conn)
	if err == nil {
		err = st.Queue()
	}
	if err != nil {
		return nil, err
	}
	select {
	case s.places <- struct{}{}:
		return c, nil
	case <-st.Context().Done():
		return nil, st.Context().Err()
	}
}

// request reads as far as what cannot become an MPA Request any more, or is one; what it means is the target's to
// say.
func request(nc net.Conn) (net.Conn, error) {
	if err := nc.SetReadDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, errGone
	}
	var b []byte
	for {
		_, need, err := mpa.ParseStartup(b)
		if !errors.Is(err, mpa.ErrShort) {
			break
		}
		more := make([]byte, need-len(b))
		n, err := nc.Read(more)
		b = append(b, more[:n]...)
		var late net.Error
		switch {
		case errors.As(err, &late) && late.Timeout():
			return nil, fmt.Errorf("no MPA Request within %v", requestTimeout)
		case err != nil:
			return nil, errGone
		}
	}
	if err := nc.SetReadDeadline(time.Time{}); err != nil {
		return nil, errGone
	}
	tcpsock.Prepare(nc) // else the socket of an end that does not read takes 4 MiB
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return &begun{Conn: nc, first: b}, nil
	}
	return &begunTCP{TCPConn: tcp, begun: begun{Conn: nc, first: b}}, nil
}

// carry carries one connection.
func (s *Server) carry(ctx context.Context, client net.Conn) error {
	d := net.Dialer{Timeout: requestTimeout}
	server, err := d.DialContext(ctx, "tcp", s.target)
	if err != nil {
		interpose.Drop(client)
		return tcpsock.NoPort(err)
	}
	tcpsock.Prepare(server)
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer stop()
	to := server
	if s.config.Between != nil {
		to = s.config.Between(client, server)
	}
	return s.config.Faults.Relay(client, to)
}

// begun is a connection of which the first octets have been read.
type begun struct {
	net.Conn
	first []byte
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}

// begunTCP has the half-close and the reset of TCP.
type begunTCP struct {
	*net.TCPConn
	begun begun
}

func (b *begunTCP) Read(p []byte) (int, error) { return b.begun.Read(p) }
