package mpa

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// goldenFPDUs: the figures are of RFC 5044 4.4, the G vectors of the project's
// wire reference, and siw those that Linux Soft-iWARP put on the wire.
var goldenFPDUs = []struct {
	name    string
	markers bool
	noCRC   bool
	phase   uint16 // stream position of its first octet, modulo 512
	fpdu    string
	ulpdu   string
}{
	{name: "RFC 5044 figure 5", markers: true,
		fpdu:  "00000000 002a 4143 00000000 00000000 00000001 00000000" + strings.Repeat("00", 24) + "52239983",
		ulpdu: "4143 00000000 00000000 00000001 00000000" + strings.Repeat("00", 24)},
	{name: "RFC 5044 figure 6", markers: true, phase: 0x1ec,
		fpdu:  "002a 4143 00000000 00000000 00000002 00000000 00000014" + strings.Repeat("00", 24) + "84925898",
		ulpdu: "4143 00000000 00000000 00000002 00000000" + strings.Repeat("00", 24)},
	{name: "G1 Send, empty",
		fpdu:  "0012 4143 00000000 00000000 00000001 00000000 587be8c4",
		ulpdu: "4143 00000000 00000000 00000001 00000000"},
	{name: "G2 Send abc",
		fpdu:  "0015 4143 00000000 00000000 00000001 00000000 61626300 447065aa",
		ulpdu: "4143 00000000 00000000 00000001 00000000 616263"},
	{name: "G3 Send with SE and Invalidate",
		fpdu:  "0014 4146 11223344 00000000 00000002 00000000 68690000 cbdf2b23",
		ulpdu: "4146 11223344 00000000 00000002 00000000 6869"},
	{name: "G4 Write",
		fpdu:  "0012 c140 00000100 0000000000001000 01020304 09878c44",
		ulpdu: "c140 00000100 0000000000001000 01020304"},
	{name: "G5 Read Request",
		fpdu:  "002e 4141 00000000 00000001 00000001 00000000 00000100 0000000000002000 00000010 00000200 0000000000003000 17ffa628",
		ulpdu: "4141 00000000 00000001 00000001 00000000 00000100 0000000000002000 00000010 00000200 0000000000003000"},
	{name: "G6 Read Response, empty",
		fpdu:  "000e c142 00000100 0000000000002000 ceed0b7e",
		ulpdu: "c142 00000100 0000000000002000"},
	{name: "G7 Terminate with headers",
		fpdu:  "002a 4147 00000000 00000002 00000001 00000000 1205c000 0412 4143 00000000 00000000 00000007 00000000 47ac943b",
		ulpdu: "4147 00000000 00000002 00000001 00000000 1205c000 0412 4143 00000000 00000000 00000007 00000000"},
	{name: "G8 Terminate CRC",
		fpdu:  "0016 4147 00000000 00000002 00000001 00000000 20020000 7fe42585",
		ulpdu: "4147 00000000 00000002 00000001 00000000 20020000"},
	{name: "G9 Immediate Data",
		fpdu:  "001a 4148 00000000 00000000 00000003 00000000 00000000deadbeef 8e239617",
		ulpdu: "4148 00000000 00000000 00000003 00000000 00000000deadbeef"},
	{name: "G10 Atomic Request",
		fpdu: "0046 414a 00000000 00000001 00000002 00000000 00000000 00000055 00000100 0000000000001008" +
			"0000000000000001 0000000000000000 0000000000000000 ffffffffffffffff 36d6ec5f",
		ulpdu: "414a 00000000 00000001 00000002 00000000 00000000 00000055 00000100 0000000000001008" +
			"0000000000000001 0000000000000000 0000000000000000 ffffffffffffffff"},
	{name: "G11 Atomic Response",
		fpdu:  "001e 414b 00000000 00000003 00000001 00000000 00000055 0000000000000029 8a9bf7a1",
		ulpdu: "414b 00000000 00000003 00000001 00000000 00000055 0000000000000029"},
	{name: "G15 marker between pad and CRC", markers: true, phase: 488,
		fpdu:  "0016 4143 00000000 00000000 00000005 00000000 00000000 00000018 14236b17",
		ulpdu: "4143 00000000 00000000 00000005 00000000 00000000"},
	{name: "siw Send", // rping-crc
		fpdu:  "0022 4143 00000000 00000000 00000001 00000000 000055bec9dff370a6c8c90000000040 0f6fe6f8",
		ulpdu: "4143 00000000 00000000 00000001 00000000 000055bec9dff370a6c8c90000000040"},
	{name: "siw Read Request", // rping-crc
		fpdu:  "002e 4141 00000000 00000001 00000001 00000000 b5255600000055d36c66155000000040a6c8c900000055bec9dff370 73c391cc",
		ulpdu: "4141 00000000 00000001 00000001 00000000 b5255600000055d36c66155000000040a6c8c900000055bec9dff370"},
	{name: "siw RTR Write", noCRC: true, // rping-p2p
		fpdu:  "000e c140 00000001 0000000000000000 00000000",
		ulpdu: "c140 00000001 0000000000000000"},
}

