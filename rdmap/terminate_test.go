package rdmap_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
)

const (
	taggedHeader   = "c140 00000100 0000000000001000"
	untaggedHeader = "4143 00000000 00000000 00000007 00000000"
	readRequest    = "00000100 0000000000002000 00000010 00000200 0000000000003000"
)

func TestTerminate(t *testing.T) {
	tests := []struct {
		name   string
		header rdmap.TerminateHeader
		wire   string
	}{
		{"G8, code only", rdmap.TerminateHeader{Code: 0x2002}, "20020000"},
		{
			"G7, untagged header",
			rdmap.TerminateHeader{Code: 0x1205, HasLength: true, SegmentLength: 0x412, DDPHeader: unhex(t, untaggedHeader)},
			"1205c000 0412" + untaggedHeader,
		},
		{
			"tagged header",
			rdmap.TerminateHeader{Code: 0x1101, HasLength: true, SegmentLength: 18, DDPHeader: unhex(t, taggedHeader)},
			"1101c000 0012" + taggedHeader,
		},
		{
			"Read Request",
			rdmap.TerminateHeader{
				Code: 0x0100, HasLength: true, SegmentLength: 46,
				DDPHeader: unhex(t, untaggedHeader), ReadRequest: unhex(t, readRequest),
			},
			"0100e000 002e" + untaggedHeader + readRequest,
		},
		{"length only", rdmap.TerminateHeader{Code: 0x0206, HasLength: true, SegmentLength: 3}, "02068000 0003"},
		{"Read Request only", rdmap.TerminateHeader{Code: 0x0101, ReadRequest: unhex(t, readRequest)}, "01012000" + readRequest},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			wire := unhex(t, tc.wire)
			assert.Equal(t, wire, tc.header.Append(nil))
			assert.LessOrEqual(t, len(wire), rdmap.TerminateMaxSize)
			got, ok := rdmap.ParseTerminate(wire)
			require.True(t, ok)
			assert.Empty(t, got.Rest)
			assert.Zero(t, got.Reserved())
			assert.False(t, got.LooksSwapped())
			want := tc.header
			want.Raw, want.Rest = got.Raw, got.Rest
			assert.Equal(t, want, got)

			for n := range wire {
				got, ok := rdmap.ParseTerminate(wire[:n])
				assert.Equal(t, n >= rdmap.TerminateMinSize, ok, "%d octets", n)
				assert.Equal(t, ok, got.Truncated, "%d octets", n)
			}
		})
	}
}

func TestTerminateDSetsM(t *testing.T) {
	h := rdmap.TerminateHeader{Code: 0x1205, SegmentLength: 9, DDPHeader: unhex(t, untaggedHeader)}
	assert.Equal(t, unhex(t, "1205c0000009"+untaggedHeader), h.Append(nil))
}

// A peer that sends D without M still sends the length (RFC 5040 4.8).
func TestTerminateDWithoutM(t *testing.T) {
	got, ok := rdmap.ParseTerminate(unhex(t, "12054000 0009"+untaggedHeader))
	require.True(t, ok)
	assert.False(t, got.HasLength)
	assert.Equal(t, unhex(t, untaggedHeader), got.DDPHeader)
	assert.False(t, got.Truncated)
}

// Absent fields may come as zeros (RFC 5040 7.1).
func TestTerminateZeroLengthField(t *testing.T) {
	got, ok := rdmap.ParseTerminate(unhex(t, "20020000 0000"))
	require.True(t, ok)
	assert.Equal(t, rdmap.TermCode(0x2002), got.Code)
	assert.Equal(t, []byte{0, 0}, got.Rest)
	assert.False(t, got.Truncated)
}

func TestLooksSwapped(t *testing.T) {
	tests := []struct {
		name string
		wire string
		want bool
		code rdmap.TermCode // as meant
	}{
		{"siw: Send too long, M and D", "21050300 0000" + untaggedHeader, true, 0x1205},
		{"siw: invalid STag, M and D, nibbles equal", "11000300 0004" + taggedHeader, true, 0x1100},
		{"siw: Read out of bounds, M, D, R", "10010700 0000" + untaggedHeader + readRequest, true, 0x0101},
		{"siw: bad CRC, no headers", "02020000", true, 0x2002},
		{"siw: unexpected opcode, which is also IRD too small", "20060000", false, 0},
		{"reserved bits where siw has M, code undefined when swapped", "12050100 0000", false, 0},
		{"siw's bits and others", "11000301 0004" + taggedHeader, false, 0},
		{"undefined both ways", "34050000", false, 0},
		{"right layout", "1205c000 0412" + untaggedHeader, false, 0},
		{"right layout, reserved bits", "12050010", false, 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h, ok := rdmap.ParseTerminate(unhex(t, tc.wire))
			require.True(t, ok)
			assert.Equal(t, tc.want, h.LooksSwapped())
			if tc.want {
				assert.Equal(t, tc.code, h.SwappedCode())
			}
		})
	}
}

