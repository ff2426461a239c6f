package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// r5044_blind is RFC 5044 in an endpoint of which is known only that it speaks
// rping's language, octet by octet.
var r5044_blind = []conformance.Case{
	wireCase("7.1.1/blind-request-octets", blindRequestOctets, "R5044-7.1.1-M1", "R5044-7.1.1-M13", "R5044-7.1.1-M17"),
	wireCase("7.1.1/blind-reply-octets", blindReplyOctets, "R5044-7.1.1-M3", "R5044-7.1.1-M13", "R5044-7.1.1-M17"),
	wireCase("4.4/blind-crc-octets", blindCRCOctets, "R5044-4.4-M1", "R5044-4.4-M9", "R5044-4.4-M8", "R5044-4.1-M1"),
	wireCase("4.3/blind-marker-octets", blindMarkerOctets,
		"R5044-4.2-M1", "R5044-4.2-M3", "R5044-4.3-M1", "R5044-4.3-M2", "R5044-4.3-M3", "R5044-4.3-M5", "R5044-4.3-M7",
		"R5044-4.3-M9"),
}

// blindWire is a raw peer that makes its own octets, of such an endpoint.
func blindWire(t *conformance.T, play conformance.Role) *mpaWire {
	b := openBlind(t, play)
	return &mpaWire{test: t, wire: b.conn}
}

// blindRequestOctets looks at a Request, answers it, and finds the first FPDU right
// behind it.
func blindRequestOctets(t *conformance.T) {
	w := blindWire(t, conformance.Responder)
	f := w.frame()
	require.Equal(t, "MPA ID Req Frame", string(f[:16]), "the key")
	require.Zero(t, f[16]&0x0F, "the reserved bits in flags %02x", f[16])
	require.Contains(t, []byte{1, 2}, f[17], "the revision")
	w.mute() // the private data has ended, whatever it is
	if f[16]&frameS != 0 {
		require.GreaterOrEqual(t, len(f), 24, "room for the enhanced word")
		w.raw(replyFrame(frameC|frameS, f[17], []byte{f[20] & 0x80, 8, 0x80, 8}))
	} else {
		w.raw(replyFrame(frameC, 1, nil))
	}
	w.agreed(frameC)
	u := w.next()
	for u[1] == opWrite || u[1] == opReadRequest { // a ready-to-receive frame
		u = w.next()
	}
	require.Equal(t, aSend(1, u[18:]), u, "a Send, its first")
}

// blindReplyOctets looks at Replies to Requests with private data and without.
func blindReplyOctets(t *conformance.T) {
	for _, private := range [][]byte{nil, []byte("abc")} {
		t.Part("private data of %d octets", len(private))
		w := blindWire(t, conformance.Initiator)
		w.raw(requestFrame(frameC, 1, private))
		f := w.frame()
		require.Equal(t, "MPA ID Rep Frame", string(f[:16]), "the key")
		require.Zero(t, f[16]&^(frameM|frameC|frameR), "the reserved bits and S in flags %02x", f[16])
		require.Zero(t, f[16]&frameR, "it refuses")
		require.Equal(t, byte(1), f[17], "the revision")
		w.mute()
		w.drop()
	}
}

// rounds plays a client's rounds: each FPDU that comes is a good one, with its
// markers and its CRC.
func (w *mpaWire) rounds(n int) (markers []mpaMarker) {
	w.theirs = nil
	flags := byte(frameC)
	if w.in.markers {
		flags |= frameM
	}
	// Enhanced: without depths in the Request a server may have none for RDMA Reads.
	w.raw(requestFrame(flags|frameS, 2, []byte{0, 16, 0, 16}))
	f := w.frame()
	require.Zero(w.test, f[16]&frameR, "it refuses a Request with flags %02x", flags)
	w.agreed(flags)
	take := func() []byte {
		f := w.take()
		markers = append(markers, f.marks...)
		require.Zero(w.test, len(f.octets)%4, "an FPDU of %d octets", len(f.octets))
		return f.ulpdu
	}
	data := blindText(64)
	for i := range n {
		msn := uint32(2*i + 1)
		w.send(aSend(msn, ours[0].octets()))
		u := take()
		require.Len(w.test, u, 46, "an RDMA Read Request: % x", u)
		sink := tagged(lastTagged, opReadResponse, 0, 0, nil)
		copy(sink[2:], u[18:30])
		w.send(append(sink, data...))
		require.Len(w.test, take(), 34, "a Send")
		w.send(aSend(msn+1, ours[1].octets()))
		require.Equal(w.test, aWrite(ours[1].stag, ours[1].to, data), take())
		require.Len(w.test, take(), 34, "a Send")
	}
	return markers
}

// blindCRCOctets computes each CRC for itself, and adds its own.
func blindCRCOctets(t *conformance.T) {
	w := blindWire(t, conformance.Initiator)
	require.Empty(t, w.rounds(3), "markers that nobody asked for")
}

// blindMarkerOctets counts the octets of the stream from the first marker on.
func blindMarkerOctets(t *conformance.T) {
	w := blindWire(t, conformance.Initiator)
	w.in.markers = true
	markers := w.rounds(16)
	require.Greater(t, len(markers), 4, "markers")
	for i, m := range markers {
		require.Equal(t, 512*i, m.at, "where marker %d stands", i)
		require.Zero(t, m.ptr&3, "the low bits of marker %d", i)
	}
	require.Zero(t, markers[0].ptr, "the first marker")
}
