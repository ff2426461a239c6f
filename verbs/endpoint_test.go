package verbs_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestEndpoint: what the queue pair brings along works, and goes with it; the domain
// with the last region in it.
func TestEndpoint(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
	qp, err := a.nic.CreateEndpoint(verbs.QPConfig{SendDepth: 3, RecvDepth: 65, Context: "mine"})
	require.NoError(t, err)
	assert.Equal(t, 4, entries(qp.SendCQ()), "as many as the queue holds")
	assert.Equal(t, 128, entries(qp.RecvCQ()))
	assert.Equal(t, "mine", qp.Context())
	mr, err := qp.PD().Register(make([]byte, 100), verbs.LocalRead|verbs.LocalWrite)
	require.NoError(t, err)
	assert.Equal(t, mr.SGL(0, 100), mr.All())
	require.NoError(t, second(qp.PostRecv(verbs.Recv{ID: 5, SGL: mr.All()})))
	require.NoError(t, second(b.qp.PostRecv(verbs.Recv{SGL: b.mr.SGL(8, 8)})))
	join(t, qp, b.qp, false)
	require.NoError(t, second(qp.PostSend(verbs.Request{ID: 6, SGL: mr.SGL(0, 7)})))
	done, err := qp.SendCQ().WaitOne(t.Context())
	require.NoError(t, err)
	assert.Equal(t, verbs.Completion{ID: 6, QP: qp.ID(), Context: "mine"}, done)
	require.NoError(t, second(b.qp.PostSend(verbs.Request{SGL: b.mr.SGL(0, 8)})))
	done, err = qp.RecvCQ().WaitOne(t.Context())
	require.NoError(t, err)
	assert.Equal(t, verbs.Completion{ID: 5, Op: verbs.OpRecv, QP: qp.ID(), Bytes: 8, Context: "mine"}, done)

	assert.ErrorIs(t, qp.SendCQ().Destroy(), verbs.ErrCQInUse)
	assert.ErrorIs(t, qp.PD().Deallocate(), verbs.ErrPDInUse)
	require.NoError(t, qp.Destroy())
	for _, cq := range []*verbs.CQ{qp.SendCQ(), qp.RecvCQ()} {
		assert.Nil(t, a.nic.CQ(cq.ID()))
		_, err = cq.WaitOne(t.Context())
		assert.ErrorIs(t, err, verbs.ErrInvalidCQ)
	}
	assert.ErrorIs(t, qp.PD().Deallocate(), verbs.ErrPDInUse, "the region is in it")
	require.NoError(t, mr.Deregister())
	assert.ErrorIs(t, qp.PD().Deallocate(), verbs.ErrInvalidPD)
}

// TestEndpointEndsWithWindow: the domain that a queue pair brought along goes with the last window in it, too.
func TestEndpointEndsWithWindow(t *testing.T) {
	n := newNode(t, verbs.QPConfig{})
	qp, err := n.nic.CreateEndpoint(verbs.QPConfig{})
	require.NoError(t, err)
	mw, err := qp.PD().AllocateWindow()
	require.NoError(t, err)
	require.NoError(t, qp.Destroy())
	assert.ErrorIs(t, qp.PD().Deallocate(), verbs.ErrPDInUse, "the window is in it")
	require.NoError(t, mw.Deallocate())
	assert.ErrorIs(t, qp.PD().Deallocate(), verbs.ErrInvalidPD)
}

// TestEndpointOnWhatIsThere: what is given is used and stays, and what others use
// as well stays for them.
func TestEndpointOnWhatIsThere(t *testing.T) {
	n := newNode(t, verbs.QPConfig{})
	qp, err := n.nic.CreateEndpoint(verbs.QPConfig{PD: n.pd, SendCQ: n.cq})
	require.NoError(t, err)
	assert.Same(t, n.pd, qp.PD())
	assert.Same(t, n.cq, qp.SendCQ())
	own := qp.RecvCQ()
	other, err := n.nic.CreateQP(verbs.QPConfig{PD: n.pd, SendCQ: own, RecvCQ: own})
	require.NoError(t, err)
	require.NoError(t, qp.Destroy())
	assert.Same(t, n.cq, n.nic.CQ(n.cq.ID()))
	assert.Same(t, own, n.nic.CQ(own.ID()))
	require.NoError(t, other.Destroy())
	assert.Nil(t, n.nic.CQ(own.ID()))
	require.NoError(t, second(n.pd.Register(make([]byte, 1), verbs.LocalRead)), "the PD stays")

	srq, err := n.nic.CreateSRQ(verbs.SRQConfig{PD: n.pd, Depth: 100})
	require.NoError(t, err)
	qp, err = n.nic.CreateEndpoint(verbs.QPConfig{SRQ: srq})
	require.NoError(t, err)
	assert.Equal(t, 128, entries(qp.RecvCQ()))
	require.NoError(t, qp.Destroy())
}

