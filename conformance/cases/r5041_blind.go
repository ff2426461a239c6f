package cases

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// r5041_blind is RFC 5041 as far as it shows in an endpoint of which is known only that
// it speaks rping's language; blind_5041.go has what it refuses.
var r5041_blind = []conformance.Case{
	wireCase("4/blind-headers", onRping(conformance.Initiator, blindControlOctets),
		"R5041-4.1-M3", "R5041-4.1-M8", "R5041-4.1-M9", "R5041-4.2-M1", "R5041-4.2-M2", "R5041-4.3-M1", "R5041-4.3-M2",
		"R5041-4.3-M7"),
	wireCase("4.3/blind-numbers", onRping(conformance.Initiator, blindNumbers), "R5041-4.3-M9", "R5041-4.3-M10", "R5041-4.3-M14"),
	wireCase("4.2/blind-stag-and-to", blindTagged, "R5041-4.2-M7", "R5041-4.2-M10", "R5041-5.2-M7", "R5041-5.2-M8"),
	wireCase("5.2/blind-segments", onRping(conformance.Initiator, blindSegments), "R5041-5.2-M5"),
	wireCase("5.2/blind-empty-message", onRping(conformance.Either, blindEmptyMessages), "R5041-5.2-M9", "R5041-5.2-M11"),
	wireCase("7.1/blind-later-segments", onRping(conformance.Either, blindLater), "R5041-3-M10", "R5041-7.1-M4"),
	wireCase("3/blind-digest", blindDigest, "R5041-3-M7"),
}

// rounds plays rounds as a client whose buffers are these, and returns each ULPDU that
// the target sent.
func (b *rping) rounds(n int, sink func(i int) offered) [][]byte {
	var got [][]byte
	take := func() []byte {
		got = append(got, b.next())
		return got[len(got)-1]
	}
	for i := range n {
		o := sink(i)
		b.offer(o)
		u := take()
		require.Len(b.t, u, 46, "an RDMA Read Request, but %s", described(u))
		b.send(aReadResponse(binary.BigEndian.Uint32(u[18:]), binary.BigEndian.Uint64(u[22:]), rpingText(int(o.size))))
		take()
		b.offer(o)
		take()
		take()
	}
	return got
}

// blindControlOctets: the control octets of all that is sent.
func blindControlOctets(t *conformance.T, b *rping) {
	got := b.rounds(3, func(int) offered { return ours[0] })
	want := [][]byte{
		{0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1}, // RDMA Read Request
		{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0}, // Send
		{0xC1, 0x40},                         // RDMA Write
		{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0},
	}
	for i, u := range got {
		w := want[i%4]
		require.Equal(t, w, u[:len(w)], "message %d begins with control octets, RsvdULP and QN", i)
	}
	r := startRping(t, conformance.Responder)
	r.works() // with the headers of RDMA Read Responses
}

// blindNumbers: Sends and RDMA Read Requests are numbered from 1, each on their own.
func blindNumbers(t *conformance.T, b *rping) {
	numbers := counter{}
	for _, u := range b.rounds(5, func(int) offered { return ours[1] }) {
		if u[0]&0x80 == 0 {
			numbers.counts(t, messageOf(t, func() []byte { return u }))
		}
	}
	require.Equal(t, counter{0: 10, 1: 5}, numbers)
}

// blindTagged: buffers of all kinds of STag and TO, and what is written to them.
func blindTagged(t *conformance.T) {
	sinks := []offered{
		{1, 0, 16}, {0x80000000, 1, 64}, {0xFFFFFFFF, 1 << 40, 33}, {0x100, 1<<64 - 65, 64}, {0x7FFFFFFF, 0xFFFFFFFF, 64},
	}
	b := startRping(t, conformance.Initiator)
	got := b.rounds(len(sinks), func(i int) offered { return sinks[i] })
	for i, o := range sinks {
		require.Equal(t, aWrite(o.stag, o.to, rpingText(int(o.size))), got[4*i+2], "the RDMA Write to %08x+%x", o.stag, o.to)
	}
}

