package tutorial

import (
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Step 1: a message.

func receiveOne(ctx context.Context, l *cm.Listener) error {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer nic.Close()
	qp, err := nic.CreateEndpoint(verbs.QPConfig{})
	if err != nil {
		return err
	}
	mr, err := qp.PD().Register(make([]byte, 4096), verbs.LocalWrite)
	if err != nil {
		return err
	}
	if _, err := qp.PostRecv(verbs.Recv{SGL: mr.SGL(0, 4096)}); err != nil {
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
	c, err := qp.RecvCQ().WaitOne(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("got %q\n", mr.Bytes()[:c.Bytes])
	return conn.Close()
}

func sendOne(ctx context.Context, addr string) error {
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
	if _, err := qp.SendCQ().WaitOne(ctx); err != nil {
		return err
	}
	return conn.Close()
}

func Example_message() {
	both(receiveOne, sendOne)
	// Output:
	// got "hello"
}

// both runs a server and a client, which find each other on this machine.
func both(server func(context.Context, *cm.Listener) error, client func(context.Context, string) error) {
	ctx := context.Background()
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server(ctx, l) }()
	if err := client(ctx, l.Addr().String()); err != nil {
		log.Fatal("client: ", err)
	}
	if err := <-served; err != nil {
		log.Fatal("server: ", err)
	}
	if err := l.Close(); err != nil {
		log.Fatal(err)
	}
}
