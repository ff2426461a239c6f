package cases

import (
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
func (b *blind) startsWith(request []byte) heardFrame {
	require.NoError(b.t, second(b.conn.Write(request)), "the MPA Request")
	f := hearFrame(b.t, b.conn, replyKey)
	require.Zero(b.t, f.flags&bitReject, "R")
	b.peer = newRawEnd(b.conn, framing{crc: true, markersOut: f.flags&bitMarkers != 0, patience: patience(b.t)})
	return f
}

func enhancedBlindOld(t *conformance.T) {
	// An enhanced connection comes first: plain ones are still taken.
	b := openBlind(t, conformance.Initiator)
	b.startsWith(aFrame(requestKey, bitCRC|bitEnhanced, 2, aWord(4, 4, "")))
	b.round()
	b = openBlind(t, conformance.Initiator)
	f := b.startsWith(aFrame(requestKey, bitCRC, 1, nil))
	require.EqualValues(t, 1, f.rev, "the revision of the Reply")
	require.Zero(t, f.flags&bitEnhanced, "S of the Reply")
	b.round()
}

func enhancedBlindBits(t *conformance.T) {
	var replies []string
	for _, bits := range []byte{0, 0x0F} {
		b := openBlind(t, conformance.Initiator)
		f := b.startsWith(aFrame(requestKey, bitCRC|bitEnhanced|bits, 2, aWord(4, 4, "")))
		require.Zero(t, f.flags&0x0F, "the reserved bits of the Reply")
		replies = append(replies, string(f.octets))
		b.round()
	}
	require.Equal(t, replies[0], replies[1], "the Reply to reserved bits that are set")
}

func enhancedBlindClient(t *conformance.T) {
	for _, ird := range []uint16{1, 4} {
		b := openBlind(t, conformance.Initiator)
		f := b.startsWith(aFrame(requestKey, bitCRC|bitEnhanced, 2, aWord(ird, 4, "")))
		first, second := f.word()
		require.Zero(t, first&(flagA|flagB), "A and B of the Reply")
		require.Zero(t, second&(flagC|flagD), "C and D of the Reply")
		require.LessOrEqual(t, second&depthBits, ird, "ORD of the Reply")
		b.round()
	}
}

func enhancedBlindPeer(t *conformance.T) {
	b := openBlind(t, conformance.Initiator)
	f := b.startsWith(aFrame(requestKey, bitCRC|bitEnhanced, 2, aWord(flagA|4, flagC|flagD|4, "")))
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
	b := openBlind(t, conformance.Responder)
	f := hearFrame(t, b.conn, requestKey)
	require.Zero(t, f.flags&0x0F, "the reserved bits of the Request")
	if f.flags&bitEnhanced != 0 {
		require.GreaterOrEqual(t, f.rev, byte(2), "the revision of an enhanced Request")
	}
}
