package segment_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// sized is the segment of a hex string with its length put right, and a CRC if
// wanted.
func sized(t testing.TB, s string, crc bool) []byte {
	b := unhex(t, s)
	n := len(b)
	if crc {
		n += segment.Trailer
	}
	binary.BigEndian.PutUint16(b[2:], uint16(n))
	if crc {
		b = segment.AppendCRC(b, 0)
	}
	return b
}

const rest = " 00000001 00000000 0000 0000" // number, ACK, receives, error code

func TestFaults(t *testing.T) {
	const rdma16 = "0000000000001000 00000001 00000010" // 16 octets long
	ce := func(calling, called, options string) string {
		return "0185 0000 00000000 00000000" + rest + "0002" + calling + "00010000" + field64("") + "0000" + called + field64("") + options
	}
	for _, c := range []struct {
		name, hex string
		want      segment.ParseFault
	}{
		{"version 0", "0080 0000 00000000 00000000" + rest, segment.FaultVersion},
		{"version 2", "0280 0000 00000000 00000000" + rest, segment.FaultVersion},
		{"type 9", "0189 0000 00000000 00000000" + rest, segment.FaultType},
		{"type 31", "019f 0000 00000000 00000000" + rest, segment.FaultType},

		{"Send", "0180 0000 00000000 00000000" + rest + "aa", segment.FaultNone},
		{"Send to be continued", "0100 0000 ffffffff 00000000" + rest + "aa", segment.FaultNone},
		{"Send beyond 4 GiB", "0100 0000 ffffffff 00000000" + rest + "aabb", segment.FaultOffset},
		{"Read Response beyond 4 GiB", "0183 0000 ffffffff 00000000" + rest + "aabb", segment.FaultOffset},

		{"Write without its header", "0181 0000 00000000 00000000" + rest, segment.FaultLength},
		{"Write with 15 octets of header", "0181 0000 00000000 00000000" + rest + "0000000000001000 00000001 000000", segment.FaultLength},
		{"Write to the end", "0181 0000 0000000e 00000000" + rest + rdma16 + "aabb", segment.FaultNone},
		{"Write beyond its length", "0181 0000 0000000f 00000000" + rest + rdma16 + "aabb", segment.FaultRDMALength},
		{"Write beyond its length, not the last", "0101 0000 0000000f 00000000" + rest + rdma16 + "aabb", segment.FaultRDMALength},
		{"Write beyond its length, failed", "01a1 0000 0000000f 00000000" + rest + rdma16 + "aabb", segment.FaultRDMALength},
		{"Write that ends early", "0181 0000 0000000d 00000000" + rest + rdma16 + "aabb", segment.FaultRDMALength},
		{"Write that ends early, failed", "01a1 0000 0000000d 00000000" + rest + rdma16 + "aabb", segment.FaultNone},
		{"Write to be continued", "0101 0000 0000000d 00000000" + rest + rdma16 + "aabb", segment.FaultNone},
		{"Write beyond 4 GiB", "0101 0000 ffffffff 00000000" + rest + rdma16 + "aabb", segment.FaultOffset},

		{"Read Request", "0182 0000 00000000 00000000" + rest + rdma16, segment.FaultNone},
		{"Read Request with payload", "0182 0000 00000000 00000000" + rest + rdma16 + "aa", segment.FaultLength},
		{"Read Request without its header", "0182 0000 00000000 00000000" + rest, segment.FaultLength},
		{"Read Request in two", "0102 0000 00000000 00000000" + rest + rdma16, segment.FaultEnd},
		{"Read Request with an offset", "0182 0000 00000001 00000000" + rest + rdma16, segment.FaultOffset},

		{"NOP", "0184 0000 00000000 00000000" + rest, segment.FaultNone},
		{"NOP is no message", "0104 0000 00000001 00000000" + rest, segment.FaultNone},
		{"NOP with payload", "0184 0000 00000000 00000000" + rest + "aa", segment.FaultLength},

		{"Reject", "0187 0000 00000000 00000000" + rest, segment.FaultNone},
		{"Reject with payload", "0187 0000 00000000 00000000" + rest + "aabbcc", segment.FaultLength},
		{"Reject with more than a CRC", "0187 0000 00000000 00000000" + rest + "aabbccddee", segment.FaultLength},
		{"Reject with a bad CRC", "0187 0000 00000000 00000000" + rest + "aabbccdd", segment.FaultCRC},
		{"NoMatch in two", "0108 0000 00000000 00000000" + rest, segment.FaultEnd},
		{"NoMatch with an offset", "0188 0000 00000001 00000000" + rest, segment.FaultOffset},

		{"Request without options", ce("0000", "0000", ""), segment.FaultNone},
		{"Request without its header", "0185 0000 00000000 00000000" + rest, segment.FaultLength},
		{"Request with 139 octets of header", strings.TrimSuffix(ce("0000", "0000", ""), "00"), segment.FaultLength},
		{"Request in two", "0105" + ce("0000", "0000", "")[4:], segment.FaultEnd},
		{"calling discriminator of 64", ce("0040", "0000", ""), segment.FaultNone},
		{"calling discriminator of 65", ce("0041", "0000", ""), segment.FaultDiscriminator},
		{"calling discriminator of 65535", ce("ffff", "0000", ""), segment.FaultDiscriminator},
		{"called discriminator of 65", ce("0000", "0041", ""), segment.FaultDiscriminator},

		{"option list with an end", ce("0000", "0000", "0000"), segment.FaultNone},
		{"padding behind the end", ce("0000", "0000", "0000 ffffff"), segment.FaultNone},
		{"half an option type", ce("0000", "0000", "00"), segment.FaultOption},
		{"option without a length", ce("0000", "0000", "0063"), segment.FaultOption},
		{"option of length 0", ce("0000", "0000", "0063 0000 0000"), segment.FaultOption},
		{"option of length 3", ce("0000", "0000", "0063 0003 0000"), segment.FaultOption},
		{"option beyond the segment", ce("0000", "0000", "0063 0005"), segment.FaultOption},
		{"option of length 65535", ce("0000", "0000", "0063 ffff 0000"), segment.FaultOption},
		{"unknown option", ce("0000", "0000", "0063 0007 010203 0000"), segment.FaultNone},
		{"unknown option at the end", ce("0000", "0000", "ffff 0004"), segment.FaultNone},
		{"Urgent Marker", ce("0000", "0000", "0002 0004"), segment.FaultNone},
		{"Urgent Marker with data", ce("0000", "0000", "0002 0005 01"), segment.FaultNone},
		{"CRC option with a bad CRC", ce("0000", "0000", "0001 0004 0000 00000000"), segment.FaultCRC},
		{"CRC option without a CRC", ce("0000", "0000", "0001 0004 0000"), segment.FaultOption},
		{"CRC option without an end", ce("0000", "0000", "0001 0004 00001234"), segment.FaultOption}, // what looks like one is the CRC
		{"CRC option with data", ce("0000", "0000", "0001 0005 01 0000 00000000"), segment.FaultOption},
		{"option in the CRC's place", ce("0000", "0000", "0001 0004 0063 0006 0102"), segment.FaultOption},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, fault := segment.Parse(sized(t, c.hex, false), false)
			assert.Equal(t, c.want, fault, "%v", &s)
			if fault.Lost() {
				return
			}
			_ = s.String() // of a faulty segment too
			s.Payload()
		})
	}
}

