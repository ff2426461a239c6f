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
