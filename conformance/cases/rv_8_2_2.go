package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_2_2 is the order of a work queue's requests, on the wire and in completing:
// verbs draft 8.2.2.
var rv8_2_2 = []conformance.Case{
	upperCase("8.2.2/sent-in-order", sentInOrder, "RV-8.2.2-M1"),
	upperCase("8.2.2/completed-in-order", onRig(completedInOrder), "RV-8.2.2-M2"),
	apiCase("8.2.2/receives-in-order", receivesInOrder, "RV-8.2.2-M2", "RV-8.2.2-M5"),
	upperCase("8.2.2/stops-at-ord", stopsAtORD, "RV-8.2.2-M9"),
	apiCase("8.2.2/no-ord", onHost(noORD), "RV-8.2.2-M10", "PV-9.5.2-M10"),
}

// sentInOrder posts messages of all kinds and very different lengths, in lists and one
// by one, and reads each of them whole.
func sentInOrder(t *conformance.T) {
	const size = 200_000
	r, b := openWith(t, setup{qp: uppertester.OpenArgs{SendDepth: 64}}, size)
	list := []verbs.Request{
		{Op: verbs.OpSend, SGL: b.sgl(0, 10)},
		{Op: verbs.OpWrite, SGL: b.sgl(3, 150_000), Remote: theirs},
		b.aReadOf(0, 0, 8),
		{Op: verbs.OpSendSE, SGL: b.sgl(7, size-7)},
		{Op: verbs.OpSend},
		{Op: verbs.OpWrite, Remote: theirs},
		{Op: verbs.OpSendInvalidate, Invalidate: 0x501, SGL: b.sgl(0, 3000)},
		b.aReadOf(0, 8, 8),
		{Op: verbs.OpWrite, SGL: b.sgl(0, 1), Remote: theirs},
		{Op: verbs.OpSendSEInvalidate, Invalidate: 0x502, SGL: b.sgl(100, 70_000)},
	}
	for i := range list {
		list[i].ID = uint64(i)
		list[i].Flags = verbs.Unsignaled
	}
	var sends, reads uint32
	for round := range counted(t, "round %d", 3) {
		if round == 0 { // else one after the other
			r.post(list...)
		}
		for i, q := range list {
			if round > 0 {
				r.post(q)
			}
			var data []byte
			for _, g := range q.SGL {
				data = b.first[g.TO-b.Base:][:g.Length]
			}
			if q.Op == verbs.OpRead {
				reads++
				r.expect(b.asksFor(reads, int(q.Local.TO-b.Base), 8))
				continue
			}
			if q.Op == verbs.OpWrite {
				got := r.taggedMessage(opWrite, uint32(theirs.STag), theirs.TO).payload
				same(t, data, got, "message %d", i)
				continue
			}
			sends++
			control := map[verbs.Op]byte{
				verbs.OpSend: opSend, verbs.OpSendSE: opSendSE, verbs.OpSendInvalidate: opSendInv, verbs.OpSendSEInvalidate: opSendSEInv,
			}[q.Op]
			got := r.untaggedMessage(control, uint32(q.Invalidate), sends).payload
			same(t, data, got, "message %d", i)
		}
	}
	r.settled() // and nothing more
}

// completedInOrder holds the responses of two RDMA Reads back: what comes behind is
// done, but does not complete before them.
func completedInOrder(t *conformance.T, r *rig) {
	b, old := r.region(64, allRights), r.region(8, allRights)
	r.post(
		b.aReadOf(1, 0, 8),
		verbs.Request{ID: 2, SGL: b.sgl(32, 4)},
		verbs.Request{ID: 3, Op: verbs.OpWrite, SGL: b.sgl(36, 4), Remote: theirs},
		verbs.Request{ID: 4, Op: verbs.OpInvalidate, Invalidate: old.STag},
		b.aReadOf(5, 8, 8),
		verbs.Request{ID: 6, Op: verbs.OpSendSE},
	)
	r.expect(
		b.asksFor(1, 0, 8), aSend(1, b.first[32:36]), aWrite(uint32(theirs.STag), theirs.TO, b.first[36:40]),
		b.asksFor(2, 8, 8), untagged(lastUntagged, opSendSE, 0, 0, 2, 0, nil),
	)
	r.idle()
	r.send(aReadResponse(b.tag(), b.at(0), []byte("response")))
	r.settled()
	r.completions(
		verbs.Completion{ID: 1, Op: verbs.OpRead}, verbs.Completion{ID: 2}, verbs.Completion{ID: 3, Op: verbs.OpWrite},
		verbs.Completion{ID: 4, Op: verbs.OpInvalidate},
	)
	r.incomplete()
	r.send(aReadResponse(b.tag(), b.at(8), []byte("another.")))
	r.completions(verbs.Completion{ID: 5, Op: verbs.OpRead}, verbs.Completion{ID: 6, Op: verbs.OpSendSE})
	b.holds(0, []byte("responseanother."))
	r.incomplete()
}

