package cases

import (
	"bytes"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// pv8 is what chapter 8 of the verbs draft binds without the keyword.
var pv8 = []conformance.Case{
	apiCase("8.2.2.2/figure-22-behind-a-message", onHost(fencesBehindMessages), "PV-8.2.2.2-M1", "PV-8.2.2.2-M2", "PV-8.2.2.2-M3"),
	apiCase("8.2.2.2/full-fence-behind-a-message", onHost(fullFenceBehindMessage), "PV-8.2.2.2-M2", "PV-8.2.2.2-M3", "RV-8.2.2.2-M5"),
	apiCase("8.2.2.2/figure-22-behind-a-read", onHost(fencesBehindRead), "PV-8.2.2.2-M1", "PV-8.2.2.2-M4"),
	apiCase("8.2.2.2/figure-22-ahead-of-a-read", onHost(readBehindMemory), "PV-8.2.2.2-M1"),
	apiCase("8.3.3/cq-error-of-the-send-queue", onHost(sendCQOverflows), "PV-8.3.3-M4"),
}

// column is a second operation of figure 22.
type column struct {
	req verbs.Request
	// heard is what the peer gets of it; nil for an operation on memory, which has been
	// done once it says so.
	heard []byte
	done  func() bool
	fence bool // it has one
}

// columns are all of figure 22, with the fence that an operation can have. The messages have
// these MSNs.
func (l *link) columns(send, ask uint32, fenced bool) map[string]column {
	var read, local verbs.Flags
	if fenced {
		read, local = verbs.ReadFence, verbs.LocalFence
	}
	mw, fast, gone, p := l.newMW(), l.allocated(), l.register(64, allRights), l.pages(1, 4096)
	parts, data := []verbs.SGE{l.mr.SGE(0, 2), l.mr.SGE(2, 2)}, l.mr.Bytes()[:4]
	to, at := uint32(theirs.STag), theirs.TO
	return map[string]column{
		"Send":           {verbs.Request{ID: 2, Flags: read}, aSend(send, nil), nil, true},
		"a longer Send":  {verbs.Request{ID: 2, SGL: parts, Flags: read}, aSend(send, data), nil, true},
		"RDMA Write":     {verbs.Request{ID: 2, Op: verbs.OpWrite, Remote: theirs, Flags: read}, aWrite(to, at, nil), nil, true},
		"a longer Write": {verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: parts, Remote: theirs, Flags: read}, aWrite(to, at, data), nil, true},
		"RDMA Read":      {l.aRead(2), l.asks(ask), nil, false},
		"Bind":           {binds(mw.BindRequest(l.mr, 0, 64, remoteRights, 1)), nil, func() bool { return queried(l.t, mw).Valid }, false},
		"Fast-Register":  {fastRegister(fast.WithKey(1), p.List(0, 64), 4096, allRights), nil, func() bool { return queried(l.t, fast).Valid }, false},
		"Invalidate": {
			verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: gone.STag(), Flags: local}, nil,
			func() bool { return !queried(l.t, gone).Valid }, true,
		},
	}
}

// fencesBehindMessages: behind a Send or RDMA Write nothing has to wait for the peer, fenced
// or not. What is under way is whole in the LLP before the next element is looked at.
func fencesBehindMessages(t *conformance.T, n *host) {
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite} {
		send := uint32(1)
		heard := aWrite(uint32(theirs.STag), theirs.TO, nil)
		if op == verbs.OpSend {
			heard = aSend(send, nil)
			send++
		}
		for _, fenced := range []bool{false, true} {
			for what := range n.idleLink(verbs.QPConfig{}).columns(0, 0, false) {
				t.Part("%s behind %v, fenced %v", what, op, fenced)
				l := n.link(privileged)
				c := l.columns(send, 1, fenced)[what]
				post(t, l.qp, verbs.Request{ID: 1, Op: op, Remote: theirs}, c.req)
				l.expect(heard)
				switch {
				case c.heard != nil:
					l.expect(c.heard)
				default:
					eventually(t, c.done, "it is done")
				}
				l.settled()
				completes(t, l.sq, l.sentAs(1, op, verbs.StatusSuccess))
				if what != "RDMA Read" {
					completes(t, l.sq, l.sentAs(c.req.ID, c.req.Op, verbs.StatusSuccess))
				}
				empty(t, l.sq)
			}
		}
	}
	t.Part("")
}

