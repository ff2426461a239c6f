package main

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

const puts = 64 // that may be on their way at once

// serve lets clients read the table by themselves, and puts what they send, until ctx is done. All clients share
// the receives and the completion queue.
func serve(ctx context.Context, l *cm.Listener) error {
	defer l.Close()
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer nic.Close() // and with it whatever it handed out
	pd, err := nic.AllocatePD()
	if err != nil {
		return err
	}
	cq, err := nic.CreateCQ(verbs.CQConfig{Entries: 4096})
	if err != nil {
		return err
	}
	srq, err := nic.CreateSRQ(verbs.SRQConfig{PD: pd, Depth: puts})
	if err != nil {
		return err
	}
	table, err := pd.Register(make([]byte, slots*slotSize), verbs.LocalRead|verbs.RemoteRead) // clients may not write
	if err != nil {
		return err
	}
	inbox, err := pd.Register(make([]byte, puts*slotSize), verbs.LocalRead|verbs.LocalWrite)
	if err != nil {
		return err
	}
	for i := range puts {
		if _, err := srq.PostRecv(verbs.Recv{ID: uint64(i), SGL: inbox.SGL(i*slotSize, slotSize)}); err != nil {
			return err
		}
	}
	go accept(ctx, l, nic, table, verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SRQ: srq})

	var done [puts]verbs.Completion
	for {
		n, err := cq.Wait(ctx, done[:])
		if err != nil {
			_ = l.Shutdown(ctx) // ctx is done: this aborts the connections that are left
			return nil
		}
		for _, c := range done[:n] {
			at := int(c.ID) * slotSize
			if c.Op == verbs.OpRecv && c.Err() == nil {
				answer := "ok"
				if err := put(table.Bytes(), inbox.Bytes()[at:][:slotSize]); err != nil {
					answer = err.Error()
				}
				size := copy(inbox.Bytes()[at:at+slotSize], answer)
				if _, err := c.Context.(*client).qp.PostSend(verbs.Request{ID: c.ID, SGL: inbox.SGL(at, size)}); err == nil {
					continue // the slot is in use until the answer is gone
				}
			}
			// The answer is gone, or the client is.
			if _, err := srq.PostRecv(verbs.Recv{ID: c.ID, SGL: inbox.SGL(at, slotSize)}); err != nil {
				return err
			}
		}
	}
}

// client is what the server knows of a client: completions bring it along.
type client struct{ qp *verbs.QP }

// accept takes clients in, and tells each where the table is.
func accept(ctx context.Context, l *cm.Listener, nic *verbs.RNIC, table *verbs.MR, config verbs.QPConfig) {
	where, err := table.Remote(0).MarshalBinary()
	for err == nil {
		var req *cm.Request
		if req, err = l.Accept(ctx); err != nil {
			return // the listener is closed
		}
		c := &client{}
		config.Context = c
		if c.qp, err = nic.CreateQP(config); err != nil {
			return // the RNIC is closed
		}
		conn, failed := req.Accept(ctx, c.qp, cm.Config{PrivateData: where})
		if failed != nil {
			fmt.Println("a client did not get in:", failed)
			_ = c.qp.Destroy()
			continue
		}
		go func() {
			<-conn.Done()
			_ = c.qp.Destroy() // what it has not completed has been flushed: the slots come back
		}()
	}
}
