package verbs_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// sharedReads is an RNIC whose queue pairs share ten RDMA Read resources of each
// kind (6.5), and which has no other limit in the way.
func sharedReads(t *testing.T) *node {
	n := &node{}
	var err error
	n.nic, err = verbs.Open(verbs.Config{Limits: verbs.Limits{QPs: 10, SharedIRD: 10, SharedORD: 10}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.nic.Close()) })
	n.pd, err = n.nic.AllocatePD()
	require.NoError(t, err)
	n.cq, err = n.nic.CreateCQ(verbs.CQConfig{})
	require.NoError(t, err)
	return n
}

// TestSharedReads follows the pools through create, modify and destroy: each gets
// what there is, if not what it asked for, but at least one (9.2.5.1, 9.2.5.3).
func TestSharedReads(t *testing.T) {
	n := sharedReads(t)
	check := func(qp *verbs.QP, ird, ord int) {
		t.Helper()
		a := query(t, qp)
		assert.Equal(t, []int{ird, ord}, []int{a.IRD, a.ORD})
	}
	a := n.newQP(t, verbs.QPConfig{IRD: 7, ORD: 4})
	check(a, 7, 4)
	b := n.newQP(t, verbs.QPConfig{IRD: 7, ORD: 4})
	check(b, 3, 4)
	c := verbs.QPConfig{PD: n.pd, SendCQ: n.cq, RecvCQ: n.cq, IRD: 1, ORD: 1}
	require.ErrorIs(t, second(n.nic.CreateQP(c)), verbs.ErrInsufficientResources, "no IRD is left (RV-6.5-M13)")
	none := n.newQP(t, verbs.QPConfig{NoReads: true})
	check(none, 0, 0)
	require.ErrorIs(t, none.Modify(verbs.ModifyQP{ORD: ptr(5), IRD: ptr(1)}), verbs.ErrInsufficientResources)
	check(none, 0, 0)
	require.NoError(t, none.Modify(verbs.ModifyQP{ORD: ptr(5)}))
	check(none, 0, 2)
	require.ErrorIs(t, none.Modify(verbs.ModifyQP{Next: verbs.StateClosing, ORD: ptr(0)}), verbs.ErrInvalidState)
	check(none, 0, 2)
	require.NoError(t, a.Modify(verbs.ModifyQP{IRD: ptr(1), ORD: ptr(1)}))
	check(a, 1, 1)
	require.NoError(t, b.Modify(verbs.ModifyQP{IRD: ptr(100), ORD: ptr(100)}))
	check(b, 9, 7)
	require.NoError(t, b.Modify(verbs.ModifyQP{IRD: ptr(100), ORD: ptr(7)}), "there is no more, and it keeps what it has")
	check(b, 9, 7)

	// A refused change reserves nothing.
	require.NoError(t, b.Destroy())
	require.ErrorIs(t, a.Modify(verbs.ModifyQP{Next: verbs.StateError, IRD: ptr(10), ORD: ptr(10)}), verbs.ErrInvalidModifier)
	check(a, 1, 1)
	// Nor does one of the kinds if there is nothing of the other.
	rest := n.newQP(t, verbs.QPConfig{IRD: 2, ORD: 10})
	check(rest, 2, 7)
	c.IRD = 5
	require.ErrorIs(t, second(n.nic.CreateQP(c)), verbs.ErrInsufficientResources, "no ORD is left")
	zero := n.newQP(t, verbs.QPConfig{NoReads: true})
	require.ErrorIs(t, zero.Modify(verbs.ModifyQP{IRD: ptr(3), ORD: ptr(1)}), verbs.ErrInsufficientResources)
	check(zero, 0, 0)
	require.NoError(t, a.Destroy())
	require.NoError(t, rest.Destroy())
	require.NoError(t, none.Destroy())
	require.NoError(t, zero.Destroy())
	check(n.newQP(t, verbs.QPConfig{IRD: 11, ORD: 11}), 10, 10)
}

// TestSharedReadsAgreed: what the peer agrees to is not what is reserved: the
// difference comes back with Modify, not by itself.
func TestSharedReadsAgreed(t *testing.T) {
	n := sharedReads(t)
	a := n.newQP(t, verbs.QPConfig{IRD: 10, ORD: 10})
	x, y := tcpConns(t)
	defer y.Close()
	require.NoError(t, a.Modify(verbs.ModifyQP{
		Next: verbs.StateRTS, Stream: &verbs.StreamConfig{Conn: x, Role: mpa.Initiator, Enhanced: true, IRD: 2, ORD: 2},
	}))
	assert.Equal(t, 2, query(t, a).IRD)
	c := verbs.QPConfig{PD: n.pd, SendCQ: n.cq, RecvCQ: n.cq}
	require.ErrorIs(t, second(n.nic.CreateQP(c)), verbs.ErrInsufficientResources)
	require.NoError(t, a.Modify(verbs.ModifyQP{Next: verbs.StateRTS, IRD: ptr(2), ORD: ptr(2)}))
	assert.Equal(t, 8, query(t, n.newQP(t, verbs.QPConfig{})).IRD)
}

// TestSharedReadsAtOnce: the pools are right after many changes at the same time.
func TestSharedReadsAtOnce(t *testing.T) {
	n := sharedReads(t)
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(g, 1))
			for range 200 {
				qp, err := n.nic.CreateQP(verbs.QPConfig{PD: n.pd, SendCQ: n.cq, RecvCQ: n.cq, IRD: 1 + rng.IntN(4), ORD: 1 + rng.IntN(4)})
				if err != nil {
					assert.ErrorIs(t, err, verbs.ErrInsufficientResources)
					continue
				}
				var changes sync.WaitGroup
				for range 2 {
					m := verbs.ModifyQP{IRD: ptr(rng.IntN(5)), ORD: ptr(rng.IntN(5))}
					changes.Go(func() { _ = qp.Modify(m) }) // may be refused, or come too late
				}
				assert.NoError(t, qp.Destroy())
				changes.Wait()
			}
		})
	}
	wg.Wait()
	a := query(t, n.newQP(t, verbs.QPConfig{IRD: 11, ORD: 11}))
	assert.Equal(t, []int{10, 10}, []int{a.IRD, a.ORD})
}