// gate is a connection whose writes wait.
type gate struct {
	capture
	begun chan struct{} // a write has
	hold  chan struct{} // until closed
}

func (g *gate) Write(b []byte) (int, error) {
	select {
	case g.begun <- struct{}{}:
	default:
	}
	<-g.hold
	return g.capture.Write(b)
}

// fullFenceBehindMessage has the LLP take a message late: it is complete when that has it,
// and the fenced Invalidate behind it is done then and not before.
func fullFenceBehindMessage(t *conformance.T, n *host) {
	// More than a stream takes ahead of its connection, which would complete it; less than with the segments that are made
	// ahead of the stream, so that the Invalidate is the next element.
	const size = 384 << 10
	for op := range inTurn(t, "%v", []verbs.Op{verbs.OpSend, verbs.OpWrite}) {
		l, gone := n.idleLink(verbs.QPConfig{}), n.register(64, allRights)
		large := n.register(size, allRights)
		fill(large.Bytes(), 3)
		s, peer := aStream(t)
		hold, release := held(t)
		g := &gate{capture: capture{TCPConn: s.Conn.(*net.TCPConn)}, begun: make(chan struct{}, 1), hold: hold}
		s.Conn = g
		begin(t, l.qp, *s)
		l.peer = peer
		post(t, l.qp, verbs.Request{ID: 1, Op: op, SGL: large.SGL(0, size), Remote: theirs},
			verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: gone.STag(), Flags: verbs.LocalFence}, verbs.Request{ID: 3, Op: verbs.OpSendSE})
		receive(t, g.begun, "nothing is written")
		n.quiet() // others work
		require.True(t, queried(t, gone).Valid, "while the message is on its way")
		empty(t, l.sq)
		release()
		msn, header := uint32(1), 14
		if op == verbs.OpSend {
			msn, header = 2, 18
		}
		require.True(t, bytes.Equal(large.Bytes(), l.whole(header)))
		l.expect(untagged(lastUntagged, opSendSE, 0, 0, msn, 0, nil))
		completes(t, l.sq, l.sentAs(1, op, verbs.StatusSuccess), l.sentAs(2, verbs.OpInvalidate, verbs.StatusSuccess),
			l.sentAs(3, verbs.OpSendSE, verbs.StatusSuccess))
		require.False(t, queried(t, gone).Valid)
	}
}

// fencesBehindRead: behind an RDMA Read that is not answered, a Send, an RDMA Write and an
// Invalidate wait with their fence and only with it; all else never waits.
func fencesBehindRead(t *conformance.T, n *host) {
	for _, fenced := range []bool{false, true} {
		for what := range n.idleLink(verbs.QPConfig{}).columns(0, 0, false) {
			t.Part("%s, fenced %v", what, fenced)
			l := n.link(privileged)
			c := l.columns(1, 2, fenced)[what]
			waits := fenced && c.fence
			post(t, l.qp, l.aRead(1), c.req)
			l.expect(l.asks(1))
			begins := func() {
				if c.heard != nil {
					l.expect(c.heard)
				} else {
					eventually(t, c.done, "it is done")
				}
			}
			if !waits {
				begins()
			}
			l.settled() // nothing else goes out
			if c.done != nil {
				require.Equal(t, !waits, c.done(), "while the Read is not answered")
			}
			empty(t, l.sq)
			l.send(l.answer())
			if waits {
				begins()
			}
			completes(t, l.sq, l.sentAs(1, verbs.OpRead, verbs.StatusSuccess))
			if what == "RDMA Read" {
				l.send(l.answer())
			}
			completes(t, l.sq, l.sentAs(c.req.ID, c.req.Op, verbs.StatusSuccess))
		}
	}
	t.Part("")
}