func TestInclude(t *testing.T) {
	tests := []struct {
		code        rdmap.TermCode
		ddp, rdmapH bool
	}{
		{0x0000, false, false},
		{0x00FF, false, false},
		{0x0100, true, true},
		{0x0205, true, false},
		{0x1000, false, false},
		{0x1101, true, false},
		{0x1205, true, false},
		{0x2002, false, false},
		{0x2106, false, false},
		{0x3100, false, false},
	}
	for _, tc := range tests {
		d, r := rdmap.Include(tc.code)
		assert.Equal(t, tc.ddp, d, "%v", tc.code)
		assert.Equal(t, tc.rdmapH, r, "%v", tc.code)
	}
}

func TestTermCode(t *testing.T) {
	c := rdmap.MakeTermCode(1, 2, 5)
	assert.Equal(t, rdmap.TermCode(ddp.CodeTooLong), c)
	assert.Equal(t, uint8(1), c.Layer())
	assert.Equal(t, uint8(2), c.Type())
	assert.Equal(t, uint8(5), c.Code())

	texts := map[rdmap.TermCode]string{
		0x0000:          "RDMAP local catastrophic error",
		0x0042:          "RDMAP local catastrophic error",
		0x0101:          "RDMAP remote protection error: base or bounds violation",
		0x0206:          "RDMAP remote operation error: unexpected opcode",
		0x1205:          ddp.CodeTooLong.String(),
		0x2002:          "MPA: CRC mismatch",
		0x2007:          "MPA: no matching RTR option",
		0x0105:          "undefined: layer 0, type 1, code 0x05",
		0x1200:          "undefined: layer 1, type 2, code 0x00",
		0x2102:          "undefined: layer 2, type 1, code 0x02",
		0x7000:          "undefined: layer 7, type 0, code 0x00",
		rdmap.CodeShort: ddp.CodeShort.String(),
		rdmap.CodeNone:  "no error",
	}
	for c, want := range texts {
		assert.Equal(t, want, c.Text())
	}
	assert.Equal(t, "0x2002 (MPA: CRC mismatch)", rdmap.TermCode(0x2002).String())
}

// Exactly these are defined: RFC 5040 figure 9, RFC 5041 7.2, RFC 5044 8,
// RFC 6581 8.
func TestTermCodeDefined(t *testing.T) {
	defined := map[rdmap.TermCode]bool{}
	for _, c := range []rdmap.TermCode{
		0x0100, 0x0101, 0x0102, 0x0103, 0x0104, 0x0109, 0x01FF,
		0x0205, 0x0206, 0x0207, 0x0208, 0x0209, 0x02FF,
		0x1000, 0x1100, 0x1101, 0x1102, 0x1103, 0x1104,
		0x1201, 0x1202, 0x1203, 0x1204, 0x1205, 0x1206,
		0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007,
	} {
		defined[c] = true
	}
	for i := range 1 << 16 {
		c := rdmap.TermCode(i)
		want := defined[c] || i < 0x100
		if c.Defined() != want {
			assert.Equal(t, want, c.Defined(), "%04x", i)
		}
	}
}

func FuzzTerminate(f *testing.F) {
	for _, s := range []string{
		"", "200200", "20020000", "200200000000", "1205c0000412" + untaggedHeader,
		"0100e000002e" + untaggedHeader + readRequest, "21050300", "1205e000",
	} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := rdmap.ParseTerminate(b)
		require.Equal(t, len(b) >= rdmap.TerminateMinSize, ok)
		if !ok || h.Truncated {
			return
		}
		require.NotEmpty(t, h.Code.Text())
		_ = h.LooksSwapped()
		if len(h.DDPHeader) > 0 && !h.HasLength {
			return // Append always sets M with D
		}
		// Reserved bits are not kept, everything else is.
		want := append([]byte(nil), b...)
		want[2] &= 0xE0
		want[3] = 0
		require.Equal(t, want, append(h.Append(nil), h.Rest...))
	})
}

func BenchmarkTerminate(b *testing.B) {
	wire := unhex(b, "1205c0000412"+untaggedHeader)
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		h, ok := rdmap.ParseTerminate(wire)
		if !ok || len(h.Append(buf[:0])) != len(wire) {
			b.Fatal("round trip")
		}
	}
}
