package cases

import (
	"bytes"

	"github.com/softrnic/softrnic/conformance"
)

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
	wireCase("5.2/blind-empty-tagged", blindly(conformance.Either, blindEmpty), "R5041-5.2-M10", "R5041-5.2-M11"),
	wireCase("4.1/blind-reserved-bits", blindly(conformance.Either, blindControlBits), "R5041-4.1-M8", "R5040-4.1-M9"),
}

// badSegment is a segment that is refused with this code.
type badSegment struct {
	what  string
	ulpdu []byte
	codes []uint16
}

// blindRefuses tries segments, each on a stream of its own.
func blindRefuses(t *conformance.T, segments ...badSegment) {
	for x := range inTurn(t, "%s", segments) {
		b := startBlind(t, conformance.Either)
		b.send(x.ulpdu)
		b.refusedAs(x.codes...)
		b.close()
	}
}

// aMessage is one that rping understands, as client or as server.
func aMessage() []byte { return ours[0].octets() }

// blindUntagged: an untagged segment's queue, number, offset and version. MSN 9 has
// no receive where one is posted at a time, and is out of range where that is known.
func blindUntagged(t *conformance.T) {
	blindRefuses(t,
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
	blindRefuses(t, badSegment{"a Send of 17 octets", aSend(1, make([]byte, 17)), []uint16{0x1205}})
}

// blindRequestQueue: RDMA Read Requests belong on queue 1, with MSNs of their own.
func blindRequestQueue(t *conformance.T) {
	h := read{nowhere, nowhereTO, 0, 0, 0}.header()
	blindRefuses(t,
		badSegment{"an RDMA Read Request on queue 0", untagged(lastUntagged, opReadRequest, 0, 0, 1, 0, h), []uint16{0x1201}},
		badSegment{"an RDMA Read Request on queue 2", untagged(lastUntagged, opReadRequest, 0, 2, 1, 0, h), []uint16{0x1201}},
		badSegment{"an RDMA Read Request on queue 9", untagged(lastUntagged, opReadRequest, 0, 9, 1, 0, h), []uint16{0x1201}},
	)
}

// blindRequestOffset: it is one segment, and the first on its queue has MSN 1.
func blindRequestOffset(t *conformance.T) {
	h := read{nowhere, nowhereTO, 0, 0, 0}.header()
	blindRefuses(t,
		badSegment{"an RDMA Read Request with MSN 2 first", untagged(lastUntagged, opReadRequest, 0, 1, 2, 0, h), []uint16{0x1202, 0x1203}},
		badSegment{"an RDMA Read Request with MO 4", untagged(lastUntagged, opReadRequest, 0, 1, 1, 4, h), []uint16{0x1204}},
	)
}

// blindTaggedBit: the opcode says whether a segment is tagged. The untagged header
// is 4 octets longer, so each of these would make sense to who looks at the opcode
// alone.
func blindTaggedBit(t *conformance.T) {
	send := aSend(1, aMessage())
	send[0] = lastTagged
	request := aReadRequest(1, read{nowhere, nowhereTO, 0, 0, 0})
	request[0] = lastTagged
	write := untagged(lastUntagged, opWrite, 0, 0, 1, 0, nil)
	blindRefuses(t,
		badSegment{"a Send with T set", send, []uint16{0x0206}},
		badSegment{"an RDMA Read Request with T set", request, []uint16{0x0206}},
		badSegment{"an RDMA Write with T clear", write, []uint16{0x0206}},
	)
}

// blindWriteUnknown: nobody has offered that STag.
func blindWriteUnknown(t *conformance.T) {
	blindRefuses(t,
		badSegment{"STag 0", aWrite(0, 0, []byte("abcd")), []uint16{0x1100}},
		badSegment{"a made-up STag", aWrite(nowhere, nowhereTO, []byte("abcd")), []uint16{0x1100}},
	)
}

// blindWrites tries RDMA Writes on what a client offers.
func blindWrites(t *conformance.T, writes ...badWrite) {
	for x := range inTurn(t, "%s", writes) {
		b := startBlind(t, conformance.Responder)
		b.send(x.of(b.theirs))
		b.refusedAs(x.code)
		b.close()
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
		owner := startBlind(t, conformance.Responder)
		other := startBlind(t, conformance.Responder)
		want := owner.read(owner.theirs, 0, owner.theirs.size, nowhere)
		other.send(x.of(owner.theirs))
		other.refusedAs(x.codes...)
		got := owner.read(owner.theirs, 0, owner.theirs.size, nowhere)
		if !bytes.Equal(want, got) {
			t.Errorf("the other domain's buffer has changed")
		}
		owner.close()
		other.close()
	}
}

// blindEmpty: an empty RDMA Write names nothing, so nothing is checked.
func blindEmpty(t *conformance.T, b *blind) {
	b.send(aWrite(0, 0, nil), aWrite(nowhere, 1<<64-1, nil))
	b.works()
}

// blindControlBits: reserved bits of both control octets mean nothing.
func blindControlBits(t *conformance.T, b *blind) {
	b.send(tagged(lastTagged|0x3C, opWrite|0x30, 0, 0, nil))
	b.send(untagged(lastUntagged|0x3C, opReadRequest|0x30, 0, 1, 1, 0, read{nowhere, nowhereTO, 0, 0, 0}.header()))
	b.expect(aReadResponse(nowhere, nowhereTO, nil))
	b.reads = 1
	b.works()
}