// receivesInOrder sends 200 messages of the four types and many lengths: each fills the
// next receive, which completes on the receive CQ, one behind the other.
func receivesInOrder(t *conformance.T) {
	const messages, room = 200, 3000
	for shared := range inTurn(t, "S-RQ: %v", []bool{false, true}) {
		w := newHostPair(t, hostPairConfig{Idle: true})
		sq, rq := w.b.newCQ(8), w.b.newCQ(256)
		into := w.b.register(messages*room, allRights)
		c := verbs.QPConfig{SendCQ: sq, RecvCQ: rq, RecvDepth: 256}
		var recvs []verbs.Recv
		for i := range messages {
			recvs = append(recvs, verbs.Recv{ID: uint64(i), SGL: into.SGL(i*room, room)})
		}
		if shared {
			c.SRQ = w.b.newSRQ(verbs.SRQConfig{Depth: 256})
			postRecv(t, c.SRQ, recvs...)
		}
		qp := w.b.newQP(c)
		if !shared {
			postRecv(t, qp, recvs...)
		}
		from := w.a.newQP(verbs.QPConfig{SendDepth: 256})
		connect(t, from, qp)
		fill(w.a.mr.Bytes(), 9)
		var want []verbs.Completion
		for i := range messages {
			k := t.Rand().IntN(room + 1)
			m := verbs.Request{ID: uint64(i), Op: verbs.Op(i % 4), SGL: w.a.mr.SGL(i, k)}
			done := verbs.Completion{ID: uint64(i), QP: qp.ID(), Op: verbs.OpRecv, Bytes: uint32(k)}
			if m.Op == verbs.OpSendInvalidate || m.Op == verbs.OpSendSEInvalidate {
				m.Invalidate = w.b.register(8, allRights).STag()
				done.HasInvalidated, done.Invalidated = true, m.Invalidate
			}
			want = append(want, done)
			post(t, from, m)
		}
		for i, done := range want {
			completes(t, rq, done)
			same(t, w.a.mr.Bytes()[i:][:done.Bytes], into.Bytes()[i*room:][:done.Bytes], "message %d", i)
		}
		empty(t, sq)
		empty(t, rq)
	}
}

// stopsAtORD: the third of three Reads waits, and so does what is behind it.
func stopsAtORD(t *conformance.T) {
	r, b := openWith(t, setup{qp: uppertester.OpenArgs{ORD: 2}}, 64)
	r.post(b.aReadOf(1, 0, 8), b.aReadOf(2, 8, 8), b.aReadOf(3, 16, 8), verbs.Request{ID: 4})
	r.expect(b.asksFor(1, 0, 8), b.asksFor(2, 8, 8))
	r.idle()
	r.send(aReadResponse(b.tag(), b.at(0), []byte("response")))
	r.expect(b.asksFor(3, 16, 8), aSend(1, nil))
	r.settled()
	r.completions(verbs.Completion{ID: 1, Op: verbs.OpRead})
	r.incomplete()
	r.send(aReadResponse(b.tag(), b.at(8), []byte("response")), aReadResponse(b.tag(), b.at(16), []byte("response")))
	r.completions(verbs.Completion{ID: 2, Op: verbs.OpRead}, verbs.Completion{ID: 3, Op: verbs.OpRead}, verbs.Completion{ID: 4})
}

// noORD posts Reads where none can ever go out: they are accepted, and fail.
func noORD(t *conformance.T, n *host) {
	for op := range inTurn(t, "%v", []verbs.Op{verbs.OpRead, verbs.OpReadInvalidate}) {
		for _, c := range named(t, "ORD is zero %s", map[string]verbs.QPConfig{"from the beginning": {NoReads: true}, "by Modify QP": {ORD: 4}}) {
			l := n.link(c)
			if c.ORD > 0 {
				require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(0)}))
			}
			sink := n.register(8, allRights)
			post(t, l.qp, verbs.Request{ID: 1, Op: op, Local: sink.SGE(0, 8), Remote: theirs}, l.aSend(2))
			l.terminated(0x0000, nil, false) // and no request before it
			require.Equal(t, verbs.StateTerminate, l.qp.State())
			l.closesWith(verbs.StateError)
			completes(t, l.sq, l.sentAs(1, op, verbs.StatusZeroReadResources), l.sentAs(2, verbs.OpSend, verbs.StatusFlushed))
			require.True(t, queried(t, sink).Valid, "the sink")
		}
	}
}

