package rdmap_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

func parse(t testing.TB, ulpdu []byte) ddp.Segment {
	t.Helper()
	s, code := ddp.Parse(ulpdu)
	require.Equal(t, ddp.CodeOK, code)
	return s
}

// golden are the ULPDUs of the project's reference frames G1 to G11.
var golden = []struct {
	name  string
	op    rdmap.Opcode
	ulpdu string
}{
	{"G1", rdmap.Send, "4143 00000000 00000000 00000001 00000000"},
	{"G2", rdmap.Send, "4143 00000000 00000000 00000001 00000000 616263"},
	{"G3", rdmap.SendSEInvalidate, "4146 11223344 00000000 00000002 00000000 6869"},
	{"G4", rdmap.Write, "c140 00000100 0000000000001000 01020304"},
	{"G5", rdmap.ReadRequest, "4141 00000000 00000001 00000001 00000000 00000100 0000000000002000 00000010 00000200 0000000000003000"},
	{"G6", rdmap.ReadResponse, "c142 00000100 0000000000002000"},
	{"G7", rdmap.Terminate, "4147 00000000 00000002 00000001 00000000 1205c000 0412 4143 00000000 00000000 00000007 00000000"},
	{"G8", rdmap.Terminate, "4147 00000000 00000002 00000001 00000000 20020000"},
	{"G9", rdmap.Immediate, "4148 00000000 00000000 00000003 00000000 00000000deadbeef"},
	{"G10", rdmap.AtomicRequest, "414a 00000000 00000001 00000002 00000000 00000000 00000055 00000100 0000000000001008 0000000000000001 0000000000000000 0000000000000000 ffffffffffffffff"},
	{"G11", rdmap.AtomicResponse, "414b 00000000 00000003 00000001 00000000 00000055 0000000000000029"},
}

func goldenULPDU(t testing.TB, name string) []byte {
	t.Helper()
	for _, g := range golden {
		if g.name == name {
			return unhex(t, g.ulpdu)
		}
	}
	require.Fail(t, "no golden frame "+name)
	return nil
}

func TestCheckGolden(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			s := parse(t, unhex(t, g.ulpdu))
			assert.Equal(t, rdmap.Control(g.op), s.RsvdULP())
			op, code := rdmap.CheckExtended(s)
			assert.Equal(t, g.op, op)
			assert.Equal(t, rdmap.CodeNone, code)

			want := rdmap.CodeNone
			if g.op >= rdmap.Immediate {
				want = rdmap.CodeOpcode
			}
			op, code = rdmap.Check(s)
			assert.Equal(t, g.op, op)
			assert.Equal(t, want, code)
		})
	}
}

// form describes a segment by what Check looks at.
type form struct {
	tagged, middle bool // middle: L clear
	control        byte
	qn, msn, mo    uint32
	n              int // octets after the DDP header
}

func (f form) segment(t testing.TB) ddp.Segment {
	t.Helper()
	if f.msn == 0 {
		f.msn = 1
	}
	b := ddp.AppendUntagged(nil, !f.middle, f.control, 0, f.qn, f.msn, f.mo)
	if f.tagged {
		b = ddp.AppendTagged(nil, !f.middle, f.control, 7, 8)
	}
	return parse(t, append(b, make([]byte, f.n)...))
}

