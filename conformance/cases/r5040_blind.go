package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// r5040_blind is RFC 5040 as far as it shows in an endpoint of which is known only
// that it speaks rping's language.
var r5040_blind = []conformance.Case{
	wireCase("4.1/blind-messages", blindly(conformance.Initiator, blindMessages),
		"R5040-4.1-M5", "R5040-4.1-M6", "R5040-4.1-M7", "R5040-4.1-M10", "R5040-5.1-M2", "R5040-5.2.1-M2",
		"R5040-5.2.1-M7", "R5040-5.3-M2"),
	wireCase("5.2.2/blind-response-placed", blindly(conformance.Initiator, blindResponse), "R5040-5.2.2-M1", "R5040-5.2.2-M4"),
	wireCase("5.2.1/blind-reads-answered", blindly(conformance.Responder, blindReads),
		"R5040-4.4-M2", "R5040-5.2.1-M12", "R5040-5.2.1-M14", "R5040-5.2.1-M15", "R5040-5.2.2-M2", "R5040-5.2.2-M5"),
	wireCase("7.2/blind-response-unasked", blindly(conformance.Either, blindUnasked), "R5040-7.2-M2"),
	wireCase("7.2/blind-terminate-codes", blindCodes,
		"R5040-4.8-M3", "R5040-7.2-M2", "R5040-7.2-M3", "R5040-7.2-M7", "R5040-7.2-M8"),
	wireCase("5.2.1/blind-source-refused", blindSource, "R5040-5.2.1-M13", "R5040-7.2-M9", "R5040-7.2-M12"),
	wireCase("5.4/blind-terminate-is-last", blindly(conformance.Initiator, blindLast), "R5040-5.4-M2", "R5040-5.4-M3", "R5040-5.4-M8"),
}

// ours are the peer's buffers, in name.
var ours = []offered{{0xABCD1234, 0x1122334455667788, 64}, {0x1234ABCD, 0x99, 64}}

// round plays a client's first half of a round: the target fetches a buffer.
func (b *blind) round() read {
	b.offer(ours[0])
	r := b.fetched(ours[0])
	b.send(aReadResponse(r.sinkSTag, r.sinkTO, blindText(int(r.size))))
	return r
}

// blindText is n octets that rping returns all: it stops behind the first zero.
func blindText(n int) []byte { return append(bytes.Repeat([]byte("x"), max(n-1, 0)), 0)[:n] }

// blindMessages compares the headers of a Read Request, a Send and an RDMA Write.
func blindMessages(t *conformance.T, b *blind) {
	b.offer(ours[0])
	u := b.next()
	require.Len(t, u, 46)
	require.Equal(t, untagged(0x41, 0x41, 0, 1, 1, 0, u[18:]), u, "an RDMA Read Request")
	data := []byte("rdma-ping-0: some octets, and no more of them than that.........")
	data[63] = 0
	sink := tagged(0xC1, 0x42, 0, 0, nil)
	copy(sink[2:], u[18:30])
	b.send(append(sink, data[:64]...))
	b.received(1)
	b.offer(ours[1])
	b.expect(tagged(0xC1, 0x40, ours[1].stag, ours[1].to, data[:64]))
	b.received(2)
}

// blindResponse: what a response brings is what is written back, also if it comes in
// segments.
func blindResponse(t *conformance.T, b *blind) {
	for i := range 3 {
		b.offer(ours[0])
		r := b.fetched(ours[0])
		data := make([]byte, 64)
		for k := range data {
			data[k] = byte('A' + (i+k)%40)
		}
		data[63] = 0
		b.send(
			tagged(moreTagged, opReadResponse, r.sinkSTag, r.sinkTO, data[:10]),
			tagged(moreTagged, opReadResponse, r.sinkSTag, r.sinkTO+10, data[10:11]),
			tagged(lastTagged, opReadResponse, r.sinkSTag, r.sinkTO+11, data[11:]),
		)
		b.received(uint32(2*i + 1))
		b.offer(ours[1])
		b.expect(aWrite(ours[1].stag, ours[1].to, data))
		b.received(uint32(2*i + 2))
	}
}

