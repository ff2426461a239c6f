package verbs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestArmRefused: Arm is refused as Notify is (9.3.2.2).
func TestArmRefused(t *testing.T) {
	refuse(t, verbs.Config{}, []refusal{
		{"type", verbs.ErrInvalidNotifyType, nil, func(w *world) error { return second(w.cq.Arm(0)) }},
	})
}

// TestWaitEnds: with the context, the queue or the RNIC.
func TestWaitEnds(t *testing.T) {
	for name, end := range map[string]struct {
		want error
		call func(*world, *verbs.CQ, context.CancelFunc) error
	}{
		"context": {context.Canceled, func(_ *world, _ *verbs.CQ, cancel context.CancelFunc) error { cancel(); return nil }},
		"destroy": {verbs.ErrInvalidCQ, func(_ *world, q *verbs.CQ, _ context.CancelFunc) error { return q.Destroy() }},
		"close":   {verbs.ErrInvalidRNIC, func(w *world, _ *verbs.CQ, _ context.CancelFunc) error { return w.nic.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, verbs.Config{})
			q, err := w.nic.CreateCQ(verbs.CQConfig{})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error)
			go func() { ended <- second(q.Wait(ctx, make([]verbs.Completion, 1))) }()
			go func() { ended <- q.WaitEvent(ctx) }()
			require.NoError(t, end.call(w, q, cancel))
			for range 2 {
				require.ErrorIs(t, <-ended, end.want)
			}
		})
	}
}

// TestWaitEvent sleeps until the message is there, or only the solicited one behind it, on
// a connection that nobody else serves.
func TestWaitEvent(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
	join(t, a.qp, b.qp, false)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	send := func(op verbs.Op) {
		require.NoError(t, second(a.qp.PostSend(verbs.Request{Op: op, Flags: verbs.Unsignaled})))
	}
	for range 100 {
		for _, kind := range []verbs.NotifyType{verbs.NotifyNext, verbs.NotifySolicited} {
			for range 2 {
				require.NoError(t, second(b.qp.PostRecv(verbs.Recv{})))
			}
			armed, err := b.cq.Arm(kind)
			require.NoError(t, err)
			require.True(t, armed)
			woken := make(chan error, 1)
			go func() { woken <- b.cq.WaitEvent(ctx) }()
			send(verbs.OpSend)
			if kind == verbs.NotifyNext {
				require.NoError(t, <-woken)
			}
			send(verbs.OpSendSE)
			if kind == verbs.NotifySolicited {
				require.NoError(t, <-woken)
				require.Equal(t, 2, b.cq.Poll(make([]verbs.Completion, 4)), "both were there")
			} else {
				b.wait(t, 2)
			}
		}
	}
	b.cq.Wake()
	require.NoError(t, b.cq.WaitEvent(ctx))
}