func TestShortFrame(t *testing.T) {
	for n := range segment.SegmentHeader {
		b := make([]byte, n)
		if n > 0 {
			b[0] = 1
		}
		if n > 3 {
			b[3] = byte(n)
		}
		_, fault := segment.Parse(b, true)
		assert.Equal(t, segment.FaultFrame, fault, "%d octets", n)
		assert.True(t, fault.Lost())
	}
	assert.Panics(t, func() { _, _ = segment.Parse(append(unhex(t, golden[0].hex), 0), true) })
}

// Without room for a trailer there is none to check.
func TestNoRoomForTrailer(t *testing.T) {
	_, fault := segment.Parse(sized(t, "0184 0000 00000000 00000000"+rest+"aabbcc", false), true)
	assert.Equal(t, segment.FaultLength, fault)
	_, fault = segment.Parse(sized(t, "0181 0000 00000000 00000000"+rest+"0000000000001000 00000001", true), true)
	assert.Equal(t, segment.FaultLength, fault, "the trailer is not part of an RDMA header")
}

// What a bad CRC covers is not judged further, and can be read.
func TestCRCComesFirst(t *testing.T) {
	b := sized(t, "019f 0000 00000001 00000000"+rest+"aabb", true)
	_, fault := segment.Parse(b, true)
	require.Equal(t, segment.FaultType, fault)
	b[12] ^= 1
	s, fault := segment.Parse(b, true)
	require.Equal(t, segment.FaultCRC, fault)
	assert.Equal(t, uint32(0x01000001), s.Number)
	assert.Empty(t, s.Payload())

	b = sized(t, "0185 0000 00000000 00000000"+rest+"0002 0041 00010000"+field64("")+"0000 0000"+field64("")+"0001 0004 0000", true)
	_, fault = segment.Parse(b, false)
	require.Equal(t, segment.FaultDiscriminator, fault)
	b[30] ^= 1
	_, fault = segment.Parse(b, false)
	assert.Equal(t, segment.FaultCRC, fault)
}

