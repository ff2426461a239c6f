package tutorial

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Step 3: something goes wrong. The receive is for four octets, the message has five.

func receiveTooLittle(ctx context.Context, l *cm.Listener) error {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer nic.Close()
	qp, err := nic.CreateEndpoint(verbs.QPConfig{})
	if err != nil {
		return err
	}
	mr, err := qp.PD().Register(make([]byte, 4), verbs.LocalWrite)
	if err != nil {
		return err
	}
	if _, err := qp.PostRecv(verbs.Recv{ID: 7, SGL: mr.All()}); err != nil {
		return err
	}
	req, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	conn, err := req.Accept(ctx, qp, cm.Config{})
	if err != nil {
		return err
	}
	_, err = qp.RecvCQ().WaitOne(ctx)
	var failed *verbs.CompletionError
	if errors.As(err, &failed) {
		fmt.Printf("server: %v %d: %v\n", failed.Op, failed.ID, failed.Status)
	}
	<-conn.Done()
	var why *verbs.StreamError
	if errors.As(conn.Err(), &why) {
		fmt.Printf("server: %s, Terminate %v\n", why.Reason, why.Terminate.Code)
	}
	return nil
}

func sendTooMuch(ctx context.Context, addr string) error {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer nic.Close()
	qp, err := nic.CreateEndpoint(verbs.QPConfig{})
	if err != nil {
		return err
	}
	mr, err := qp.PD().Register([]byte("hello"), verbs.LocalRead)
	if err != nil {
		return err
	}
	conn, err := cm.Dial(ctx, addr, qp, cm.Config{})
	if err != nil {
		return err
	}
	if _, err := qp.PostSend(verbs.Request{SGL: mr.All()}); err != nil {
		return err
	}
	// The Send itself succeeds: TCP took it. What became of it shows later.
	if _, err := qp.SendCQ().WaitOne(ctx); err != nil {
		return err
	}
	<-conn.Done()
	var why *verbs.StreamError
	if errors.As(conn.Err(), &why) && !why.Terminate.Sent {
		fmt.Printf("client: the server says %v\n", why.Terminate.Code)
	}
	return nil
}

func Example_refused() {
	both(receiveTooLittle, sendTooMuch)
	// Unordered output:
	// server: Recv 7: Base and Bounds Violation
	// server: Send longer than the receive posted for it, Terminate 0x1205 (DDP message too long for its buffer)
	// client: the server says 0x1205 (DDP message too long for its buffer)
}
