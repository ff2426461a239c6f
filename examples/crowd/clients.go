package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// ask has clients ask questions each, one behind the other, and compares the answers.
func ask(ctx context.Context, addr string, clients, questions int) (answers int64, err error) {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return 0, err
	}
	defer nic.Close()
	all, ctx := errgroup.WithContext(ctx)
	var count atomic.Int64
	for who := range clients {
		all.Go(func() error { return one(ctx, nic, addr, who, questions, &count) })
	}
	err = all.Wait()
	return count.Load(), err
}

// one is one client.
func one(ctx context.Context, nic *verbs.RNIC, addr string, who, questions int, count *atomic.Int64) error {
	qp, err := nic.CreateEndpoint(verbs.QPConfig{SendDepth: 4, RecvDepth: 4})
	if err != nil {
		return err
	}
	defer func() { _ = qp.Destroy() }()
	mr, err := qp.PD().Register(make([]byte, 2*slotSize), verbs.LocalRead|verbs.LocalWrite)
	if err != nil {
		return err
	}
	conn, err := cm.Dial(ctx, addr, qp, cm.Config{})
	if err != nil {
		return err
	}
	for i := range questions {
		if _, err := qp.PostRecv(verbs.Recv{SGL: mr.SGL(slotSize, slotSize)}); err != nil {
			return err
		}
		n := copy(mr.Bytes(), fmt.Sprintf("client %d, question %d", who, i))
		if _, err := qp.PostSend(verbs.Request{SGL: mr.SGL(0, n)}); err != nil {
			return err
		}
		for _, cq := range []*verbs.CQ{qp.SendCQ(), qp.RecvCQ()} {
			if _, err := cq.WaitOne(ctx); err != nil {
				return err
			}
		}
		if got, want := string(mr.Bytes()[slotSize:][:n]), fmt.Sprintf("CLIENT %d, QUESTION %d", who, i); got != want {
			return fmt.Errorf("the answer is %q, not %q", got, want)
		}
		count.Add(1)
	}
	return conn.Close()
}
