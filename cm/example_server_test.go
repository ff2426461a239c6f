package cm_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// greeted starts a server that prints the first message of one client. The channel is
// closed when that client has gone.
func greeted() (addr string, gone <-chan struct{}) {
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	check(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		greet(context.Background(), l)
	}()
	return l.Addr().String(), done
}

func greet(ctx context.Context, l *cm.Listener) {
	defer l.Close()
	nic, err := verbs.Open(verbs.Config{})
	check(err)
	defer nic.Close()
	qp, err := nic.CreateEndpoint(verbs.QPConfig{})
	check(err)
	mr, err := qp.PD().Register(make([]byte, 4096), verbs.LocalWrite)
	check(err)
	_, err = qp.PostRecv(verbs.Recv{ID: 7, SGL: mr.All()}) // before anybody can send
	check(err)
	req, err := l.Accept(ctx)
	check(err)
	conn, err := req.Accept(ctx, qp, cm.Config{})
	check(err)
	done, err := qp.RecvCQ().WaitOne(ctx)
	check(err)
	fmt.Printf("%v %d: %s\n", done.Op, done.ID, mr.Bytes()[:done.Bytes])
	<-conn.Done() // the client closes
}
