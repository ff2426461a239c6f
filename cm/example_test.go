package cm_test

import (
	"context"
	"encoding/binary"
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
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(ctx, listener)
	}()

	qp, cq, mr := setup(make([]byte, 64), verbs.LocalWrite|verbs.RemoteWrite) // the sink of a Read is written to
	conn, err := cm.Dial(ctx, listener.Addr().String(), qp, cm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	at := conn.PrivateData()
	_, err = qp.PostSend(verbs.Send{
		ID: 1, Op: verbs.OpRead, Local: mr.SGE(0, 18),
		Remote: verbs.Remote{STag: verbs.STag(binary.BigEndian.Uint32(at)), TO: binary.BigEndian.Uint64(at[4:])},
	})
	if err != nil {
		log.Fatal(err)
	}
	var c [1]verbs.Completion
	if _, err := cq.Wait(ctx, c[:]); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v: %s\n", c[0].Status, mr.Bytes()[:18])
	if err := conn.Close(); err != nil {
		log.Fatal(err)
	}
	<-done
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
	at := mr.Remote(0)
	where := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, uint32(at.STag)), at.TO)
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
	pd, err := nic.AllocPD()
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
