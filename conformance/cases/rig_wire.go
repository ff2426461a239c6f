package cases

import (
	"io"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// send sends ULPDUs, each in a good FPDU.
func (r *rig) send(ulpdus ...[]byte) {
	for _, u := range ulpdus {
		require.NoError(r.t, r.peer.Send(u), "sending")
	}
}

// sendAtOnce sends ULPDUs in one write of TCP.
func (r *rig) sendAtOnce(ulpdus ...[]byte) {
	var b []byte
	for _, u := range ulpdus {
		b = append(b, r.peer.Frame(u)...)
	}
	require.NoError(r.t, r.peer.Raw(b), "sending")
}

// sendMessage sends a whole Send, the next one.
func (r *rig) sendMessage(payload []byte) { r.send(aSend(r.nextSend(), payload)) }

// next is the next ULPDU from the queue pair. It is a copy.
func (r *rig) next() []byte {
	u := must(r.peer.Next())(r.t, "waiting for an FPDU")
	return append([]byte(nil), u...)
}

// expect says that the next ULPDUs from the queue pair are these, to the octet.
func (r *rig) expect(want ...[]byte) {
	for i, w := range want {
		require.Equal(r.t, w, r.next(), "ULPDU %d of %d", i+1, len(want))
	}
}

// taggedMessage reads a whole tagged message: every segment has this control octet
// and STag, and its TO goes on from to. It returns the payload and the number of
// segments.
func (r *rig) taggedMessage(control byte, stag uint32, to uint64) (payload []byte, segments int) {
	for {
		u := r.next()
		first := either(u[0] == lastTagged, lastTagged, byte(moreTagged))
		require.GreaterOrEqual(r.t, len(u), 14, "% x", u)
		want := tagged(first, control, stag, to+uint64(len(payload)), nil)
		require.Equal(r.t, want, u[:14], "the header of segment %d", segments)
		payload = append(payload, u[14:]...)
		segments++
		if first == lastTagged {
			return payload, segments
		}
	}
}

// untaggedMessage is taggedMessage for a Send.
func (r *rig) untaggedMessage(control byte, inv, msn uint32) (payload []byte, segments int) {
	for {
		u := r.next()
		first := either(u[0] == lastUntagged, lastUntagged, byte(moreUntagged))
		require.GreaterOrEqual(r.t, len(u), 18, "% x", u)
		want := untagged(first, control, inv, 0, msn, uint32(len(payload)), nil)
		require.Equal(r.t, want, u[:18], "the header of segment %d", segments)
		payload = append(payload, u[18:]...)
		segments++
		if first == lastUntagged {
			return payload, segments
		}
	}
}

// The made-up sink of the RDMA Reads below.
const (
	nowhere   = 0x00C0FFEE
	nowhereTO = 0x0123456789ABCDEF
)

// settled waits until the queue pair has processed everything that was sent: the
// answer to an RDMA Read of nothing comes behind it (RFC 5040 5.5). Nothing else
// may come before.
func (r *rig) settled() {
	r.send(aReadRequest(r.nextRead(), read{sinkSTag: nowhere, sinkTO: nowhereTO}))
	r.expect(aReadResponse(nowhere, nowhereTO, nil))
}

// fetch reads a buffer by RDMA Read, and returns the octets. It reads the responses
// whole: nothing else may come between.
func (r *rig) fetch(b *buffer, off, n int) []byte {
	r.send(aReadRequest(r.nextRead(), read{nowhere, nowhereTO, uint32(n), b.tag(), b.at(off)}))
	got, _ := r.taggedMessage(opReadResponse, nowhere, nowhereTO)
	return got
}

// terminated says that next comes a Terminate Message of this layer, type and code
// (layer<<12|type<<8|code), to the octet, and then the end of the stream. fault is
// the segment at fault that it echoes with its length: the DDP header, and with
// readToo the RDMA Read Request header; nil for none (RFC 5040 4.8 figure 10).
// The peer's half is closed then.
func (r *rig) terminated(code uint16, fault []byte, readToo bool) {
	r.expect(aTerminate(code, fault, readToo))
	r.finished()
}

// finished says that the stream ends in order, and closes the peer's half.
func (r *rig) finished() {
	require.ErrorIs(r.t, second(r.peer.Next()), io.EOF, "after the last FPDU")
	_ = r.peer.CloseWrite()
}

// eventuallyTerminated is terminated behind other FPDUs, which it returns.
func (r *rig) eventuallyTerminated(code uint16, fault []byte, readToo bool) [][]byte {
	var before [][]byte
	for {
		u := r.next()
		if u[1]&0x0F == 7 {
			require.Equal(r.t, aTerminate(code, fault, readToo), u, "the Terminate Message")
			r.finished()
			return before
		}
		before = append(before, u)
	}
}

// gone says that the stream has ended in whatever way, and how.
func (r *rig) gone() streamEnd {
	end, _, err := r.peer.End()
	require.NoError(r.t, err, "the end of the stream")
	return end
}

// shut ends the peer's half of the stream.
func (r *rig) shut() { require.NoError(r.t, r.peer.CloseWrite(), "closing") }

// finishedIn is finished, with the queue pair in that state then.
func (r *rig) finishedIn(s verbs.State) upper.QPState {
	r.finished()
	return r.ended(s)
}

// tornDown is terminated, with the queue pair in Error then.
func (r *rig) tornDown(code uint16, fault []byte, readToo bool) {
	r.terminated(code, fault, readToo)
	r.ended(verbs.StateError)
}

// idle says that everything which was sent is processed, and that nothing completed.
func (r *rig) idle() {
	r.settled()
	r.incomplete()
}

// delivers sends a whole Send, the next one, which completes the receive with this ID.
func (r *rig) delivers(id uint64, text string) {
	r.sendMessage([]byte(text))
	r.completions(verbs.Completion{ID: id, Op: verbs.OpRecv, Bytes: uint32(len(text))})
}
