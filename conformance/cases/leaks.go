package cases

import (
	"context"
	"net"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/nd2"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/vipl"
)

// leaks are cases of what is given back in corners that no other case goes through. What is left behind the runner
// finds, here as everywhere: a case has to bring it about.
var leaks = []conformance.Case{
	apiCase("5.3.4/late-completions-dropped", lateCompletionsDropped, "RV-5.3.4-M4"),
	apiCase("5.3.4/slots-of-an-srq", onHost(slotsOfAnSRQ), "RV-5.3.4-M4", "RV-6.3.7-M2"),
	apiCase("5.3.1/overflow-frees-srq-slots", onHost(overflowFreesSlots), "RV-5.3.1-M6", "RV-6.3.7-M2"),
	apiCase("7.9/pages-of-two-allocations", onHost(pagesOfTwoAllocations), "RV-7.6.2-M1", "RV-7.9-M8"),
	apiCase("6.1.4/cqs-of-what-has-gone", onHost(cqsOfWhatHasGone), "RV-6.1.4-M2"),
	apiCase("6.3.3/stream-that-waits-ends", streamThatWaitsEnds, "RV-6.3.3-M3", "RV-6.3.6-M3"),
	apiCase("6.4.1/places-of-a-listener", onHost(placesOfAListener), "R5042-6.4.1-M1"),
	apiCase("4.1/vi-waits-and-requests-end", viWaitsAndRequestsEnd, "VA-4.1-M1"),
	apiCase("Receive/nd-srq-closed-while-asleep", ndSRQClosedWhileAsleep, "ND-Receive-R1"),
}

// comesToHold waits until the case holds as much of what.
func comesToHold(t *conformance.T, n int, what string) {
	eventually(t, func() bool { return t.Held()[what] == n }, "%d in %q", n, what)
}

// lateCompletionsDropped destroys a CQ whose completions a fault plan keeps back.
func lateCompletionsDropped(t *conformance.T) {
	plan := must(fault.Parse("completion 1: delay 1h"))(t)
	n := newHost(t, hostConfig{RNIC: verbs.Config{Faults: must(fault.New(plan, nil))(t)}})
	cq := n.newCQ(8)
	qp := n.newQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
	postRecv(t, qp, verbs.Recv{ID: 1}, verbs.Recv{ID: 2})
	require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	comesToHold(t, 2, "cq CQ: late completion")
	require.NoError(t, qp.Destroy())
	require.NoError(t, cq.Destroy())
}

// slotsOfAnSRQ destroys two queue pairs and their CQ, on which are completions of receives of an S-RQ, of one and then
// of the other: all slots can be posted to again.
func slotsOfAnSRQ(t *conformance.T, n *host) {
	const depth = 4
	s := n.newSRQ(verbs.SRQConfig{Depth: depth})
	for range counted(t, "CQ %d", 3) {
		cq := n.newCQ(depth)
		both := []*link{n.link(verbs.QPConfig{SRQ: s, RecvCQ: cq}), n.link(verbs.QPConfig{SRQ: s, RecvCQ: cq})}
		n.receives(s, upTo(1, depth)...)
		for i := range depth {
			both[i/(depth/2)].sendMessage([]byte{1})
			both[i/(depth/2)].settled()
		}
		require.ErrorIs(t, second(s.PostRecv(n.aReceive(9))), verbs.ErrQueueFull, "their completions were not polled")
		succeed(t, both[0].qp.Destroy, both[1].qp.Destroy, cq.Destroy)
	}
	n.receives(s, upTo(1, depth)...)
	require.ErrorIs(t, second(s.PostRecv(n.aReceive(9))), verbs.ErrQueueFull, "no more than its depth")
	n.link(verbs.QPConfig{SRQ: s}).says(1)
}

