package ddp_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// golden are the ULPDUs of the project's reference frames G1 to G11, that is,
// without MPA's length, pad and CRC.
var golden = []struct {
	name    string
	ulpdu   string
	tagged  bool
	rsvd    byte
	rsvd32  uint32 // or STag
	qn, msn uint32
	mo      uint64 // or TO
	payload string
}{
	{"G1 empty Send", "4143 00000000 00000000 00000001 00000000", false, 0x43, 0, 0, 1, 0, ""},
	{"G2 Send", "4143 00000000 00000000 00000001 00000000 616263", false, 0x43, 0, 0, 1, 0, "616263"},
	{"G3 Send with SE and Invalidate", "4146 11223344 00000000 00000002 00000000 6869", false, 0x46, 0x11223344, 0, 2, 0, "6869"},
	{"G4 Write", "c140 00000100 0000000000001000 01020304", true, 0x40, 0x100, 0, 0, 0x1000, "01020304"},
	{
		"G5 Read Request", "4141 00000000 00000001 00000001 00000000 00000100 0000000000002000 00000010 00000200 0000000000003000",
		false, 0x41, 0, 1, 1, 0, "00000100000000000000200000000010000002000000000000003000",
	},
	{"G6 empty Read Response", "c142 00000100 0000000000002000", true, 0x42, 0x100, 0, 0, 0x2000, ""},
	{
		"G7 Terminate with DDP header", "4147 00000000 00000002 00000001 00000000 1205c000 0412 4143 00000000 00000000 00000007 00000000",
		false, 0x47, 0, 2, 1, 0, "1205c0000412414300000000000000000000000700000000",
	},
	{"G8 Terminate", "4147 00000000 00000002 00000001 00000000 20020000", false, 0x47, 0, 2, 1, 0, "20020000"},
	{"G9 Immediate", "4148 00000000 00000000 00000003 00000000 00000000deadbeef", false, 0x48, 0, 0, 3, 0, "00000000deadbeef"},
	{
		"G10 Atomic Request", "414a 00000000 00000001 00000002 00000000 00000000 00000055 00000100 0000000000001008 0000000000000001 0000000000000000 0000000000000000 ffffffffffffffff",
		false, 0x4a, 0, 1, 2, 0, "0000000000000055000001000000000000001008000000000000000100000000000000000000000000000000ffffffffffffffff",
	},
	{"G11 Atomic Response", "414b 00000000 00000003 00000001 00000000 00000055 0000000000000029", false, 0x4b, 0, 3, 1, 0, "000000550000000000000029"},
}

func TestGolden(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			raw := unhex(t, g.ulpdu)
			s, code := ddp.Parse(raw)
			require.Equal(t, ddp.CodeOK, code)
			assert.Equal(t, g.tagged, s.Tagged())
			assert.True(t, s.Last())
			assert.Equal(t, uint8(1), s.Version())
			assert.Equal(t, g.rsvd, s.RsvdULP())
			assert.Equal(t, len(raw), s.Len())
			assert.Equal(t, g.payload, hex.EncodeToString(s.Payload()))
			var header []byte
			if g.tagged {
				assert.Equal(t, g.rsvd32, s.STag())
				assert.Equal(t, g.mo, s.TO())
				header = ddp.AppendTagged(nil, true, g.rsvd, g.rsvd32, g.mo)
				require.Len(t, header, ddp.TaggedHeader)
			} else {
				assert.Equal(t, g.rsvd32, s.RsvdULP32())
				assert.Equal(t, g.qn, s.QN())
				assert.Equal(t, g.msn, s.MSN())
				assert.Equal(t, g.mo, uint64(s.MO()))
				header = ddp.AppendUntagged(nil, true, g.rsvd, g.rsvd32, g.qn, g.msn, uint32(g.mo))
				require.Len(t, header, ddp.UntaggedHeader)
			}
			assert.Equal(t, header, s.Header())
			assert.Equal(t, raw, append(header, s.Payload()...))
		})
	}
}

// Every field differs from every other, so a wrong offset cannot hide.
func TestAppendFields(t *testing.T) {
	assert.Equal(t, unhex(t, "8145 a1a2a3a4 b1b2b3b4b5b6b7b8"),
		ddp.AppendTagged(nil, false, 0x45, 0xa1a2a3a4, 0xb1b2b3b4b5b6b7b8))
	assert.Equal(t, unhex(t, "ee 0144 a1a2a3a4 c1c2c3c4 d1d2d3d4 e1e2e3e4"),
		ddp.AppendUntagged([]byte{0xee}, false, 0x44, 0xa1a2a3a4, 0xc1c2c3c4, 0xd1d2d3d4, 0xe1e2e3e4))
}

func TestParseTruncated(t *testing.T) {
	for _, header := range [][]byte{
		ddp.AppendTagged(nil, true, 0x40, 1, 2),
		ddp.AppendUntagged(nil, true, 0x43, 0, 0, 1, 0),
	} {
		for n := range header {
			s, code := ddp.Parse(header[:n])
			assert.Equal(t, ddp.CodeShort, code, "%d octets of %x", n, header)
			assert.Zero(t, s, "%d octets", n)
		}
		_, code := ddp.Parse(header)
		assert.Equal(t, ddp.CodeOK, code)
	}
}

