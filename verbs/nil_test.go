package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// A handle that is nil is refused by its verbs as one that was destroyed is.
func TestNilHandles(t *testing.T) {
	var (
		pd  *verbs.PD
		cq  *verbs.CQ
		srq *verbs.SRQ
		qp  *verbs.QP
	)
	ctx := t.Context()
	for want, calls := range map[error]map[string]func() error{
		verbs.ErrInvalidPD: {
			"Deallocate":     pd.Deallocate,
			"Register":       func() error { return second(pd.Register(make([]byte, 1), verbs.LocalRead)) },
			"RegisterRegion": func() error { return second(pd.RegisterRegion(verbs.RegionConfig{})) },
			"AllocateRegion": func() error { return second(pd.AllocateRegion(verbs.AllocateConfig{})) },
			"AllocateWindow": func() error { return second(pd.AllocateWindow()) },
		},
		verbs.ErrInvalidCQ: {
			"Query":     func() error { return second(cq.Query()) },
			"Resize":    func() error { return cq.Resize(1) },
			"PollOne":   func() error { return second(cq.PollOne()) },
			"Wait":      func() error { return second(cq.Wait(ctx, make([]verbs.Completion, 1))) },
			"Notify":    func() error { return cq.Notify(verbs.NotifyNext) },
			"Arm":       func() error { return second(cq.Arm(verbs.NotifyNext)) },
			"WaitEvent": func() error { return cq.WaitEvent(ctx) },
			"Destroy":   cq.Destroy,
		},
		verbs.ErrInvalidSRQ: {
			"PostRecv": func() error { return second(srq.PostRecv(verbs.Recv{})) },
			"Query":    func() error { return second(srq.Query()) },
			"Modify":   func() error { return srq.Modify(verbs.ModifySRQ{}) },
			"Destroy":  srq.Destroy,
		},
		verbs.ErrInvalidQP: {
			"PostSend": func() error { return second(qp.PostSend(verbs.Request{})) },
			"PostRecv": func() error { return second(qp.PostRecv(verbs.Recv{})) },
			"Query":    func() error { return second(qp.Query()) },
			"Modify":   func() error { return qp.Modify(verbs.ModifyQP{}) },
			"Drain":    func() error { return qp.Drain(ctx) },
			"User":     func() error { return second(qp.User()) },
			"Destroy":  qp.Destroy,
		},
	} {
		for name, call := range calls {
			err := call()
			require.ErrorIs(t, err, want, name)
			if name != "Drain" { // which is no verb of the draft
				tellsAll(t, err)
			}
			require.ErrorContains(t, err, "make one with RNIC.", name)
		}
	}
}

// The modifiers that name a handle refuse nil, where it does not stand for something.
func TestNilModifiers(t *testing.T) {
	n := newNode(t, verbs.QPConfig{})
	_, err := n.nic.CreateQP(verbs.QPConfig{SendCQ: n.cq, RecvCQ: n.cq})
	require.ErrorIs(t, err, verbs.ErrInvalidPD)
	_, err = n.nic.CreateQP(verbs.QPConfig{PD: n.pd, RecvCQ: n.cq})
	require.ErrorIs(t, err, verbs.ErrInvalidCQ)
	_, err = n.nic.CreateQP(verbs.QPConfig{PD: n.pd, SendCQ: n.cq})
	require.ErrorIs(t, err, verbs.ErrInvalidCQ)
	_, err = n.nic.CreateSRQ(verbs.SRQConfig{})
	require.ErrorIs(t, err, verbs.ErrInvalidPD)
}

// A wait with no room for a completion could only wait without end, or end without one.
func TestWaitWithoutRoom(t *testing.T) {
	n := newNode(t, verbs.QPConfig{})
	for _, dst := range [][]verbs.Completion{nil, {}} {
		got, err := n.cq.Wait(t.Context(), dst)
		require.ErrorIs(t, err, verbs.ErrInvalidModifier)
		require.ErrorContains(t, err, "needs room")
		require.Zero(t, got)
	}
}
