package perf

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
	"github.com/softrnic/softrnic/internal/tcpsock"
)

// What a program would use without RDMA: a bare TCP stream through net.Conn,
// between the same two processes, for `rnic perf baseline` to compare with.

// plainRun is one measurement, over a connection of its own. It is the first
// line that a client sends, as JSON.
type plainRun struct {
	PingPong bool `json:"ping_pong"` // else: a stream from the client
	Size     int  `json:"size"`      // octets a message or write
}

// plainAnswer are the counts of the server of a stream.
type plainAnswer struct {
	Bytes   uint64  `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// maxPlainLine is how long a client's first line may be, in octets.
const maxPlainLine = 256

// servePlain serves runs until l is closed.
func servePlain(l net.Listener, host *endpoint.Host, log *slog.Logger) {
	accept := func(context.Context) (net.Conn, error) { return l.Accept() }
	_ = endpoint.Serve(context.Background(), accept, log, func(conn net.Conn) error {
		defer conn.Close()
		leave, err := host.Admit(0)
		if err != nil {
			return fmt.Errorf("client %v: refused: %w", conn.RemoteAddr(), err)
		}
		defer leave()
		if err := servePlainRun(conn, host); err != nil {
			return fmt.Errorf("client %v: %w", conn.RemoteAddr(), err)
		}
		return nil
	})
}

func servePlainRun(nc net.Conn, host *endpoint.Host) (err error) {
	conn := &counted{Conn: nc}
	ctx, cancel := endpoint.WhileActive(context.Background(), host.Idle, endpoint.ErrIdle(host.Idle), &conn.reads)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer func() {
		if !stop() {
			err = context.Cause(ctx)
		}
	}()
	// Nothing follows the header before the answer to it.
	line, err := bufio.NewReader(io.LimitReader(conn, maxPlainLine)).ReadBytes('\n')
	if errors.Is(err, io.EOF) && len(line) == maxPlainLine {
		return fmt.Errorf("its first line has more than %d octets", maxPlainLine)
	}
	if err != nil {
		return err
	}
	var run plainRun
	if err := json.Unmarshal(line, &run); err != nil {
		return err
	}
	if run.Size < 1 || run.Size > maxPerfSize {
		return fmt.Errorf("size %d out of range", run.Size)
	}
	leave, err := host.Reserve(uint64(run.Size))
	if err != nil {
		return fmt.Errorf("refused: %w", err)
	}
	defer leave()
	buf := make([]byte, run.Size)
	if _, err := conn.Write([]byte{'\n'}); err != nil { // ready
		return err
	}
	if run.PingPong {
		return plainEcho(conn, buf)
	}
	return plainSink(conn, buf)
}

func plainEcho(conn io.ReadWriter, buf []byte) error {
	for {
		if _, err := io.ReadFull(conn, buf); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := conn.Write(buf); err != nil {
			return err
		}
	}
}

func plainSink(conn io.ReadWriter, buf []byte) error {
	var answer plainAnswer
	begin := time.Now()
	for {
		n, err := io.ReadFull(conn, buf)
		answer.Bytes += uint64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			answer.Seconds = time.Since(begin).Seconds()
			return json.NewEncoder(conn).Encode(answer)
		}
		if err != nil {
			return err
		}
	}
}

// counted counts what is read.
type counted struct {
	net.Conn
	reads atomic.Uint64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.reads.Add(1)
	return n, err
}

// dialPlain connects and waits until the server is ready.
func dialPlain(ctx context.Context, addr string, run plainRun) (*net.TCPConn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, tcpsock.NoPort(err)
	}
	err = json.NewEncoder(conn).Encode(run)
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// plainStream is the throughput of a stream, in GB/s, counted by the receiver.
func plainStream(ctx context.Context, addr string, size int, d time.Duration) (float64, error) {
	conn, err := dialPlain(ctx, addr, plainRun{Size: size})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	buf := make([]byte, size)
	for begin := time.Now(); time.Since(begin) < d; {
		if _, err := conn.Write(buf); err != nil {
			return 0, err
		}
	}
	if err := conn.CloseWrite(); err != nil {
		return 0, err
	}
	var answer plainAnswer
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return 0, err
	}
	return float64(answer.Bytes) / answer.Seconds / 1e9, nil
}

// plainPingPong measures round trips.
func plainPingPong(ctx context.Context, addr string, size int, d time.Duration) (*histogram.Histogram, error) {
	conn, err := dialPlain(ctx, addr, plainRun{PingPong: true, Size: size})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	times, _, err := pingPong(d, warmUp, plainRoundTrip(conn, make([]byte, size)))
	return times, err
}

// plainRoundTrip sends a message and waits until it has come back.
func plainRoundTrip(conn io.ReadWriter, message []byte) func() error {
	return func() error {
		if _, err := conn.Write(message); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, message)
		return err
	}
}
