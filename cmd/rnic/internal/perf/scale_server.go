package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/verbs"
)

// scaleQuestion is a line from the client process to the server process.
type scaleQuestion struct {
	Do string `json:"do"` // one of ask...
	N  int    `json:"n"`
}

const (
	askTCP       = "tcp"        // wait until N more bare TCP connections are accepted
	askTCPClosed = "tcp closed" // close them
	askTCPEcho   = "tcp echo"   // or return what comes on them, messages of scaleSize octets
	askQPs       = "qps"        // wait until N more queue pairs are connected
	askMemory    = "memory"     // measure memory
	askProcessor = "processor"  // tell the processor time so far
)

// scaleAnswer is the line that answers it.
type scaleAnswer struct {
	scaleMemory
	Processor *time.Duration `json:"processor,omitempty"`
	Error     string         `json:"error,omitempty"`
}

// scaleServer is the answering side of `rnic perf scale`.
type scaleServer struct {
	*scaleEnd
	rdma *cm.Listener
	tcp  net.Listener
	// accepted and connected get a token for each connection.
	accepted, connected chan struct{}
	conns               chan net.Conn // bare ones
	next                atomic.Int64  // queue pair
}

// runScaleServer is the server process, for n connections: it ends with its standard
// input.
func runScaleServer(cmd *cobra.Command, n int, shape scaleShape) (err error) {
	if err := allowFiles(n); err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	end, err := newScaleEnd(n, shape)
	if err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	defer end.nic.Close()
	server := &scaleServer{
		scaleEnd: end,
		accepted: make(chan struct{}, n), connected: make(chan struct{}, n),
		conns: make(chan net.Conn, n),
	}
	f := shape.connFlags()
	if server.rdma, err = cm.Listen("127.0.0.1:0", f.ListenConfig(cmd.ErrOrStderr())); err != nil {
		return fmt.Errorf("perf: listening: %w", err)
	}
	defer server.rdma.Close()
	if server.tcp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("perf: listening: %w", err)
	}
	defer server.tcp.Close()
	err = cli.Announce(cmd.OutOrStdout(), cli.Announcement{
		Address: server.rdma.Addr().String(), Plain: server.tcp.Addr().String(),
	})
	if err != nil {
		return err
	}
	if err := server.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	return nil
}

// run answers questions and messages until questions ends.
func (s *scaleServer) run(ctx context.Context, questions io.Reader, answers io.Writer) error {
	group, ctx := errgroup.WithContext(ctx)
	go s.acceptTCP()
	for range scaleDialers {
		group.Go(func() error { return s.acceptQPs(ctx) })
	}
	for _, cq := range s.cq {
		group.Go(func() error { return s.echo(ctx, cq) })
	}
	asked := make(chan scaleQuestion)
	go func() {
		defer close(asked)
		lines := json.NewDecoder(questions)
		for {
			var q scaleQuestion
			if lines.Decode(&q) != nil {
				return // the client has ended, or will know
			}
			asked <- q
		}
	}()
	group.Go(func() error { return s.answer(ctx, asked, answers) })
	if err := group.Wait(); !errors.Is(err, errAsked) {
		return err
	}
	return nil
}

// errAsked ends the server because there are no more questions.
var errAsked = errors.New("no more questions")

// answer answers questions until there are no more.
func (s *scaleServer) answer(ctx context.Context, asked <-chan scaleQuestion, answers io.Writer) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case q, ok := <-asked:
			if !ok {
				return errAsked
			}
			a, err := s.do(ctx, q, asked)
			if err != nil {
				return err
			}
			if err := json.NewEncoder(answers).Encode(a); err != nil {
				return err
			}
		}
	}
}

func (s *scaleServer) do(ctx context.Context, q scaleQuestion, asked <-chan scaleQuestion) (a scaleAnswer, err error) {
	switch q.Do {
	case askTCP:
		return a, await(ctx, s.accepted, q.N, asked)
	case askQPs:
		return a, await(ctx, s.connected, q.N, asked)
	case askTCPClosed:
		for len(s.conns) > 0 {
			reset(<-s.conns)
		}
		return a, nil
	case askTCPEcho:
		for len(s.conns) > 0 {
			conn := <-s.conns
			go func() {
				defer conn.Close()
				_ = plainEcho(conn, make([]byte, scaleSize)) // the client ends it, in whatever way
			}()
		}
		return a, nil
	case askProcessor:
		a.Processor = processorTime()
		return a, nil
	case askMemory:
		if a.scaleMemory, err = measureMemory(); err != nil {
			a.Error = err.Error()
		}
		return a, nil
	default:
		a.Error = fmt.Sprintf("unknown question %q", q.Do)
		return a, nil
	}
}

// await takes n tokens. The client asks nothing meanwhile, but it may end.
func await(ctx context.Context, tokens <-chan struct{}, n int, asked <-chan scaleQuestion) error {
	for range n {
		select {
		case <-tokens:
		case <-asked:
			return errAsked
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// acceptTCP accepts bare TCP connections until the listener is closed.
func (s *scaleServer) acceptTCP() {
	for {
		conn, err := s.tcp.Accept()
		if err != nil {
			return
		}
		s.conns <- conn
		s.accepted <- struct{}{}
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
		s.connected <- struct{}{}
	}
}

// echo returns each message that completes to cq, until ctx ends.
func (s *scaleServer) echo(ctx context.Context, cq *verbs.CQ) error {
	r := s.reaper(cq)
	for {
		wc, err := r.Next(ctx)
		if err != nil {
			return endedBy(ctx, err)
		}
		if wc.Op != verbs.OpRecv {
			continue
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
