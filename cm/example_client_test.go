package cm_test

import (
	"context"
	"log"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A client, from the beginning to the end: it connects, registers memory, sends, waits
// and closes. What CreateEndpoint makes brings its completion queues along.
func Example_client() {
	addr, received := greeted() // a server that prints what it receives

	ctx := context.Background()
	nic, err := verbs.Open(verbs.Config{})
	check(err)
	defer nic.Close()
	qp, err := nic.CreateEndpoint(verbs.QPConfig{})
	check(err)
	mr, err := qp.PD().Register([]byte("hello"), verbs.LocalRead)
	check(err)
	conn, err := cm.Dial(ctx, addr, qp, cm.Config{})
	check(err)
	_, err = qp.PostSend(verbs.Request{ID: 1, SGL: mr.All()})
	check(err)
	_, err = qp.SendCQ().WaitOne(ctx) // the request's own failure is an error too
	check(err)
	check(conn.Close())

	<-received
	// Output:
	// Recv 7: hello
}
