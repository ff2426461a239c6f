package ping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/internal/rping"
	"github.com/softrnic/softrnic/verbs"
)

// runServer listens, and serves one client or, with -P, any number.
func (p *ping) runServer(ctx context.Context, out *pingOutput, log *slog.Logger) (err error) {
	l, err := cm.Listen(p.hostPort(), p.flags.ListenConfig(log))
	if err != nil {
		return fmt.Errorf("ping: listening: %w; choose another -a or -p", err)
	}
	defer l.Close()
	log.Info(fmt.Sprintf("listening on %v", l.Addr()))

	host, err := endpoint.OpenHost(p.flags.RNIC, p.clients, uint64(p.clients)*p.size, p.idle)
	if err != nil {
		return err
	}
	defer host.Close()
	finish, err := p.stats.Serve(log, host.NIC)
	if err != nil {
		return err
	}
	defer func() { err = finish(err) }()
	if !p.persistent {
		req, err := l.Accept(ctx)
		if err != nil {
			return fmt.Errorf("ping: waiting for a client: %w", err)
		}
		_ = l.Close() // no other client gets an answer
		return p.serve(ctx, host, req, out)
	}
	err = endpoint.Serve(ctx, l.Accept, log, func(req *cm.Request) error {
		leave, err := host.Admit(p.size)
		if err != nil {
			return refuse(req, err)
		}
		defer leave()
		return p.serve(ctx, host, req, out)
	})
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// refuse rejects a client with the reason, and returns that.
func refuse(req *cm.Request, why error) error {
	return fmt.Errorf("ping: client %v: refused: %w", req.RemoteAddr(), errors.Join(why, req.Reject([]byte(why.Error()))))
}

// serve answers one client and prints a summary.
func (p *ping) serve(ctx context.Context, host *endpoint.Host, req *cm.Request, out *pingOutput) error {
	e, err := open(endpoint.New(host.NIC, p.limits()))
	if err != nil {
		return refuse(req, err)
	}
	summary, err := p.answer(ctx, req, e, out)
	if err != nil {
		_ = req.Reject(nil) // if it stands
		return fmt.Errorf("ping: client %v: %w", req.RemoteAddr(), errors.Join(err, e.Abort()))
	}
	if err := e.Close(ctx); err != nil {
		return fmt.Errorf("ping: client %v: closing the connection: %w", req.RemoteAddr(), err)
	}
	return out.summary(summary)
}

func (p *ping) answer(ctx context.Context, req *cm.Request, e *pingEnd, out *pingOutput) (pingSummary, error) {
	summary := pingSummary{Role: "server", Peer: req.RemoteAddr().String(), Validated: p.validate}
	if err := e.Accept(ctx, req, p.flags.Config()); err != nil {
		return summary, err
	}
	ctx, cancel := e.WhileConnected(ctx)
	defer cancel()
	ctx, cancelIdle := e.WhileActive(ctx, p.idle, endpoint.ErrIdle(p.idle))
	defer cancelIdle()

	data := pingData{limit: int(p.size)}
	begin := time.Now()
	for round := 0; ; round++ {
		source, err := e.recvBuffer(ctx)
		if errors.Is(err, endpoint.ErrDisconnected) || p.count > 0 && round == p.count {
			break // between rounds: this is how a client ends
		}
		if err != nil {
			return summary, err
		}
		n, err := e.fetch(ctx, source, &data)
		if err != nil {
			return summary, err
		}
		if p.verbose {
			out.data("server ping data: ", data.buf[:n])
		}
		if p.validate {
			want := make([]byte, n)
			rping.Fill(want, round)
			if err := compare(round, want, data.buf[:n]); err != nil {
				return summary, err
			}
		}
		if err := e.giveBack(ctx, data.mr, n); err != nil {
			return summary, err
		}
		summary.Rounds++
		summary.Bytes += uint64(n)
	}
	summary.Seconds = time.Since(begin).Seconds()
	return summary, nil
}

// pingData is where a server keeps the data of a round. It has room for the longest round so far.
type pingData struct {
	buf   []byte
	mr    *verbs.MR
	limit int // octets at most
}

// grow makes room for n octets.
func (d *pingData) grow(e *pingEnd, n int) (err error) {
	if n <= len(d.buf) && d.mr != nil {
		return nil
	}
	if d.mr != nil {
		if err := e.Deregister(d.mr); err != nil {
			return err
		}
	}
	// LocalWrite for the answer to a Read (verbs.QPConfig.ReadIntoLocal); LocalRead, to
	// write the data back from it.
	d.buf, d.mr, err = e.Register(max(n, 1), verbs.LocalRead|verbs.LocalWrite)
	return err
}

// fetch reads the buffer that the client's first message of a round names, at most data.limit
// octets, and sends the client its go-ahead.
func (e *pingEnd) fetch(ctx context.Context, source rping.Buffer, data *pingData) (int, error) {
	if uint64(source.Length) > uint64(data.limit) {
		return 0, fmt.Errorf("the client's buffer has %d octets, at most %d are taken; use a larger -S here, or a smaller one there",
			source.Length, data.limit)
	}
	n := int(source.Length)
	if err := data.grow(e, n); err != nil {
		return 0, err
	}
	if err := e.PostSend(verbs.Request{Op: verbs.OpRead, Local: data.mr.SGE(0, n), Remote: source.Remote}); err != nil {
		return 0, err
	}
	if _, err := e.await(ctx, verbs.OpRead); err != nil {
		return 0, err
	}
	return n, e.sendBuffer(rping.Buffer{})
}

// giveBack writes n octets to the buffer that the client's second message of a
// round names. The go-ahead after it proves that they were placed: a Send is
// delivered after the Writes before it (RFC 5040 5.5).
func (e *pingEnd) giveBack(ctx context.Context, mr *verbs.MR, n int) error {
	sink, err := e.recvBuffer(ctx)
	if err != nil {
		return err
	}
	if uint64(sink.Length) < uint64(n) {
		return fmt.Errorf("the client sent %d octets but has room for %d: the peer does not speak the rping protocol",
			n, sink.Length)
	}
	if err := e.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: mr.SGL(0, n), Remote: sink.Remote}); err != nil {
		return err
	}
	if _, err := e.await(ctx, verbs.OpWrite); err != nil {
		return err
	}
	return e.sendBuffer(rping.Buffer{})
}

// pingOutput writes results. A persistent server has several clients at once,
// and a line must stay one line.
type pingOutput struct {
	json bool

	mu sync.Mutex
	w  io.Writer // guarded by mu
}

func (o *pingOutput) data(label string, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fmt.Fprintf(o.w, "%s%s\n", label, rping.Text(data))
}

func (o *pingOutput) summary(s pingSummary) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.json {
		return cli.PrintJSON(o.w, s)
	}
	return cli.Line(o.w, s)
}
