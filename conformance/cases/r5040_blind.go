package cases

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// r5040_blind is RFC 5040 as far as it shows in an endpoint of which is known only
// that it speaks rping's language.
var r5040_blind = []conformance.Case{
	wireCase("4.1/blind-messages", onRping(conformance.Initiator, blindMessages),
		"R5040-4.1-M5", "R5040-4.1-M6", "R5040-4.1-M7", "R5040-4.1-M10", "R5040-5.1-M2", "R5040-5.2.1-M2",
		"R5040-5.2.1-M7", "R5040-5.3-M2"),
	wireCase("5.2.2/blind-response-placed", onRping(conformance.Initiator, blindResponse), "R5040-5.2.2-M1", "R5040-5.2.2-M4"),
	wireCase("5.2.1/blind-reads-answered", onRping(conformance.Responder, blindReads),
		"R5040-4.4-M2", "R5040-5.2.1-M12", "R5040-5.2.1-M14", "R5040-5.2.1-M15", "R5040-5.2.2-M2", "R5040-5.2.2-M5"),
	wireCase("7.2/blind-response-unasked", onRping(conformance.Either, blindUnasked), "R5040-7.2-M2"),
	wireCase("7.2/blind-terminate-codes", blindCodes, "R5040-4.8-M3", "R5040-7.2-M2", "R5040-7.2-M3", "R5040-7.2-M7", "R5040-7.2-M8"),
	wireCase("5.2.1/blind-source-refused", blindSource, "R5040-5.2.1-M13", "R5040-7.2-M9", "R5040-7.2-M12"),
	wireCase("5.4/blind-terminate-is-last", onRping(conformance.Initiator, blindLast), "R5040-5.4-M2", "R5040-5.4-M3", "R5040-5.4-M8"),
}

// blindMessages compares the headers of a Read Request, a Send and an RDMA Write.
func blindMessages(t *conformance.T, b *rping) {
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
func blindResponse(t *conformance.T, b *rping) {
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
func blindReads(t *conformance.T, b *rping) {
	theirs := b.itsBuffer
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
		b := startRping(t, conformance.Either)
		b.send(x.ulpdu)
		b.refusedAs(x.code)
		b.drop()
	}
}

// blindUnasked: an RDMA Read Response to no Read is an opcode that does not fit the
// stream's state.
func blindUnasked(t *conformance.T, b *rping) {
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
		b := startRping(t, conformance.Responder)
		b.send(aReadRequest(1, x.of(b.itsBuffer)))
		b.refusedAs(0x0100 | uint16(x.code))
		b.drop()
	}
}

// blindLast: nothing comes behind a Terminate Message but the end of the stream.
func blindLast(t *conformance.T, b *rping) {
	b.round()
	b.received(1)
	b.send(blindFaults[0].ulpdu)
	u := b.refused()
	require.Equal(t, []byte{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0}, u[:18], "the Terminate Message's header")
	b.finished()
}

// blind_5040 are the parts of RFC 5040 in which foreign endpoints were seen to
// differ, a case for each: the Terminate Message's layout, invalidation, too many
// RDMA Reads, sources that wrap. See r5040_blind for the rest.
var blind_5040 = []conformance.Case{
	wireCase("4.8/blind-terminate-control", blindControl, "R5040-4.8-M2", "R5040-4.8-M4"),
	wireCase("4.8/blind-terminate-length", blindLength, "R5040-4.8-M5", "R5040-4.8-M6"),
	wireCase("4.8/blind-terminate-headers", blindHeaders, "R5040-4.8-M1", "R5040-4.8-M7"),
	wireCase("4.8/blind-terminate-read-header", blindReadHeader, "R5040-4.8-M8"),
	wireCase("4.8/blind-terminate-no-read-header", blindNoReadHeader, "R5040-4.8-M8"),
	wireCase("5.3/blind-invalidate-key", onRping(conformance.Responder, blindInvalidateKey), "R5040-5.3-M10", "R5040-7.2-M4"),
	wireCase("5.3/blind-invalidate-unknown", blindInvalidateUnknown, "R5040-5.3-M10", "R5040-7.2-M4"),
	wireCase("5.3/blind-invalidate-other-domain", onRping(conformance.Responder, blindInvalidateOther),
		"R5040-5.3-M10", "R5040-7.2-M5", "R5040-8.1.1-M2"),
	wireCase("7.2/blind-read-wrap", onRping(conformance.Responder, blindReadWrap), "R5040-7.2-M13"),
	wireCase("5.2.2/blind-reads-within-ird", onRping(conformance.Responder, blindWithinIRD),
		"R5040-5.2.2-M3", "R5040-5.2.1-M9", "R5040-5.2.2-M5"),
	wireCase("6.1/blind-reads-beyond-ird", blindBeyondIRD, "R5040-6.1-M5"),
	wireCase("8.1.1/blind-stags-unrelated", blindSTags, "R5040-8.1.1-M9"),
}

