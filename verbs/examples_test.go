package verbs_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// The examples below need two programs that are connected. Here both are in one,
// and every error ends it.

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must1[T any](v T, err error) T {
	check(err)
	return v
}

// connect brings two queue pairs to RTS: a through cm.Connect, b through cm.Await.
func connect(a, b *verbs.QP) {
	ctx := context.Background()
	x, y := net.Pipe() // or a TCP connection
	accepted := make(chan error)
	go func() {
		req, err := cm.Await(ctx, y, cm.Config{})
		if err == nil {
			_, err = req.Accept(ctx, b, cm.Config{})
		}
		accepted <- err
	}()
	must1(cm.Connect(ctx, x, a, cm.Config{}))
	check(<-accepted)
}

// reap waits for one completion and wants a success.
func reap(cq *verbs.CQ) verbs.Completion {
	var done [1]verbs.Completion
	must1(cq.Wait(context.Background(), done[:]))
	check(done[0].Err())
	return done[0]
}

// A window opens a piece of a region to the peer of one queue pair, and closes it
// again, by work requests: without a registration, and without the region having
// remote rights itself.
func ExampleMW() {
	client, server := open(), open()
	defer client.nic.Close()
	defer server.nic.Close()
	region := must1(server.pd.Register([]byte("private PUBLIC private"), verbs.LocalRead|verbs.BindWindow))
	window := must1(server.pd.AllocateWindow())
	connect(client.qp, server.qp)

	// The server opens six octets for reading. A message would tell the client
	// where they are.
	bind := window.BindRequest(region, 8, 6, verbs.RemoteRead, 1)
	must1(server.qp.PostSend(verbs.Request{Op: verbs.OpBind, Bind: bind}))
	fmt.Println(reap(server.cq).Op)
	advertised := verbs.BindBuffer(bind)

	// The client reads them, and gives the window back with its last message.
	sink := must1(client.pd.Register(make([]byte, 6), verbs.LocalWrite|verbs.RemoteWrite))
	must1(server.qp.PostRecv(verbs.Recv{ID: 7}))
	must1(client.qp.PostSend(
		verbs.Request{Op: verbs.OpRead, Local: sink.SGE(0, 6), Remote: advertised.Remote(0)},
		verbs.Request{Op: verbs.OpSendInvalidate, Flags: verbs.ReadFence, Invalidate: advertised.STag}))
	fmt.Printf("%v: %s\n", reap(client.cq).Op, sink.Bytes())
	done := reap(server.cq)
	fmt.Println(done.Op, done.ID, done.Invalidated == window.STag(1))
	// Output:
	// Bind
	// Read: PUBLIC
	// Recv 7 true
}

// Clients draw numbers from memory of the server, whose program does nothing for it.
func ExampleFetchAdd() {
	extended := verbs.QPConfig{Extensions: true} // of RFC 7306, at both ends
	client, server := open(), open()
	defer client.nic.Close()
	defer server.nic.Close()
	tickets := must1(server.pd.Register(make([]byte, 8), verbs.LocalRead|verbs.LocalWrite|verbs.RemoteAtomic))
	extended.PD, extended.SendCQ, extended.RecvCQ = server.pd, server.cq, server.cq
	theirs := must1(server.nic.CreateQP(extended))
	extended.PD, extended.SendCQ, extended.RecvCQ = client.pd, client.cq, client.cq
	ours := must1(client.nic.CreateQP(extended))
	connect(ours, theirs)

	next := verbs.Request{Op: verbs.OpFetchAdd, Remote: tickets.Remote(0), Atomic: verbs.FetchAdd(1)}
	for range 3 {
		must1(ours.PostSend(next))
		fmt.Println("ticket", reap(client.cq).Value)
	}
	// Output:
	// ticket 0
	// ticket 1
	// ticket 2
}