func TestCheck(t *testing.T) {
	const none = rdmap.CodeNone
	tests := []struct {
		name string
		form form
		want rdmap.TermCode
	}{
		{"Write", form{tagged: true, control: 0x40, n: 5}, none},
		{"Write in the middle", form{tagged: true, middle: true, control: 0x40, n: 5}, none},
		{"Send in the middle", form{middle: true, control: 0x43, mo: 9, n: 5}, none},
		{"reserved bits are ignored", form{control: 0x73}, none},
		{"RV 0", form{control: 0x03}, rdmap.CodeVersion},
		{"RV 2", form{control: 0x83}, rdmap.CodeVersion},
		{"RV 3", form{control: 0xC3}, rdmap.CodeVersion},
		{"RV before opcode", form{control: 0x0F}, rdmap.CodeVersion},
		{"opcode 12", form{control: 0x4C}, rdmap.CodeOpcode},
		{"opcode 15", form{control: 0x4F}, rdmap.CodeOpcode},
		{"untagged Write", form{control: 0x40}, rdmap.CodeOpcode},
		{"untagged Read Response", form{control: 0x42}, rdmap.CodeOpcode},
		{"tagged Send", form{tagged: true, control: 0x43}, rdmap.CodeOpcode},
		{"tagged Read Request", form{tagged: true, control: 0x41, n: 28}, rdmap.CodeOpcode},
		{"tagged Terminate", form{tagged: true, control: 0x47, n: 4}, rdmap.CodeOpcode},
		{"Send on queue 1", form{control: 0x43, qn: 1}, rdmap.CodeInvalidQN},
		{"Send on queue 4", form{control: 0x45, qn: 4}, rdmap.CodeInvalidQN},
		{"Read Request on queue 0", form{control: 0x41, n: 28}, rdmap.CodeInvalidQN},
		{"Terminate on queue 0", form{control: 0x47, n: 4}, rdmap.CodeInvalidQN},
		{"queue before MO", form{control: 0x41, qn: 3, mo: 1, n: 28}, rdmap.CodeInvalidQN},
		{"Read Request", form{control: 0x41, qn: 1, msn: 77, n: 28}, none},
		{"Read Request at an offset", form{control: 0x41, qn: 1, mo: 1, n: 28}, rdmap.CodeInvalidMO},
		{"Read Request without L", form{middle: true, control: 0x41, qn: 1, n: 28}, rdmap.CodeStream},
		{"MO before L", form{middle: true, control: 0x41, qn: 1, mo: 1, n: 28}, rdmap.CodeInvalidMO},
		{"L before size", form{middle: true, control: 0x41, qn: 1, n: 27}, rdmap.CodeStream},
		{"Read Request too short", form{control: 0x41, qn: 1, n: 27}, rdmap.CodeShort},
		{"Read Request too long", form{control: 0x41, qn: 1, n: 29}, rdmap.CodeTooLong},
		{"empty Read Request", form{control: 0x41, qn: 1}, rdmap.CodeShort},
		{"Terminate", form{control: 0x47, qn: 2, n: 4}, none},
		{"longest Terminate", form{control: 0x47, qn: 2, n: 52}, none},
		{"Terminate too long", form{control: 0x47, qn: 2, n: 53}, rdmap.CodeTooLong},
		{"Terminate too short", form{control: 0x47, qn: 2, n: 3}, rdmap.CodeShort},
		{"second Terminate", form{control: 0x47, qn: 2, msn: 2, n: 4}, rdmap.CodeMSNRange},
		{"Terminate at an offset", form{control: 0x47, qn: 2, mo: 4, n: 4}, rdmap.CodeInvalidMO},
		{"Terminate without L", form{middle: true, control: 0x47, qn: 2, n: 4}, rdmap.CodeStream},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := tc.form.segment(t)
			op, code := rdmap.Check(s)
			assert.Equal(t, rdmap.Opcode(tc.form.control&0xF), op)
			assert.Equal(t, tc.want, code, "%v", code)
			_, extended := rdmap.CheckExtended(s)
			assert.Equal(t, tc.want, extended, "CheckExtended agrees on RFC 5040")
		})
	}
}

func TestCheckExtendedSizes(t *testing.T) {
	for _, tc := range []struct {
		control byte
		qn      uint32
		size    int
	}{{0x48, 0, 8}, {0x49, 0, 8}, {0x4A, 1, 52}, {0x4B, 3, 12}} {
		for n, want := range map[int]rdmap.TermCode{
			tc.size: rdmap.CodeNone, tc.size - 1: rdmap.CodeShort, tc.size + 1: rdmap.CodeTooLong,
		} {
			s := form{control: tc.control, qn: tc.qn, n: n}.segment(t)
			_, code := rdmap.CheckExtended(s)
			assert.Equal(t, want, code, "control %02x, %d octets", tc.control, n)
			_, code = rdmap.Check(s)
			assert.Equal(t, rdmap.CodeOpcode, code)
		}
	}
}