func TestGoldenFPDUsAreMade(t *testing.T) {
	for _, g := range goldenFPDUs {
		t.Run(g.name, func(t *testing.T) {
			want, ulpdu := unhex(t, g.fpdu), unhex(t, g.ulpdu)
			f := Framer{crc: !g.noCRC, markers: g.markers, phase: g.phase}
			assert.Equal(t, len(want), f.Size(len(ulpdu)))
			got := f.AppendFPDU([]byte("before"), ulpdu[:2], ulpdu[2:])
			assert.Equal(t, "before", string(got[:6]))
			assert.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got[6:]))
			if g.markers {
				assert.Equal(t, (int(g.phase)+len(want))%512, int(f.phase))
			}
		})
	}
}

func TestGoldenFPDUsAreFound(t *testing.T) {
	for _, g := range goldenFPDUs {
		t.Run(g.name, func(t *testing.T) {
			d := Deframer{crc: !g.noCRC, markers: g.markers, pos: uint64(g.phase)}
			require.True(t, d.SetBuffer(make([]byte, MinBuffer)))
			fpdu := unhex(t, g.fpdu)
			require.Equal(t, len(fpdu)-1, d.Feed(fpdu[:len(fpdu)-1]))
			_, ok, err := d.Next()
			require.NoError(t, err)
			require.False(t, ok, "the last octet is missing")
			require.Equal(t, 1, d.Feed(fpdu[len(fpdu)-1:]))
			ulpdu, ok, err := d.Next()
			require.NoError(t, err)
			require.True(t, ok)
			assert.Equal(t, unhex(t, g.ulpdu), ulpdu)
			assert.Equal(t, uint64(g.phase)+uint64(len(fpdu)), d.Position())
			assert.Zero(t, d.Buffered())
		})
	}
}

// G16 of the wire reference: a Send of 1000 zeros as the first FPDU.
func TestGoldenG16(t *testing.T) {
	f := NewFramer(true, true)
	fpdu := f.AppendFPDU(nil, unhex(t, "4143 00000000 00000000 00000001 00000000"), make([]byte, 1000))
	require.Len(t, fpdu, 1036)
	assert.Equal(t, unhex(t, "8bc3fa29"), fpdu[1032:])
	for at, want := range map[int]uint32{0: 0, 512: 0x1fc, 1024: 0x3fc} {
		assert.Equal(t, want, binary.BigEndian.Uint32(fpdu[at:]), "marker at %d", at)
	}
}

func TestChecksum(t *testing.T) {
	assert.Equal(t, uint32(0xE3069283), checksum([]byte("123456789")), "the check value of CRC32C")
	assert.Equal(t, unhex(t, "aa36918a"), appendCRC(nil, checksum(make([]byte, 32))), "RFC 3720 B.4")
	r := newRand()
	for range 50 {
		b := randomOctets(r, r.IntN(300))
		assert.Equal(t, slowCRC(b), checksum(b))
	}
}
