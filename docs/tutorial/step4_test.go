package tutorial

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Step 4: one server, many clients: one completion queue, one shared receive queue,
// one loop.

const (
	clients  = 20
	slots    = 64 // receives posted at a time
	slotSize = 256
)

// client is what the server keeps of one of its clients.
type client struct {
	qp   *verbs.QP
	name string
}

func serveMany(ctx context.Context, l *cm.Listener) error {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer nic.Close()
	pd, err := nic.AllocatePD()
	if err != nil {
		return err
	}
	cq, err := nic.CreateCQ(verbs.CQConfig{Entries: 4096})
	if err != nil {
		return err
	}
	srq, err := nic.CreateSRQ(verbs.SRQConfig{PD: pd, Depth: slots})
	if err != nil {
		return err
	}
	mr, err := pd.Register(make([]byte, slots*slotSize), verbs.LocalRead|verbs.LocalWrite)
	if err != nil {
		return err
	}
	for i := range slots {
		if _, err := srq.PostRecv(slot(mr, i)); err != nil {
			return err
		}
	}
	go func() { // accepting ends when the listener is closed
		for {
			req, err := l.Accept(ctx)
			if err != nil {
				return
			}
			c := &client{name: string(req.PrivateData())}
			c.qp, err = nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SRQ: srq, Context: c})
			if err == nil {
				_, err = req.Accept(ctx, c.qp, cm.Config{})
			}
			if err != nil {
				fmt.Println(c.name, "did not get in:", err)
			}
		}
	}()

	// The loop: a request is answered from the slot that it came in, and the slot is
	// posted again when the answer is gone.
	var done [32]verbs.Completion
	for answered := 0; answered < clients; {
		n, err := cq.Wait(ctx, done[:])
		if err != nil {
			return err
		}
		for _, c := range done[:n] {
			from := c.Context.(*client)
			switch {
			case c.Err() != nil:
				fmt.Println(from.name, "failed:", c.Err()) // its connection has ended, the others go on
			case c.Op == verbs.OpRecv:
				at := mr.Bytes()[c.ID*slotSize:]
				size := copy(at, fmt.Sprintf("hello %s, you said %q", from.name, at[:c.Bytes]))
				_, err = from.qp.PostSend(verbs.Request{ID: c.ID, SGL: mr.SGL(int(c.ID)*slotSize, size)})
			default:
				answered++
				_, err = srq.PostRecv(slot(mr, int(c.ID)))
			}
			if err != nil {
				return err
			}
		}
	}
	return l.Shutdown(ctx) // waits for the clients' closes
}

// slot is a receive into slot i of the region.
func slot(mr *verbs.MR, i int) verbs.Recv {
	return verbs.Recv{ID: uint64(i), SGL: mr.SGL(i*slotSize, slotSize)}
}

func askMany(ctx context.Context, addr string) error {
	var all errgroup.Group
	for i := range clients {
		all.Go(func() error { return ask(ctx, addr, fmt.Sprintf("client %d", i)) })
	}
	return all.Wait()
}

func ask(ctx context.Context, addr, name string) error {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer nic.Close()
	qp, err := nic.CreateEndpoint(verbs.QPConfig{})
	if err != nil {
		return err
	}
	mr, err := qp.PD().Register(make([]byte, 2*slotSize), verbs.LocalRead|verbs.LocalWrite)
	if err != nil {
		return err
	}
	if _, err := qp.PostRecv(verbs.Recv{ID: 1, SGL: mr.SGL(slotSize, slotSize)}); err != nil {
		return err
	}
	conn, err := cm.Dial(ctx, addr, qp, cm.Config{PrivateData: []byte(name)})
	if err != nil {
		return err
	}
	n := copy(mr.Bytes(), "good day")
	if _, err := qp.PostSend(verbs.Request{Flags: verbs.Unsignaled, SGL: mr.SGL(0, n)}); err != nil {
		return err
	}
	c, err := qp.RecvCQ().WaitOne(ctx)
	if err != nil {
		return err
	}
	if name == "client 7" {
		fmt.Printf("%s\n", mr.Bytes()[slotSize:][:c.Bytes])
	}
	return conn.Close()
}

func Example_manyClients() {
	both(serveMany, askMany)
	// Output:
	// hello client 7, you said "good day"
}
