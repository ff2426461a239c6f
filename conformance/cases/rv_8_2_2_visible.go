package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_2_2_visible is when data is certain to be where it belongs: verbs draft 8.2.2,
// rules 6, 7, 13 and 16.
var rv8_2_2_visible = []conformance.Case{
	apiCase("8.2.2/written-before-receive", writtenBeforeReceive, "RV-8.2.2-M3", "RV-8.2.2-M6"),
	apiCase("8.2.2/read-before-completion", onNode(readBeforeCompletion), "RV-8.2.2-M4"),
	upperCase("8.2.2/read-behind-peers-messages", readBehindPeersMessages, "RV-8.2.2-M7", "PV-8.2.2.2-M1"),
	apiCase("8.2.2/read-of-what-was-written", readOfWhatWasWritten, "RV-8.2.2-M8"),
}

// inPieces has the peer send octets of its stream, cut by TCP anywhere.
func (l *line) inPieces(b []byte) {
	for len(b) > 0 {
		k := 1 + l.t.Rand().IntN(min(len(b), 2000))
		require.NoError(l.t, l.peer.Raw(b[:k]), "the peer sends")
		b = b[k:]
	}
}

// segmented is a message of tagged segments of up to k octets each.
func segmented(control byte, at verbs.Remote, data []byte, k int) (list [][]byte) {
	for off := 0; off < len(data); off += k {
		first, end := byte(moreTagged), off+k
		if end >= len(data) {
			first, end = lastTagged, len(data)
		}
		list = append(list, tagged(first, control, uint32(at.STag), at.TO+uint64(off), data[off:end]))
	}
	return list
}

// framed are ULPDUs as the peer's stream carries them.
func (l *line) framed(ulpdus ...[]byte) (b []byte) {
	for _, u := range ulpdus {
		b = append(b, l.peer.Frame(u)...)
	}
	return b
}

// writtenBeforeReceive has the peer write pieces of a region and send in turn. When a
// receive completes, so have those before it, and all that was written before is there.
func writtenBeforeReceive(t *conformance.T) {
	const sends = 40
	n := newNode(t, nodeConfig{})
	l, sink := n.line(verbs.QPConfig{}), n.register(sends*5000, allRights)
	written := make([]byte, len(sink.Bytes()))
	var stream []byte
	var ends []int // of what was written before each Send
	for i := range sends {
		l.recv(uint64(i))
		k := t.Rand().IntN(5000)
		data := fill(make([]byte, k), i)
		copy(written[5000*i:], data)
		stream = append(stream, l.framed(segmented(opWrite, sink.Remote(5000*i), data, 1+t.Rand().IntN(1500))...)...)
		stream = append(stream, l.framed(aSend(uint32(i+1), []byte{byte(i), 1, 2}))...)
		ends = append(ends, 5000*i+k)
	}
	l.inPieces(stream)
	for i, end := range ends {
		completes(t, l.rq, l.got(uint64(i), 3))
		same(t, written[:end], sink.Bytes()[:end], "what was written before Send %d", i)
		for j := range i + 1 {
			require.Equal(t, []byte{byte(j), 1, 2}, n.mr.Bytes()[64*j:][:3], "Send %d, when Send %d has completed", j, i)
		}
	}
	empty(t, l.rq)
}

// readBeforeCompletion: a Read whose response comes in pieces completes behind the last
// octet, and then all are there.
func readBeforeCompletion(t *conformance.T, n *node) {
	l, sink := n.line(verbs.QPConfig{}), n.register(5000, allRights)
	for i := range counted(t, "round %d", 10) {
		clear(sink.Bytes())
		data := fill(make([]byte, 5000), i)
		post(t, l.qp, verbs.Request{ID: uint64(i), Op: verbs.OpRead, Local: sink.SGE(0, 5000), Remote: theirs})
		require.Equal(t, byte(opReadRequest), l.heard()[1])
		parts := segmented(opReadResponse, sink.Remote(0), data, 1+t.Rand().IntN(2000))
		last := len(parts) - 1
		l.inPieces(l.framed(parts[:last]...))
		l.settle()
		empty(t, l.sq)
		end := l.framed(parts[last])
		l.inPieces(end[:len(end)-1])
		empty(t, l.sq)
		l.inPieces(end[len(end)-1:])
		completes(t, l.sq, l.sentAs(uint64(i), verbs.OpRead, verbs.StatusSuccess))
		same(t, data, sink.Bytes(), "the sink at the completion")
	}
}

// readBehindPeersMessages: in one write of TCP, the peer changes what it reads then, and
// invalidates what it wants to read too.
func readBehindPeersMessages(t *conformance.T) {
	for range counted(t, "round %d", 10) {
		r := open(t, setup{})
		r.recv(1, 16)
		x, a := r.region(64, allRights), r.region(64, allRights)
		fresh, bad := []byte("what the peer wrote just before it"), aReadRequest(2, read{nowhere, nowhereTO, 8, a.tag(), a.at(0)})
		r.sendAtOnce(
			aWrite(x.tag(), x.at(5), fresh), aSendInv(1, a.tag(), []byte("invalidate")),
			aReadRequest(1, read{nowhere, nowhereTO, uint32(len(fresh)), x.tag(), x.at(5)}), bad,
		)
		r.expect(aReadResponse(nowhere, nowhereTO, fresh))
		r.tornDown(0x0100, bad, true)
		r.events(verbs.EventIRRQSTag)
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 10, HasInvalidated: true, Invalidated: a.STag})
	}
}

// readOfWhatWasWritten reads back what the request just before has changed: a Write, and
// a Send whose receive lies in the region that is read. The posts do not wait.
func readOfWhatWasWritten(t *conformance.T) {
	const k, rounds = 40_000, 100
	w := newWorld(t, worldConfig{})
	a, b := w.a, w.b
	back := a.register(k, allRights)
	for i := range counted(t, "round %d", rounds) {
		data := fill(a.mr.Bytes()[:k], i)
		first := verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: a.mr.SGL(0, k), Remote: b.mr.Remote(0)}
		if i%2 == 1 {
			postRecv(t, b.qp, verbs.Recv{ID: 3, SGL: b.mr.SGL(0, k)})
			first = verbs.Request{ID: 1, SGL: a.mr.SGL(0, k)}
		}
		post(t, a.qp, first, verbs.Request{ID: 2, Op: verbs.OpRead, Local: back.SGE(0, k), Remote: b.mr.Remote(0)})
		completes(t, a.cq,
			verbs.Completion{ID: 1, QP: a.qp.ID(), Op: first.Op}, verbs.Completion{ID: 2, QP: a.qp.ID(), Op: verbs.OpRead})
		require.True(t, bytes.Equal(data, back.Bytes()), "what was read back")
		if i%2 == 1 {
			completes(t, b.cq, verbs.Completion{ID: 3, QP: b.qp.ID(), Op: verbs.OpRecv, Bytes: k})
		}
	}
}
