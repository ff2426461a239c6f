package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestRefusedPosts: what a post asked for, of which queue pair and memory, and what is allowed.
func TestRefusedPosts(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	six := w.mr.SGL(0, 1)
	for len(six) < 6 {
		six = append(six, six[0])
	}
	to := verbs.Remote{STag: 0x1234, TO: 0x5678}
	tooMany := "use fewer, or create the queue with more (SendSGE, WriteSGE, RecvSGE, SRQConfig.SGE)"
	send := func(r verbs.Request) func() error { return func() error { return second(w.qp.PostSend(r)) } }
	for name, c := range map[string]struct {
		call func() error
		want verbs.Reason
	}{
		"Write with too many elements": {send(verbs.Request{Op: verbs.OpWrite, SGL: six, Remote: to}), verbs.Reason{
			Operation: "RDMA Write", STag: 0x1234, HasSTag: true, Asked: verbs.Octets{Known: true, Tagged: true, TO: 0x5678, Length: 6},
			What: "6 elements, at most 4", Rule: "verbs draft 9.3.1.1", Remedy: tooMany, Err: verbs.ErrInvalidSGLLength,
		}},
		"Atomic that is not spoken": {send(verbs.Request{Op: verbs.OpFetchAdd, Remote: to}), verbs.Reason{
			Operation: "Fetch and Add", STag: 0x1234, HasSTag: true, Asked: verbs.Octets{Known: true, Tagged: true, TO: 0x5678, Length: 8},
			What: "FetchAdd is of RFC 7306, which this queue pair does not speak", Rule: "verbs draft 9.3.1.1",
			Remedy: "set QPConfig.Extensions, or cm.Config.Extensions at both ends", Err: verbs.ErrInvalidOp,
		}},
		"Read of no length that there is": {send(verbs.Request{Op: verbs.OpRead, Local: w.mr.SGE(0, -1), Remote: to}), verbs.Reason{
			Operation: "RDMA Read", STag: 0x1234, HasSTag: true,
			What: "the offset of an element is negative or beyond 64 bits, or its length is not within 0 to 4294967295", Rule: "verbs draft 9.3.1.1",
			Remedy: "name octets of the region, of 4 GiB - 1 at most in one element", Err: verbs.ErrInvalidSGLFormat,
		}},
		"Bind of the STag of zero": {send(verbs.Request{Op: verbs.OpBind, Bind: &verbs.BindRequest{Window: 5, Region: 0x100, VA: 7, Length: 9}}), verbs.Reason{
			Operation: "Bind Memory Window", STag: 5, HasSTag: true, Asked: verbs.Octets{Known: true, Tagged: true, TO: 7, Length: 9},
			What: "a modifier is missing, is no addressing type, or is the STag of zero", Rule: "RV-7.2.1-M15",
			Remedy: "set Request.Bind, as MW.BindRequest makes it", Err: verbs.ErrInvalidModifier,
		}},
		"receive with too many elements": {func() error { return second(w.qp.PostRecv(verbs.Recv{SGL: six})) }, verbs.Reason{
			Operation: "Receive", Asked: verbs.Octets{Known: true, Length: 6},
			What: "6 elements, at most 4", Rule: "verbs draft 9.3.1.2", Remedy: tooMany, Err: verbs.ErrInvalidSGLLength,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.QP = w.qp.ID()
			assert.Equal(t, c.want, *reason(t, c.call()))
		})
	}
}

// TestRefusedMemory: the octets asked for and those there are, and the right that is missing.
func TestRefusedMemory(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	pages, err := w.nic.AllocatePages(2, 4096)
	require.NoError(t, err)
	long := pages.List(0, 8192)
	long.Length++
	for name, c := range map[string]struct {
		config verbs.RegionConfig
		want   verbs.Reason
	}{
		"a remote right alone": {verbs.RegionConfig{Memory: make([]byte, 10), Access: verbs.LocalWrite | verbs.RemoteRead}, verbs.Reason{
			Asked: verbs.Octets{Known: true, Length: 10}, Missing: verbs.LocalRead, What: "local-write|remote-read without the local read right",
			Rule: "verbs draft fig. 18", Remedy: "add that", Err: verbs.ErrInvalidAccess,
		}},
		"no right": {verbs.RegionConfig{Memory: make([]byte, 10)}, verbs.Reason{
			Asked: verbs.Octets{Known: true, Length: 10}, Missing: verbs.LocalRead | verbs.LocalWrite, What: "none, and a region needs a local right",
			Rule: "verbs draft fig. 18", Remedy: "add LocalRead or LocalWrite", Err: verbs.ErrInvalidAccess,
		}},
		"more octets than its pages": {verbs.RegionConfig{Buffers: long, Access: verbs.LocalRead, ZeroBased: true}, verbs.Reason{
			Asked: verbs.Octets{Known: true, Length: 8193}, Allowed: verbs.Octets{Known: true, Length: 8192}, What: "8193 octets, and the buffers have 8192",
			Rule: "verbs draft 7.6.2", Remedy: "ask for no more than the buffers have", Err: verbs.ErrInvalidLength,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.pd.RegisterRegion(c.config)
			c.want.Operation = "Register Memory Region"
			assert.Equal(t, c.want, *reason(t, err))
		})
	}
	require.NoError(t, w.mr.Deregister())
	why := reason(t, w.mr.Deregister())
	assert.Equal(t, []any{w.mr.STag(), true}, []any{why.STag, why.HasSTag})
}

// TestAnswersCostNothing: that there is no completion is an answer, which costs nothing; a full queue is refused with the same
// reason each time, with its depth at the time.
func TestAnswersCostNothing(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	_, err := w.cq.PollOne()
	assert.Equal(t, verbs.ErrCQEmpty, err)
	full := func() *verbs.Reason {
		for {
			if _, err := w.qp.PostSend(verbs.Request{}); err != nil {
				require.ErrorIs(t, err, verbs.ErrQueueFull)
				return reason(t, err)
			}
		}
	}
	first := full()
	assert.Same(t, first, full())
	assert.Equal(t, "4 are outstanding, and the queue takes no more; one counts until its completion is polled", first.What)
	assert.Equal(t, w.qp.ID(), first.QP)
	require.NoError(t, w.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle, SendDepth: ptr(8)}))
	assert.Contains(t, full().What, "8 are outstanding")
	_, err = w.qp.PostSend(verbs.Request{Op: verbs.OpWrite})
	assert.Equal(t, "RDMA Write", reason(t, err).Operation)

	a, err := w.srq.Query()
	require.NoError(t, err)
	shared := func(depth int) *verbs.Reason {
		_, err := w.srq.PostRecv(make([]verbs.Recv, depth+1)...)
		require.ErrorIs(t, err, verbs.ErrQueueFull)
		return reason(t, err)
	}
	first = shared(a.Depth)
	assert.Same(t, first, shared(a.Depth))
	require.NoError(t, w.srq.Modify(verbs.ModifySRQ{Depth: ptr(a.Depth + 1)}))
	assert.NotEqual(t, first.What, shared(a.Depth+1).What)
}
