package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_2_2_2 is the Read Fence and the Local Fence: verbs draft 8.2.2.2.
var rv8_2_2_2 = []conformance.Case{
	upperCase("8.2.2.2/read-fence-taken", readFenceTaken, "RV-8.2.2.2-M1", "RV-8.2.2.2-M2", "RV-8.2.2.2-M3"),
	upperCase("8.2.2.2/read-fence-of-two", onRig(readFenceOfTwo), "RV-8.2.2.2-M2", "RV-8.2.2.2-M3"),
	upperCase("8.2.2.2/local-fence", localFence, "RV-8.2.2.2-M4", "RV-8.2.2.2-M5", "RV-8.2.2.2-M6"),
}

// fenceable are the operations that can have a Read Fence, without data, and what the
// peer hears of them.
var fenceable = []struct {
	req   verbs.Request
	heard []byte
}{
	{verbs.Request{Op: verbs.OpSend}, aSend(1, nil)},
	{verbs.Request{Op: verbs.OpSendSE}, untagged(lastUntagged, opSendSE, 0, 0, 1, 0, nil)},
	{verbs.Request{Op: verbs.OpSendInvalidate, Invalidate: 0x501}, aSendInv(1, 0x501, nil)},
	{verbs.Request{Op: verbs.OpSendSEInvalidate, Invalidate: 0x501}, untagged(lastUntagged, opSendSEInv, 0x501, 0, 1, 0, nil)},
	{verbs.Request{Op: verbs.OpWrite, Remote: theirs}, aWrite(uint32(theirs.STag), theirs.TO, nil)},
}

// readFenceTaken has each behind a Read of either kind whose response is held back: with
// the fence it waits for it, without it does not.
func readFenceTaken(t *conformance.T) {
	for _, f := range fenceable {
		for _, op := range []verbs.Op{verbs.OpRead, verbs.OpReadInvalidate} {
			for _, fence := range []verbs.Flags{0, verbs.ReadFence} {
				t.Part("%v behind %v, flags %d", f.req.Op, op, fence)
				r, b := openWith(t, setup{}, 8)
				first, second := b.aReadOf(1, 0, 8), f.req
				first.Op, second.ID, second.Flags = op, 2, fence
				r.post(first, second)
				r.expect(b.asksFor(1, 0, 8))
				if fence == 0 {
					r.expect(f.heard)
				}
				r.idle()
				r.send(aReadResponse(b.tag(), b.at(0), []byte("response")))
				if fence != 0 {
					r.expect(f.heard)
				}
				r.completions(verbs.Completion{ID: 1, Op: op}, verbs.Completion{ID: 2, Op: f.req.Op})
			}
		}
	}
}

// readFenceOfTwo: one of two Reads is not enough; what is before the fence does not
// wait, what is behind it does.
func readFenceOfTwo(t *conformance.T, r *rig) {
	b := r.region(64, allRights)
	r.post(
		b.aReadOf(1, 0, 8), verbs.Request{ID: 2, SGL: b.sgl(32, 1)}, b.aReadOf(3, 8, 8),
		verbs.Request{ID: 4, Op: verbs.OpWrite, SGL: b.sgl(33, 1), Remote: theirs},
		verbs.Request{ID: 5, SGL: b.sgl(34, 1), Flags: verbs.ReadFence},
		verbs.Request{ID: 6, Op: verbs.OpWrite, SGL: b.sgl(35, 1), Remote: theirs}, b.aReadOf(7, 16, 8),
	)
	stag, to := uint32(theirs.STag), theirs.TO
	r.expect(b.asksFor(1, 0, 8), aSend(1, b.first[32:33]), b.asksFor(2, 8, 8), aWrite(stag, to, b.first[33:34]))
	r.settled()
	r.send(aReadResponse(b.tag(), b.at(0), []byte("response")))
	r.settled()
	r.settled() // what went out together with the first answer, and behind it
	r.send(aReadResponse(b.tag(), b.at(8), []byte("another.")))
	r.expect(aSend(2, b.first[34:35]), aWrite(stag, to, b.first[35:36]), b.asksFor(3, 16, 8))
	r.settled()
	r.completions(
		verbs.Completion{ID: 1, Op: verbs.OpRead}, verbs.Completion{ID: 2}, verbs.Completion{ID: 3, Op: verbs.OpRead},
		verbs.Completion{ID: 4, Op: verbs.OpWrite}, verbs.Completion{ID: 5}, verbs.Completion{ID: 6, Op: verbs.OpWrite},
	)
	r.incomplete()
}

