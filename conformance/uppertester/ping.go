package uppertester

import (
	"context"
	"fmt"
	"net"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/rping"
	"github.com/softrnic/softrnic/verbs"
)

// pingRoom is the longest buffer that Ping takes, in octets, and the one that it
// offers.
const (
	pingRoom  = 4096
	pingOffer = 64
)

// Ping serves one client as `rping -s` does, or connects to a server as `rping -c`
// does, round after round until the stream ends.
func (s *Service) Ping(a ConnectArgs, r *Listening) error {
	p, err := s.newPing()
	if err != nil {
		return err
	}
	if a.Addr != "" {
		s.wg.Go(func() {
			if conn, err := cm.Dial(s.ctx, a.Addr, p.qp, a.config()); err == nil {
				p.run(s.ctx, conn, p.ask)
			}
		})
		return nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(s.host, "0"))
	if err != nil {
		return fmt.Errorf("uppertester: %w", err)
	}
	r.Addr = l.Addr().String()
	s.wg.Go(func() {
		defer context.AfterFunc(s.ctx, func() { _ = l.Close() })()
		nc, err := l.Accept()
		_ = l.Close()
		if err != nil {
			return
		}
		cfg := a.config()
		req, err := cm.Await(s.ctx, nc, cfg)
		if err != nil {
			return
		}
		if conn, err := req.Accept(s.ctx, p.qp, cfg); err == nil {
			p.run(s.ctx, conn, p.answer)
		}
	})
	return nil
}

// ping is one end of an rping: a buffer of pingRoom octets, behind it a place for
// a message of each direction.
type ping struct {
	qp *verbs.QP
	cq *verbs.CQ
	mr *verbs.MR
	// done counts completions that nobody has waited for yet, by operation. One
	// goroutine uses it.
	done map[verbs.Op]int
}

const (
	pingIn  = pingRoom
	pingOut = pingIn + rping.MessageSize
)

func (s *Service) newPing() (*ping, error) {
	var o Opened
	if err := s.Open(OpenArgs{}, &o); err != nil {
		return nil, err
	}
	e, err := s.end(o.QP)
	if err != nil {
		return nil, err
	}
	cq, err := find(s, s.cqs, o.RecvCQ, "CQ")
	if err != nil {
		return nil, err
	}
	mr, err := e.qp.PD().Register(make([]byte, pingOut+rping.MessageSize),
		verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite)
	if err != nil {
		return nil, err
	}
	p := &ping{qp: e.qp, cq: cq, mr: mr, done: map[verbs.Op]int{}}
	if err := p.expect(); err != nil {
		return nil, err
	}
	return p, nil
}

// run plays rounds until one fails, which is how a stream ends.
func (p *ping) run(ctx context.Context, conn *cm.Conn, round func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer cancel()
		select {
		case <-conn.Done():
		case <-ctx.Done():
		}
	}()
	for round(ctx) == nil {
	}
	cancel()
	<-gone
	_ = conn.Close()
}

// answer is a round of the server: it fetches what the client offers, and writes
// it back.
func (p *ping) answer(ctx context.Context) error {
	source, err := p.receive(ctx)
	if err != nil {
		return err
	}
	n := int(min(source.Length, pingRoom))
	if err := p.do(ctx, verbs.Request{Op: verbs.OpRead, Local: p.mr.SGE(0, n), Remote: source.Remote}); err != nil {
		return err
	}
	if err := p.send(ctx, rping.Buffer{}); err != nil {
		return err
	}
	sink, err := p.receive(ctx)
	if err != nil {
		return err
	}
	n = int(min(sink.Length, uint32(n)))
	if err := p.do(ctx, verbs.Request{Op: verbs.OpWrite, SGL: p.mr.SGL(0, n), Remote: sink.Remote}); err != nil {
		return err
	}
	return p.send(ctx, rping.Buffer{})
}

// ask is a round of the client.
func (p *ping) ask(ctx context.Context) error {
	for range 2 {
		if err := p.send(ctx, rping.Buffer{Remote: p.mr.Remote(0), Length: pingOffer}); err != nil {
			return err
		}
		if _, err := p.receive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// expect posts a receive for the next message.
func (p *ping) expect() error {
	_, err := p.qp.PostRecv(verbs.Recv{SGL: p.mr.SGL(pingIn, rping.MessageSize)})
	return err
}

// receive waits for a message.
func (p *ping) receive(ctx context.Context) (rping.Buffer, error) {
	if err := p.await(ctx, verbs.OpRecv); err != nil {
		return rping.Buffer{}, err
	}
	b, err := rping.Parse(p.mr.Bytes()[pingIn:pingOut])
	if err != nil {
		return b, err
	}
	return b, p.expect()
}

func (p *ping) send(ctx context.Context, b rping.Buffer) error {
	b.Put(p.mr.Bytes()[pingOut:])
	return p.do(ctx, verbs.Request{SGL: p.mr.SGL(pingOut, rping.MessageSize)})
}

// do executes a request.
func (p *ping) do(ctx context.Context, w verbs.Request) error {
	if _, err := p.qp.PostSend(w); err != nil {
		return err
	}
	return p.await(ctx, w.Op)
}

// await waits for a completion of an operation.
func (p *ping) await(ctx context.Context, op verbs.Op) error {
	for p.done[op] == 0 {
		var c [1]verbs.Completion
		if _, err := p.cq.Wait(ctx, c[:]); err != nil {
			return err
		}
		if err := c[0].Err(); err != nil {
			return err
		}
		p.done[c[0].Op]++
	}
	p.done[op]--
	return nil
}