// overflowFreesSlots has messages into an S-RQ overflow the CQ of a queue pair: the S-RQ is whole for the others. The
// receive whose completion found no room will never be polled, so it does not count as used.
func overflowFreesSlots(t *conformance.T, n *host) {
	const depth = 3
	s := n.newSRQ(verbs.SRQConfig{Depth: depth})
	n.receives(s, upTo(1, depth)...)
	for range counted(t, "overflow %d", depth) {
		cq := n.newCQ(1)
		l := n.link(verbs.QPConfig{SRQ: s, RecvCQ: cq})
		l.sendMessage(nil)
		l.sendMessage(nil)
		reaches(t, l.qp, verbs.StateTerminate)
		l.rest()
		l.closesTo(verbs.StateError)
		requireOverflow(l)
		await(t, cq, 1)
		n.receives(s, 1, 2)
		require.ErrorIs(t, second(s.PostRecv(n.aReceive(9))), verbs.ErrQueueFull, "no more than its depth")
	}
	n.link(verbs.QPConfig{SRQ: s}).says(2)
}

// pagesOfTwoAllocations has a region on buffers of two allocations in turn, and gives all three back: who frees pages
// waits for what uses them, and nothing does.
func pagesOfTwoAllocations(t *conformance.T, n *host) {
	a, b := n.pages(2, 4096), n.pages(2, 4096)
	list := verbs.PhysicalBuffers{
		Size: 4096, Addresses: []uint64{a.Address(0), b.Address(0), a.Address(1), b.Address(1)}, Length: 4 * 4096,
	}
	mr := n.region(n.pd, verbs.RegionConfig{Buffers: list, Access: allRights, VA: 4096})
	l := n.link(verbs.QPConfig{})
	l.send(aWrite(uint32(mr.STag()), mr.Remote(4090).TO, []byte("from a to b")))
	l.settled()
	require.Equal(t, []string{"from a", " to b"}, []string{string(a.Bytes()[4090:4096]), string(b.Bytes()[:5])})
	freed := make(chan error, 1)
	for _, free := range []func() error{mr.Deregister, a.Deallocate, b.Deallocate} {
		go func() { freed <- free() }()
		require.NoError(t, receive(t, freed, "it is not used, and cannot be freed"))
	}
}

// cqsOfWhatHasGone destroys queue pairs that share a receive CQ, and the send CQ that each had of its own: what is
// served for that receive CQ is what there was before.
func cqsOfWhatHasGone(t *conformance.T, n *host) {
	const served = "netpoll group: queue"
	rq := n.newCQ(8)
	stays := n.link(verbs.QPConfig{RecvCQ: rq})
	before := t.Held()[served]
	if before == 0 { // make paths: polls of a queue drive nothing
		stays.settled()
		return
	}
	for range counted(t, "queue pair %d", 3) {
		l := n.link(verbs.QPConfig{RecvCQ: rq})
		require.Equal(t, before+1, t.Held()[served], "its send CQ")
		notify(t, l.sq, verbs.NotifyNext)
		succeed(t, l.qp.Destroy, l.sq.Destroy)
		require.Equal(t, before, t.Held()[served], "its send CQ is gone")
	}
	stays.settled()
}

// streamThatWaitsEnds ends a stream that waits for a receive of an S-RQ: the queue is for others then.
func streamThatWaitsEnds(t *conformance.T) {
	w := newHostPair(t, hostPairConfig{})
	srq := w.b.newSRQ(verbs.SRQConfig{Depth: 4})
	a, b := w.connectMore(verbs.QPConfig{}, verbs.QPConfig{SRQ: srq, GracefulReceive: true})
	run(t, a, verbs.Request{ID: 1}, verbs.StatusSuccess)
	comesToHold(t, 1, "srq S-RQ: waiting stream")
	require.NoError(t, b.Destroy())
	require.Zero(t, t.Held()["srq S-RQ: waiting stream"], "nobody waits")
	a, b = w.connectMore(verbs.QPConfig{}, verbs.QPConfig{SRQ: srq})
	require.NoError(t, second(srq.PostRecv(verbs.Recv{ID: 2})))
	run(t, a, verbs.Request{ID: 2}, verbs.StatusSuccess)
	completes(t, w.b.cq, verbs.Completion{ID: 2, QP: b.ID(), Op: verbs.OpRecv})
	require.NoError(t, b.Destroy())
	require.NoError(t, srq.Destroy())
}

