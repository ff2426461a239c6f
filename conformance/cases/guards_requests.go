package cases

import (
	"bytes"
	"context"
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// guardsRequests are the same of requests, of their completions, and of handles.
var guardsRequests = []conformance.Case{
	apiCase("7.2.2/stag-lost-by-plan", stagLostByPlan, "RV-7.2.2-M1"),
	apiCase("7.6.2/pages-refused", onHost(pagesRefused), "RV-7.6.2-M1"),
	apiCase("8.2.2/many-within-a-message", onHost(manyWithinAMessage), "RV-8.2.2-M5"),
	apiCase("8.2.2/late-one-after-another", lateOneAfterAnother, "RV-8.2.2-M2", "RV-5.3.1-M7"),
	apiCase("8.2.2/late-beyond-the-room", lateBeyondTheRoom, "RV-8.2.2-M2"),
	apiCase("8.1.2.1/immediate-beside-payload", onHost(immediateBesidePayload), "RV-9.3.2.1-M3"),
	apiCase("9.3.2.1/fails-within-a-request", onHost(failsWithinARequest), "RV-9.3.2.1-M4"),
	apiCase("9.3.2.1/why-of-what-failed", onHost(whyOfWhatFailed), "RV-9.3.2.1-M4"),
	apiCase("9.3.2.1/nobody-may-speak", onHost(nobodyMaySpeak), "R5044-7.1.2-M8"),
	apiCase("9.2.1/handles-of-nothing", onHost(handlesOfNothing), "RV-6.1.3-M13"),
}

// stagLostByPlan has a plan take an STag away, when a request names it: the region is in the Invalid state, and the
// request, and what the peer wants of it, fails. One with a window stays.
func stagLostByPlan(t *conformance.T) {
	n := planned(t, "post 2 of send: invalidate stag\npost 3 of send: invalidate stag\npost 2 of recv: invalidate stag")
	l := n.link(verbs.QPConfig{})
	mr, kept := n.register(64, allRights), n.register(64, allRights|verbs.BindWindow)
	run(t, n.link(verbs.QPConfig{}).qp, binds(n.newMW().BindRequest(kept, 0, 8, remoteRights, 1)), verbs.StatusSuccess)
	run(t, l.qp, verbs.Request{ID: 1, SGL: mr.SGL(0, 4)}, verbs.StatusSuccess)
	run(t, l.qp, verbs.Request{ID: 2, SGL: kept.SGL(0, 4)}, verbs.StatusSuccess)
	require.True(t, queried(t, kept).Valid, "a region that a window is bound to")
	require.True(t, queried(t, mr).Valid)
	k, err := l.qp.PostSend(verbs.Request{ID: 3, SGL: mr.SGL(0, 4)})
	require.NoError(t, err)
	require.Equal(t, 1, k, "posted")
	require.False(t, queried(t, mr).Valid, "the region that the third Send names")
	completes(t, l.sq, l.sentAs(3, verbs.OpSend, verbs.StatusInvalidSTag))
	l.drop()
	ends(t, l.qp, verbs.StateError)

	l = n.link(verbs.QPConfig{})
	into := n.register(64, allRights)
	k, err = l.qp.PostRecv(verbs.Recv{ID: 4, SGL: n.mr.SGL(0, 8)}, verbs.Recv{ID: 5, SGL: into.SGL(0, 8)})
	require.NoError(t, err)
	require.Equal(t, 2, k, "posted")
	require.True(t, queried(t, n.mr).Valid)
	require.False(t, queried(t, into).Valid, "the region that the second receive names")
}

// pagesRefused asks for no pages, for too many, and frees some twice.
func pagesRefused(t *conformance.T, n *host) {
	for _, count := range []int{0, -1} {
		refuses(t, "no pages", verbs.ErrInvalidLength, func() error { return second(n.nic.AllocatePages(count, 4096)) })
	}
	a, b := n.pages(2, 4096), n.pages(1, 4096)
	require.NoError(t, a.Deallocate())
	for range 2 {
		refuses(t, "freed twice", verbs.ErrInvalidModifier, a.Deallocate)
	}
	require.NoError(t, b.Deallocate())
	require.Zero(t, t.Held()["stag table: octet of pages"], "octets of pages")
	c := n.pages(1, 4096)
	require.NotContains(t, append(a.Addresses(), b.Address(0)), c.Address(0), "an address is given out once")
	c.Bytes()[0] = 7
	require.Equal(t, make([]byte, 2*4096), a.Bytes(), "what was freed")
}

// manyWithinAMessage has many peers stop within an FPDU, or wait for a receive, at the same time, more than may keep a
// buffer: each message comes as it was sent when it goes on.
func manyWithinAMessage(t *conformance.T, n *host) {
	const peers, size = 80, 1000
	c := verbs.QPConfig{SendCQ: n.newCQ(8), GracefulReceive: true}
	var all []*link
	var rest [][]byte // nil: it waits for a receive
	for i := range peers {
		c.RecvCQ = n.newCQ(4)
		l := n.link(c)
		u := l.Frame(l.peer.aSend(fill(make([]byte, size), i)))
		all = append(all, l)
		if i > peers/2 && i%2 == 0 {
			l.raw(u)
			rest = append(rest, nil)
			eventually(t, func() bool { return l.qp.Stats().ReceiveWaits > 0 }, "it waits for a receive")
			continue
		}
		k := 1 + (i*97)%(len(u)-1)
		l.raw(u[:k])
		rest = append(rest, u[k:])
		eventually(t, func() bool { return l.qp.Stats().InOctets == uint64(k) }, "the beginning has come")
	}
	into := n.mr.Bytes()[:size]
	for i, l := range all {
		postRecv(t, l.qp, verbs.Recv{ID: 1, SGL: n.mr.SGL(0, size)})
		l.raw(rest[i])
		completes(t, l.rq, l.got(1, size))
		require.True(t, bytes.Equal(fill(make([]byte, size), i), into), "what number %d has sent", i)
		l.settled()
	}
}

// lateOneAfterAnother has a plan keep completions back for one time and another: they come in order, each when its time
// has come.
func lateOneAfterAnother(t *conformance.T) {
	const depth = 4
	n := planned(t, "completion 1 of recv: delay 1ms\ncompletion 2 of recv: delay 30ms")
	s := n.newSRQ(verbs.SRQConfig{Depth: depth})
	n.receives(s, upTo(1, depth)...)
	l := n.link(verbs.QPConfig{SRQ: s, RecvCQ: n.newCQ(depth)})
	for range depth {
		l.sendMessage([]byte{1})
	}
	for i, c := range await(t, l.rq, depth) {
		require.EqualValues(t, i+1, c.ID, "in order")
	}
}

// lateBeyondTheRoom has a plan keep as many completions back as the CQ holds: the next one overflows it, and does not
// come before them.
func lateBeyondTheRoom(t *conformance.T) {
	n := planned(t, "completion 1 of recv: delay 1h")
	l := n.link(verbs.QPConfig{RecvCQ: n.newCQ(2)})
	l.recv(1, 2, 3)
	for range 3 {
		l.sendMessage(nil)
	}
	reaches(t, l.qp, verbs.StateTerminate)
	l.rest()
	l.closesTo(verbs.StateError)
	empty(t, l.rq)
	require.EqualValues(t, 1, l.rq.Stats().Overflows, "completions that found no room")
}

// immediateBesidePayload sends and gets Sends with Immediate Data beside their payload, where that was agreed and where not.
func immediateBesidePayload(t *conformance.T, n *host) {
	const brings = 0x10 // in the control octet
	l := n.link(verbs.QPConfig{SendImmediate: true})
	msn := uint32(0)
	for k := range inTurn(t, "%v", sendTypes) {
		req := verbs.Request{ID: 1, Op: k.op, SGL: n.mr.SGL(0, 4), Flags: verbs.WithImmediate, Immediate: 0xA1B2C3D4}
		if k.invalid != 0 {
			refuses(t, "Invalidate and Immediate Data", verbs.ErrInvalidModifier, func() error { return second(l.qp.PostSend(req)) })
			continue
		}
		run(t, l.qp, req, verbs.StatusSuccess)
		msn++
		l.expect(untagged(lastUntagged, k.control|brings, 0xA1B2C3D4, 0, msn, 0, n.mr.Bytes()[:4]))
		for _, bit := range []byte{brings, 0} {
			for _, size := range []int{0, 3, 64} {
				l.recv(1)
				l.send(untagged(lastUntagged, k.control|bit, 0x0A0B0C0D, 0, l.nextSend(), 0, make([]byte, size)))
				want := l.got(1, size)
				if bit != 0 {
					want.Value, want.HasImmediate = 0x0A0B0C0D, true
				}
				completes(t, l.rq, want)
			}
		}
	}
	refuses(t, "a Write with it", verbs.ErrInvalidModifier, func() error {
		return second(l.qp.PostSend(verbs.Request{Op: verbs.OpWrite, Remote: theirs, Flags: verbs.WithImmediate}))
	})
	l = n.link(verbs.QPConfig{})
	refuses(t, "not agreed", verbs.ErrInvalidModifier, func() error {
		return second(l.qp.PostSend(verbs.Request{Flags: verbs.WithImmediate}))
	})
	l.recv(1)
	l.send(untagged(lastUntagged, opSend|brings, 0x0A0B0C0D, 0, l.nextSend(), 0, nil))
	completes(t, l.rq, l.got(1, 0))
}

// failsWithinARequest has the queue pair fail while a request is sent, to a peer that does not read: that one has failed,
// those behind it are flushed, and no event tells of it besides.
func failsWithinARequest(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	post(t, l.qp, l.aSend(79))
	l.expect(aSend(1, n.mr.Bytes()[:4]))
	l.stuff()
	post(t, l.qp, l.aSend(81), l.aRead(82))
	l.recv(83)
	l.full()
	fault.Provoke(l.qp)
	r := l.rest()
	require.Equal(t, aTerminate(0x0207, nil, false), r.terminate)
	require.Less(t, r.octets, vast)
	l.closesTo(verbs.StateError)
	completes(t, l.sq, l.sentAs(79, verbs.OpSend, verbs.StatusSuccess), l.sentAs(80, verbs.OpWrite, verbs.StatusLocalQPCatastrophic),
		l.sentAs(81, verbs.OpSend, verbs.StatusFlushed), l.sentAs(82, verbs.OpRead, verbs.StatusFlushed))
	completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 83)...)
	l.quiet()
}