// rv8_2_2_1 is the order of what changes STags: verbs draft 8.2.2.1.
var rv8_2_2_1 = []conformance.Case{
	apiCase("8.2.2.1/remote-invalidation", remoteInvalidationOrder, "RV-8.2.2.1-M1"),
	apiCase("8.2.2.1/read-with-invalidate", readInvalidateOrder, "RV-8.2.2.1-M2"),
	apiCase("8.2.2.1/behind-read-with-invalidate", onHost(behindReadInvalidate), "RV-8.2.2.1-M3"),
	apiCase("8.2.2.1/fast-register", onHost(fastRegisterOrder), "RV-8.2.2.1-M4"),
	apiCase("8.2.2.1/bind", onHost(bindOrder), "RV-8.2.2.1-M5"),
	apiCase("8.2.2.1/invalidate", onHost(invalidateOrder), "RV-8.2.2.1-M6", "PV-8.1.2.3.3-M1"),
}

// remoteInvalidationOrder has the peer send into the region that the same message
// invalidates.
func remoteInvalidationOrder(t *conformance.T) {
	const k = 3000
	n := newHost(t, hostConfig{})
	for round := range counted(t, "round %d", 20) {
		for control := range inTurn(t, "control %#x", []byte{opSendInv, opSendSEInv}) {
			l, mr := n.link(verbs.QPConfig{}), n.register(k, allRights)
			postRecv(t, l.qp, verbs.Recv{ID: 1, SGL: mr.SGL(0, k)})
			data := fill(make([]byte, k), round)
			inv := uint32(mr.STag())
			l.send(untagged(moreUntagged, control, inv, 0, 1, 0, data[:1000]), untagged(moreUntagged, control, inv, 0, 1, 1000, data[1000:2000]))
			l.settled()
			require.True(t, queried(t, mr).Valid, "before the last segment")
			l.send(untagged(lastUntagged, control, inv, 0, 1, 2000, data[2000:]))
			done := l.got(1, k)
			done.HasInvalidated, done.Invalidated = true, mr.STag()
			completes(t, l.rq, done)
			require.False(t, queried(t, mr).Valid, "at the completion")
			same(t, data, mr.Bytes(), "the payload")
			succeed(t, l.qp.Destroy, mr.Deregister)
		}
	}
}

// readInvalidateOrder: the sink is valid until its Read has all of the response, and not
// any more when the completion is there.
func readInvalidateOrder(t *conformance.T) {
	const k = 3000
	l := newLink(t, verbs.QPConfig{})
	for round := range counted(t, "round %d", 20) {
		mr, data := l.register(k, allRights), fill(make([]byte, k), round)
		post(t, l.qp, verbs.Request{ID: 5, Op: verbs.OpReadInvalidate, Local: mr.SGE(0, k), Remote: theirs})
		require.Equal(t, byte(opReadRequest), l.next()[1])
		parts := segmented(opReadResponse, mr.Remote(0), data, 700)
		last := len(parts) - 1
		l.send(parts[:last]...)
		l.settled()
		require.True(t, queried(t, mr).Valid, "before the last segment")
		same(t, data[:700*last], mr.Bytes()[:700*last], "what came before")
		empty(t, l.sq)
		l.send(parts[last])
		completes(t, l.sq, l.sentAs(5, verbs.OpReadInvalidate, verbs.StatusSuccess))
		require.False(t, queried(t, mr).Valid, "at the completion")
		same(t, data, mr.Bytes(), "the whole response")
		require.NoError(t, mr.Deregister())
	}
}