// blindSegments has what the target fetches come in segments of all sizes, with empty
// ones between.
func blindSegments(t *conformance.T, b *rping) {
	for i, lengths := range [][]int{{1, 63}, {63, 1}, {0, 32, 0, 32}, {21, 22, 21}, {64, 0}} {
		t.Part("segments of %v octets", lengths)
		data := make([]byte, 64)
		for k := range data {
			data[k] = byte('a' + (i+k)%26)
		}
		data[63] = 0 // rping's texts end so
		b.offer(ours[0])
		r := b.fetched(ours[0])
		b.send(cutTagged(opReadResponse, r.sinkSTag, r.sinkTO, data, lengths...)...)
		b.received(uint32(2*i + 1))
		b.offer(ours[1])
		b.expect(aWrite(ours[1].stag, ours[1].to, data))
		b.received(uint32(2*i + 2))
	}
}

// blindEmptyMessages: empty messages, of which neither STag nor TO is looked at.
func blindEmptyMessages(t *conformance.T, b *rping) {
	for _, x := range []struct {
		stag uint32
		to   uint64
	}{{0, 0}, {0xDEADBEEF, 0x1234}, {1, ^uint64(0)}} {
		t.Part("STag %08x, TO %x", x.stag, x.to)
		b.send(aWrite(x.stag, x.to, nil))
		b.send(aReadRequest(b.nextRead(), read{x.stag ^ 1, x.to, 0, x.stag, x.to}))
		b.expect(tagged(0xC1, opReadResponse, x.stag^1, x.to, nil))
	}
	t.Part("")
	b.works()
}

// blindLater: behind a bad segment come good ones, to which there is no answer.
func blindLater(t *conformance.T, b *rping) {
	bad := untagged(lastUntagged, opSend, 0, 9, 1, 0, make([]byte, 16))
	var all []byte
	all = append(all, b.peer.Frame(bad)...)
	for i := range 5 {
		all = append(all, b.peer.Frame(aReadRequest(uint32(i+1), read{nowhere, nowhereTO, 0, 0, 0}))...)
		all = append(all, b.peer.Frame(bad)...)
	}
	require.NoError(t, b.peer.Raw(all))
	b.refusedAs(0x1201)
	b.finished()
}

// blindDigest: a wrong bit, wherever it is in an FPDU behind its length.
func blindDigest(t *conformance.T) {
	for at := range inTurn(t, "octet %d of 52", []int{3, 9, 20, 30, 49, 51}) {
		b := startRping(t, conformance.Either)
		f := b.peer.Frame(aReadRequest(1, read{nowhere, nowhereTO, 0, 0, 0}))
		require.Len(t, f, 52)
		f[at] ^= 0x08
		require.NoError(t, b.peer.Raw(f))
		// Some end the stream without a word. What matters is that nothing
		// answers.
		u, err := b.peer.Next()
		if err == nil {
			require.Equal(t, byte(7), u[1]&0x0F, fmt.Sprintf("instead of a Terminate Message %s", described(u)))
			b.isRefusal(u, 0x2002)
		} else {
			require.True(t, ended(err), failure(err))
		}
		b.drop()
	}
}

// blind_5041 is RFC 5041 as far as it shows in an endpoint of which is known only
// that it speaks rping's language. Each kind of fault has a case of its own: then
// each difference of a foreign endpoint shows by itself.
var blind_5041 = []conformance.Case{
	wireCase("7.1/blind-untagged-refused", blindUntagged, "R5041-7.1-M1", "R5041-7.1-M3", "R5041-7.2-M1", "R5041-4.1-M9"),
	wireCase("7.1/blind-send-too-long", blindTooLong, "R5041-7.1-M1", "R5041-7.2-M1"),
	wireCase("7.1/blind-request-queue", blindRequestQueue, "R5041-7.1-M1", "R5040-5.2.1-M6", "R5040-7.2-M6"),
	wireCase("7.1/blind-request-offset", blindRequestOffset, "R5041-7.1-M1", "R5040-7.2-M6"),
	wireCase("4.1/blind-tagged-bit", blindTaggedBit, "R5040-4.1-M4", "R5040-4.1-M5", "R5040-7.2-M2"),
	wireCase("7.1/blind-write-unknown", blindWriteUnknown, "R5041-4.2-M6", "R5041-7.1-M2", "R5041-7.2-M1"),
	wireCase("7.1/blind-write-bounds", blindWriteBounds, "R5041-7.1-M2", "R5041-7.2-M1", "R5041-8.3.1-M4", "R5042-6.2.1-M1"),
	wireCase("7.1/blind-write-wrap", blindWriteWrap, "R5041-7.1-M2", "R5041-7.2-M1"),
	wireCase("8.3.1/blind-other-domain", blindOtherDomain, "R5041-8.3.1-M2", "R5040-7.2-M10", "R5040-8.1.1-M2", "R5042-6.1.1-M3"),
	wireCase("5.2/blind-empty-tagged", onRping(conformance.Either, blindEmpty), "R5041-5.2-M10", "R5041-5.2-M11"),
	wireCase("4.1/blind-reserved-bits", onRping(conformance.Either, blindControlBits), "R5041-4.1-M8", "R5040-4.1-M9"),
}