// Receives for all clients wait in one place. An event asks for more before they
// run out.
func ExampleSRQ() {
	server, one, two := open(), open(), open()
	defer server.nic.Close()
	defer one.nic.Close()
	defer two.nic.Close()
	low := make(chan verbs.Event, 1)
	check(server.nic.SetEventHandler(func(e verbs.Event) {
		if e.ID == verbs.EventSRQLimit {
			low <- e
		}
	}))
	srq := must1(server.nic.CreateSRQ(verbs.SRQConfig{PD: server.pd, Depth: 16, Limit: 2}))
	for id := range 3 {
		must1(srq.PostRecv(verbs.Recv{ID: uint64(id), SGL: server.mr.SGL(id*64, 64)}))
	}
	greet := func(client *node, greeting string) {
		qp := must1(server.nic.CreateQP(verbs.QPConfig{PD: server.pd, SendCQ: server.cq, RecvCQ: server.cq, SRQ: srq}))
		connect(client.qp, qp)
		n := copy(client.mr.Bytes(), greeting)
		must1(client.qp.PostSend(verbs.Request{SGL: client.mr.SGL(0, n)}))
		done := reap(server.cq)
		buf := server.mr.Bytes()[done.ID*64:]
		fmt.Printf("receive %d: %s, of this client: %t\n", done.ID, buf[:done.Bytes], done.QP == qp.ID())
	}
	greet(one, "hello")
	greet(two, "good morning")
	e := <-low
	fmt.Println(e.ID)
	must1(srq.PostRecv(verbs.Recv{ID: 0, SGL: server.mr.SGL(0, 64)}, verbs.Recv{ID: 1, SGL: server.mr.SGL(64, 64)}))
	check(server.nic.SRQ(e.SRQ).Modify(verbs.ModifySRQ{Rearm: true}))
	// Output:
	// receive 0: hello, of this client: true
	// receive 1: good morning, of this client: true
	// Shared Receive Queue Limit Reached
}

// A privileged program puts physical memory under an STag, and other memory later,
// by work requests.
func ExampleFastRegisterRequest() {
	client, server := open(), open()
	defer client.nic.Close()
	defer server.nic.Close()
	qp := must1(client.nic.CreateQP(verbs.QPConfig{PD: client.pd, SendCQ: client.cq, RecvCQ: client.cq, Privileged: true}))
	connect(qp, server.qp)
	pages := must1(client.nic.AllocatePages(4, 4096))
	copy(pages.Bytes()[4000:], "over the edge of a page, ")
	region := must1(client.pd.AllocateRegion(verbs.AllocateConfig{PBL: 4}))

	fast := verbs.FastRegisterRequest{
		STag: region.WithKey(1), Buffers: pages.List(4000, 4192), Addressing: verbs.ZeroBased, Access: verbs.LocalRead,
	}
	must1(server.qp.PostRecv(verbs.Recv{SGL: server.mr.SGL(0, 64)}))
	must1(qp.PostSend(
		verbs.Request{Op: verbs.OpFastRegister, FastRegister: &fast},
		verbs.Request{SGL: verbs.FastRegisterBuffer(&fast).SGL(0, 23)}, // it takes effect before this
		verbs.Request{Op: verbs.OpInvalidate, Flags: verbs.LocalFence, Invalidate: fast.STag}))
	for range 3 {
		fmt.Println(reap(client.cq).Op)
	}
	fmt.Printf("%s\n", server.mr.Bytes()[:reap(server.cq).Bytes])
	// Output:
	// FastRegister
	// Send
	// Invalidate
	// over the edge of a page
}

// A program that has better things to do than to poll is called. It polls, asks
// for the next call, and polls once more, for what came in between.
func ExampleRNIC_AddCompletionHandler() {
	client, server := open(), open()
	defer client.nic.Close()
	defer server.nic.Close()
	received := make(chan verbs.Completion, 8)
	handler := must1(server.nic.AddCompletionHandler(func(cq *verbs.CQ) {
		poll := func() {
			for {
				done, err := cq.PollOne()
				if err != nil { // ErrCQEmpty
					return
				}
				received <- done
			}
		}
		poll()
		if cq.Notify(verbs.NotifySolicited) != nil { // the program has what it wanted, and has closed the RNIC
			return
		}
		poll()
	}))
	cq := must1(server.nic.CreateCQ(verbs.CQConfig{Handler: handler}))
	qp := must1(server.nic.CreateQP(verbs.QPConfig{PD: server.pd, SendCQ: cq, RecvCQ: cq}))
	must1(qp.PostRecv(verbs.Recv{ID: 1}, verbs.Recv{ID: 2}, verbs.Recv{ID: 3}))
	check(cq.Notify(verbs.NotifySolicited))
	connect(client.qp, qp)

	// The first two wake nobody; the third asks for it.
	must1(client.qp.PostSend(verbs.Request{}, verbs.Request{}, verbs.Request{Op: verbs.OpSendSE}))
	for range 3 {
		fmt.Println((<-received).ID)
	}
	// Output:
	// 1
	// 2
	// 3
}