func TestParseVersion(t *testing.T) {
	tagged := ddp.AppendTagged(nil, true, 0x40, 1, 2)
	untagged := ddp.AppendUntagged(nil, true, 0x43, 0, 0, 1, 0)
	for version := range byte(4) {
		wantTagged, wantUntagged := ddp.CodeTaggedVersion, ddp.CodeUntaggedVersion
		if version == 1 {
			wantTagged, wantUntagged = ddp.CodeOK, ddp.CodeOK
		}
		tagged[0] = tagged[0]&^3 | version
		s, code := ddp.Parse(tagged)
		assert.Equal(t, wantTagged, code)
		assert.Equal(t, version, s.Version())
		assert.Equal(t, tagged, s.Header(), "the header can be reported")

		untagged[0] = untagged[0]&^3 | version
		s, code = ddp.Parse(untagged)
		assert.Equal(t, wantUntagged, code)
		assert.Equal(t, untagged, s.Header())
	}
}

func TestParseIgnoresReservedBits(t *testing.T) {
	for bits := byte(0); bits <= 0x3C; bits += 4 {
		header := ddp.AppendUntagged(nil, true, 0x43, 0, 0, 1, 0)
		header[0] |= bits
		_, code := ddp.Parse(header)
		assert.Equal(t, ddp.CodeOK, code, "reserved bits %02x", bits)
	}
}

func TestCodeString(t *testing.T) {
	assert.Equal(t, "DDP message too long for its buffer", ddp.CodeTooLong.String())
	assert.Equal(t, "DDP error 0x13aa", ddp.Code(0x13AA).String())
	seen := map[string]ddp.Code{}
	for _, c := range []ddp.Code{
		ddp.CodeOK, ddp.CodeLocal, ddp.CodeShort, ddp.CodeInvalidSTag, ddp.CodeBounds, ddp.CodeNotAssociated,
		ddp.CodeWrap, ddp.CodeTaggedVersion, ddp.CodeInvalidQN, ddp.CodeNoBuffer, ddp.CodeMSNRange,
		ddp.CodeInvalidMO, ddp.CodeTooLong, ddp.CodeUntaggedVersion,
	} {
		s := c.String()
		assert.NotContains(t, s, "0x", "%04x has a name", uint16(c))
		assert.NotContains(t, seen, s)
		seen[s] = c
	}
}

func FuzzParse(f *testing.F) {
	for _, g := range golden {
		f.Add(unhex(f, g.ulpdu))
	}
	f.Add([]byte{})
	f.Add([]byte{0x81})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, code := ddp.Parse(b)
		if code == ddp.CodeShort {
			require.Less(t, len(b), ddp.UntaggedHeader)
			return
		}
		require.Equal(t, len(b), s.Len())
		require.Equal(t, b, append(append([]byte(nil), s.Header()...), s.Payload()...))
		if code != ddp.CodeOK {
			require.NotEqual(t, uint8(1), s.Version())
			return
		}
		var again []byte
		if s.Tagged() {
			again = ddp.AppendTagged(nil, s.Last(), s.RsvdULP(), s.STag(), s.TO())
		} else {
			again = ddp.AppendUntagged(nil, s.Last(), s.RsvdULP(), s.RsvdULP32(), s.QN(), s.MSN(), s.MO())
		}
		header := append([]byte(nil), s.Header()...)
		header[0] &^= 0x3C // reserved bits are not kept
		require.Equal(t, header, again)
	})
}

func BenchmarkSegment(b *testing.B) {
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		h := ddp.AppendUntagged(buf[:0], true, 0x43, 0, 0, 1, 0)
		s, code := ddp.Parse(h)
		if code != ddp.CodeOK || s.MSN() != 1 || len(s.Payload()) != 0 {
			b.Fatal(code)
		}
	}
}

// A segment of which not all is here has the size it will have, and one whose
// payload is placed has the size it had.
func TestSegmentElsewhere(t *testing.T) {
	for _, head := range [][]byte{
		ddp.AppendTagged(nil, true, 0x40, 1, 2),
		ddp.AppendUntagged(nil, false, 0x43, 1, 2, 3, 4),
	} {
		whole, code := ddp.Parse(append(head, 1, 2, 3, 4))
		require.Equal(t, ddp.CodeOK, code)
		assert.Equal(t, 4, whole.Size())
		assert.False(t, whole.IsPlaced())

		begun, code := ddp.Parse(append(head, 1, 2))
		require.Equal(t, ddp.CodeOK, code)
		begun = begun.Of(whole.Len())
		assert.Equal(t, 4, begun.Size())
		assert.Equal(t, whole.Len(), begun.Len())
		assert.Equal(t, []byte{1, 2}, begun.Payload())

		placed := begun.Placed(4)
		assert.True(t, placed.IsPlaced())
		assert.Equal(t, 4, placed.Size())
		assert.Equal(t, whole.Len(), placed.Len())
		assert.Empty(t, placed.Payload())
		assert.Equal(t, whole.Header(), placed.Header())
	}
}