// What the Terminate cases provoke: a fault of DDP, an RDMA Write to an unknown STag,
// and one of RDMAP, an unknown opcode.
var (
	ddpFault   = aWrite(nowhere, nowhereTO, []byte("abcd"))
	rdmapFault = untagged(lastUntagged, 0x4F, 0, 0, 1, 0, []byte("abcd"))
)

// provoked is the Terminate Message that a segment brings about.
func provoked(t *conformance.T, ulpdu []byte) []byte {
	b := startRping(t, conformance.Either)
	b.send(ulpdu)
	u := b.refused()
	b.drop()
	return u
}

// blindControl: layer in the high half of the first octet and type in the low one,
// then the code, then M, D and R from the top, then zeros (RFC 5040 4.8, figure 8).
func blindControl(t *conformance.T) {
	u := provoked(t, rdmapFault)
	if u[18] != 0x02 || u[19] != 0x06 {
		t.Errorf("an unknown opcode: control octets %02x %02x, not 02 06: layer 0 (RDMAP), type 2, code 06", u[18], u[19])
	}
	u = provoked(t, ddpFault)
	if u[20] != 0xC0 || u[21] != 0 {
		t.Errorf("an RDMA Write to an unknown STag: M, D, R and reserved bits are %02x %02x, not c0 00", u[20], u[21])
	}
}

// blindLength: the DDP Segment Length is that of the segment, its header included.
func blindLength(t *conformance.T) {
	u := provoked(t, ddpFault)
	require.Greater(t, len(u), 24, "a Terminate Message with a length in it")
	if got := int(u[22])<<8 | int(u[23]); got != len(ddpFault) {
		t.Errorf("the DDP Segment Length of a segment of %d octets is %d", len(ddpFault), got)
	}
}

// blindHeaders: the DDP header of the segment at fault is there, whichever layer
// complains (figure 10).
func blindHeaders(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what  string
		ulpdu []byte
		n     int
	}{{"an RDMA Write to an unknown STag", ddpFault, 14}, {"an unknown opcode", rdmapFault, 18}}) {
		u := provoked(t, x.ulpdu)
		if len(u) < 24+x.n {
			t.Errorf("the Terminate Message has no DDP header: % x", u[18:])
			continue
		}
		if got := u[24 : 24+x.n]; !slices.Equal(got, x.ulpdu[:x.n]) {
			t.Errorf("the Terminate Message's DDP header is % x, not % x", got, x.ulpdu[:x.n])
		}
	}
}

// blindReadHeader: a refused RDMA Read Request comes back with its header.
func blindReadHeader(t *conformance.T) {
	request := aReadRequest(1, read{nowhere, nowhereTO, 4, 0x00BADBAD, 0})
	u := provoked(t, request)
	if len(u) != 24+18+28 {
		t.Fatalf("the Terminate Message has %d octets of headers, not 18 of DDP and 28 of the RDMA Read Request", max(len(u)-24, 0))
	}
	same(t, request, u[24:], "the headers")
}

// blindNoReadHeader: R stands for 28 octets that are there. Of a refused
// invalidation there are none.
func blindNoReadHeader(t *conformance.T) {
	u := provoked(t, aSendInv(1, nowhere, aMessage()))
	flag := either(u[20]&0x07 != 0, 0x04, byte(0x20)) // where the octet is mirrored: see 4.8/blind-terminate-control
	if u[20]&flag != 0 && len(u) < 24+18+28 {
		t.Errorf("a refused Send with Invalidate: R is set in a Terminate Message of %d octets", len(u))
	}
}

// Both codes for an invalidation that is refused (RFC 5040 4.8).
var cannotInvalidate = []uint16{0x0109, 0x0209}

// blindInvalidateUnknown: there is no such STag.
func blindInvalidateUnknown(t *conformance.T) {
	rpingRefuses(t, badSegment{"an STag that nobody has", aSendInv(1, nowhere, aMessage()), cannotInvalidate})
}

