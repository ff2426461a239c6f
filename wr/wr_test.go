package wr

import (
	"encoding"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryCodeHasAName: up to the last, and none twice.
func TestEveryCodeHasAName(t *testing.T) {
	for kind, c := range map[string]struct {
		first, end int
		name       func(int) string
	}{
		"Op":             {0, int(opEnd), func(i int) string { return Op(i).String() }},
		"Operation":      {0, int(opEnd), func(i int) string { return Op(i).Words() }},
		"State":          {0, int(stateEnd), func(i int) string { return State(i).String() }},
		"Status":         {0, int(statusEnd), func(i int) string { return Status(i).String() }},
		"Event":          {1, int(eventEnd), func(i int) string { return EventID(i).String() }},
		"NotifyType":     {1, int(notifyEnd), func(i int) string { return NotifyType(i).String() }},
		"ImmediateError": {1, int(immediateEnd), func(i int) string { return ImmediateError(i).Error() }},
	} {
		seen := map[string]bool{}
		for i := c.first; i < c.end; i++ {
			n := c.name(i)
			assert.NotEqual(t, fmt.Sprintf("%s(%d)", kind, i), n)
			assert.False(t, seen[n], "%s: %s is there twice", kind, n)
			seen[n] = true
		}
		assert.Equal(t, fmt.Sprintf("%s(%d)", kind, c.end), c.name(c.end))
	}
}

// TestExtensionOps: what each operation of RFC 7306 is, and that none of the others is
// one.
func TestExtensionOps(t *testing.T) {
	type kind struct{ extension, write, immediate, atomic, solicited bool }
	of := func(o Op) kind {
		return kind{o.IsExtension(), o.IsWrite(), o.IsImmediate(), o.IsAtomic(), o.Solicited()}
	}
	for op, want := range map[Op]kind{
		OpSend: {}, OpSendSE: {solicited: true}, OpWrite: {write: true}, OpRecv: {},
		OpImmediate:        {extension: true, immediate: true},
		OpImmediateSE:      {extension: true, immediate: true, solicited: true},
		OpWriteImmediate:   {extension: true, write: true, immediate: true},
		OpWriteImmediateSE: {extension: true, write: true, immediate: true, solicited: true},
		OpFetchAdd:         {extension: true, atomic: true},
		OpSwap:             {extension: true, atomic: true},
		OpCompareSwap:      {extension: true, atomic: true},
		opEnd:              {},
	} {
		assert.Equal(t, want, of(op), "%v", op)
		assert.False(t, op.IsExtension() && (op.IsSend() || op.IsRead() || op.IsMemory()), "%v", op)
	}
}

func TestRemote(t *testing.T) {
	var _ encoding.BinaryAppender = Remote{}
	r := Remote{STag: 0x01020304, TO: 0x05060708090a0b0c}
	b, err := r.AppendBinary([]byte{0})
	require.NoError(t, err)
	require.Equal(t, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, b)
	m, err := r.MarshalBinary()
	require.NoError(t, err)
	require.Equal(t, b[1:], m)
	require.Len(t, m, RemoteLen)
	got, err := ParseRemote(append(m, 99))
	require.NoError(t, err)
	require.Equal(t, r, got)
	_, err = ParseRemote(m[:RemoteLen-1])
	require.ErrorContains(t, err, "12 octets, here are 11")
}

func TestCompletionString(t *testing.T) {
	for want, c := range map[string]Completion{
		"Write 7 on QP 3: Success":                  {Op: OpWrite, ID: 7, QP: 3, Bytes: 99},
		"Recv 7 on QP 3: Success, 5 octets":         {Op: OpRecv, ID: 7, QP: 3, Bytes: 5},
		"Send 7 on QP 3: Flushed":                   {Op: OpSend, ID: 7, QP: 3, Status: StatusFlushed},
		"Recv 7 on QP 3: Base and Bounds Violation": {Op: OpRecv, ID: 7, QP: 3, Bytes: 5, Status: StatusBaseBounds},
		"Recv 1 on QP 2: Success, 0 octets, 0x00000100 invalidated": {
			Op: OpRecv, ID: 1, QP: 2, Invalidated: 0x100, HasInvalidated: true,
		},
		"Recv 1 on QP 2: Success, immediate 0x00000000deadbeef": {
			Op: OpRecv, ID: 1, QP: 2, Value: 0xdeadbeef, HasImmediate: true,
		},
		"FetchAdd 1 on QP 2: Success, was 0x29": {Op: OpFetchAdd, ID: 1, QP: 2, Value: 41},
	} {
		assert.Equal(t, want, c.String())
	}
}

func TestCompletionErr(t *testing.T) {
	require.NoError(t, Completion{Op: OpRead}.Err())
	for st := StatusSuccess + 1; st < statusEnd; st++ {
		c := Completion{Op: OpRead, ID: 9, QP: 4, Status: st}
		err := fmt.Errorf("reading: %w", c.Err())
		var e *CompletionError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, CompletionError{Op: OpRead, ID: 9, QP: 4, Status: st}, *e)
		assert.ErrorIs(t, err, &CompletionError{Status: st})
		assert.NotErrorIs(t, err, &CompletionError{Status: st + 1})
		assert.False(t, errors.Is(err, errors.New("")))
		assert.True(t, strings.HasPrefix(e.Error(), "Read 9 on QP 4 failed: "+st.String()), e.Error())
	}
}
