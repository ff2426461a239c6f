package main

import (
	"bytes"
	"context"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

const (
	slots    = 256 // questions on their way at once, of all clients together
	slotSize = 64
)

// serve answers each question, in capitals, until ctx is done.
func serve(ctx context.Context, l *cm.Listener) (answered int, err error) {
	defer l.Close()
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return 0, err
	}
	defer nic.Close()
	pd, err := nic.AllocatePD()
	if err != nil {
		return 0, err
	}
	cq, err := nic.CreateCQ(verbs.CQConfig{Entries: 1 << 16})
	if err != nil {
		return 0, err
	}
	srq, err := nic.CreateSRQ(verbs.SRQConfig{PD: pd, Depth: slots})
	if err != nil {
		return 0, err
	}
	memory, err := pd.Register(make([]byte, slots*slotSize), verbs.LocalRead|verbs.LocalWrite)
	if err != nil {
		return 0, err
	}
	for i := range slots {
		if _, err := srq.PostRecv(receive(memory, uint64(i))); err != nil {
			return 0, err
		}
	}
	go func() {
		for {
			req, err := l.Accept(ctx)
			if err != nil {
				return
			}
			c := &client{}
			// With GracefulReceive a question that finds no receive waits for one.
			c.qp, err = nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SRQ: srq, GracefulReceive: true, SendDepth: 4, Context: c})
			if err != nil {
				return
			}
			if _, err := req.Accept(ctx, c.qp, cm.Config{}); err != nil {
				_ = c.qp.Destroy()
			}
		}
	}()

	var done [slots]verbs.Completion
	for {
		n, err := cq.Wait(ctx, done[:])
		if err != nil {
			_ = l.Shutdown(ctx) // ctx is done: this aborts the connections that are left
			return answered, nil
		}
		for _, c := range done[:n] {
			if c.Op == verbs.OpRecv && c.Err() == nil {
				at := int(c.ID) * slotSize
				text := memory.Bytes()[at:][:c.Bytes]
				copy(text, bytes.ToUpper(text))
				if _, err := c.Context.(*client).qp.PostSend(verbs.Request{ID: c.ID, SGL: memory.SGL(at, len(text))}); err == nil {
					answered++
					continue // the slot is in use until the answer is gone
				}
			}
			// The answer is gone, or the client is.
			if _, err := srq.PostRecv(receive(memory, c.ID)); err != nil {
				return answered, err
			}
		}
	}
}

// client is what the server knows of a client: completions bring it along.
type client struct{ qp *verbs.QP }

func receive(mr *verbs.MR, slot uint64) verbs.Recv {
	return verbs.Recv{ID: slot, SGL: mr.SGL(int(slot)*slotSize, slotSize)}
}
