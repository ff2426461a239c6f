package verbs_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// TestModifyQPRefusals: the results of Modify QP (9.2.5.3).
func TestModifyQPRefusals(t *testing.T) {
	modify := func(m verbs.ModifyQP) func(*world) error {
		return func(w *world) error { return w.qp.Modify(m) }
	}
	sharing := func(m verbs.ModifyQP) func(*world) error {
		return func(w *world) error { return w.sharing.Modify(m) }
	}
	post := func(w *world) {
		require.NoError(w.t, second(w.qp.PostSend(make([]verbs.Request, 3)...)))
		require.NoError(w.t, second(w.qp.PostRecv(make([]verbs.Recv, 3)...)))
	}
	refuse(t, verbs.Config{}, []refusal{
		{"to RTS without a stream", verbs.ErrInvalidLLPStream, nil, modify(verbs.ModifyQP{Next: verbs.StateRTS})},
		{"to RTS without a connection", verbs.ErrInvalidLLPStream, nil, modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &verbs.Stream{}})},
		{"a stream for Idle", verbs.ErrInvalidModifier, nil, modify(verbs.ModifyQP{Stream: &verbs.Stream{}})},
		{"a message for Error", verbs.ErrInvalidModifier, nil, modify(verbs.ModifyQP{Next: verbs.StateError, LastMessage: []byte{1}})},
		{"ORD on the way to Error", verbs.ErrInvalidModifier, nil, modify(verbs.ModifyQP{Next: verbs.StateError, ORD: ptr(1)})},
		{"ORD", verbs.ErrORDExceeded, nil, modify(verbs.ModifyQP{ORD: ptr(small.ORD + 1)})},
		{"IRD", verbs.ErrIRDExceeded, nil, modify(verbs.ModifyQP{IRD: ptr(small.IRD + 1)})},
		{"negative ORD", verbs.ErrInvalidModifier, nil, modify(verbs.ModifyQP{ORD: ptr(-1)})},
		{"negative IRD", verbs.ErrInvalidModifier, nil, modify(verbs.ModifyQP{IRD: ptr(-1)})},
		{"send depth", verbs.ErrTooManyWR, nil, modify(verbs.ModifyQP{SendDepth: ptr(small.WR + 1)})},
		{"receive depth", verbs.ErrTooManyWR, nil, modify(verbs.ModifyQP{RecvDepth: ptr(small.WR + 1)})},
		{"no send depth", verbs.ErrInvalidModifier, nil, modify(verbs.ModifyQP{SendDepth: ptr(0)})},
		{"sends outstanding", verbs.ErrShrinkFailed, post, modify(verbs.ModifyQP{SendDepth: ptr(2), RecvDepth: ptr(30)})},
		{"receives outstanding", verbs.ErrShrinkFailed, post, modify(verbs.ModifyQP{SendDepth: ptr(30), RecvDepth: ptr(2)})},
		{"receive depth with an S-RQ", verbs.ErrInvalidModifier, nil, sharing(verbs.ModifyQP{RecvDepth: ptr(9)})},
		{"RQ limit", verbs.ErrRQLimitRange, nil, sharing(verbs.ModifyQP{RQLimit: ptr(9)})},
		{"RQ limit without an S-RQ", verbs.ErrInvalidModifier, nil, modify(verbs.ModifyQP{RQLimit: ptr(1)})},
		{"Idle to Closing", verbs.ErrInvalidState, nil, modify(verbs.ModifyQP{Next: verbs.StateClosing})},
		{"Idle to Terminate", verbs.ErrInvalidState, nil, modify(verbs.ModifyQP{Next: verbs.StateTerminate})},
		{"no such state", verbs.ErrInvalidState, nil, modify(verbs.ModifyQP{Next: 77})},
		{"last message over a dead connection", verbs.ErrInvalidLLPStream, nil, func(w *world) error {
			c, d := net.Pipe()
			require.NoError(w.t, d.Close())
			return w.qp.Modify(verbs.ModifyQP{
				Next: verbs.StateRTS, LastMessage: []byte("bye"), IRD: ptr(5), ORD: ptr(5), SendDepth: ptr(60),
				Stream: &verbs.Stream{Conn: c, Role: mpa.Responder},
			})
		}},
	})
	refuse(t, verbs.Config{Without: verbs.FeatureResize | verbs.FeatureChangeIRD | verbs.FeatureRaiseORD}, []refusal{
		{"the RNIC does not resize the SQ", verbs.ErrCannotChangeAttribute, nil, modify(verbs.ModifyQP{SendDepth: ptr(8)})},
		{"the RNIC does not resize the RQ", verbs.ErrCannotChangeAttribute, nil, modify(verbs.ModifyQP{RecvDepth: ptr(8)})},
		{"the RNIC does not raise IRD", verbs.ErrCannotChangeAttribute, nil, modify(verbs.ModifyQP{IRD: ptr(3)})},
		{"the RNIC does not lower IRD", verbs.ErrCannotChangeAttribute, nil, modify(verbs.ModifyQP{IRD: ptr(1)})},
		{"the RNIC does not raise ORD", verbs.ErrCannotChangeAttribute, nil, modify(verbs.ModifyQP{ORD: ptr(3)})},
		{
			"the RNIC does not raise ORD again", verbs.ErrCannotChangeAttribute,
			func(w *world) { require.NoError(w.t, w.qp.Modify(verbs.ModifyQP{ORD: ptr(1)})) }, // RV-6.5-M9
			modify(verbs.ModifyQP{ORD: ptr(2)}),
		},
	})
}