func TestImmediateData(t *testing.T) {
	for typ := range segment.Type(32) {
		for _, flags := range []segment.Flags{0, segment.ImmediateValid} {
			h := segment.Header{Type: typ, Flags: flags | segment.EndOfMessage, Immediate: 42}
			v, ok := h.ImmediateData()
			want := flags != 0 && (typ == segment.Send || typ == segment.RDMAWrite)
			assert.Equal(t, want, ok, "%v", typ)
			assert.Equal(t, want, v == 42)
			assert.Equal(t, typ == segment.Send || typ == segment.RDMAWrite && want, h.ConsumesReceive(), "%v", typ)
		}
	}
}

func TestSizes(t *testing.T) {
	for typ, want := range map[segment.Type][2]int{
		segment.Send: {24, 65511}, segment.RDMAWrite: {40, 65495}, segment.RDMAReadRequest: {40, 0},
		segment.RDMAReadResponse: {24, 65511}, segment.NOP: {24, 0}, segment.ConnectRequest: {164, 0},
		segment.ConnectAccept: {164, 0}, segment.ConnectReject: {24, 0}, segment.ConnectNoMatch: {24, 0}, 9: {24, 0},
	} {
		assert.Equal(t, want[0], typ.HeaderLen(), "%v", typ)
		assert.Equal(t, want[1], typ.MaxPayload(false), "%v", typ)
		if typ.HasPayload() {
			assert.Equal(t, want[1]-4, typ.MaxPayload(true), "%v", typ)
			h := segment.Header{Type: typ}
			h.SetLength(typ.MaxPayload(true), true)
			assert.Equal(t, uint16(segment.MaxSegment), h.Length)
			assert.Panics(t, func() { h.SetLength(typ.MaxPayload(true)+1, true) })
		}
	}
}

func TestLevels(t *testing.T) {
	for bits := range segment.Attributes(8) {
		level, ok := (bits | 0xfff8).Level()
		want := map[segment.Attributes]segment.Level{1: segment.Unreliable, 2: segment.ReliableDelivery, 4: segment.ReliableReception}
		w, valid := want[bits]
		assert.Equal(t, valid, ok, "%03b", bits)
		assert.Equal(t, w, level)
	}
	a := segment.WriteEnable.WithLevel(segment.ReliableReception).WithLevel(segment.Unreliable)
	assert.Equal(t, segment.Attributes(0b1001), a)
	assert.Equal(t, "UR|RWE", a.String())
	assert.Equal(t, "RR|P2P|reserved 0x8080", segment.Attributes(0x80c4).String())
}

func TestNames(t *testing.T) {
	assert.Equal(t, "Type(9)", segment.Type(9).String())
	assert.Equal(t, "Reliable Reception", segment.ReliableReception.String())
	assert.Equal(t, "Level(9)", segment.Level(9).String())
	assert.Equal(t, "MPE|reserved 0x80|IS 255", segment.ErrorCode(0xff81).String())
	assert.Equal(t, "none", segment.ErrorCode(0).String())
	assert.Equal(t, segment.RDMAProtection, segment.ErrorCode(0xfff9).VI())
	assert.Equal(t, "", segment.Flags(0).String())
	assert.Equal(t, "Eom IdV TrE", segment.Flags(0xff).String())
	assert.Equal(t, "Fault(200)", segment.ParseFault(200).String())
	assert.ErrorIs(t, error(segment.FaultCRC), segment.FaultCRC)
	assert.EqualError(t, segment.FaultCRC, "vitcp: segment: CRC mismatch")
	var c segment.CE
	c.Calling = segment.Discriminator(strings.Repeat("x", 65))
	assert.Panics(t, func() { c.Append(nil, segment.Header{Type: segment.ConnectRequest}) })
}