// readBehindMemory: an RDMA Read goes out behind each operation on memory at once, and uses
// what that has made.
func readBehindMemory(t *conformance.T, n *host) {
	for what := range inTurn(t, "%s", []string{"Bind", "Fast-Register", "Invalidate"}) {
		l := n.link(privileged)
		c := l.columns(1, 1, true)[what]
		sink := l.mr.SGE(4096, 8)
		switch {
		case c.req.Bind != nil:
			sink = verbs.BindBuffer(c.req.Bind).SGE(0, 8)
		case c.req.FastRegister != nil:
			sink = verbs.FastRegisterBuffer(c.req.FastRegister).SGE(0, 8)
		}
		post(t, l.qp, c.req, verbs.Request{ID: 3, Op: verbs.OpRead, Local: sink, Remote: theirs})
		l.expect(aReadRequest(1, read{uint32(sink.STag), sink.TO, 8, uint32(theirs.STag), theirs.TO}))
		require.True(t, c.done())
		l.send(aReadResponse(uint32(sink.STag), sink.TO, []byte("response")))
		completes(t, l.sq, l.sentAs(c.req.ID, c.req.Op, verbs.StatusSuccess), l.sentAs(3, verbs.OpRead, verbs.StatusSuccess))
	}
}

// sendCQOverflows has a Send complete that its CQ has no room for: the stream ends with a
// Terminate Message, by way of Terminate.
func sendCQOverflows(t *conformance.T, n *host) {
	for _, fails := range named(t, "%s", map[string]bool{"CQ Overflow": false, "CQ Operation Error": true}) {
		cq := n.newCQ(1)
		l := n.link(verbs.QPConfig{SendCQ: cq})
		if fails {
			fault.Provoke(cq)
			n.events.are(verbs.Event{ID: verbs.EventCQOperation, CQ: cq.ID()})
		} else {
			for i := range uint64(roomOf(cq)) {
				l.adds(i)
			}
		}
		sent := either(!fails, uint32(roomOf(cq)), uint32(0))
		post(t, l.qp, l.aSend(90))
		l.expect(aSend(sent+1, l.mr.Bytes()[:4]))
		l.terminated(0x0207, nil, false)
		require.Equal(t, verbs.StateTerminate, l.qp.State())
		require.Same(t, cq, attributes(t, l.qp).SendCQ, "the CQ, by Query QP")
		l.closesTo(verbs.StateError)
		want := []verbs.Event{{ID: verbs.EventCQSQOverflow, QP: l.id}}
		if !fails {
			want = append(want, verbs.Event{ID: verbs.EventCQOverflow, CQ: cq.ID()})
		}
		got := make([]verbs.Event, len(want))
		for i := range got {
			got[i] = n.events.next()
		}
		require.ElementsMatch(t, want, got)
		n.quiet()
	}
}

// pv9 is what chapter 9 of the verbs draft binds without the keyword.
var pv9 = []conformance.Case{
	apiCase("9.3.2.1/id-whatever-the-status", onHost(idWhateverStatus), "PV-9.3.2.1-M1"),
	apiCase("9.5.2/a-write-is-terminated", onHost(writeTerminated), "PV-9.5.2-M3"),
	upperCase("9.5.3/read-request-size-and-offset", readRequestSize, "PV-9.5.3-M7"),
	upperCase("9.5.3/read-beyond-its-region", readBeyondRegion, "PV-9.5.3-M15"),
}

