package verbs_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/verbshook"
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

// TestRoom: Room is how many posts are taken, whatever the state, and of a shared receive queue none.
func TestRoom(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	check := func(state verbs.State, sends, recvs int) {
		t.Helper()
		require.Equal(t, state, w.qp.State())
		s, r := verbshook.Room(w.qp)
		assert.Equal(t, [2]int{sends, recvs}, [2]int{s, r})
		r, _ = w.qp.PostRecv(make([]verbs.Recv, 9)...)
		writes := slices.Repeat([]verbs.Request{{Op: verbs.OpWrite}}, 9) // of nothing: the peer has no receives for Sends
		s, _ = w.qp.PostSend(writes...)
		assert.Equal(t, [2]int{sends, recvs}, [2]int{s, r})
	}
	w.connect()
	check(verbs.StateRTS, 4, 4)
	_, recvs := verbshook.Room(w.sharing)
	assert.Zero(t, recvs)
	_ = w.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}) // refused if the peer, which has no receive, has ended it already
	<-w.qp.Done()
	check(verbs.StateError, 0, 0)
}
