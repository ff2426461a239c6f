package verbs_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestPostRefusals: the results of PostSQ and PostRQ (9.3.1). A list is posted up
// to the request that is refused (8.2.1). "Invalid Scatter/Gather list format" has
// no cause: a Go slice cannot have a bad format.
func TestPostRefusals(t *testing.T) {
	six := make([]verbs.SGE, 6)
	send := func(posted int, reqs ...verbs.Request) func(*world) error {
		return func(w *world) error {
			k, err := w.qp.PostSend(reqs...)
			assert.Equal(w.t, posted, k)
			return err
		}
	}
	recv := func(posted int, reqs ...verbs.Recv) func(*world) error {
		return func(w *world) error {
			k, err := w.qp.PostRecv(reqs...)
			assert.Equal(w.t, posted, k)
			return err
		}
	}
	inError := func(w *world) { require.NoError(w.t, w.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})) }
	bind := func(b verbs.BindRequest) verbs.Request { return verbs.Request{Op: verbs.OpBind, Bind: &b} }
	refuse(t, verbs.Config{}, []refusal{
		{"send: unknown operation", verbs.ErrInvalidOp, nil, send(0, verbs.Request{Op: 200})},
		{"send: a receive", verbs.ErrInvalidOp, nil, send(0, verbs.Request{Op: verbs.OpRecv})},
		{"send: an extension", verbs.ErrInvalidOp, nil, send(0, verbs.Request{Op: verbs.OpWriteImmediate})},
		{"send: second in the list", verbs.ErrInvalidOp, nil, send(1, verbs.Request{}, verbs.Request{Op: verbs.OpRecv}, verbs.Request{})},
		{"send: elements", verbs.ErrInvalidSGLLength, nil, send(0, verbs.Request{SGL: six})},
		{"write: elements", verbs.ErrInvalidSGLLength, nil, send(0, verbs.Request{Op: verbs.OpWrite, SGL: six})},
		{"send: full", verbs.ErrQueueFull, nil, send(4, make([]verbs.Request, 5)...)},
		{"send: state", verbs.ErrInvalidState, inError, send(0, verbs.Request{})},
		{"send: flags", verbs.ErrInvalidModifier, nil, send(0, verbs.Request{Flags: 1 << 7})},
		{"bind: without modifiers", verbs.ErrInvalidModifier, nil, send(0, verbs.Request{Op: verbs.OpBind})},
		{"bind: window of zero", verbs.ErrInvalidModifier, nil, send(0, bind(verbs.BindRequest{Window: 5, Region: 0x100}))},
		{"bind: region of zero", verbs.ErrInvalidModifier, nil, send(0, bind(verbs.BindRequest{Window: 0x100, Region: 5}))},
		{"fast-register: without modifiers", verbs.ErrInvalidModifier, nil, send(0, verbs.Request{Op: verbs.OpFastRegister})},
		{"fast-register: of zero", verbs.ErrInvalidModifier, nil, send(0, verbs.Request{Op: verbs.OpFastRegister, FastRegister: &verbs.FastRegisterRequest{STag: 5}})},
		{"invalidate: of zero", verbs.ErrInvalidModifier, nil, send(0, verbs.Request{Op: verbs.OpInvalidate, Invalidate: 5})},
		{"receive: elements", verbs.ErrInvalidSGLLength, nil, recv(1, verbs.Recv{}, verbs.Recv{SGL: six})},
		{"receive: full", verbs.ErrQueueFull, nil, recv(4, make([]verbs.Recv, 5)...)},
		{"receive: state", verbs.ErrInvalidState, inError, recv(0, verbs.Recv{})},
	})
}