// placesOfAListener has more connections come than there are places, one after the other, in each way in which they can
// end: accepted, rejected, refused for what they say, and left in the backlog.
func placesOfAListener(t *conformance.T, n *host) {
	const backlog = 4
	l := must(cm.Listen("127.0.0.1:0", cm.ListenConfig{Backlog: backlog, MaxStartups: backlog, InOrder: true}))(t)
	defer func() { _ = l.Close() }()
	dial := func() net.Conn {
		var d net.Dialer
		c := must(d.DialContext(t.Context(), "tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	asks := func() <-chan error {
		qp, answer := n.newQP(verbs.QPConfig{}), make(chan error, 1)
		go func() {
			conn, err := cm.Dial(t.Context(), l.Addr().String(), qp, cm.Config{})
			if err == nil {
				err = conn.Abort()
			}
			answer <- err
		}()
		return answer
	}
	for range counted(t, "connection %d", 2*backlog) {
		accepted := asks()
		conn := must(must(l.Accept(t.Context()))(t).Accept(t.Context(), n.newQP(verbs.QPConfig{}), cm.Config{}))(t)
		require.NoError(t, <-accepted)
		<-conn.Done()
		rejected := asks()
		require.NoError(t, must(l.Accept(t.Context()))(t).Reject(nil))
		require.ErrorAs(t, <-rejected, new(*cm.RejectedError))
		require.NoError(t, second(dial().Write([]byte("this is no MPA Request at all"))))
	}
	comesToHold(t, 0, "admission listener: place")
	waits := asks()
	comesToHold(t, 1, "cm listener: request in the backlog")
	require.NoError(t, l.Close())
	require.Error(t, <-waits)
}

// viWaitsAndRequestsEnd has a wait end without a request, and requests end without a connection: the next is not met by
// what they were.
func viWaitsAndRequestsEnd(t *conformance.T) {
	h := newVIHost(t, vipl.Config{})
	soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	viCode(t, vipl.ErrTimeout, second(h.nic.ConnectWait(soon, h.address("server"))), "nobody asks")
	for range counted(t, "request %d", 3) {
		answer := make(chan error, 1)
		vi := h.vi(vipl.ServiceReliableDelivery)
		server := h.address("server")
		go func() { answer <- second(vi.ConnectRequest(t.Context(), nil, server)) }()
		c := must(h.nic.ConnectWait(t.Context(), h.address("server")))(t)
		require.NoError(t, c.ConnectReject())
		viCode(t, vipl.ErrReject, <-answer, "the answer")
	}
}

// ndSRQClosedWhileAsleep closes a shared receive queue while somebody sleeps at a completion queue: what that one may
// have in hand is of the queue, which is forgotten only behind it.
func ndSRQClosedWhileAsleep(t *conformance.T) {
	const queues = "nd2 adapter: queue"
	h := newNDHost(t, ndShape{})
	before := t.Held()[queues]
	srq := must(h.adapter.CreateSharedReceiveQueue(4, 1, 0))(t)
	ctx, cancel := context.WithCancel(t.Context())
	asleep := make(chan error, 1)
	go func() { asleep <- second(h.in.Wait(ctx, make([]nd2.Result, 1))) }()
	comesToHold(t, 1, "nd2 completion queue: sleeper")
	require.NoError(t, srq.Close())
	h.none() // and so both queues have been looked at
	require.Equal(t, before+1, t.Held()[queues], "while somebody sleeps the queue is known")
	cancel()
	require.ErrorIs(t, <-asleep, nd2.ErrCanceled)
	h.none()
	require.Equal(t, before, t.Held()[queues], "then it is forgotten")
	require.NoError(t, h.pair(h, ndShape{depth: 8, sge: 4, inline: 128}).Close())
	require.Equal(t, before, t.Held()[queues], "as is a queue pair without results")
}
