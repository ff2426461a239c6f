package verbs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestCQRefusals: the results of Create, Modify and Destroy CQ (9.2.3), and of
// Request Completion Notification (9.3.2.2).
func TestCQRefusals(t *testing.T) {
	create := func(c verbs.CQConfig) func(*world) error {
		return func(w *world) error { return second(w.nic.CreateCQ(c)) }
	}
	resize := func(n int) func(*world) error {
		return func(w *world) error { return w.cq.Resize(n) }
	}
	refuse(t, verbs.Config{}, []refusal{
		{"create: entries", verbs.ErrTooManyCQE, nil, create(verbs.CQConfig{Entries: small.CQE + 1})},
		{"create: negative", verbs.ErrInvalidModifier, nil, create(verbs.CQConfig{Entries: -1})},
		{"create: handler", verbs.ErrInvalidEventHandler, nil, create(verbs.CQConfig{Handler: 1 << 30})},
		{
			"create: cleared handler", verbs.ErrInvalidEventHandler,
			func(w *world) { require.NoError(w.t, w.nic.RemoveCompletionHandler(w.handler)) },
			func(w *world) error { return second(w.nic.CreateCQ(verbs.CQConfig{Handler: w.handler})) },
		},
		{
			"create: all in use", verbs.ErrInsufficientResources,
			func(w *world) { require.NoError(w.t, second(w.nic.CreateCQ(verbs.CQConfig{}))) },
			create(verbs.CQConfig{}),
		},
		{"modify: entries", verbs.ErrTooManyCQE, nil, resize(small.CQE + 1)},
		{"modify: none", verbs.ErrInvalidModifier, nil, resize(0)},
		{"modify: more are queued", verbs.ErrShrinkFailed, (*world).flush, resize(3)},
		{"destroy: in use", verbs.ErrCQInUse, nil, func(w *world) error { return w.cq.Destroy() }},
		{"notify: type", verbs.ErrInvalidNotifyType, nil, func(w *world) error { return w.cq.Notify(0) }},
		{"arm: type", verbs.ErrInvalidNotifyType, nil, func(w *world) error { return second(w.cq.Arm(0)) }},
		{"poll: empty", verbs.ErrCQEmpty, nil, func(w *world) error { return second(w.cq.PollOne()) }},
	})
}

// flush leaves four completions in the CQ, with the IDs 0 to 3.
func (w *world) flush() {
	for i := range uint64(4) {
		require.NoError(w.t, second(w.qp.PostRecv(verbs.Recv{ID: i})))
	}
	require.NoError(w.t, w.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
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

// events makes a channel of n's asynchronous events.
func (n *node) events(t testing.TB) <-chan verbs.Event {
	events := make(chan verbs.Event, 100)
	require.NoError(t, n.nic.SetEventHandler(func(e verbs.Event) { events <- e }))
	return events
}