// whyOfWhatFailed has a request fail, and a receive: it tells why, and the stream names it; what is flushed with it tells
// nothing.
func whyOfWhatFailed(t *conformance.T, n *host) {
	mine := new(int)
	bad := verbs.SGE{STag: noSuchSTag, Length: 4}
	for what, fails := range named(t, "a %s", map[string]func(*link){
		"request": func(l *link) {
			postRecv(t, l.qp, verbs.Recv{ID: 8}, verbs.Recv{ID: 9})
			post(t, l.qp, verbs.Request{ID: 7, SGL: []verbs.SGE{bad}})
		},
		"receive": func(l *link) {
			postRecv(t, l.qp, verbs.Recv{ID: 7, SGL: []verbs.SGE{bad}}, verbs.Recv{ID: 8}, verbs.Recv{ID: 9})
			l.sendMessage([]byte("1234"))
		},
	}) {
		l := n.link(verbs.QPConfig{Context: mine})
		require.Same(t, mine, l.qp.Context())
		fails(l)
		reaches(t, l.qp, verbs.StateTerminate)
		l.rest()
		l.closesTo(verbs.StateError)
		got := map[uint64]verbs.Completion{}
		for _, q := range []*verbs.CQ{l.sq, l.rq} {
			for c, err := q.PollOne(); err == nil; c, err = q.PollOne() {
				got[c.ID] = c
			}
		}
		require.Len(t, got, 3)
		var why *verbs.CompletionError
		require.ErrorAs(t, got[7].Err(), &why)
		require.NotNil(t, why.Why, "why the %s failed", what)
		for _, id := range []uint64{8, 9} {
			require.Equal(t, verbs.StatusFlushed, got[id].Status)
			require.ErrorAs(t, got[id].Err(), &why)
			require.Nil(t, why.Why, "why a receive is flushed")
			require.Zero(t, got[id].Value)
		}
		var end *verbs.StreamError
		require.ErrorAs(t, l.qp.LLPStream().Err(), &end)
		want := got[7]
		want.Value, end.Request.Value = 0, 0
		require.Equal(t, want, end.Request, "the request at fault, by the stream")
	}
}