// TestStillFlushing: Error to Idle is refused while elements are flushed.
func TestStillFlushing(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	w.connect()
	ended := make(chan error, 1)
	go func() { ended <- w.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}) }()
	for flushing := false; ; {
		err := w.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle})
		if err == nil {
			break
		}
		if !flushing { // from RTS there is no way to Idle; in Error it is a matter of time
			require.Condition(t, func() bool {
				flushing = w.qp.State() == verbs.StateError
				return flushing || assert.ErrorIs(t, err, verbs.ErrInvalidState)
			})
			continue
		}
		require.ErrorIs(t, err, verbs.ErrStillFlushing)
	}
	require.NoError(t, <-ended)
}

// TestModifyQP changes everything that can change, before and after the stream
// starts (figures 4 and 5).
func TestModifyQP(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	check := func(qp *verbs.QP, send, recv, ird, ord int) {
		t.Helper()
		a := query(t, qp)
		assert.GreaterOrEqual(t, a.SendDepth, send)
		assert.GreaterOrEqual(t, a.RecvDepth, recv)
		assert.Equal(t, []int{ird, ord}, []int{a.IRD, a.ORD})
	}
	require.NoError(t, w.qp.Modify(verbs.ModifyQP{SendDepth: ptr(20), RecvDepth: ptr(30), IRD: ptr(5), ORD: ptr(6)}))
	check(w.qp, 20, 30, 5, 6)
	require.NoError(t, second(w.qp.PostRecv(make([]verbs.Recv, 30)...)))
	w.connect()
	check(w.qp, 20, 30, 5, 6)
	require.NoError(t, w.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, SendDepth: ptr(40), RecvDepth: ptr(50), IRD: ptr(1), ORD: ptr(8)}))
	check(w.qp, 40, 50, 1, 8)
	require.NoError(t, second(w.qp.PostRecv(make([]verbs.Recv, 20)...)))

	require.NoError(t, w.sharing.Modify(verbs.ModifyQP{RQLimit: ptr(3)}))
	a := query(t, w.sharing)
	assert.Equal(t, []any{3, false}, []any{a.RQLimit, a.RQLimitArmed})
	require.NoError(t, w.sharing.Modify(verbs.ModifyQP{ArmRQLimit: true}))
	assert.True(t, query(t, w.sharing).RQLimitArmed)
	require.NoError(t, w.sharing.Modify(verbs.ModifyQP{ArmRQLimit: true}), "armed again (RV-6.3.8-M16)")
}