// TestAllOperations: the ten operations of PostSQ and Receive, between two
// programs that see the effect of each (9.3.1.1, 9.3.2.1).
func TestAllOperations(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{Privileged: true}), newNode(t, verbs.QPConfig{})
	join(t, a.qp, b.qp, true)
	victims := make([]*verbs.MR, 2)
	for i := range victims {
		var err error
		victims[i], err = b.pd.RegisterRegion(verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights, RemoteInvalidate: true})
		require.NoError(t, err)
	}
	sink, err := a.pd.Register(make([]byte, 8), allRights)
	require.NoError(t, err)
	region, err := a.pd.AllocateRegion(verbs.AllocateConfig{})
	require.NoError(t, err)
	window, err := a.pd.AllocateWindow()
	require.NoError(t, err)
	under, err := a.pd.Register(make([]byte, 8), localRights|verbs.BindWindow)
	require.NoError(t, err)
	pages, err := a.nic.AllocatePages(1, 4096)
	require.NoError(t, err)
	require.NoError(t, second(b.qp.PostRecv(make([]verbs.Recv, 4)...)))
	requests := []verbs.Request{
		{Op: verbs.OpSend},
		{Op: verbs.OpSendSE},
		{Op: verbs.OpSendInvalidate, Invalidate: victims[0].STag()},
		{Op: verbs.OpSendSEInvalidate, Invalidate: victims[1].STag()},
		{Op: verbs.OpWrite, SGL: a.mr.SGL(0, 5), Remote: b.mr.Remote(0)},
		{Op: verbs.OpRead, Local: a.mr.SGE(8, 5), Remote: b.mr.Remote(0)},
		{Op: verbs.OpReadInvalidate, Local: sink.SGE(0, 5), Remote: b.mr.Remote(0)},
		{Op: verbs.OpBind, Bind: window.BindRequest(under, 0, 8, verbs.RemoteRead, 1)},
		{Op: verbs.OpFastRegister, FastRegister: &verbs.FastRegisterRequest{
			STag: region.STag(), Buffers: pages.List(0, 9), Addressing: verbs.ZeroBased, Access: localRights,
		}},
		{Op: verbs.OpInvalidate, Invalidate: window.STag(1), Flags: verbs.LocalFence},
	}
	copy(a.mr.Bytes(), "hello")
	for i, r := range requests {
		r.ID = uint64(i)
		require.NoError(t, second(a.qp.PostSend(r)))
	}
	for i, c := range a.wait(t, len(requests)) { // in order, all of them successes
		assert.Equal(t, []any{uint64(i), requests[i].Op, a.qp.ID()}, []any{c.ID, c.Op, c.QP})
	}
	for i, c := range b.wait(t, 4) {
		assert.Equal(t, verbs.OpRecv, c.Op)
		assert.Equal(t, i >= 2, c.HasInvalidated)
		if c.HasInvalidated {
			assert.Equal(t, victims[i-2].STag(), c.Invalidated)
		}
	}
	assert.Equal(t, "hello", string(b.mr.Bytes()[:5]))
	assert.Equal(t, "hello", string(a.mr.Bytes()[8:13]))
	assert.Equal(t, "hello", string(sink.Bytes()[:5]))
	for mr, valid := range map[*verbs.MR]bool{victims[0]: false, victims[1]: false, sink: false, region: true, under: true} {
		at, err := mr.Query()
		require.NoError(t, err)
		assert.Equal(t, valid, at.Valid)
	}
	w, err := window.Query()
	require.NoError(t, err)
	assert.False(t, w.Valid)
}

// TestRoom: Room is how many posts are taken, whatever the state, and of a shared receive queue none.
func TestRoom(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	check := func(state verbs.State, sends, recvs int) {
		t.Helper()
		require.Equal(t, state, w.qp.State())
		s, r := w.qp.Room()
		assert.Equal(t, [2]int{sends, recvs}, [2]int{s, r})
		r, _ = w.qp.PostRecv(make([]verbs.Recv, 9)...)
		writes := slices.Repeat([]verbs.Request{{Op: verbs.OpWrite}}, 9) // of nothing: the peer has no receives for Sends
		s, _ = w.qp.PostSend(writes...)
		assert.Equal(t, [2]int{sends, recvs}, [2]int{s, r})
	}
	w.connect()
	check(verbs.StateRTS, 4, 4)
	_, recvs := w.sharing.Room()
	assert.Zero(t, recvs)
	_ = w.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}) // refused if the peer, which has no receive, has ended it already
	<-w.qp.Done()
	check(verbs.StateError, 0, 0)
}
