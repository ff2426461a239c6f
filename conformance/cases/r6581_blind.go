package cases

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// r6581_blind is RFC 6581 as far as it shows in an endpoint of which is known only
// that it speaks rping's language. It is one that knows the enhanced startup.
var r6581_blind = []conformance.Case{
	wireCase("6/blind-revision-1", enhancedBlindOld, "R6581-6-M4", "R6581-10-M2", "R6581-10-M4", "R6581-10-M6"),
	wireCase("6/blind-reserved-bits", enhancedBlindBits, "R6581-6-M1", "R6581-6-M2"),
	wireCase("9.2/blind-client-server", enhancedBlindClient,
		"R6581-9.1-M2", "R6581-9.2-M11", "R6581-9.2-M12", "R6581-10-M1", "R6581-10-M5"),
	wireCase("9.2/blind-peer-to-peer", enhancedBlindPeer, "R6581-9.2-M3", "R6581-9.2-M4", "R6581-9.2-M5"),
	wireCase("6/blind-request", enhancedBlindRequest, "R6581-6-M1", "R6581-6-M3"),
}

// startsWith is the startup with a Request of these octets, as MPA Initiator.
func (b *rping) startsWith(request []byte) heardFrame {
	require.NoError(b.t, second(b.Conn.Write(request)), "the MPA Request")
	f := b.hears(replyKey)
	require.Zero(b.t, f.flags&frameR, "R")
	b.setFraming(framing{crc: true, markersOut: f.flags&frameM != 0})
	return f
}

func enhancedBlindOld(t *conformance.T) {
	// An enhanced connection comes first: plain ones are still taken.
	b := openRping(t, conformance.Initiator)
	b.startsWith(requestFrame(frameC|frameS, 2, aWord(4, 4, "")))
	b.round()
	b = openRping(t, conformance.Initiator)
	f := b.startsWith(requestFrame(frameC, 1, nil))
	require.EqualValues(t, 1, f.rev, "the revision of the Reply")
	require.Zero(t, f.flags&frameS, "S of the Reply")
	b.round()
}

func enhancedBlindBits(t *conformance.T) {
	var replies []string
	for _, bits := range []byte{0, 0x0F} {
		b := openRping(t, conformance.Initiator)
		f := b.startsWith(requestFrame(frameC|frameS|bits, 2, aWord(4, 4, "")))
		require.Zero(t, f.flags&0x0F, "the reserved bits of the Reply")
		replies = append(replies, string(f.octets))
		b.round()
	}
	require.Equal(t, replies[0], replies[1], "the Reply to reserved bits that are set")
}

func enhancedBlindClient(t *conformance.T) {
	for _, ird := range []uint16{1, 4} {
		b := openRping(t, conformance.Initiator)
		f := b.startsWith(requestFrame(frameC|frameS, 2, aWord(ird, 4, "")))
		first, second := f.word()
		require.Zero(t, first&(flagA|flagB), "A and B of the Reply")
		require.Zero(t, second&(flagC|flagD), "C and D of the Reply")
		require.LessOrEqual(t, second&depthBits, ird, "ORD of the Reply")
		b.round()
	}
}

func enhancedBlindPeer(t *conformance.T) {
	b := openRping(t, conformance.Initiator)
	f := b.startsWith(requestFrame(frameC|frameS, 2, aWord(flagA|4, flagC|flagD|4, "")))
	first, second := f.word()
	require.NotZero(t, first&flagA, "A of the Reply")
	require.NotZero(t, second&(flagC|flagD), "C and D of the Reply")
	if second&flagC != 0 {
		b.send(aWrite(1, 0, nil))
	} else {
		b.send(aReadRequest(1, read{nowhere, 0, 0, 1, 0}))
		b.expect(aReadResponse(nowhere, 0, nil))
	}
	b.round()
}

func enhancedBlindRequest(t *conformance.T) {
	b := openRping(t, conformance.Responder)
	f := b.hears(requestKey)
	require.Zero(t, f.flags&0x0F, "the reserved bits of the Request")
	if f.flags&frameS != 0 {
		require.GreaterOrEqual(t, f.rev, byte(2), "the revision of an enhanced Request")
	}
}