// blindReads reads what a client offers, piece by piece.
func blindReads(t *conformance.T, b *blind) {
	theirs := b.theirs
	whole := b.read(theirs, 0, theirs.size, nowhere)
	require.Len(t, whole, int(theirs.size))
	for i, x := range [][2]uint32{{0, 1}, {1, 7}, {theirs.size - 1, 1}, {0, theirs.size}} {
		got := b.read(theirs, x[0], x[1], nowhere+uint32(i))
		same(t, whole[x[0]:x[0]+x[1]], got, "%d octets from %d on", x[1], x[0])
	}
	for _, nothing := range []offered{theirs, {0, 0, 0}, {theirs.stag ^ 0xFFFF00, 1, 0}} {
		require.Empty(t, b.read(nothing, 0, 0, 0xFFFFFFFF), "a Read of nothing of %08x", nothing.stag)
	}
}

// read reads n octets of a buffer of the target's, and checks the headers of the
// response.
func (b *blind) read(from offered, off, n, sink uint32) []byte {
	b.send(aReadRequest(b.nextRead(), read{sink, nowhereTO, n, from.stag, from.to + uint64(off)}))
	var got []byte
	for {
		u := b.next()
		require.GreaterOrEqual(b.t, len(u), 14, "% x", u)
		first := either(u[0] == lastTagged, lastTagged, byte(moreTagged))
		require.Equal(b.t, tagged(first, opReadResponse, sink, nowhereTO+uint64(len(got)), nil), u[:14], "the response's header")
		got = append(got, u[14:]...)
		if first == lastTagged {
			return got
		}
	}
}

// blindFaults are segments that any endpoint refuses.
var blindFaults = []struct {
	what  string
	ulpdu []byte
	code  uint16
}{
	{"an unknown opcode, untagged", untagged(lastUntagged, 0x4F, 0, 0, 1, 0, []byte("abcd")), 0x0206},
	{"an unknown opcode to the request queue", untagged(lastUntagged, 0x4D, 0, 1, 1, 0, read{}.header()), 0x0206},
	{"an RDMA Write of version 0", tagged(lastTagged, 0x00, 1, 1, []byte("abcd")), 0x0205},
	{"a Send of version 2", untagged(lastUntagged, 0x83, 0, 0, 1, 0, make([]byte, 16)), 0x0205},
	{"an RDMA Read Request of version 3", untagged(lastUntagged, 0xC1, 0, 1, 1, 0, read{}.header()), 0x0205},
}

// blindCodes: the layer, type and code are those of RFC 5040's figure 9, wherever they
// and the rest of the Terminate Message are.
func blindCodes(t *conformance.T) {
	for x := range inTurn(t, "%s", blindFaults) {
		b := startBlind(t, conformance.Either)
		b.send(x.ulpdu)
		b.refusedAs(x.code)
		b.close()
	}
}

// blindUnasked: an RDMA Read Response to no Read is an opcode that does not fit the
// stream's state.
func blindUnasked(t *conformance.T, b *blind) {
	b.send(aReadResponse(0x55, 0, []byte("abcd")))
	b.refusedAs(0x0206)
}

// blindSource names sources to a target of which is known that it offers a buffer.
func blindSource(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what string
		of   func(o offered) read
		code byte
	}{
		{"an unknown STag", func(o offered) read { return read{nowhere, 0, 1, o.stag ^ 0x5A5A00, o.to} }, 0},
		{"another key", func(o offered) read { return read{nowhere, 0, 1, o.stag ^ 0xFF, o.to} }, 0},
		{"far beyond the buffer", func(o offered) read { return read{nowhere, 0, 8, o.stag, o.to + 1<<40} }, 1},
		{"far too much", func(o offered) read { return read{nowhere, 0, 1 << 30, o.stag, o.to} }, 1},
	}) {
		b := startBlind(t, conformance.Responder)
		b.send(aReadRequest(1, x.of(b.theirs)))
		b.refusedAs(0x0100 | uint16(x.code))
		b.close()
	}
}

// blindLast: nothing comes behind a Terminate Message but the end of the stream.
func blindLast(t *conformance.T, b *blind) {
	b.round()
	b.received(1)
	b.send(blindFaults[0].ulpdu)
	u := b.refused()
	require.Equal(t, []byte{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0}, u[:18], "the Terminate Message's header")
	b.finished()
}