func TestOpcodeTable(t *testing.T) {
	// RFC 5040 figures 4 and 5, RFC 7306 figures 2 and 3, written out again.
	tests := []struct {
		op          rdmap.Opcode
		name        string
		tagged      bool
		qn          uint32
		payload     bool
		least, most int
		basic       bool
	}{
		{0, "Write", true, 0, true, 0, 0, true},
		{1, "ReadRequest", false, 1, false, 28, 28, true},
		{2, "ReadResponse", true, 0, true, 0, 0, true},
		{3, "Send", false, 0, true, 0, 0, true},
		{4, "SendInvalidate", false, 0, true, 0, 0, true},
		{5, "SendSE", false, 0, true, 0, 0, true},
		{6, "SendSEInvalidate", false, 0, true, 0, 0, true},
		{7, "Terminate", false, 2, false, 4, 52, true},
		{8, "Immediate", false, 0, false, 8, 8, false},
		{9, "ImmediateSE", false, 0, false, 8, 8, false},
		{10, "AtomicRequest", false, 1, false, 52, 52, false},
		{11, "AtomicResponse", false, 3, false, 12, 12, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			assert.True(t, tc.op.Known())
			assert.Equal(t, tc.name, tc.op.String())
			assert.Equal(t, tc.tagged, tc.op.Tagged())
			assert.Equal(t, tc.qn, tc.op.QN())
			assert.Equal(t, tc.payload, tc.op.HasPayload())
			least, most := tc.op.HeaderSize()
			assert.Equal(t, tc.least, least)
			assert.Equal(t, tc.most, most)
			assert.Equal(t, tc.basic, tc.op.Basic())
			assert.Equal(t, tc.op, rdmap.OpcodeOf(rdmap.Control(tc.op)))
			assert.Equal(t, strings.HasPrefix(tc.name, "Send"), tc.op.IsSend())
			assert.Equal(t, strings.HasSuffix(tc.name, "Invalidate"), tc.op.Invalidates())
			assert.Equal(t, strings.Contains(tc.name, "SE"), tc.op.Solicited())
		})
	}
	for op := rdmap.Opcode(12); op < 16; op++ {
		assert.False(t, op.Known())
		assert.False(t, op.Basic())
	}
	assert.Equal(t, "13", rdmap.Opcode(13).String())
	assert.Equal(t, "255", rdmap.Opcode(255).String())
}

func FuzzCheck(f *testing.F) {
	for _, g := range golden {
		f.Add(unhex(f, g.ulpdu))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, code := ddp.Parse(b)
		if code != ddp.CodeOK {
			return
		}
		op, term := rdmap.Check(s)
		require.Less(t, op, rdmap.Opcode(16))
		if term != rdmap.CodeNone {
			require.True(t, term.Defined() || term == rdmap.CodeShort, "%v", term)
			return
		}
		_, extended := rdmap.CheckExtended(s)
		require.Equal(t, rdmap.CodeNone, extended)
		// What passed can be parsed.
		switch op {
		case rdmap.ReadRequest:
			_, ok := rdmap.ParseReadRequest(s.Payload())
			require.True(t, ok)
		case rdmap.Terminate:
			_, ok := rdmap.ParseTerminate(s.Payload())
			require.True(t, ok)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	s, _ := ddp.Parse(unhex(b, golden[4].ulpdu))
	b.ReportAllocs()
	for b.Loop() {
		_, code := rdmap.Check(s)
		h, ok := rdmap.ParseReadRequest(s.Payload())
		if code != rdmap.CodeNone || !ok || h.Size != 16 {
			b.Fatal(code)
		}
	}
}
