package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestSRQRefusals: the results of Create, Modify and Destroy S-RQ (9.2.4), and of
// PostRQ with an S-RQ handle (9.3.1.2).
func TestSRQRefusals(t *testing.T) {
	create := func(c verbs.SRQConfig) func(*world) error {
		return func(w *world) error {
			c.PD = w.pd
			return second(w.nic.CreateSRQ(c))
		}
	}
	modify := func(m verbs.ModifySRQ) func(*world) error {
		return func(w *world) error { return w.srq.Modify(m) }
	}
	post := func(n int) func(*world) {
		return func(w *world) { require.NoError(w.t, second(w.srq.PostRecv(make([]verbs.Recv, n)...))) }
	}
	refuse(t, verbs.Config{}, []refusal{
		{"create: depth", verbs.ErrTooManyWR, nil, create(verbs.SRQConfig{Depth: small.SRQWR + 1})},
		{"create: elements", verbs.ErrTooManySGE, nil, create(verbs.SRQConfig{SGE: small.SGE + 1})},
		{"create: limit above depth", verbs.ErrSRQLimitRange, nil, create(verbs.SRQConfig{Depth: 2, Limit: 3})},
		{"create: negative limit", verbs.ErrSRQLimitRange, nil, create(verbs.SRQConfig{Limit: -1})},
		{"create: negative depth", verbs.ErrInvalidModifier, nil, create(verbs.SRQConfig{Depth: -1})},
		{"create: negative elements", verbs.ErrInvalidModifier, nil, create(verbs.SRQConfig{SGE: -1})},
		{"create: no PD", verbs.ErrInvalidPD, nil, func(w *world) error { return second(w.nic.CreateSRQ(verbs.SRQConfig{})) }},
		{"create: PD of another RNIC", verbs.ErrInvalidPD, nil, func(w *world) error {
			return second(w.nic.CreateSRQ(verbs.SRQConfig{PD: newNode(w.t, verbs.QPConfig{}).pd}))
		}},
		{
			"create: all in use", verbs.ErrInsufficientResources,
			func(w *world) { require.NoError(w.t, create(verbs.SRQConfig{})(w)) },
			create(verbs.SRQConfig{}),
		},
		{"modify: depth", verbs.ErrTooManyWR, nil, modify(verbs.ModifySRQ{Depth: ptr(small.SRQWR + 1)})},
		{"modify: no depth", verbs.ErrInvalidModifier, nil, modify(verbs.ModifySRQ{Depth: ptr(0)})},
		{"modify: below an armed limit", verbs.ErrInvalidModifier, nil, modify(verbs.ModifySRQ{Depth: ptr(1)})},
		{"modify: outstanding", verbs.ErrShrinkFailed, post(5), modify(verbs.ModifySRQ{Depth: ptr(4)})},
		{"modify: limit above depth", verbs.ErrSRQLimitRange, nil, modify(verbs.ModifySRQ{Limit: ptr(9), Rearm: true})},
		{"modify: negative limit", verbs.ErrSRQLimitRange, nil, modify(verbs.ModifySRQ{Depth: ptr(16), Limit: ptr(-1)})},
		{"destroy: in use", verbs.ErrSRQInUse, nil, func(w *world) error { return w.srq.Destroy() }},
		{"post: elements", verbs.ErrInvalidSGLLength, nil, func(w *world) error {
			return second(w.srq.PostRecv(verbs.Recv{SGL: make([]verbs.SGE, 5)}))
		}},
		{"post: full", verbs.ErrQueueFull, post(8), func(w *world) error { return second(w.srq.PostRecv(verbs.Recv{})) }},
		{"post: to the QP", verbs.ErrRQUsesSRQ, nil, func(w *world) error { return second(w.sharing.PostRecv(verbs.Recv{})) }},
	})
	refuse(t, verbs.Config{Without: verbs.FeatureResize}, []refusal{
		{"modify: the RNIC does not resize", verbs.ErrInvalidModifier, nil, modify(verbs.ModifySRQ{Depth: ptr(9)})},
	})
	refuse(t, verbs.Config{Without: verbs.FeatureSRQ}, []refusal{
		{"create: the RNIC has none", verbs.ErrInsufficientResources, nil, create(verbs.SRQConfig{})},
	})
}

func TestSRQ(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	s, err := w.nic.CreateSRQ(verbs.SRQConfig{PD: w.pd})
	require.NoError(t, err)
	a, err := s.Query()
	require.NoError(t, err)
	assert.Equal(t, verbs.SRQAttributes{Depth: 64, SGE: 4, PD: w.pd.ID()}, a, "the defaults")
	assert.Same(t, w.pd, s.PD())
	assert.Same(t, s, w.nic.SRQ(s.ID()))
	require.NoError(t, second(s.PostRecv(verbs.Recv{})))
	require.NoError(t, s.Destroy(), "also with receives posted (RV-6.3.3-M2)")
	assert.Nil(t, w.nic.SRQ(s.ID()))

	require.NoError(t, w.srq.Modify(verbs.ModifySRQ{Depth: ptr(32), Limit: ptr(5)}))
	a, err = w.srq.Query()
	require.NoError(t, err)
	assert.Equal(t, verbs.SRQAttributes{Depth: 32, SGE: 4, PD: w.pd.ID(), Limit: 5, Armed: true}, a)
	n, err := w.srq.PostRecv(make([]verbs.Recv, 40)...)
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	assert.Equal(t, 32, n, "a list is posted as far as there is room (8.2.1)")

	// The size of the QP's own RQ is ignored, and not returned (RV-6.3.4-M2).
	require.NoError(t, w.sharing.Destroy())
	qp, err := w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq, SRQ: w.srq, RecvDepth: 1 << 30, RecvSGE: -4, RQLimit: 32})
	require.NoError(t, err)
	q := query(t, qp)
	assert.Equal(t, []any{0, 0, 32, true, w.srq}, []any{q.RecvDepth, q.RecvSGE, q.RQLimit, q.RQLimitArmed, q.SRQ})
	require.ErrorIs(t, w.srq.Destroy(), verbs.ErrSRQInUse)
	require.NoError(t, qp.Destroy())
	require.NoError(t, w.srq.Destroy())
}