// nobodyMaySpeak has a program wait where each side waits for the other to send first, and give up: it is told so.
func nobodyMaySpeak(t *conformance.T, n *host) {
	for what, c := range named(t, "this side %s", map[string]struct {
		role  side
		posts bool
		told  bool
	}{
		"accepted, and posts": {asResponder, true, true}, "accepted": {asResponder, false, false}, "dialled": {asInitiator, false, true},
		"dialled, and posts": {asInitiator, true, false},
	}) {
		l := n.idleLink(verbs.QPConfig{})
		far, near := tcpPair(t)
		l.peer = peerOver(t, l.qp, far, verbs.StreamConfig{Conn: near, Role: c.role, CRC: true})
		require.Equal(t, map[side]uint64{asInitiator: 0, asResponder: 1}[c.role], l.qp.Stats().Accepts, "what it counts as")
		if c.posts {
			post(t, l.qp, l.aSend(1))
		}
		over, stop := context.WithCancel(t.Context())
		stop()
		for _, wait := range []func(context.Context) error{l.rq.WaitEvent, waitOne(l.rq)} {
			err := wait(over)
			require.ErrorIs(t, err, context.Canceled, what)
			var why *verbs.Reason
			told := errors.As(err, &why) && why.QP == l.id && why.Rule == "RFC 5044 7.1.2"
			require.Equal(t, c.told, told, "told that nobody may speak: %v", err)
		}
	}
}

