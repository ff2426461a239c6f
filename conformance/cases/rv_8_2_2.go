package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_2_2 is the order of a work queue's requests, on the wire and in completing:
// verbs draft 8.2.2.
var rv8_2_2 = []conformance.Case{
	upperCase("8.2.2/sent-in-order", sentInOrder, "RV-8.2.2-M1"),
	upperCase("8.2.2/completed-in-order", onRig(completedInOrder), "RV-8.2.2-M2"),
	apiCase("8.2.2/receives-in-order", receivesInOrder, "RV-8.2.2-M2", "RV-8.2.2-M5"),
	upperCase("8.2.2/stops-at-ord", stopsAtORD, "RV-8.2.2-M9"),
	apiCase("8.2.2/no-ord", onNode(noORD), "RV-8.2.2-M10", "PV-9.5.2-M10"),
}

// aReadOf is an RDMA Read of a peer's made-up source into n octets of a buffer, and
// asksFor what the peer hears of it.
func (b *buffer) aReadOf(id uint64, off, n int) verbs.Request {
	return verbs.Request{ID: id, Op: verbs.OpRead, Local: b.sge(off, n), Remote: theirs}
}

func (b *buffer) asksFor(msn uint32, off, n int) []byte {
	return aReadRequest(msn, read{b.tag(), b.at(off), uint32(n), uint32(theirs.STag), theirs.TO})
}

// sentInOrder posts messages of all kinds and very different lengths, in lists and one
// by one, and reads each of them whole.
func sentInOrder(t *conformance.T) {
	const size = 200_000
	r := open(t, setup{qp: upper.OpenArgs{SendDepth: 64}})
	b := r.region(size, allRights)
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
				got, _ := r.taggedMessage(opWrite, uint32(theirs.STag), theirs.TO)
				same(t, data, got, "message %d", i)
				continue
			}
			sends++
			control := map[verbs.Op]byte{
				verbs.OpSend: opSend, verbs.OpSendSE: opSendSE, verbs.OpSendInvalidate: opSendInv, verbs.OpSendSEInvalidate: opSendSEInv,
			}[q.Op]
			got, _ := r.untaggedMessage(control, uint32(q.Invalidate), sends)
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
		w := newWorld(t, worldConfig{Idle: true})
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
	r := open(t, setup{qp: upper.OpenArgs{ORD: 2}})
	b := r.region(64, allRights)
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
func noORD(t *conformance.T, n *node) {
	for op := range inTurn(t, "%v", []verbs.Op{verbs.OpRead, verbs.OpReadInvalidate}) {
		for _, c := range named(t, "ORD is zero %s", map[string]verbs.QPConfig{"from the beginning": {NoReads: true}, "by Modify QP": {ORD: 4}}) {
			l := n.line(c)
			if c.ORD > 0 {
				require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(0)}))
			}
			sink := n.register(8, allRights)
			post(t, l.qp, verbs.Request{ID: 1, Op: op, Local: sink.SGE(0, 8), Remote: theirs}, l.aSend(2))
			l.terminated(0x0000, nil, false) // and no request before it
			require.Equal(t, verbs.StateTerminate, l.qp.State())
			l.shut()
			l.remains(verbs.StateError)
			completes(t, l.sq, l.sentAs(1, op, verbs.StatusZeroReadResources), l.sentAs(2, verbs.OpSend, verbs.StatusFlushed))
			require.True(t, queried(t, sink).Valid, "the sink")
		}
	}
}
