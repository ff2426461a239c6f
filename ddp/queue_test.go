package ddp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// segment makes an untagged segment with n payload octets.
func segment(t *testing.T, last bool, msn, mo uint32, n int) Segment {
	t.Helper()
	s, code := Parse(append(AppendUntagged(nil, last, 0x43, 0, QNSend, msn, mo), make([]byte, n)...))
	require.Equal(t, CodeOK, code)
	return s
}

func TestInboundAccept(t *testing.T) {
	tests := []struct {
		name    string
		from    Inbound
		last    bool
		msn, mo uint32
		n       int
		room    uint64
		none    bool // no buffer
		want    Code
		to      Inbound
	}{
		{name: "whole message", from: Inbound{1, 0}, last: true, msn: 1, n: 10, room: 10, to: Inbound{2, 0}},
		{name: "empty message", from: Inbound{1, 0}, last: true, msn: 1, to: Inbound{2, 0}},
		{name: "first of several", from: Inbound{1, 0}, msn: 1, n: 10, room: 20, to: Inbound{1, 10}},
		{name: "last of several", from: Inbound{1, 10}, last: true, msn: 1, mo: 10, n: 10, room: 20, to: Inbound{2, 0}},
		{name: "empty trailing segment", from: Inbound{1, 10}, last: true, msn: 1, mo: 10, room: 20, to: Inbound{2, 0}},
		{name: "MSN wraps to 0", from: Inbound{0xFFFFFFFF, 0}, last: true, msn: 0xFFFFFFFF, to: Inbound{0, 0}},
		{name: "MSN 0 after wrap", from: Inbound{0, 0}, last: true, msn: 0, to: Inbound{1, 0}},
		{name: "MSN 0 first", from: Inbound{1, 0}, last: true, msn: 0, want: CodeMSNRange},
		{name: "MSN gap", from: Inbound{1, 0}, last: true, msn: 2, room: 9, want: CodeMSNRange},
		{name: "MSN repeated", from: Inbound{2, 0}, last: true, msn: 1, room: 9, want: CodeMSNRange},
		{name: "MSN moves in mid-message", from: Inbound{2, 5}, last: true, msn: 3, mo: 5, room: 9, want: CodeMSNRange},
		{name: "no buffer", from: Inbound{1, 0}, last: true, msn: 1, n: 1, none: true, want: CodeNoBuffer},
		{name: "no buffer, empty", from: Inbound{1, 0}, last: true, msn: 1, none: true, want: CodeNoBuffer},
		{name: "MSN before buffer", from: Inbound{1, 0}, last: true, msn: 2, none: true, want: CodeMSNRange},
		{name: "buffer before MO", from: Inbound{1, 0}, last: true, msn: 1, mo: 1, none: true, want: CodeNoBuffer},
		{name: "MO ahead", from: Inbound{1, 0}, last: true, msn: 1, mo: 4, room: 9, want: CodeInvalidMO},
		{name: "MO behind", from: Inbound{1, 10}, last: true, msn: 1, mo: 4, room: 20, want: CodeInvalidMO},
		{name: "MO of an empty message", from: Inbound{1, 0}, last: true, msn: 1, mo: 1, room: 9, want: CodeInvalidMO},
		{name: "MO before length", from: Inbound{1, 0}, last: true, msn: 1, mo: 4, n: 9, room: 1, want: CodeInvalidMO},
		{name: "one octet too long", from: Inbound{1, 0}, last: true, msn: 1, n: 11, room: 10, want: CodeTooLong},
		{name: "too long in a later segment", from: Inbound{1, 10}, msn: 1, mo: 10, n: 11, room: 20, want: CodeTooLong},
		{name: "MO plus length pass 32 bits", from: Inbound{1, 0xFFFFFFFE}, last: true, msn: 1, mo: 0xFFFFFFFE, n: 4, room: 1, want: CodeTooLong},
		{name: "longest message", from: Inbound{1, 0xFFFFFFFE}, last: true, msn: 1, mo: 0xFFFFFFFE, n: 1, room: 1 << 40, to: Inbound{2, 0}},
		{name: "longer than any message", from: Inbound{1, 0xFFFFFFFE}, last: true, msn: 1, mo: 0xFFFFFFFE, n: 2, room: 1 << 40, want: CodeTooLong},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			q := tc.from
			got := q.Accept(segment(t, tc.last, tc.msn, tc.mo, tc.n), tc.room, !tc.none)
			assert.Equal(t, tc.want, got)
			want := tc.to
			if tc.want != CodeOK {
				want = tc.from // nothing changes on error
			}
			assert.Equal(t, want, q)
		})
	}
}

func TestQueuesAgree(t *testing.T) {
	in, out := NewInbound(), NewOutbound()
	for i := uint32(1); i < 5; i++ {
		assert.Equal(t, i, out.MSN())
		msn := out.Next()
		assert.Equal(t, i, msn)
		assert.Equal(t, msn, in.MSN())
		require.Equal(t, CodeOK, in.Accept(segment(t, false, msn, 0, 3), 8, true))
		assert.Equal(t, uint64(3), in.MO())
		require.Equal(t, CodeOK, in.Accept(segment(t, true, msn, 3, 5), 8, true))
		assert.Zero(t, in.MO())
	}
}

func TestOutboundWraps(t *testing.T) {
	q := Outbound{msn: 0xFFFFFFFF}
	assert.Equal(t, uint32(0xFFFFFFFF), q.Next())
	assert.Equal(t, uint32(0), q.Next())
	assert.Equal(t, uint32(1), q.Next())
}

func BenchmarkAccept(b *testing.B) {
	s, _ := Parse(append(AppendUntagged(nil, false, 0x43, 0, QNSend, 1, 0), make([]byte, 64)...))
	b.ReportAllocs()
	for b.Loop() {
		q := NewInbound()
		if q.Accept(s, 64, true) != CodeOK {
			b.Fatal("refused")
		}
	}
}