// localFence invalidates the sink of a Read that is not answered yet. With the fence
// that waits, and so does what is behind it; without, the response comes too late.
func localFence(t *conformance.T) {
	for fence := range inTurn(t, "flags %d", []verbs.Flags{0, verbs.LocalFence}) {
		r, b := openWith(t, twoCQs(), 8)
		r.post(
			b.aReadOf(1, 0, 8), verbs.Request{ID: 2},
			verbs.Request{ID: 3, Op: verbs.OpInvalidate, Invalidate: b.STag, Flags: fence}, verbs.Request{ID: 4, Op: verbs.OpSendSE},
		)
		last := untagged(lastUntagged, opSendSE, 0, 0, 2, 0, nil)
		r.expect(b.asksFor(1, 0, 8), aSend(1, nil))
		if fence == 0 {
			r.expect(last)
			require.False(t, b.query().Valid, "behind an Invalidate without a fence")
			late := aReadResponse(b.tag(), b.at(0), []byte("response"))
			r.refuses(0x1100, late, false)
			b.unchanged()
			continue
		}
		r.settled()
		require.True(t, b.query().Valid, "while the response is out")
		r.incomplete()
		r.send(aReadResponse(b.tag(), b.at(0), []byte("response")))
		r.expect(last)
		require.False(t, b.query().Valid)
		b.holds(0, []byte("response"))
		r.completions(
			verbs.Completion{ID: 1, Op: verbs.OpRead}, verbs.Completion{ID: 2},
			verbs.Completion{ID: 3, Op: verbs.OpInvalidate}, verbs.Completion{ID: 4, Op: verbs.OpSendSE},
		)
	}
}

// rv8_2_2_visible is when data is certain to be where it belongs: verbs draft 8.2.2,
// rules 6, 7, 13 and 16.
var rv8_2_2_visible = []conformance.Case{
	apiCase("8.2.2/written-before-receive", writtenBeforeReceive, "RV-8.2.2-M3", "RV-8.2.2-M6"),
	apiCase("8.2.2/read-before-completion", onHost(readBeforeCompletion), "RV-8.2.2-M4"),
	upperCase("8.2.2/read-behind-peers-messages", readBehindPeersMessages, "RV-8.2.2-M7", "PV-8.2.2.2-M1"),
	apiCase("8.2.2/read-of-what-was-written", readOfWhatWasWritten, "RV-8.2.2-M8"),
}

// inPieces has the peer send octets of its stream, cut by TCP anywhere.
func (l *link) inPieces(b []byte) {
	for len(b) > 0 {
		k := 1 + l.t.Rand().IntN(min(len(b), 2000))
		require.NoError(l.t, l.peer.Raw(b[:k]), "the peer sends")
		b = b[k:]
	}
}

// framed are ULPDUs as the peer's stream carries them.
func (l *link) framed(ulpdus ...[]byte) (b []byte) {
	for _, u := range ulpdus {
		b = append(b, l.peer.Frame(u)...)
	}
	return b
}

// writtenBeforeReceive has the peer write pieces of a region and send in turn. When a
// receive completes, so have those before it, and all that was written before is there.
func writtenBeforeReceive(t *conformance.T) {
	const sends = 40
	n := newHost(t, hostConfig{})
	l, sink := n.link(verbs.QPConfig{}), n.register(sends*5000, allRights)
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
func readBeforeCompletion(t *conformance.T, n *host) {
	l, sink := n.link(verbs.QPConfig{}), n.register(5000, allRights)
	for i := range counted(t, "round %d", 10) {
		clear(sink.Bytes())
		data := fill(make([]byte, 5000), i)
		post(t, l.qp, verbs.Request{ID: uint64(i), Op: verbs.OpRead, Local: sink.SGE(0, 5000), Remote: theirs})
		require.Equal(t, byte(opReadRequest), l.next()[1])
		parts := segmented(opReadResponse, sink.Remote(0), data, 1+t.Rand().IntN(2000))
		last := len(parts) - 1
		l.inPieces(l.framed(parts[:last]...))
		l.settled()
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
	w := newHostPair(t, hostPairConfig{})
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