// behindReadInvalidate: what is behind it goes out while the response is awaited, unless
// it is fenced. A fenced one finds the STag invalidated.
func behindReadInvalidate(t *conformance.T, n *host) {
	l, sink := n.link(verbs.QPConfig{}), n.register(8, allRights)
	at := sink.Remote(0)
	post(t, l.qp,
		verbs.Request{ID: 1, Op: verbs.OpReadInvalidate, Local: sink.SGE(0, 8), Remote: theirs},
		verbs.Request{ID: 2}, verbs.Request{ID: 3, Op: verbs.OpWrite, Remote: theirs},
		verbs.Request{ID: 4, Op: verbs.OpSendSE, Flags: verbs.ReadFence},
	)
	l.expect(
		aReadRequest(1, read{uint32(at.STag), at.TO, 8, uint32(theirs.STag), theirs.TO}),
		aSend(1, nil), aWrite(uint32(theirs.STag), theirs.TO, nil),
	)
	l.settled()
	require.True(t, queried(t, sink).Valid)
	l.send(aReadResponse(uint32(at.STag), at.TO, []byte("response")))
	l.expect(untagged(lastUntagged, opSendSE, 0, 0, 2, 0, nil))
	require.False(t, queried(t, sink).Valid, "when the fenced one is out")
	completes(t, l.sq,
		l.sentAs(1, verbs.OpReadInvalidate, verbs.StatusSuccess), l.sentAs(2, verbs.OpSend, verbs.StatusSuccess),
		l.sentAs(3, verbs.OpWrite, verbs.StatusSuccess), l.sentAs(4, verbs.OpSendSE, verbs.StatusSuccess))
}

// fastRegisterOrder registers and uses in one list, again and again; the other way
// around the use comes too early.
func fastRegisterOrder(t *conformance.T, n *host) {
	p, mr := n.pages(2, 4096), n.allocated()
	l := n.link(privileged)
	for round := range counted(t, "round %d", uint32(100)) {
		fill(p.Bytes(), int(round))
		st := mr.WithKey(uint8(round))
		r := fastRegister(st, p.List(int(round), 5000), 4096+uint64(round), allRights)
		at := verbs.FastRegisterBuffer(r.FastRegister)
		post(t, l.qp, r,
			verbs.Request{ID: 1, SGL: at.SGL(0, 20)}, verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: at.SGL(4990, 10), Remote: theirs},
			verbs.Request{ID: 3, Op: verbs.OpInvalidate, Invalidate: st, Flags: verbs.LocalFence})
		mem := p.Bytes()[round:]
		l.expect(aSend(round+1, mem[:20]), aWrite(uint32(theirs.STag), theirs.TO, mem[4990:5000]))
		completes(t, l.sq, l.sentAs(r.ID, verbs.OpFastRegister, verbs.StatusSuccess), l.sentAs(1, verbs.OpSend, verbs.StatusSuccess),
			l.sentAs(2, verbs.OpWrite, verbs.StatusSuccess), l.sentAs(3, verbs.OpInvalidate, verbs.StatusSuccess))
	}
	t.Part("the use first")
	r := fastRegister(mr.WithKey(200), p.List(0, 64), 4096, allRights)
	post(t, l.qp, verbs.Request{ID: 1, SGL: verbs.FastRegisterBuffer(r.FastRegister).SGL(0, 20)}, r)
	l.terminated(0x0000, nil, false)
	completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusInvalidSTag))
	l.shut()
	completes(t, l.sq, l.sentAs(r.ID, verbs.OpFastRegister, verbs.StatusFlushed))
	require.False(t, queried(t, mr).Valid)
	t.Part("an Invalidate behind it, in one list, where payload is not copied")
	l = n.idleLink(verbs.QPConfig{})
	far, near := tcpPair(t)
	l.joinOver(far, verbs.StreamConfig{Conn: near})
	for size := range inTurn(t, "%d octets", []int{20, 4 << 10, 48 << 10}) {
		for fence := range inTurn(t, "flags %v", []verbs.Flags{0, verbs.LocalFence}) {
			mr := n.register(size, allRights)
			data := fill(mr.Bytes(), size)
			post(t, l.qp, verbs.Request{ID: 1, SGL: mr.SGL(0, size)},
				verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: mr.STag(), Flags: fence})
			same(t, data, l.message().payload, "what the peer gets")
			completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess), l.sentAs(2, verbs.OpInvalidate, verbs.StatusSuccess))
			require.False(t, queried(t, mr).Valid)
		}
	}
}

