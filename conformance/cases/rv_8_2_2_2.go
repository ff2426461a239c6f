package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_2_2_2 is the Read Fence and the Local Fence: verbs draft 8.2.2.2.
var rv8_2_2_2 = []conformance.Case{
	upperCase("8.2.2.2/read-fence-taken", readFenceTaken, "RV-8.2.2.2-M1", "RV-8.2.2.2-M2", "RV-8.2.2.2-M3"),
	upperCase("8.2.2.2/read-fence-of-two", onRig(readFenceOfTwo), "RV-8.2.2.2-M2", "RV-8.2.2.2-M3"),
	upperCase("8.2.2.2/local-fence", localFence, "RV-8.2.2.2-M4", "RV-8.2.2.2-M5", "RV-8.2.2.2-M6"),
	upperCase("8.2.2.2/local-fence-of-each", localFenceOfEach, "RV-8.2.2.2-M5", "RV-8.2.2.2-M6"),
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
				r := open(t, setup{})
				b := r.region(8, allRights)
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
		r := open(t, twoCQs())
		b := r.region(8, allRights)
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
			r.send(late)
			r.tornDown(0x1100, late, false)
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

// localFenceOfEach has each kind of message ahead of the fence, of which the peer takes
// in nothing for now: the data is whole though its STag is to be invalidated.
func localFenceOfEach(t *conformance.T) {
	const size = 8 << 20 // more than TCP takes for a peer that does not read
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite} {
		t.Part("%v", op)
		r := open(t, setup{narrow: true})
		b := r.region(size, allRights)
		r.post(
			verbs.Request{ID: 1, Op: op, SGL: b.sgl(0, size), Remote: theirs},
			verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: b.STag, Flags: verbs.LocalFence},
			verbs.Request{ID: 3, Op: verbs.OpSendSE},
		)
		require.True(t, b.query().Valid, "while the message is under way")
		r.incomplete()
		var got []byte
		msn := uint32(1)
		if op == verbs.OpSend {
			got, _ = r.untaggedMessage(opSend, 0, 1)
			msn++
		} else {
			got, _ = r.taggedMessage(opWrite, uint32(theirs.STag), theirs.TO)
		}
		same(t, b.first, got, "the message")
		r.expect(untagged(lastUntagged, opSendSE, 0, 0, msn, 0, nil))
		require.False(t, b.query().Valid)
		r.completions(verbs.Completion{ID: 1, Op: op}, verbs.Completion{ID: 2, Op: verbs.OpInvalidate}, verbs.Completion{ID: 3, Op: verbs.OpSendSE})
	}
}
