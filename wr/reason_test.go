package wr

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReasonSentence: one sentence, of what is known.
func TestReasonSentence(t *testing.T) {
	r := Reason{
		Operation: OpWrite.Words(), QP: 3, STag: 0x100, HasSTag: true, Asked: Tagged(0x1000, 64),
		What: "the region has no remote write right", Rule: "RFC 5040 8.1.1",
	}
	for want, r := range map[string]Reason{
		"RDMA Write of 64 octets at TO 0x1000 of STag 0x00000100 on QP 3 refused: the region has no remote write right (RFC 5040 8.1.1)": r,
		"RDMA Write of 64 octets at TO 0x1000 of STag 0x00000100 refused: the region has no remote write right (RFC 5040 8.1.1)":         *r.WithoutQP(),
		"Send of 1 octet with MSN 7 refused: no":               {Operation: OpSend.Words(), Asked: Untagged(1), MSN: 7, What: "no"},
		"Invalidate Local STag of STag 0x00000000 refused: no": {Operation: OpInvalidate.Words(), HasSTag: true, What: "no"},
		"QP 9: LLP connection lost":                            {QP: 9, What: "LLP connection lost"},
		"no":                                                   {What: "no"},
		"Create CQ refused: number of CQ entries exceeds RNIC capability: 5, at most 4: ask for less (verbs draft 9.2.3.1)": {
			Operation: "Create CQ", Err: ErrTooManyCQE, What: "5, at most 4", Rule: "verbs draft 9.2.3.1", Remedy: "ask for less",
		},
		"invalid QP handle: make one (RV-1)": {Err: ErrInvalidQP, Rule: "RV-1", Remedy: "make one"},
	} {
		assert.Equal(t, want, r.String())
		assert.Equal(t, want, r.Error())
	}
	assert.EqualValues(t, 3, r.QP, "WithoutQP is of a copy")
}

// TestCompletionReason: errors.As finds the reason of a completion for as long as somebody
// has it, and the number holds nothing.
func TestCompletionReason(t *testing.T) {
	r := &Reason{QP: 3, What: "a test", Err: ErrInvalidSTag}
	n := r.Number()
	c := Completion{Status: StatusInvalidSTag, QP: 3, Op: OpWrite, ID: 5, Value: n}
	var got *Reason
	require.ErrorAs(t, c.Err(), &got)
	require.Same(t, r, got)
	require.ErrorIs(t, c.Err(), ErrInvalidSTag)
	require.ErrorIs(t, c.Err(), &CompletionError{Status: StatusInvalidSTag})
	require.Equal(t, "Write 5 on QP 3 failed: Invalid STag: invalid STag index: a test", c.Err().Error())
	c.Status = StatusSuccess
	require.NoError(t, c.Err(), "of a success the value is a value")
	c.Status, c.Value = StatusInvalidSTag, n+1<<40
	require.False(t, errors.As(c.Err(), &got))
	c.Value = 0
	require.False(t, errors.As(c.Err(), &got))
	runtime.KeepAlive(r)

	c.Value = n
	r, got = nil, nil
	require.Eventually(t, func() bool {
		runtime.GC()
		_, there := kept.reasons.Load(n)
		return !there
	}, 30*time.Second, time.Millisecond, "nothing is left of it")
	require.False(t, errors.As(c.Err(), &got))
}

// TestEventReason: the sentence of an event has its reason's.
func TestEventReason(t *testing.T) {
	e := Event{ID: EventProtSTag, QP: 4}
	require.Equal(t, "Protection Error: Invalid STag (QP 4)", e.String())
	e.Why = &Reason{QP: 4, What: "no region"}
	require.Equal(t, "Protection Error: Invalid STag (QP 4): no region", e.String())
}