// bindOrder advertises a window in the Send just behind its Bind, and reads into another
// just behind its own.
func bindOrder(t *conformance.T, n *host) {
	l, asked := n.link(verbs.QPConfig{}), uint32(0)
	for round := range counted(t, "round %d", uint32(50)) {
		one, two := n.newMW(), n.newMW()
		b, s := one.BindRequest(n.mr, 100, 50, remoteRights, 3), two.BindRequest(n.mr, 200, 50, remoteRights, 4)
		at, sink := verbs.BindBuffer(b), verbs.BindBuffer(s)
		post(t, l.qp, binds(b), verbs.Request{ID: 1}, binds(s),
			verbs.Request{ID: 2, Op: verbs.OpRead, Local: sink.SGE(0, 8), Remote: theirs})
		l.expect(aSend(round+1, nil))
		data := []byte{byte(round), 1, 2, 3}
		l.send(aWrite(uint32(at.STag), at.Base+10, data)) // at once
		asked++
		l.expect(aReadRequest(asked, read{uint32(sink.STag), sink.Base, 8, uint32(theirs.STag), theirs.TO}))
		l.send(aReadResponse(uint32(sink.STag), sink.Base, []byte("response")))
		completes(t, l.sq, l.sentAs(0x7A08, verbs.OpBind, verbs.StatusSuccess), l.sentAs(1, verbs.OpSend, verbs.StatusSuccess),
			l.sentAs(0x7A08, verbs.OpBind, verbs.StatusSuccess), l.sentAs(2, verbs.OpRead, verbs.StatusSuccess))
		require.Equal(t, data, n.mr.Bytes()[110:114], "through the first window")
		require.Equal(t, "response", string(n.mr.Bytes()[200:208]), "through the second window")
		succeed(t, one.Deallocate, two.Deallocate)
	}
	t.Part("the use first")
	mw := n.newMW()
	b := mw.BindRequest(n.mr, 0, 50, remoteRights, 3)
	post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpRead, Local: verbs.BindBuffer(b).SGE(0, 8), Remote: theirs}, binds(b))
	l.terminated(0x0000, nil, false)
	l.shut()
	completes(t, l.sq, l.sentAs(1, verbs.OpRead, verbs.StatusInvalidSTag), l.sentAs(0x7A08, verbs.OpBind, verbs.StatusFlushed))
	require.False(t, queried(t, mw).Valid)
}

// invalidateOrder: behind an Invalidate its STag is of no use, but for a new Bind or
// Fast-Register.
func invalidateOrder(t *conformance.T, n *host) {
	invalidate := func(st verbs.STag) verbs.Request { return verbs.Request{ID: 9, Op: verbs.OpInvalidate, Invalidate: st} }
	for _, use := range named(t, "%s", map[string]func(*verbs.MR) verbs.Request{
		"Send": func(mr *verbs.MR) verbs.Request { return verbs.Request{ID: 1, SGL: mr.SGL(0, 4)} },
		"Write": func(mr *verbs.MR) verbs.Request {
			return verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: mr.SGL(0, 4), Remote: theirs}
		},
		"Read": func(mr *verbs.MR) verbs.Request {
			return verbs.Request{ID: 1, Op: verbs.OpRead, Local: mr.SGE(0, 4), Remote: theirs}
		},
	}) {
		l, mr := n.link(verbs.QPConfig{}), n.register(64, allRights)
		req := use(mr)
		post(t, l.qp, invalidate(mr.STag()), req)
		l.terminated(0x0000, nil, false)
		completes(t, l.sq, l.sentAs(9, verbs.OpInvalidate, verbs.StatusSuccess), l.sentAs(1, req.Op, verbs.StatusInvalidSTag))
		require.False(t, queried(t, mr).Valid)
	}
	t.Part("Bind and Fast-Register")
	l, p, mr, mw := n.link(privileged), n.pages(1, 4096), n.allocated(), n.newMW()
	post(t, l.qp, fastRegister(mr.WithKey(0), p.List(0, 64), 4096, allRights), binds(mw.BindRequest(n.mr, 0, 8, remoteRights, 0)))
	await(t, l.sq, 2)
	for key := range uint8(100) {
		post(t, l.qp,
			invalidate(mr.WithKey(key)), fastRegister(mr.WithKey(key+1), p.List(0, 64), 4096, allRights),
			invalidate(mw.STag(key)), binds(mw.BindRequest(n.mr, 0, 8, remoteRights, key+1)))
		completes(t, l.sq,
			l.sentAs(9, verbs.OpInvalidate, verbs.StatusSuccess), l.sentAs(0x7A07, verbs.OpFastRegister, verbs.StatusSuccess),
			l.sentAs(9, verbs.OpInvalidate, verbs.StatusSuccess), l.sentAs(0x7A08, verbs.OpBind, verbs.StatusSuccess))
	}
	require.Equal(t, mr.WithKey(100), queried(t, mr).STag)
	require.Equal(t, mw.STag(100), queried(t, mw).STag)
}
