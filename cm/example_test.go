package cm_test

import (
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// A server that offers memory to be read, and a client that reads it. The
// server's program does nothing more once it has said where the memory is: its
// queue pair answers.
func Example() {
	ctx := context.Background()
	listener, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		serve(ctx, listener)
	}()

	qp, cq, mr := setup(make([]byte, 64), verbs.LocalWrite|verbs.RemoteWrite) // the sink of a Read is written to
	conn, err := cm.Dial(ctx, listener.Addr().String(), qp, cm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	there, err := verbs.ParseRemote(conn.PrivateData())
	if err != nil {
		log.Fatal(err)
	}
	_, err = qp.PostSend(verbs.Request{ID: 1, Op: verbs.OpRead, Local: mr.SGE(0, 18), Remote: there})
	if err != nil {
		log.Fatal(err)
	}
	done, err := cq.WaitOne(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v: %s\n", done.Status, mr.Bytes()[:18])
	if err := conn.Close(); err != nil {
		log.Fatal(err)
	}
	<-served
	// Output:
	// Success: read me if you can
}

// serve accepts one client, tells it where the memory is, and waits for its
// close.
func serve(ctx context.Context, l *cm.Listener) {
	qp, _, mr := setup([]byte("read me if you can"), verbs.LocalRead|verbs.RemoteRead)
	req, err := l.Accept(ctx)
	if err != nil {
		log.Fatal(err)
	}
	where, err := mr.Remote(0).MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	conn, err := req.Accept(ctx, qp, cm.Config{PrivateData: where})
	if err != nil {
		log.Fatal(err)
	}
	<-conn.Done()
}

// setup makes an RNIC with one of everything.
func setup(memory []byte, access verbs.Access) (*verbs.QP, *verbs.CQ, *verbs.MR) {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		log.Fatal(err)
	}
	pd, err := nic.AllocatePD()
	if err != nil {
		log.Fatal(err)
	}
	cq, err := nic.CreateCQ(verbs.CQConfig{})
	if err != nil {
		log.Fatal(err)
	}
	qp, err := nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
	if err != nil {
		log.Fatal(err)
	}
	mr, err := pd.Register(memory, access)
	if err != nil {
		log.Fatal(err)
	}
	return qp, cq, mr
}
