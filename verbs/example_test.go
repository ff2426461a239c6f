package verbs_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Two programs, here in one: each opens an RNIC and ties a queue pair to a
// protection domain, a completion queue and memory. The client then sends a
// message, which lands in the buffer that the server has posted for it.
func Example() {
	ctx := context.Background()
	client, server := open(), open()
	defer client.nic.Close()
	defer server.nic.Close()

	// The server: post a receive first, then let the client in.
	if _, err := server.qp.PostRecv(verbs.Recv{ID: 1, SGL: server.mr.SGL(0, 64)}); err != nil {
		log.Fatal(err)
	}
	toServer, toClient := net.Pipe() // or a TCP connection
	go func() {
		req, err := cm.Await(ctx, toClient, cm.Config{})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := req.Accept(ctx, server.qp, cm.Config{}); err != nil {
			log.Fatal(err)
		}
	}()

	// The client: connect, fill a piece of its region, send it.
	conn, err := cm.Connect(ctx, toServer, client.qp, cm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	n := copy(client.mr.Bytes(), "hello")
	if _, err := client.qp.PostSend(verbs.Request{ID: 2, SGL: client.mr.SGL(0, n)}); err != nil {
		log.Fatal(err)
	}

	var done [1]verbs.Completion
	if _, err := server.cq.Wait(ctx, done[:]); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v %d, %v: %s\n", done[0].Op, done[0].ID, done[0].Status, server.mr.Bytes()[:done[0].Bytes])
	if _, err := client.cq.Wait(ctx, done[:]); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v %d, %v\n", done[0].Op, done[0].ID, done[0].Status)
	if err := conn.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Recv 1, Success: hello
	// Send 2, Success
}

// open makes what a program needs once.
func open() *node {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		log.Fatal(err)
	}
	pd, err := nic.AllocatePD()
	if err != nil {
		log.Fatal(err)
	}
	cq, err := nic.CreateCQ(verbs.CQConfig{Entries: 128})
	if err != nil {
		log.Fatal(err)
	}
	qp, err := nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
	if err != nil {
		log.Fatal(err)
	}
	mr, err := pd.Register(make([]byte, 4096), verbs.LocalRead|verbs.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	return &node{nic, pd, cq, qp, mr}
}