// handlesOfNothing calls verbs on handles that are nil: each refuses by its name.
func handlesOfNothing(t *conformance.T, n *host) {
	var (
		pd  *verbs.PD
		q   *verbs.CQ
		s   *verbs.SRQ
		qp  *verbs.QP
		one [1]verbs.Completion
	)
	over, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		verb string
		want error
		call func() error
	}{
		{"Deallocate PD", verbs.ErrInvalidPD, pd.Deallocate},
		{"Register Memory Region", verbs.ErrInvalidPD, func() error { return second(pd.Register(make([]byte, 8), allRights)) }},
		{"Register Memory Region", verbs.ErrInvalidPD, func() error { return second(pd.RegisterRegion(verbs.RegionConfig{})) }},
		{"Allocate Non-Shared Memory Region STag", verbs.ErrInvalidPD, func() error { return second(pd.AllocateRegion(verbs.AllocateConfig{})) }},
		{"Allocate Memory Window", verbs.ErrInvalidPD, func() error { return second(pd.AllocateWindow()) }},
		{"Query CQ", verbs.ErrInvalidCQ, func() error { return second(q.Query()) }},
		{"Modify CQ", verbs.ErrInvalidCQ, func() error { return q.Resize(4) }},
		{"Poll for Completion", verbs.ErrInvalidCQ, func() error { return second(q.PollOne()) }},
		{"Wait for Completion", verbs.ErrInvalidCQ, func() error { return second(q.Wait(over, one[:])) }},
		{"Wait for Completion", verbs.ErrInvalidCQ, func() error { return q.WaitEvent(over) }},
		{"Request Completion Notification", verbs.ErrInvalidCQ, func() error { return q.Notify(verbs.NotifyNext) }},
		{"Request Completion Notification", verbs.ErrInvalidCQ, func() error { return second(q.Arm(verbs.NotifyNext)) }},
		{"Destroy CQ", verbs.ErrInvalidCQ, q.Destroy},
		{"Query S-RQ", verbs.ErrInvalidSRQ, func() error { return second(s.Query()) }},
		{"Modify S-RQ", verbs.ErrInvalidSRQ, func() error { return s.Modify(verbs.ModifySRQ{}) }},
		{"Destroy S-RQ", verbs.ErrInvalidSRQ, s.Destroy},
		{"", verbs.ErrInvalidSRQ, func() error { return second(s.PostRecv(verbs.Recv{})) }},
		{"Query QP", verbs.ErrInvalidQP, func() error { return second(qp.Query()) }},
		{"Modify QP", verbs.ErrInvalidQP, func() error { return qp.Modify(verbs.ModifyQP{}) }},
		{"Destroy QP", verbs.ErrInvalidQP, qp.Destroy},
		{"", verbs.ErrInvalidQP, func() error { return second(qp.PostSend(verbs.Request{})) }},
		{"", verbs.ErrInvalidQP, func() error { return second(qp.PostRecv(verbs.Recv{})) }},
	} {
		err := c.call()
		require.ErrorIs(t, err, c.want, c.verb)
		tellsWhy(t, c.verb, err)
		var why *verbs.Reason
		require.ErrorAs(t, err, &why)
		require.True(t, c.verb == "" || c.verb == why.Operation, "%s is refused as %s", c.verb, why.Operation)
	}
	require.Zero(t, qp.Stats())
	require.Zero(t, q.Stats())
	require.Zero(t, s.Stats())
	require.Equal(t, n.mr.SGL(0, hostMemory), n.mr.All())
	require.Equal(t, "a name", openRNIC(t, verbs.Config{Name: "a name"}).Name())
}