// blindUntagged: an untagged segment's queue, number, offset and version. MSN 9 has
// no receive where one is posted at a time, and is out of range where that is known.
func blindUntagged(t *conformance.T) {
	rpingRefuses(t,
		badSegment{"a Send on queue 3", untagged(lastUntagged, opSend, 0, 3, 1, 0, aMessage()), []uint16{0x1201}},
		badSegment{"a Send on queue 77", untagged(lastUntagged, opSend, 0, 77, 1, 0, aMessage()), []uint16{0x1201}},
		badSegment{"MSN 9 first", aSend(9, aMessage()), []uint16{0x1202, 0x1203}},
		badSegment{"MSN 0 first", aSend(0, aMessage()), []uint16{0x1203}},
		badSegment{"MO 4 first", untagged(lastUntagged, opSend, 0, 0, 1, 4, make([]byte, 8)), []uint16{0x1204}},
		badSegment{"DDP version 2, untagged", untagged(0x42, opSend, 0, 0, 1, 0, aMessage()), []uint16{0x1206}},
		badSegment{"DDP version 0, tagged", tagged(0xC0, opWrite, 1, 1, aMessage()), []uint16{0x1104}},
	)
}

// blindTooLong: rping posts receives of 16 octets.
func blindTooLong(t *conformance.T) {
	rpingRefuses(t, badSegment{"a Send of 17 octets", aSend(1, make([]byte, 17)), []uint16{0x1205}})
}

// blindRequestQueue: RDMA Read Requests belong on queue 1, with MSNs of their own.
func blindRequestQueue(t *conformance.T) {
	h := read{nowhere, nowhereTO, 0, 0, 0}.header()
	rpingRefuses(t,
		badSegment{"an RDMA Read Request on queue 0", untagged(lastUntagged, opReadRequest, 0, 0, 1, 0, h), []uint16{0x1201}},
		badSegment{"an RDMA Read Request on queue 2", untagged(lastUntagged, opReadRequest, 0, 2, 1, 0, h), []uint16{0x1201}},
		badSegment{"an RDMA Read Request on queue 9", untagged(lastUntagged, opReadRequest, 0, 9, 1, 0, h), []uint16{0x1201}},
	)
}

// blindRequestOffset: it is one segment, and the first on its queue has MSN 1.
func blindRequestOffset(t *conformance.T) {
	h := read{nowhere, nowhereTO, 0, 0, 0}.header()
	rpingRefuses(t,
		badSegment{"an RDMA Read Request with MSN 2 first", untagged(lastUntagged, opReadRequest, 0, 1, 2, 0, h), []uint16{0x1202, 0x1203}},
		badSegment{"an RDMA Read Request with MO 4", untagged(lastUntagged, opReadRequest, 0, 1, 1, 4, h), []uint16{0x1204}},
	)
}

