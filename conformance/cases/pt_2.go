package cases

import (
	"bytes"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// pt2 is what the VI/TCP draft, 2.2.2, says of messages on a stream without a must.
var pt2 = []conformance.Case{
	apiCase("2.2.2.2.3/vi-answers-between", viAnswersBetween, "PT-2.2.2.2.3-M2", "PT-3.2-M6"),
	apiCase("2.2.2.2.3/vi-answers-between-sent", viAnswersBetweenSent,
		"PT-2.2.2.2.3-M1", "PT-2.2.2.2.3-M2", "PT-3.2-M3", "PT-3.2-M4"),
	apiCase("2.2.2.2.3/vi-answers-apart", viAnswersApart, "PT-2.2.2.2.3-M2"),
	apiCase("2.2.2.2.3/vi-messages-apart", viMessagesApart, "PT-2.2.2.2.3-M1"),
	apiCase("2.2.2.2.6/vi-window-for-life", viWindowForLife, "PT-2.2.2.2.6-M1"),
}

// viAnswersBetween answers two RDMA Reads between the segments of a Send and of an RDMA
// Write, one answer after the other.
func viAnswersBetween(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[1:]) {
		r := newVIRig(t, viSetup{level: l.level, receives: 1})
		from := vipl.AddressSegment{Data: 1, Handle: 1}
		reads := []*vipl.Descriptor{r.reads(r.v, from, r.data(0, 4)), r.reads(r.v, from, r.data(4, 4))}
		answers := []viSegment{r.get(viReadRequest), r.get(viReadRequest)}
		answer := func(i int, flags byte, offset uint32, payload string) {
			r.put(viSegment{kind: viReadResponse, flags: flags, number: answers[i].number, offset: offset, payload: []byte(payload)})
		}
		s := r.message(viSegment{kind: viSend, payload: []byte("Se")})
		r.put(s)
		answer(0, 0, 0, "on")
		s.offset, s.payload = 2, []byte("n")
		r.put(s)
		answer(0, viLast, 2, "e.")
		s.flags, s.offset, s.payload = viLast, 3, []byte("d")
		r.put(s)
		w := r.message(viSegment{kind: viWrite, rdma: r.at(8, 4), payload: []byte("W")})
		r.put(w)
		answer(1, 0, 0, "two")
		w.flags, w.offset, w.payload = viLast, 1, []byte("ite")
		r.put(w)
		answer(1, viLast, 3, ".")
		for _, d := range reads {
			r.sent(r.v, d, viDone|viOpRead)
		}
		r.received(r.v, r.receives[0], viDone|viOpReceive)
		require.Equal(t, "Send", string(r.slot(0)[:4]))
		require.Equal(t, "one.two.Wite", string(r.mem[:12]))
	}
}

// viAnswersBetweenSent asks for much while the VI has much to send itself. Its first answer waits
// in the pipe, so the other two have to be in order for sure.
func viAnswersBetweenSent(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, pipe: true, nic: vipl.Config{Segment: 512}})
	reads := []uint32{r.rdmaRead(r.at(0, 20000)), r.rdmaRead(r.at(7, 20000)), r.rdmaRead(r.at(9, 20000))}
	last := reads[len(reads)-1]
	const n = 4
	for i := range n {
		d := r.desc()
		d.SetSend(r.data(i, 9000))
		if i%2 == 1 {
			d.SetRdmaWrite(vipl.AddressSegment{Data: 1, Handle: 1}, r.data(i, 9000))
		}
		r.post(r.v, d)
	}
	sent, answered := make([][]byte, 0, n), map[uint32][]byte{}
	open := false // a message of the VI
	for len(sent) < n || open || len(answered[last]) < 20000 {
		s := r.next()
		if s.kind == viReadResponse {
			require.Equal(t, uint32(len(answered[s.number])), s.offset, "%v", &s)
			require.Contains(t, reads, s.number)
			for _, earlier := range reads[:slices.Index(reads, s.number)] {
				require.Len(t, answered[earlier], 20000, "an answer is whole before the next one")
			}
			answered[s.number] = append(answered[s.number], s.payload...)
			require.Equal(t, len(answered[s.number]) == 20000, s.last(), "%v", &s)
			continue
		}
		if !open {
			sent = append(sent, nil)
		}
		i := len(sent) - 1
		require.Equal(t, []any{[]byte{viSend, viWrite}[i%2], r.subject + 1 + uint32(i), uint32(len(sent[i]))},
			[]any{s.kind, s.number, s.offset}, "%v", &s)
		sent[i] = append(sent[i], s.payload...)
		open = !s.last()
		require.Equal(t, len(sent[i]) < 9000, open, "%v", &s)
	}
	for i, b := range sent {
		require.True(t, bytes.Equal(r.mem[i:][:9000], b), "message %d", i)
	}
	for i, at := range []int{0, 7, 9} {
		require.True(t, bytes.Equal(r.mem[at:][:20000], answered[reads[i]]), "answer %d", i)
	}
}

