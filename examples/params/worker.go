package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// A step that takes longer than patience has lost its path. So long as attempts lasts, others are tried.
const (
	patience = 500 * time.Millisecond
	attempts = 30 * time.Second
)

// path is a connection with the server.
type path struct {
	addr   string
	qp     *verbs.QP
	conn   *cm.Conn
	values verbs.Remote
}

// work does the steps of a worker, by the first address that has a path.
func work(ctx context.Context, id, steps int, addrs []string, out io.Writer) error {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer nic.Close()
	pd, err := nic.AllocatePD()
	if err != nil {
		return err
	}
	memory, err := pd.Register(make([]byte, pushSize+octets), verbs.LocalRead|verbs.LocalWrite)
	if err != nil {
		return err
	}
	push := memory.Bytes()[:pushSize]
	binary.LittleEndian.PutUint32(push, uint32(id))
	binary.LittleEndian.PutUint32(push[8:], uint32(steps))
	for i := range parameters {
		setValue(push[header:], i, share(id, i))
	}

	var p *path
	at := 0
	lost := time.Time{}
	for step := 1; step <= steps; {
		if p == nil {
			if p, err = connect(ctx, nic, pd, addrs[at]); err != nil {
				if lost.IsZero() {
					lost = time.Now()
				}
				if ctx.Err() != nil || time.Since(lost) > attempts {
					return fmt.Errorf("no path to the server is left: %w", err)
				}
				at = (at + 1) % len(addrs)
				continue
			}
			fmt.Fprintf(out, "worker %d: step %d of %d by %s\n", id, step, steps, p.addr)
		}
		binary.LittleEndian.PutUint32(push[4:], uint32(step))
		if err := p.step(ctx, memory); err != nil {
			fmt.Fprintf(out, "worker %d: step %d by %s: %v\n", id, step, p.addr, err)
			p.close()
			p, lost = nil, time.Now()
			at = (at + 1) % len(addrs)
			continue
		}
		step++
		lost = time.Time{}
	}
	fmt.Fprintf(out, "worker %d: done\n", id)
	if p != nil {
		p.close()
	}
	return nil
}

func connect(ctx context.Context, nic *verbs.RNIC, pd *verbs.PD, addr string) (*path, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cq, err := nic.CreateCQ(verbs.CQConfig{Entries: 16})
	if err != nil {
		return nil, err
	}
	p := &path{addr: addr}
	if p.qp, err = nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, ReadIntoLocal: true}); err == nil {
		p.conn, err = cm.Dial(ctx, addr, p.qp, cm.Config{})
	}
	if err == nil {
		p.values, err = verbs.ParseRemote(p.conn.PrivateData())
	}
	if err != nil {
		p.close()
		time.Sleep(10 * time.Millisecond) // a server that refuses at once is asked again soon enough
		return nil, err
	}
	return p, nil
}

// close leaves nothing of a path, whatever of it there is.
func (p *path) close() {
	if p.conn != nil {
		_ = p.conn.Abort()
	}
	if p.qp != nil {
		cq := p.qp.SendCQ()
		_ = p.qp.Destroy()
		_ = cq.Destroy()
	}
}

// step fetches the parameters, and has the server add to them. memory is the push, and room for the parameters.
func (p *path) step(ctx context.Context, memory *verbs.MR) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("nothing for %v: the path is lost", patience))
	defer cancel()
	if _, err := p.qp.PostRecv(verbs.Recv{}); err != nil { // for the answer
		return err
	}
	read := verbs.Request{Op: verbs.OpRead, Local: memory.SGE(pushSize, octets), Remote: p.values}
	if _, err := p.qp.PostSend(read); err != nil {
		return err
	}
	// Here a program would compute from the parameters what it pushes, once the Read is complete.
	if _, err := p.qp.PostSend(verbs.Request{SGL: memory.SGL(0, pushSize)}); err != nil {
		return err
	}
	for range 3 { // the Read, the Send, the answer
		c, err := p.qp.SendCQ().WaitOne(ctx)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			err = c.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