// blindTaggedBit: the opcode says whether a segment is tagged. The untagged header
// is 4 octets longer, so each of these would make sense to a target that looks at the opcode
// alone.
func blindTaggedBit(t *conformance.T) {
	send := aSend(1, aMessage())
	send[0] = lastTagged
	request := aReadRequest(1, read{nowhere, nowhereTO, 0, 0, 0})
	request[0] = lastTagged
	write := untagged(lastUntagged, opWrite, 0, 0, 1, 0, nil)
	rpingRefuses(t,
		badSegment{"a Send with T set", send, []uint16{0x0206}},
		badSegment{"an RDMA Read Request with T set", request, []uint16{0x0206}},
		badSegment{"an RDMA Write with T clear", write, []uint16{0x0206}},
	)
}

// blindWriteUnknown: nobody has offered that STag.
func blindWriteUnknown(t *conformance.T) {
	rpingRefuses(t,
		badSegment{"STag 0", aWrite(0, 0, []byte("abcd")), []uint16{0x1100}},
		badSegment{"a made-up STag", aWrite(nowhere, nowhereTO, []byte("abcd")), []uint16{0x1100}},
	)
}

// blindWrites tries RDMA Writes on what a client offers.
func blindWrites(t *conformance.T, writes ...badWrite) {
	for x := range inTurn(t, "%s", writes) {
		b := startRping(t, conformance.Responder)
		b.send(x.of(b.itsBuffer))
		b.refusedAs(x.code)
		b.drop()
	}
}

// badWrite is an RDMA Write that is refused with this code.
type badWrite struct {
	what string
	of   func(offered) []byte
	code uint16
}

// blindWriteBounds: around the buffer, and a key that it does not have.
func blindWriteBounds(t *conformance.T) {
	blindWrites(t,
		badWrite{"beyond the buffer", func(o offered) []byte { return aWrite(o.stag, o.to+1<<40, []byte("abcd")) }, 0x1101},
		badWrite{"before the buffer", func(o offered) []byte { return aWrite(o.stag, o.to-1<<20, []byte("abcd")) }, 0x1101},
		badWrite{"another key", func(o offered) []byte { return aWrite(o.stag^0x55, o.to, []byte("abcd")) }, 0x1100},
	)
}

// blindWriteWrap: TO plus length pass 2^64.
func blindWriteWrap(t *conformance.T) {
	blindWrites(t, badWrite{
		"8 octets before the end of all TOs", func(o offered) []byte { return aWrite(o.stag, 1<<64-8, make([]byte, 16)) }, 0x1103,
	})
}

// blindOtherDomain: two clients are two streams in a domain each. What one offers is
// nothing to the other's stream, whether that knows the STag or not.
func blindOtherDomain(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what  string
		of    func(offered) []byte
		codes []uint16
	}{
		{"an RDMA Write", func(o offered) []byte { return aWrite(o.stag, o.to, []byte("abcd")) }, []uint16{0x1100, 0x1102}},
		{"an RDMA Read", func(o offered) []byte { return aReadRequest(1, read{nowhere, 0, 4, o.stag, o.to}) }, []uint16{0x0100, 0x0103}},
	}) {
		owner := startRping(t, conformance.Responder)
		other := startRping(t, conformance.Responder)
		want := owner.read(owner.itsBuffer, 0, owner.itsBuffer.size, nowhere)
		other.send(x.of(owner.itsBuffer))
		other.refusedAs(x.codes...)
		got := owner.read(owner.itsBuffer, 0, owner.itsBuffer.size, nowhere)
		if !bytes.Equal(want, got) {
			t.Errorf("the other domain's buffer has changed")
		}
		owner.drop()
		other.drop()
	}
}

// blindEmpty: an empty RDMA Write names nothing, so nothing is checked.
func blindEmpty(t *conformance.T, b *rping) {
	b.send(aWrite(0, 0, nil), aWrite(nowhere, 1<<64-1, nil))
	b.works()
}

// blindControlBits: reserved bits of both control octets mean nothing.
func blindControlBits(t *conformance.T, b *rping) {
	b.send(tagged(lastTagged|0x3C, opWrite|0x30, 0, 0, nil))
	b.send(untagged(lastUntagged|0x3C, opReadRequest|0x30, 0, 1, 1, 0, read{nowhere, nowhereTO, 0, 0, 0}.header()))
	b.expect(aReadResponse(nowhere, nowhereTO, nil))
	b.reads = 1
	b.works()
}
