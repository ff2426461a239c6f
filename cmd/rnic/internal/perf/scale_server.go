package perf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/verbs"
)

// scaleRequest is a line from the client process to the server process.
type scaleRequest struct {
	Do string `json:"do"` // one of do...
	N  int    `json:"n"`
}

const (
	doTCP       = "tcp"        // wait until N more bare TCP connections are accepted
	doTCPClosed = "tcp closed" // close them
	doTCPEcho   = "tcp echo"   // or return what comes on them, messages of scaleSize octets
	doQPs       = "qps"        // wait until N more queue pairs are connected
	doMemory    = "memory"     // measure memory
	doProcessor = "processor"  // report the processor time so far
)

// scaleResponse is the line that answers it.
type scaleResponse struct {
	scaleMemory
	Processor *time.Duration `json:"processor,omitempty"`
	Error     string         `json:"error,omitempty"`
}

// scaleServer is the answering end of many connections.
type scaleServer struct {
	*scaleEnd
	rdma      *cm.Listener
	tcp       net.Listener
	accepted  chan net.Conn // bare ones
	conns     []net.Conn    // of those, the ones that the client has waited for
	connected chan *cm.Conn
	next      atomic.Int64 // queue pair
}

// runScaleServer is the server process, for n connections: it ends with its standard
// input.
func runScaleServer(cmd *cobra.Command, n int, shape scaleShape) error {
	if err := serveScale(cmd, n, shape); err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	return nil
}

func serveScale(cmd *cobra.Command, n int, shape scaleShape) error {
	if err := allowFiles(n); err != nil {
		return err
	}
	end, err := newScaleEnd(n, shape)
	if err != nil {
		return err
	}
	defer end.nic.Close()
	server := &scaleServer{scaleEnd: end, accepted: make(chan net.Conn, n), connected: make(chan *cm.Conn, n)}
	f := shape.connFlags()
	if server.rdma, err = cm.Listen("127.0.0.1:0", f.ListenConfig(cli.Logger(cmd))); err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer server.rdma.Close()
	if server.tcp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer server.tcp.Close()
	where := cli.Announcement{Address: server.rdma.Addr().String(), Plain: server.tcp.Addr().String()}
	if err := cli.Announce(cmd, where); err != nil {
		return err
	}
	return server.run(cmd)
}

// run answers requests and messages until there are no more requests.
func (s *scaleServer) run(cmd *cobra.Command) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	go s.acceptTCP()
	for range scaleDialers {
		group.Go(func() error { return s.acceptQPs(ctx) })
	}
	for _, cq := range s.cq {
		group.Go(func() error { return s.echo(ctx, cq) })
	}
	group.Go(func() error {
		defer cancel()
		return cli.Respond(ctx, cmd, s.respond)
	})
	return group.Wait()
}

func (s *scaleServer) respond(ctx context.Context, r scaleRequest) (any, error) {
	var a scaleResponse
	switch r.Do {
	case doTCP:
		conns, err := await(ctx, s.accepted, r.N)
		s.conns = append(s.conns, conns...)
		return a, err
	case doQPs:
		_, err := await(ctx, s.connected, r.N)
		return a, err
	case doTCPClosed:
		resetAll(s.conns)
		s.conns = nil
	case doTCPEcho:
		for _, conn := range s.conns {
			go func() {
				defer conn.Close()
				_ = plainEcho(conn, make([]byte, scaleSize)) // the client ends it, in whatever way
			}()
		}
		s.conns = nil
	case doProcessor:
		a.Processor = processorTime()
	case doMemory:
		var err error
		if a.scaleMemory, err = measureMemory(); err != nil {
			a.Error = err.Error()
		}
	default:
		a.Error = fmt.Sprintf("unknown question %q", r.Do)
	}
	return a, nil
}

// await waits for n connections.
func await[T any](ctx context.Context, made <-chan T, n int) (all []T, err error) {
	for range n {
		select {
		case one := <-made:
			all = append(all, one)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return all, nil
}

// acceptTCP accepts bare TCP connections until the listener is closed.
func (s *scaleServer) acceptTCP() {
	for {
		conn, err := s.tcp.Accept()
		if err != nil {
			return
		}
		s.accepted <- conn
	}
}

// acceptQPs connects queue pairs until ctx ends.
func (s *scaleServer) acceptQPs(ctx context.Context) error {
	f := s.connFlags()
	cfg := f.Config()
	for {
		req, err := s.rdma.Accept(ctx)
		if err != nil {
			return endedBy(ctx, err)
		}
		i := int(s.next.Add(1)) - 1
		if i >= len(s.pool) {
			return req.Reject([]byte("too many connections"))
		}
		qp, err := s.create(i)
		if err != nil {
			return errors.Join(err, req.Reject([]byte("the server has no resources")))
		}
		if s.pool[i].conn, err = req.Accept(ctx, qp, cfg); err != nil {
			return endedBy(ctx, err)
		}
		s.connected <- s.pool[i].conn
	}
}

// echo returns each message that completes to cq, until ctx ends.
func (s *scaleServer) echo(ctx context.Context, cq *verbs.CQ) error {
	r := s.reaper(cq)
	for {
		wc, err := r.NextRecv(ctx)
		if err != nil {
			return endedBy(ctx, err)
		}
		q := wc.Context.(*scaleQP)
		if err := q.echo(); err != nil {
			return endedBy(ctx, err)
		}
		if err := q.receive(); err != nil {
			return endedBy(ctx, err)
		}
	}
}

// endedBy is err, or nil if it is only that ctx has ended.
func endedBy(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
