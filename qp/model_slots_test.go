package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/wr"
)

// TestSlotIsFreeOnceReaped stops time where complete has queued a completion and
// not yet moved done over it. A program that reaps it in between may post at
// once (verbs draft 8.2.1): it would get no other completion to wait for.
func TestSlotIsFreeOnceReaped(t *testing.T) {
	var s sendQueue
	s.init(&Config{ID: 1, SendDepth: 2, SendSGE: 1, WriteSGE: 1, SendCQ: cq.New(cq.Config{ID: 1, Entries: 4})})
	for _, flags := range []wr.Flags{wr.Unsignaled, 0} {
		require.NoError(t, s.push(&wr.Request{Flags: flags}))
	}
	s.slots.at(1).queued = true
	require.ErrorIs(t, s.push(&wr.Request{}), wr.ErrQueueFull)
	s.Release(1)
	require.NoError(t, s.push(&wr.Request{}), "the slot of the unsignaled one")
	require.NoError(t, s.push(&wr.Request{}), "the slot of the reaped one")
	require.ErrorIs(t, s.push(&wr.Request{}), wr.ErrQueueFull)
}
