package cases

import (
	"bytes"
	"io"
	"net"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_4 is stopping a queue pair: verbs draft 6.4.
var rv6_4 = []conformance.Case{
	apiCase("6.4/on-segment-boundaries", onHost(stopOnBoundaries), "RV-6.4-M1", "RV-6.4-M3"),
	apiCase("6.4/not-the-bad-segment", onHost(stopBeforeBadSegment), "RV-6.4-M4", "RV-6.4-M5"),
	apiCase("6.4/within-a-segment", stopWithinSegment, "RV-6.4-M6", "RV-6.4-M7"),
	apiCase("6.4/by-verb-at-the-message", stopAtMessage, "RV-6.4-M9", "PV-6.4-M3"),
	strict(apiCase("6.4/by-verb-within-the-message", onLink(stopWithinMessage), "RV-6.4-S1")),
	apiCase("6.4/answer-to-a-read", onHost(stopAnswer), "RV-6.4-M12"),
	apiCase("6.4/completion-error", stopCompletionError, "RV-6.4-M13", "PV-6.4-M2"),
	strict(apiCase("6.4/completion-error-within-the-message", onHost(stopCompletionErrorWithin), "RV-6.4-S2")),
}

// stopOnBoundaries stops a large Write at random moments, by verb and by the peer's
// fault: everything up to the Terminate Message is whole FPDUs.
func stopOnBoundaries(t *conformance.T, n *host) {
	mr := n.register(vast, allRights)
	for round := range counted(t, "round %d", 8) {
		l := n.link(verbs.QPConfig{})
		post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: mr.SGL(0, vast), Remote: theirs})
		got := 0
		for range t.Rand().IntN(100) {
			got += len(l.next()) - 14
		}
		want := aTerminate(0x0000, nil, false)
		if round%2 == 0 {
			l.modify(verbs.StateTerminate)
		} else {
			l.send(badSTag)
			want = aTerminate(0x1100, badSTag, false)
			reaches(t, l.qp, verbs.StateTerminate)
		}
		r := l.rest()
		require.ErrorIs(t, r.end, io.EOF)
		require.Equal(t, want, r.terminate)
		require.Zero(t, r.messages)
		require.Less(t, got+r.octets, vast)
		require.NoError(t, l.qp.Destroy())
	}
}

// stopBeforeBadSegment posts a Write whose second element is out of bounds.
func stopBeforeBadSegment(t *conformance.T, n *host) {
	mr := n.register(256, allRights)
	for good := range inTurn(t, "behind %d good octets", []int{1, 100, 40000, 60000}) {
		l := n.link(verbs.QPConfig{})
		post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: []verbs.SGE{n.mr.SGE(0, good), mr.SGE(250, 7)}, Remote: theirs})
		r := l.rest()
		require.ErrorIs(t, r.end, io.EOF)
		require.Equal(t, aTerminate(0x0000, nil, false), r.terminate, "in place of the segment")
		require.Zero(t, r.messages)
		require.LessOrEqual(t, r.octets, good)
		completes(t, l.sq, l.sentAs(1, verbs.OpWrite, verbs.StatusBaseBounds))
	}
}

// stopWithinSegment deregisters the source of a Write that the sockets have taken a
// part of. That the part ends within a segment is the rule; where it does not, it is
// tried again.
func stopWithinSegment(t *conformance.T) {
	const mark = 0xEE
	for try := 0; ; try++ {
		require.Less(t, try, 20, "it was always between two segments")
		l := newIdleLink(t, verbs.QPConfig{})
		s, peer := aStream(t)
		s.CRC = false                                                    // with CRCs segments are copied, and cannot go bad on the way
		s.EMSS = 5000 + try                                              // sockets take pages: this is not a part of one
		require.NoError(t, s.Conn.(*net.TCPConn).SetWriteBuffer(64<<10)) // less than one write
		begin(t, l.qp, *s)
		l.peer = peer
		l.setFraming(framing{})
		mr := l.register(vast, allRights)
		post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: mr.SGL(0, vast), Remote: theirs})
		l.next()
		l.full()
		require.NoError(t, mr.Deregister())
		memory := mr.Bytes()
		for i := range memory {
			memory[i] = mark
		}
		var err error
		terminate := false
		for err == nil {
			var u []byte
			if u, err = l.peer.Next(); err == nil {
				terminate = terminate || u[1] == opTerminate
				require.False(t, bytes.Contains(u[14:], []byte{mark, mark, mark, mark}), "memory that is not registered any more")
			}
		}
		if terminate {
			continue
		}
		require.ErrorIs(t, err, syscall.ECONNRESET, "the end of the stream")
		completes(t, l.sq, l.sentAs(1, verbs.OpWrite, verbs.StatusInvalidSTag))
		l.remains(verbs.StateError, verbs.EventBadClose)
		return
	}
}