// blindInvalidateKey: the index of a buffer that is there, with another key, is
// another STag.
func blindInvalidateKey(t *conformance.T, b *rping) {
	b.send(aSendInv(1, b.itsBuffer.stag^0x55, aMessage()))
	b.refusedAs(cannotInvalidate...)
}

// blindInvalidateOther: one client's buffer, invalidated over the stream of another
// one in a domain of its own.
func blindInvalidateOther(t *conformance.T, owner *rping) {
	other := startRping(t, conformance.Responder)
	other.send(aSendInv(1, owner.itsBuffer.stag, aMessage()))
	u := other.refusedAs(cannotInvalidate...)
	if u[20]&0x24 != 0 && len(u) < 24+18+28 {
		t.Errorf("R is set in a Terminate Message of %d octets", len(u))
	}
	require.Len(t, owner.read(owner.itsBuffer, 0, 8, nowhere), 8, "the buffer can be read still")
}

// blindReadWrap: source TO plus size pass 2^64.
func blindReadWrap(t *conformance.T, b *rping) {
	b.send(aReadRequest(1, read{nowhere, 0, 16, b.itsBuffer.stag, 1<<64 - 8}))
	b.refusedAs(0x0104)
}

// requests are n RDMA Read Requests for one octet each, in FPDUs.
func (b *rping) requests(n int) []byte {
	var all []byte
	for i := range n {
		o := b.itsBuffer
		all = append(all, b.peer.Frame(aReadRequest(b.nextRead(), read{nowhere, uint64(i), 1, o.stag, o.to + uint64(i)%uint64(o.size)}))...)
	}
	return all
}

// blindWithinIRD: as many RDMA Reads at once as the target's Request grants are all
// answered, in order.
func blindWithinIRD(t *conformance.T, b *rping) {
	n := either(b.itsFrame.Enhanced && b.itsFrame.IRD != 0x3FFF, int(b.itsFrame.IRD), 1)
	t.Logf("IRD %d", n)
	for range 3 {
		require.NoError(t, b.peer.Raw(b.requests(n)))
		for i := range n {
			u := b.next()
			require.Len(t, u, 15, "response %d, but %s", i, described(u))
			require.Equal(t, aReadResponse(nowhere, uint64(i), u[14:]), u, "response %d", i)
		}
	}
}

// blindBeyondIRD: RDMA Read Requests beyond any depth, in one go. A target that is
// quick enough answers them all; one that is not has no buffer for the next one on
// queue 1, which is DDP's error (RFC 5040 5.2.2, 6.1; RFC 5041 7.1).
func blindBeyondIRD(t *conformance.T) {
	const many = 2000
	b := startRping(t, conformance.Responder)
	b.send(b.itsBuffer.read(b.nextRead())) // a first one, so that the target is awake
	require.Len(t, b.next(), 15, "the response")
	sent := make(chan struct{})
	octets := b.requests(many)
	go func() {
		defer close(sent)
		_ = b.peer.Raw(octets) // fails if the target has ended the stream
	}()
	answered := 0
	for ; answered < many; answered++ {
		u := b.next()
		if u[1]&0x0F == 7 {
			b.isRefusal(u, 0x1202)
			break
		}
		require.Len(t, u, 15, "response %d, but %s", answered, described(u))
	}
	t.Logf("%d answered", answered)
	b.drop()
	<-sent
}

// read is an RDMA Read Request for the buffer's first octet.
func (o offered) read(msn uint32) []byte { return aReadRequest(msn, read{nowhere, 0, 1, o.stag, o.to}) }

// blindSTags: knowing an STag does not help to find another.
func blindSTags(t *conformance.T) {
	var stags []uint32
	for range 4 {
		b := startRping(t, conformance.Responder)
		b.send(aSend(1, aMessage()))
		o := b.offers(2)
		stags = append(stags, b.itsBuffer.stag, o.stag)
		b.drop()
	}
	slices.Sort(stags)
	stags = slices.Compact(stags)
	require.GreaterOrEqual(t, len(stags), 4, "STags of 4 clients: %08x", stags)
	for i := 1; i < len(stags); i++ {
		if d := stags[i] - stags[i-1]; d < 0x400 {
			t.Errorf("of two STags one follows from the other: %08x and %08x", stags[i-1], stags[i])
		}
	}
}