// idWhateverStatus has requests of both queues succeed, fail, be flushed and be terminated by
// the peer: all 64 bits of the ID come back.
func idWhateverStatus(t *conformance.T, n *host) {
	ids := []uint64{0, 1<<64 - 1, 1 << 63, 1<<32 + 1, t.Rand().Uint64()}
	for i, id := range ids {
		next, last := ids[(i+1)%len(ids)], ids[(i+2)%len(ids)]
		t.Part("ID %#x", id)
		l := n.link(verbs.QPConfig{})
		postRecv(t, l.qp, verbs.Recv{ID: id}, verbs.Recv{ID: next, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 8}}}, verbs.Recv{ID: last})
		post(t, l.qp, l.aSend(id))
		l.expect(aSend(1, l.mr.Bytes()[:4]))
		l.sendMessage(nil)
		l.settled()
		post(t, l.qp, l.aRead(next), l.aSend(last))
		l.sendMessage([]byte{1})
		ends := []verbs.Completion{l.got(id, 0), l.recvAs(verbs.StatusInvalidSTag, next)[0], l.recvAs(verbs.StatusFlushed, last)[0]}
		completes(t, l.rq, ends...)
		c := await(t, l.sq, 3)
		require.Equal(t, []uint64{id, next, last}, []uint64{c[0].ID, c[1].ID, c[2].ID})
		require.Equal(t, []verbs.Status{verbs.StatusSuccess, verbs.StatusFlushed}, []verbs.Status{c[0].Status, c[1].Status})

		l = n.link(verbs.QPConfig{})
		post(t, l.qp, l.aRead(id))
		l.expect(l.asks(1))
		l.send(aTerminate(0x0100, l.asks(1), true))
		completes(t, l.sq, l.sentAs(id, verbs.OpRead, verbs.StatusRemoteTermination))
		l = n.link(verbs.QPConfig{})
		post(t, l.qp, verbs.Request{ID: id, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}}, l.aSend(next))
		completes(t, l.sq, l.sentAs(id, verbs.OpSend, verbs.StatusInvalidSTag), l.sentAs(next, verbs.OpSend, verbs.StatusFlushed))
	}
	t.Part("")
}

// writeTerminated has the peer name one of three RDMA Writes that wait to be placed, in a Terminate Message that ends
// with the header of a tagged segment.
func writeTerminated(t *conformance.T, n *host) {
	for i := range counted(t, "Write %d", 3) {
		l := n.idleLink(verbs.QPConfig{ORD: 1, PlacedWrites: true})
		far, near := tcpPair(t)
		l.joinOver(far, verbs.StreamConfig{Conn: near, CRC: true, Enhanced: true, IRD: 1, ORD: 2})
		var writes [][]byte
		for id := range uint64(3) {
			at := verbs.Remote{STag: theirs.STag, TO: theirs.TO + 64*id}
			post(t, l.qp, verbs.Request{ID: id, Op: verbs.OpWrite, SGL: l.mr.SGL(0, 8), Remote: at})
			writes = append(writes, l.next())
			require.Equal(t, aWrite(uint32(at.STag), at.TO, l.mr.Bytes()[:8]), writes[id])
			if id == 0 { // whether it is placed is asked for, and the answer does not come
				l.segment(opReadRequest)
			}
		}
		empty(t, l.sq)
		l.send(aTerminate(0x1101, writes[i], false))
		l.silent("the end of the stream")
		l.closesTo(verbs.StateError)
		var want []verbs.Completion
		for id := range 3 {
			status := either(id == i, verbs.StatusRemoteTermination, verbs.StatusFlushed)
			want = append(want, l.sentAs(uint64(id), verbs.OpWrite, status))
		}
		completes(t, l.sq, want...)
	}
}

// readRequestSize spoils an RDMA Read Request's size and offset. That its header is not all
// there is an error of DDP on the wire, too small for what it says it is (figure 24).
func readRequestSize(t *conformance.T) {
	rejects(t, setup{}, "at an offset", readMO, always(untagged(lastUntagged, opReadRequest, 0, 1, 1, 28, read{}.header())))
	for _, n := range []int{0, 1, 27} {
		rejects(t, setup{}, "too small", readTooShort, always(aReadRequest(1, read{})[:18+n]))
	}
}

// readBeyondRegion asks for more than there is, up to the most that can be asked for.
func readBeyondRegion(t *conformance.T) {
	for _, x := range []struct {
		off int
		n   uint32
	}{{0, 257}, {255, 2}, {-1, 1}, {256, 1}, {0, 1<<32 - 1}} {
		rejects(t, setup{}, "beyond it", noBounds.read, func(v *faultRig) []byte {
			return aReadRequest(1, read{nowhere, nowhereTO, x.n, v.region.tag(), v.region.at(x.off)})
		})
	}
}