// blind_6581 are the parts of RFC 6581 in which foreign endpoints may differ, a case
// for each. See r6581_blind for the rest.
var blind_6581 = []conformance.Case{
	wireCase("9.1/blind-depths-unsaid", blindUnsaid, "R6581-9.1-M8", "R6581-9.1-M10"),
	wireCase("9.1/blind-depths-unsaid-in-reply", blindUnsaidReply, "R6581-9.1-M9", "R6581-9.1-M11"),
	wireCase("9.1/blind-ord-beyond-ird", blindTooDeep, "R6581-9.1-M5", "R6581-9.1-M6"),
	wireCase("9.2/blind-no-kind-in-common", blindNoKind, "R6581-9.2-M6"),
	wireCase("9.2/blind-kinds-without-a", blindKindsWithoutA, "R6581-9.2-M12", "R6581-9.2-M13"),
}

// blindUnsaid: to a depth that the Initiator leaves open the Reply says the same.
func blindUnsaid(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what             string
		ird, ord         uint16
		needIRD, needORD bool
	}{
		{"ORD is not negotiated", 4, unsaid, true, false},
		{"IRD is not negotiated", unsaid, 4, false, true},
	}) {
		b := openRping(t, conformance.Initiator)
		f := b.startsWith(requestFrame(frameC|frameS, 2, aWord(x.ird, x.ord, "")))
		first, second := f.word()
		if ird := first & depthBits; x.needIRD && ird != unsaid {
			t.Errorf("the Reply has IRD %d, not 0x3FFF", ird)
		}
		if ord := second & depthBits; x.needORD && ord != unsaid {
			t.Errorf("the Reply has ORD %d, not 0x3FFF", ord)
		}
		b.drop()
	}
}

// blindUnsaidReply: depths that the Responder leaves open are no obstacle.
func blindUnsaidReply(t *conformance.T) {
	b := startRping(t, conformance.Responder, func(f *startup) { f.IRD, f.ORD = unsaid, unsaid })
	b.needsEnhanced()
	b.works()
}

// needsEnhanced skips a case that an Initiator's plain Request does not allow.
func (b *rping) needsEnhanced() {
	if !b.itsFrame.Enhanced {
		b.t.Skipf("the target's Request is not enhanced")
	}
}

// blindTooDeep: a Responder that means to have more RDMA Reads outstanding than any
// Initiator has room for is told so, and nothing else.
func blindTooDeep(t *conformance.T) {
	b := openRping(t, conformance.Responder)
	b.itsFrame = b.request()
	b.needsEnhanced()
	f := replyTo(b.itsFrame)
	f.ORD = unsaid - 1
	b.raw(f.octets())
	b.adopt(f, b.itsFrame)
	b.refusedAs(0x2006)
	b.finished()
}

// blindNoKind: the peer can send a ready-to-receive Send only. The Reply marks a
// kind, that or another.
func blindNoKind(t *conformance.T) {
	b := openRping(t, conformance.Initiator)
	f := b.startsWith(requestFrame(frameC|frameS, 2, aWord(flagA|flagB|4, 4, "")))
	first, second := f.word()
	require.NotZero(t, first&flagA, "A of the Reply")
	if first&flagB == 0 && second&(flagC|flagD) == 0 {
		t.Fatalf("the Reply marks no kind of ready-to-receive frame")
	}
}

// blindKindsWithoutA: B, C and D say nothing without A: no ready-to-receive frame is
// sent or waited for.
func blindKindsWithoutA(t *conformance.T) {
	b := openRping(t, conformance.Either)
	if b.play == conformance.Initiator {
		f := b.startsWith(requestFrame(frameC|frameS, 2, aWord(flagB|4, flagC|flagD|4, "")))
		first, second := f.word()
		if first&(flagA|flagB) != 0 || second&(flagC|flagD) != 0 {
			t.Errorf("the Reply has the flags %04x %04x, not none", first&(flagA|flagB), second&(flagC|flagD))
		}
		b.works()
		return
	}
	b.itsFrame = b.request()
	b.needsEnhanced()
	if b.itsFrame.P2P {
		t.Skipf("the target's Request is for peer-to-peer mode")
	}
	require.Zero(t, b.itsFrame.RTR, "B, C and D of the Request")
	near := replyTo(b.itsFrame)
	word := binary.BigEndian.AppendUint16(nil, flagB|near.IRD)
	word = binary.BigEndian.AppendUint16(word, flagC|flagD|near.ORD)
	b.raw(replyFrame(frameC|frameS, 2, word))
	b.adopt(near, b.itsFrame)
	b.itsBuffer = b.offers(1)
	b.works()
}