// TestEndpointRefused leaves nothing behind.
func TestEndpointRefused(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{Limits: verbs.Limits{PDs: 1, CQs: 2, QPs: 1}})
	require.NoError(t, err)
	defer nic.Close()
	for range 3 {
		_, err = nic.CreateEndpoint(verbs.QPConfig{SendSGE: 1000})
		require.ErrorIs(t, err, verbs.ErrTooManySGE)
		_, err = nic.CreateEndpoint(verbs.QPConfig{SendDepth: -1})
		require.ErrorIs(t, err, verbs.ErrInvalidModifier)
		_, err = nic.CreateEndpoint(verbs.QPConfig{RecvDepth: 1 << 30})
		require.ErrorIs(t, err, verbs.ErrTooManyWR)
	}
	qp, err := nic.CreateEndpoint(verbs.QPConfig{})
	require.NoError(t, err)
	_, err = nic.CreateEndpoint(verbs.QPConfig{})
	require.ErrorIs(t, err, verbs.ErrInsufficientResources)
	require.NoError(t, qp.Destroy())
	qp, err = nic.CreateEndpoint(verbs.QPConfig{})
	require.NoError(t, err)
	require.NoError(t, qp.Destroy())
	_, err = nic.CreateQP(verbs.QPConfig{})
	require.ErrorIs(t, err, verbs.ErrInvalidPD)
	require.ErrorContains(t, err, "CreateEndpoint")
}

// TestContext: every completion has that of its queue pair, failed or not, through
// an S-RQ too.
func TestContext(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{Context: 1}), newNode(t, verbs.QPConfig{})
	srq, err := b.nic.CreateSRQ(verbs.SRQConfig{PD: b.pd})
	require.NoError(t, err)
	shared := b.newQP(t, verbs.QPConfig{SRQ: srq, Context: 2})
	require.NoError(t, second(srq.PostRecv(verbs.Recv{ID: 7})))
	require.NoError(t, second(a.qp.PostRecv(verbs.Recv{ID: 8})))
	join(t, a.qp, shared, false)
	require.NoError(t, second(a.qp.PostSend(verbs.Request{})))
	assert.Equal(t, 1, waitOne(t, a.cq).Context)
	assert.Equal(t, 2, waitOne(t, b.cq).Context)
	require.NoError(t, a.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	assert.Equal(t, verbs.Completion{ID: 8, QP: a.qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusFlushed, Context: 1}, waitOne(t, a.cq))
}

// TestWaitOne: its error is the context's, or the completion's own.
func TestWaitOne(t *testing.T) {
	n := newNode(t, verbs.QPConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := n.cq.WaitOne(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, second(n.qp.PostRecv(verbs.Recv{ID: 3})))
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	c, err := n.cq.WaitOne(t.Context())
	var failed *verbs.CompletionError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, verbs.CompletionError{Op: verbs.OpRecv, ID: 3, QP: n.qp.ID(), Status: verbs.StatusFlushed}, *failed)
	assert.EqualValues(t, 3, c.ID)
}

// TestPostRefusedSaysWhy: with the queue pair, its state and where to look.
func TestPostRefusedSaysWhy(t *testing.T) {
	n := newNode(t, verbs.QPConfig{SendDepth: 1})
	require.NoError(t, second(n.qp.PostSend(verbs.Request{})))
	err := second(n.qp.PostSend(verbs.Request{}))
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	require.ErrorContains(t, err, "poll the CQ")
	err = second(n.qp.PostRecv(verbs.Recv{SGL: make([]verbs.SGE, 100)}))
	require.ErrorIs(t, err, verbs.ErrInvalidSGLLength)
	require.ErrorContains(t, err, "QP "+strconv.Itoa(int(n.qp.ID())))
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	for _, err := range []error{second(n.qp.PostSend(verbs.Request{})), second(n.qp.PostRecv(verbs.Recv{}))} {
		require.ErrorIs(t, err, verbs.ErrInvalidState)
		require.ErrorContains(t, err, "is in Error: the connection has ended")
	}
}

// entries is how many completions a CQ holds; 0 once it is destroyed.
func entries(c *verbs.CQ) int {
	a, err := c.Query()
	if err != nil {
		return 0
	}
	return a.Entries
}
