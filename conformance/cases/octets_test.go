package cases

import (
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func golden(t *testing.T, text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

// TestSegmentOctets: the cases' codec against octets that were written by hand from the
// figures of RFC 5040, 5041 and 7306, both ways.
func TestSegmentOctets(t *testing.T) {
	r := read{0x01020304, 0x1112131415161718, 0x21222324, 0x31323334, 0x4142434445464748}
	a := atomicOp{atomicCmpSwap, 0x01020304, 0x11121314, 0x2122232425262728, 0x31, 0x41, 0x51, 0x61}
	for _, x := range []struct {
		what, octets string
		made         []byte
		want         ddpSegment
	}{
		{"Write", "c140 01020304 1112131415161718 6162", aWrite(0x01020304, 0x1112131415161718, []byte("ab")),
			ddpSegment{tagged: true, last: true, control: 0x40, stag: 0x01020304, to: 0x1112131415161718}},
		{"Read Response", "c142 00000001 0000000000000002 63", aReadResponse(1, 2, []byte("c")),
			ddpSegment{tagged: true, last: true, control: 0x42, stag: 1, to: 2}},
		{"Send", "4143 00000000 00000000 00000007 00000000 64", aSend(7, []byte("d")), ddpSegment{last: true, control: 0x43, msn: 7}},
		{"Send with Invalidate", "4144 0000000b 00000000 00000007 00000000", aSendInv(7, 11, nil),
			ddpSegment{last: true, control: 0x44, inv: 11, msn: 7}},
		{"in the middle", "0143 00000000 00000000 00000007 00000010 65", untagged(moreUntagged, opSend, 0, 0, 7, 16, []byte("e")),
			ddpSegment{control: 0x43, msn: 7, mo: 16}},
		{"Read Request", "4141 00000000 00000001 00000002 00000000 01020304 1112131415161718 21222324 31323334 4142434445464748",
			aReadRequest(2, r), ddpSegment{last: true, control: 0x41, qn: 1, msn: 2}},
		{"Terminate", "4147 00000000 00000002 00000001 00000000 1100c000 000f c140 00000001 0000000000000002",
			aTerminate(0x1100, aWrite(1, 2, []byte("x")), false), ddpSegment{last: true, control: 0x47, qn: 2, msn: 1}},
		{"Immediate", "4148 00000000 00000000 00000003 00000000 0102030405060708", anImmediate(opImmediate, 3, 0x0102030405060708),
			ddpSegment{last: true, control: 0x48, msn: 3}},
		{"Immediate with SE", "4149 00000000 00000000 00000003 00000000 0000000000000008", anImmediate(opImmediateSE, 3, 8),
			ddpSegment{last: true, control: 0x49, msn: 3}},
		{"Atomic Request", "414a 00000000 00000001 00000004 00000000 00000002 01020304 11121314 2122232425262728" +
			"0000000000000031 0000000000000041 0000000000000051 0000000000000061",
			anAtomicRequest(4, a), ddpSegment{last: true, control: 0x4A, qn: 1, msn: 4}},
		{"Atomic Response", "414b 00000000 00000003 00000005 00000000 01020304 1112131415161718",
			anAtomicResponse(5, 0x01020304, 0x1112131415161718), ddpSegment{last: true, control: 0x4B, qn: 3, msn: 5}},
	} {
		want := golden(t, x.octets)
		assert.Equal(t, want, x.made, x.what)
		got, err := parseSegment(want)
		require.NoError(t, err, x.what)
		assert.Equal(t, want, append(append([]byte(nil), got.header...), got.payload...), x.what)
		h := got.payload
		got.header, got.payload = nil, nil
		assert.Equal(t, x.want, got, x.what)
		switch x.want.control {
		case opReadRequest:
			q, err := parseRead(h)
			require.NoError(t, err)
			assert.Equal(t, r, q)
		case opAtomicRequest:
			q, err := parseAtomic(h)
			require.NoError(t, err)
			assert.Equal(t, a, q)
		case opAtomicResponse:
			id, was, err := parseAtomicResponse(h)
			require.NoError(t, err)
			assert.Equal(t, []uint64{0x01020304, 0x1112131415161718}, []uint64{uint64(id), was})
		}
	}
	assert.Equal(t, golden(t, "00000000"), atomicOp{op: atomicFetchAdd}.header()[:4])
	for _, bad := range []string{"", "c140 00000001 00000000000000", "4143 00000000 00000000 00000007 000000", "c240" + strings.Repeat("00", 12), "c540" + strings.Repeat("00", 12)} {
		_, err := parseSegment(golden(t, bad))
		require.Error(t, err, bad)
	}
}

// TestStartupOctets is the same for startup frames.
func TestStartupOctets(t *testing.T) {
	key := func(s string) string { return hex.EncodeToString([]byte(s)) }
	for text, s := range map[string]startup{
		key("MPA ID Req Frame") + "40 01 0000":              {CRC: true, Rev: 1},
		key("MPA ID Rep Frame") + "a0 01 0002 6162":         {Reply: true, Markers: true, Reject: true, Rev: 1, PrivateData: []byte("ab")},
		key("MPA ID Req Frame") + "50 02 0005 c010 8005 63": {CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 5, P2P: true, RTR: 3, PrivateData: []byte("c")},
		key("MPA ID Rep Frame") + "10 02 0004 8001 4002":    {Reply: true, Rev: 2, Enhanced: true, IRD: 1, ORD: 2, P2P: true, RTR: 4},
		key("MPA ID Req Frame") + "10 02 0004 3fff 3fff":    {Rev: 2, Enhanced: true, IRD: unsaid, ORD: unsaid},
	} {
		b := golden(t, text)
		assert.Equal(t, b, s.octets(), text)
		got, err := parseStartup(b)
		require.NoError(t, err)
		if len(got.PrivateData) == 0 {
			got.PrivateData = nil
		}
		assert.Equal(t, s, got, text)
	}
	for _, bad := range []string{key("MPA ID Rqe Frame") + "40 01 0000", key("MPA ID Req Frame") + "50 02 0003 000000"} {
		_, err := parseStartup(golden(t, bad))
		require.Error(t, err, bad)
	}
}

// TestRawEnds: two raw ends understand each other, in each framing, and say how a stream
// ends and what is wrong with an FPDU. The CRC
// itself is held to the example of RFC 5044 by r5044_4_4.go.
func TestRawEnds(t *testing.T) {
	for _, f := range []framing{{}, withCRC, {crc: true, markersIn: true, markersOut: true}} {
		x, y := dialed(t)
		a, b := newRawEnd(x, f), newRawEnd(y, f)
		for _, n := range []int{0, 1, 2, 3, 14, 506, 507, 508, 509, 1454, 64768} {
			u := make([]byte, n)
			for i := range u {
				u[i] = byte(i*7 + n)
			}
			require.NoError(t, a.Send(u))
			got, err := b.Next()
			require.NoError(t, err)
			require.Equal(t, u, got, "%d octets", n)
		}
		for range 2 {
			require.NoError(t, a.Send([]byte("whole")))
		}
		require.NoError(t, a.Raw([]byte{0, 20, 1}))
		require.NoError(t, a.CloseWrite())
		end, fpdus, err := b.End()
		require.NoError(t, err)
		assert.Equal(t, endCut, end)
		assert.Equal(t, 2, fpdus)
	}
	x, y := dialed(t)
	require.NoError(t, newRawEnd(x, framing{}).CloseWrite())
	_, err := newRawEnd(y, framing{}).Next()
	require.ErrorIs(t, err, io.EOF)

	lane := mpaLane{crc: true, markers: true}
	for what, x := range map[string]twist{
		"pad": {pad: 1}, "CRC": {crc: func(c uint32) uint32 { return ^c }}, "reserved": {reserved: 1},
		"pointer": {pointer: func(p uint16) uint16 { return p + 4 }},
	} {
		sender := lane
		b := sender.twisted(make([]byte, 601), x)
		receiver := lane
		f, whole := receiver.parse(b)
		require.True(t, whole)
		require.Error(t, f.fault(true), what)
	}
	b := new(mpaLane).fpdu([]byte("x"))
	assert.Equal(t, golden(t, "0001 78 00 00000000"), b)
	_, whole := new(mpaLane).parse(b[:len(b)-1])
	assert.False(t, whole)
}

func dialed(t *testing.T) (a, b net.Conn) {
	a, b, err := dialedPair()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}