// viAnswersApart begins the second answer within the first, or goes on with it there.
func viAnswersApart(t *conformance.T) {
	for i := range 4 {
		l, offset := viLevels[1+i/2], i%2*2
		t.Part("%s, offset %d", l.name, offset)
		r := newVIRig(t, viSetup{level: l.level})
		from := vipl.AddressSegment{Data: 1, Handle: 1}
		reads := []*vipl.Descriptor{r.reads(r.v, from, r.data(0, 4)), r.reads(r.v, from, r.data(4, 4))}
		before := string(r.mem[4:8])
		first, second := r.get(viReadRequest).number, r.get(viReadRequest).number
		r.put(viSegment{kind: viReadResponse, number: first, payload: []byte("on")})
		r.put(viSegment{kind: viReadResponse, flags: viLast, number: second, offset: uint32(offset), payload: []byte("two.")[offset:]})
		r.over()
		for _, d := range reads {
			require.Same(t, d, must(r.v.SendWait(t.Context()))(t))
			require.NotZero(t, d.Control.Status.Errors())
		}
		require.Equal(t, before, string(r.mem[4:8]))
	}
}

// viMessagesApart begins another message within one: whatever else than an answer may not
// come there.
func viMessagesApart(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels) {
		for kind := range inTurn(t, "type %d", []byte{viSend, viWrite, viReadRequest}) {
			if kind == viReadRequest && l.level == vipl.ServiceUnreliable {
				continue
			}
			r := newVIRig(t, viSetup{level: l.level, receives: 2})
			before := bytes.Clone(r.mem[:viSlots])
			begun := r.message(viSegment{kind: viSend, payload: []byte("begun")})
			r.put(begun)
			other := viSegment{kind: kind, flags: viLast, rdma: r.at(0, 5), payload: []byte("other")}
			if kind == viReadRequest {
				other.payload = nil
			}
			r.put(r.message(other))
			if begun.flags, begun.offset = viLast, 5; l.level == vipl.ServiceUnreliable {
				r.put(begun)
			}
			got := must(r.v.RecvWait(t.Context()))(t)
			require.Same(t, r.receives[0], got)
			if l.level == vipl.ServiceUnreliable {
				require.Equal(t, vipl.Status(viDone|viPartial|viOpReceive), got.Control.Status)
				if kind == viWrite {
					r.send("x")
				}
				r.received(r.v, r.receives[1], viDone|viOpReceive)
				continue
			}
			require.Equal(t, vipl.Status(viDone|viTransport|viPartial|viOpReceive), got.Control.Status)
			r.over()
			r.received(r.v, r.receives[1], viDone|viFlushed|viOpReceive)
			require.True(t, bytes.Equal(before, r.mem[:viSlots]), "the memory")
		}
	}
}

// viWindowForLife posts many RDMA Reads to a peer that takes three at a time, on each of two
// VIs.
func viWindowForLife(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[1:]) {
		r := newVIRig(t, viSetup{level: l.level, ce: func(c *viCE) { c.window = 3 }})
		const n = 12
		var posted []*vipl.Descriptor
		for i := range n {
			posted = append(posted, r.reads(r.v, vipl.AddressSegment{Data: 1, Handle: 1}, r.data(i, 1)))
		}
		var open []uint32
		for i := range n {
			for len(open) < min(3, n-i) {
				open = append(open, r.get(viReadRequest).number)
			}
			r.answer(r.rdmaRead(r.at(0, 8))) // another request would come first
			if l.level == vipl.ServiceReliableReception {
				r.get(viNOP)
			}
			r.put(viSegment{kind: viReadResponse, flags: viLast, number: open[0], payload: []byte{byte(i)}})
			r.sent(r.v, posted[i], viDone|viOpRead)
			open = open[1:]
		}
	}
}
