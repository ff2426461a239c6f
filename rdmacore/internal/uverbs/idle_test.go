//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// TestPolledInVain has polls of a queue that nothing completes to receive for the others of the device, of which
// each gets its looks, and none of a queue that is gone.
func TestPolledInVain(t *testing.T) {
	h := newHot(t, Config{})
	list := *h.b.dev.idlers.list.Load()
	require.NotEmpty(t, list)
	other := &cq{}
	h.b.dev.idlers.add(other)
	require.Len(t, *h.b.dev.idlers.list.Load(), len(list)+1)

	h.write(t, h.b, h.recv, h.recvLen)
	h.write(t, h.a, h.send, h.sendLen)
	b, err := use(&h.b.file.cqs, h.b.cq, "completion queue")
	require.NoError(t, err)
	var done [1]verbs.Completion
	for n := 0; n == 0; {
		h.b.dev.idlers.fruitless(other)
		require.NoError(t, b.cq.Notify(verbs.NotifyNext)) // now Poll receives nothing by itself
		n = b.cq.Poll(done[:])
	}
	require.Equal(t, verbs.OpRecv, done[0].Op)
	h.b.dev.idlers.remove(other)
	require.NotContains(t, *h.b.dev.idlers.list.Load(), other)
}

// udBeside makes a UD queue pair whose requests complete where a's do.
func udBeside(a *side) uabi.CreateQPResp {
	c := config(a.pd, a.cq, a.cq)
	c.QPType = uabi.QPTUD
	return must[uabi.CreateQPResp](a.program, uabi.CmdCreateQP, &uabi.CreateQP{QPConfig: c})
}

// TestNothingLeftToPollFor: a program whose last request has completed polls no more, for all that is known; one that has receives,
// or another queue pair there, may.
func TestNothingLeftToPollFor(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(a *side)
		want  bool
	}{
		"nothing":            {func(*side) {}, true},
		"a receive":          {func(a *side) { _, _ = a.recv(9, a.sge(0, 64)) }, false},
		"another queue pair": {func(a *side) { a.program.qp(a.pd, a.cq, a.program.cq(4, -1)) }, false},
		"one that is gone": {func(a *side) {
			q := a.program.qp(a.pd, a.program.cq(4, -1), a.cq)
			must[uabi.DestroyQPResp](a.program, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: q.QPHandle})
		}, true},
		"datagrams": {func(a *side) { udBeside(a) }, false},
		"datagrams that are gone": {func(a *side) {
			must[uabi.DestroyQPResp](a.program, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: udBeside(a).QPHandle})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, Config{RoCE: true}, allRights)
			yield, yields := verbsinternal.Yield, 0
			defer func() { verbsinternal.Yield = yield }()
			queue, err := use(&a.file.cqs, a.cq, "completion queue")
			require.NoError(t, err)
			verbsinternal.Yield = func(v verbsinternal.CQ) {
				assert.Equal(t, queue.cq, v)
				yields++
				yield(v)
			}
			c.begin(a)
			queue.fruitless.Add(aside)
			for i := range 3 {
				a.posted(rdma(signaled(uabi.WRRDMAWrite, i), b, 0), a.sge(0, 8))
			}
			a.wait(3)
			assert.Equal(t, c.want, yields > 0)
		})
	}
}