// stopAtMessage has many Sends queued, behind each other. What the peer has got whole
// completes as Success, the rest as Flushed.
func stopAtMessage(t *conformance.T) {
	const sends, size = 400, 60000 // some 24 MB: more than sockets and a batch
	n := newHost(t, hostConfig{})
	for round := range 6 {
		next := []verbs.State{verbs.StateTerminate, verbs.StateError}[round%2]
		t.Part("round %d, to %v", round, next)
		l := n.link(verbs.QPConfig{SendDepth: sends})
		for i := range uint64(sends) {
			post(t, l.qp, verbs.Request{ID: i, SGL: n.mr.SGL(0, size)})
		}
		for range t.Rand().IntN(60) {
			l.next()
		}
		l.modify(next)
		r := l.rest()
		if next == verbs.StateTerminate {
			require.ErrorIs(t, r.end, io.EOF)
			require.Equal(t, aTerminate(0x0000, nil, false), r.terminate)
			l.shut()
		} else {
			require.ErrorIs(t, r.end, syscall.ECONNRESET)
			require.Nil(t, r.terminate)
		}
		ends(t, l.qp, verbs.StateError)
		flushed := 0
		for i, c := range await(t, l.sq, sends) {
			require.Equal(t, uint64(i), c.ID)
			if c.Status == verbs.StatusFlushed {
				flushed++
				continue
			}
			require.Equal(t, verbs.StatusSuccess, c.Status)
			require.Zero(t, flushed, "a success behind a flushed one")
		}
		require.NotZero(t, flushed, "nothing was stopped")
		if next == verbs.StateTerminate {
			continue
		}
		// After an abort the program may do with its memory what it wants.
		require.NoError(t, l.qp.Destroy())
	}
}

// stopWithinMessage: a stop does not wait for the end of a message. What was framed
// already may follow; it is bounded (docs/decisions/0001).
func stopWithinMessage(t *conformance.T, l *link) {
	l.stuff()
	l.modify(verbs.StateTerminate)
	r := l.rest()
	require.ErrorIs(t, r.end, io.EOF)
	require.Equal(t, aTerminate(0x0000, nil, false), r.terminate)
	require.Zero(t, r.messages, "the message is not whole")
	require.Less(t, r.octets, vast-(1<<20))
}

// stopAnswer answers one RDMA Read while the source of the next goes: in place of its
// answer comes the Terminate Message about its request.
func stopAnswer(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	first, second := n.register(vast, allRights), n.register(64, allRights)
	l.send(aReadRequest(1, read{nowhere, nowhereTO, vast, uint32(first.STag()), first.Base()}))
	l.next()
	u := aReadRequest(2, read{nowhere, nowhereTO, 64, uint32(second.STag()), second.Base()})
	l.send(u)
	l.full() // it has arrived, and been found good
	require.NoError(t, second.Deregister())
	r := l.rest()
	require.ErrorIs(t, r.end, io.EOF)
	require.Equal(t, aTerminate(0x0100, u, true), r.terminate)
	require.Equal(t, 1, r.messages, "the first answer, and not the second")
	l.closesWith(verbs.StateError, verbs.EventIRRQSTag)
}

// overflowed makes a link whose receive CQ has had one completion too many, while it
// sends to a peer that does not read.
func (n *host) overflowed(first func(*link)) *link {
	l := n.link(verbs.QPConfig{RecvCQ: n.newCQ(1), SendDepth: 512})
	for i := range uint64(3) {
		postRecv(n.t, l.qp, verbs.Recv{ID: i})
	}
	first(l)
	l.sendMessage(nil)
	l.sendMessage(nil)
	reaches(n.t, l.qp, verbs.StateTerminate)
	return l
}

// stopCompletionError has many Sends queued when a completion finds no room.
func stopCompletionError(t *conformance.T) {
	const sends, size = 400, 60000
	n := newHost(t, hostConfig{})
	l := n.overflowed(func(l *link) {
		for i := range uint64(sends) {
			post(t, l.qp, verbs.Request{ID: i, SGL: n.mr.SGL(0, size)})
		}
	})
	r := l.rest()
	require.ErrorIs(t, r.end, io.EOF)
	require.Equal(t, aTerminate(0x0207, nil, false), r.terminate)
	require.Less(t, r.messages, sends)
	l.closesTo(verbs.StateError)
	requireOverflow(l)
}

// requireOverflow says that the events tell of the overflow: the queue pair's, and
// before or behind it the CQ's.
func requireOverflow(l *link) {
	var mine []verbs.EventID
	for len(mine) == 0 {
		if e := l.events.next(); e.QP == l.id {
			mine = append(mine, e.ID)
		} else {
			require.Equal(l.t, verbs.EventCQOverflow, e.ID)
		}
	}
	require.Equal(l.t, []verbs.EventID{verbs.EventCQRQError}, mine)
}

