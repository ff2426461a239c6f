package cases

import (
	"bytes"
	"encoding/binary"
	"time"

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
func blindWire(t *conformance.T, play conformance.Role) *peer {
	p := openRping(t, play).peer
	p.closes = true
	return p
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
func (w *peer) rounds(n int) (markers []mpaMarker) {
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
	data := rpingText(64)
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

// blind_5044 is RFC 5044 as far as it shows in an endpoint of which is known only
// that it speaks rping's language.
var blind_5044 = []conformance.Case{
	wireCase("4.4/blind-crc-by-default", blindCRCByDefault, "R5044-1.2-M2", "R5044-4.4-M4"),
	wireCase("4.4/blind-crc-used", onRping(conformance.Either, blindCRCUsed),
		"R5044-4.4-M1", "R5044-4.4-M6", "R5044-4.4-M9", "R5044-7.1.1-M11"),
	wireCase("4.4/blind-crc-mismatch", onRping(conformance.Either, blindCRCMismatch), "R5044-4.4-M11", "R5044-4.4-M12", "R5044-6-M1"),
	wireCase("4.3/blind-markers", blindMarkers, "R5044-4.3-M1", "R5044-4.3-M7", "R5044-7.1.1-M9"),
	wireCase("4.1/blind-pad", onRping(conformance.Either, blindPad), "R5044-4.1-M1", "R5044-4.1-M2", "R5044-4.4-M8"),
	wireCase("5.1/blind-segmentation", onRping(conformance.Either, blindSegmentation),
		"R5044-5.1-M1", "R5044-5.2-M1", "R5044-6-M4", "R5044-A.4-M1"),
	wireCase("7.1.1/blind-private-data", blindPrivateData, "R5044-7.1.2-M12"),
	wireCase("7.1.1/blind-bad-request", blindBadRequest,
		"R5044-7.1.1-M2", "R5044-7.1.1-M15", "R5044-7.1.1-M16", "R5044-7.1.1-M18", "R5044-7.1.2-M2", "R5044-7.1.2-M3",
		"R5044-7.1.2-M9", "R5044-8-M2"),
	wireCase("7.1.1/blind-bad-reply", blindBadReply,
		"R5044-7.1.1-M4", "R5044-7.1.1-M16", "R5044-7.1.1-M18", "R5044-7.1.2-M5", "R5044-7.1.2-M6", "R5044-7.1.2-M10",
		"R5044-8-M2"),
	wireCase("7.1.2/blind-reject", blindReject, "R5044-7.1.2-M7"),
	wireCase("7.1.2/blind-first-fpdu", onRping(conformance.Initiator, blindFirstFPDU), "R5044-7.1.2-M8"),
}

func blindWithoutCRC(f *startup) { f.CRC = false }

// blindCRCByDefault: the target's own frame asks for CRCs, whatever the peer wants.
func blindCRCByDefault(t *conformance.T) {
	b := openRping(t, conformance.Either)
	if b.play == conformance.Responder {
		if !b.request().CRC {
			t.Fatalf("the Request has C=0: no CRCs are asked for")
		}
		return
	}
	b.start(blindWithoutCRC)
	if !b.itsFrame.CRC {
		t.Fatalf("the Reply to C=0 has C=0 too: no CRCs are asked for")
	}
}

// blindCRCUsed: CRCs that one side asks for are in every FPDU, and right: the peer
// checks them.
func blindCRCUsed(t *conformance.T, b *rping) {
	b.works()
	b.drop()
	b = startRping(t, conformance.Either, blindWithoutCRC)
	if !b.itsFrame.CRC {
		t.Logf("the target did not ask for CRCs: it may not look at them (R5044-4.4-M7)")
		return
	}
	b.works()
}

// badCRC is the next FPDU, with a CRC that is off by a bit.
func (b *rping) badCRC(ulpdu []byte) []byte {
	f := b.peer.Frame(ulpdu)
	f[len(f)-1] ^= 0x10
	return f
}

// blindCRCMismatch: a Send with a wrong CRC brings a Terminate Message and not what
// the Send asks for.
func blindCRCMismatch(t *conformance.T, b *rping) {
	b.works()
	msn := either(b.play == conformance.Initiator, b.sends+1, uint32(1))
	require.NoError(t, b.peer.Raw(b.badCRC(aSend(msn, aMessage()))))
	b.refusedAs(0x2002)
	b.finished()
}

// blindMarkers: a peer that asks for markers gets them.
func blindMarkers(t *conformance.T) {
	b := startRping(t, conformance.Either, func(f *startup) { f.Markers = true })
	for range 8 { // beyond 512 octets
		b.works()
	}
}

// stream is what has come on the stream so far, from the first FPDU on.
func (b *rping) stream() []byte {
	var all []byte
	for _, m := range b.t.Trace().Marks() {
		if m.Direction == conformance.Received && m.Stream == 1 {
			all = append(all, m.Octets...)
		}
	}
	require.GreaterOrEqual(b.t, len(all), 20, "the stream has a startup frame")
	return all[min(20+int(binary.BigEndian.Uint16(all[18:])), len(all)):]
}

// blindPad: FPDUs of every length modulo 4 have pad octets of zero, and all end with
// four octets of CRC. (The target's frame does not ask the peer for markers here, or
// it does: that is about the other direction.)
func blindPad(t *conformance.T, b *rping) {
	if b.play == conformance.Responder {
		for n := range uint32(9) {
			b.read(b.itsBuffer, 0, n, nowhere)
		}
	} else {
		for i, n := range []uint32{9, 10, 11, 12, 13} {
			from, to := ours[0], ours[1]
			from.size, to.size = n, n
			b.offer(from)
			r := b.fetched(from)
			b.send(aReadResponse(r.sinkSTag, r.sinkTO, rpingText(int(n))))
			b.received(uint32(2*i + 1))
			b.offer(to)
			b.expect(aWrite(to.stag, to.to, rpingText(int(n))))
			b.received(uint32(2*i + 2))
		}
	}
	pads := map[int]bool{}
	for s := b.stream(); len(s) > 0; {
		n := int(binary.BigEndian.Uint16(s))
		pad := -(2 + n) & 3
		require.GreaterOrEqual(t, len(s), 2+n+pad+4, "an FPDU")
		for _, x := range s[2+n : 2+n+pad] {
			if x != 0 {
				t.Fatalf("the pad of an FPDU with a ULPDU of %d octets is % x", n, s[2+n:2+n+pad])
			}
		}
		pads[pad] = true
		s = s[2+n+pad+4:]
	}
	require.Len(t, pads, 4, "lengths of pads")
}

// blindSegmentation: where TCP cuts has no meaning.
func blindSegmentation(t *conformance.T, b *rping) {
	nothing := read{sinkSTag: nowhere, sinkTO: nowhereTO}
	for _, x := range b.peer.Frame(aReadRequest(1, nothing)) {
		require.NoError(t, b.peer.Raw([]byte{x}))
	}
	b.expect(aReadResponse(nowhere, nowhereTO, nil))
	var several []byte
	for range 5 {
		several = append(several, b.peer.Frame(aWrite(0, 0, nil))...)
	}
	several = append(several, b.peer.Frame(aReadRequest(2, nothing))...)
	half := len(several) - 7
	require.NoError(t, b.peer.Raw(several[:half]))
	require.NoError(t, b.peer.Raw(several[half:]))
	b.expect(aReadResponse(nowhere, nowhereTO, nil))
	b.reads = 2
	b.works()
}

// blindPrivateData: as much as a frame can carry, 512 octets with the enhanced word.
// A Request with more than the target takes gets no Reply.
func blindPrivateData(t *conformance.T) {
	private := func(f *startup) { f.PrivateData = bytes.Repeat([]byte("p"), 508) }
	if b := openRping(t, conformance.Either); b.play == conformance.Responder {
		b.start(private)
		b.works()
		return
	}
	for _, near := range []startup{{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16}, {CRC: true, Rev: 1}} {
		private(&near)
		t.Part("508 octets of private data, revision %d", near.Rev)
		b := openRping(t, conformance.Initiator)
		if _, err := b.asked(near); err != nil {
			t.Errorf("no Reply: %s", failure(err))
		}
		b.drop()
	}
}

// blindFrames are startup frames of a kind that nobody can use.
func blindFrames(key, other string) []blindFrame {
	return []blindFrame{
		{"a key of another protocol", aFrame("GET / HTTP/1.1\r\n", frameC, 1, nil)},
		{"the key of the other role", aFrame(other, frameC, 1, nil)},
		{"a PD_Length of 600", aFrame(key, frameC, 1, make([]byte, 600))},
		{"revision 77", aFrame(key, frameC, 77, nil)},
	}
}

type blindFrame struct {
	what   string
	octets []byte
}

// hungUp says that the stream ends without another octet.
func (b *rping) hungUp() {
	require.NoError(b.t, b.Conn.SetReadDeadline(time.Now().Add(b.patience())))
	var got [64]byte
	n, err := b.Conn.Read(got[:])
	switch {
	case n > 20 && got[3]&0x0F == 7:
		b.t.Fatalf("instead of the end of the stream: came Terminate %s", codeOf(got[2:n]))
	case n > 0:
		b.t.Fatalf("instead of the end of the stream: came % x", got[:n])
	case !ended(err):
		b.t.Fatalf("instead of the end of the stream: %s", failure(err))
	}
}

// blindBadRequest: a Request that is none ends the connection, without a Reply. A
// good one before and behind it shows that somebody is there.
func blindBadRequest(t *conformance.T) {
	startRping(t, conformance.Initiator).drop()
	defer func() { startRping(t, conformance.Initiator).drop() }()
	for x := range inTurn(t, "%s", blindFrames(requestKey, replyKey)) {
		b := openRping(t, conformance.Initiator)
		b.raw(x.octets)
		b.hungUp()
		b.drop()
	}
}

// blindBadReply: likewise a Reply. No FPDU comes, not even a Terminate Message: Full
// Operation has not begun.
func blindBadReply(t *conformance.T) {
	for x := range inTurn(t, "%s", blindFrames(replyKey, requestKey)) {
		b := openRping(t, conformance.Responder)
		b.request()
		b.raw(x.octets)
		b.hungUp()
		b.drop()
	}
}

// blindReject: behind a rejecting Reply an Initiator sends nothing.
func blindReject(t *conformance.T) {
	b := openRping(t, conformance.Responder)
	f := changed(replyTo(b.request()), []func(*startup){func(f *startup) { f.Reject = true }})
	b.raw(f.octets())
	b.hungUp() // rping is done then
}

// blindFirstFPDU: a Responder sends nothing, no Terminate Message either, before it
// has received a good FPDU.
func blindFirstFPDU(t *conformance.T, b *rping) {
	require.NoError(t, b.peer.Raw(b.badCRC(aSend(1, aMessage()))))
	b.hungUp()
}