func stopCompletionErrorWithin(t *conformance.T, n *host) {
	l := n.overflowed((*link).stuff)
	r := l.rest()
	require.ErrorIs(t, r.end, io.EOF)
	require.Equal(t, aTerminate(0x0207, nil, false), r.terminate)
	require.Zero(t, r.messages, "the message is not whole")
}

// rv6_4_inbound is stopping what arrives, and which fault counts: verbs draft 6.4.
var rv6_4_inbound = []conformance.Case{
	upperCase("6.4/inbound-stops", stopInbound, "RV-6.4-M8", "PV-6.4-M1"),
	upperCase("6.4/when-delivered", faultWhenDelivered, "RV-6.4-M14"),
	upperCase("6.4/first-fault-counts", firstFaultCounts, "RV-6.4-M15"),
	upperCase("6.4/others-do-not-wait", onTwoCQs(othersDoNotWait), "RV-6.4-M16"),
}

// faultWhenDelivered sends a bad segment up to the last octets of its CRC.
func faultWhenDelivered(t *conformance.T) {
	r, g := openWith(t, twoCQs(), 64)
	r.settled()
	f := r.peer.Frame(badSTag)
	require.NoError(t, r.peer.Raw(f[:len(f)-2]))
	for i := range uint32(20) {
		r.post(verbs.Request{ID: uint64(i), SGL: g.sgl(0, 4)})
		r.expect(aSend(i+1, g.first[:4]))
		r.completionsOf(r.SendCQ, verbs.Completion{ID: uint64(i)})
	}
	r.unharmed()
	require.NoError(t, r.peer.Raw(f[len(f)-2:]))
	r.tornDown(0x1100, badSTag, false)
	r.events(verbs.EventProtSTag)
}

// firstFaultCounts sends two bad segments in one write, in both orders.
func firstFaultCounts(t *conformance.T) {
	badQN := untagged(lastUntagged, opSend, 0, 5, 1, 0, []byte{1})
	badOpcode := untagged(lastUntagged, 0x4B, 0, 0, 1, 0, nil)
	type fault struct {
		u     []byte
		code  uint16
		event verbs.EventID
	}
	all := []fault{{badSTag, 0x1100, verbs.EventProtSTag}, {badQN, 0x1201, verbs.EventInvalidQN}, {badOpcode, 0x0206, verbs.EventUnexpectedOpcode}}
	for i, first := range all {
		for j, behind := range all {
			if i == j {
				continue
			}
			r := open(t, setup{})
			r.sendAtOnce(first.u, behind.u)
			r.tornDown(first.code, first.u, false)
			r.events(first.event)
		}
	}
	// One of the LLP, before one of DDP.
	r := open(t, setup{})
	f := r.peer.Frame(badSTag)
	f[len(f)-1] ^= 1
	require.NoError(t, r.peer.Raw(append(f, r.peer.Frame(badQN)...)))
	r.tornDown(0x2002, nil, false)
	r.events(verbs.EventBadCRC)
}

// othersDoNotWait has a bad segment that is not all there, and a bad request.
func othersDoNotWait(t *conformance.T, r *rig) {
	r.settled()
	f := r.peer.Frame(badSTag)
	require.NoError(t, r.peer.Raw(f[:len(f)-1]))
	r.post(verbs.Request{ID: 1, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}})
	r.completionsOf(r.SendCQ, verbs.Completion{ID: 1, Status: verbs.StatusInvalidSTag})
	r.expect(aTerminate(0x0000, nil, false))
	require.NoError(t, r.peer.Raw(f[len(f)-1:]))
	r.finishedIn(verbs.StateError)
	r.events()
}

// stopInbound has good segments behind a bad one, in one write.
func stopInbound(t *conformance.T) {
	for _, bad := range [][]byte{badSTag, untagged(lastUntagged, opSend, 0, 5, 1, 0, nil), untagged(lastUntagged, 0x4B, 0, 0, 1, 0, nil)} {
		r := open(t, twoCQs())
		bufs := r.recv(2, 16)
		g := r.region(64, allRights)
		sink := r.outstandingRead(9)
		r.sendAtOnce(
			aSend(1, []byte("before")), bad, aSend(2, []byte("behind")), aWrite(g.tag(), g.at(0), []byte("behind")),
			aReadResponse(sink.tag(), sink.at(0), []byte("response")),
		)
		require.Equal(t, byte(opTerminate), r.next()[1])
		r.finishedIn(verbs.StateError)
		r.completionsOf(r.RecvCQ, verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 6}, flushedRecvs(2)[0])
		r.completionsOf(r.SendCQ, verbs.Completion{ID: 9, Op: verbs.OpRead, Status: verbs.StatusFlushed})
		bufs[0].holds(0, []byte("before"))
		bufs[1].unchanged()
		g.unchanged()
		sink.unchanged()
	}
}
