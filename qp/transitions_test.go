package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// cell is a pair of the state table.
type cell struct {
	wr.State
	trigger
}

// TestEveryTransition has a subtest for each cell with content. It brings a queue
// pair into the state, has the trigger happen, and checks with values of its own
// what follows: the state, the Immediate Error, and each action by what can be
// seen of it.
func TestEveryTransition(t *testing.T) {
	for _, s := range allStates() {
		t.Run(s.String(), func(t *testing.T) {
			for _, trig := range allTriggers() {
				run, ok := transitions[cell{s, trig}]
				require.Equal(t, happens(s, trig), ok, "%v: a cell without test, or a test without cell", trig)
				if ok {
					t.Run(trig.String(), run)
				}
			}
		})
	}
}

var transitions = map[cell]func(*testing.T){
	{wr.StateIdle, trigPostSQ}:          idlePostSQ,
	{wr.StateIdle, trigPostRQ}:          idlePostRQ,
	{wr.StateIdle, trigModifyIdle}:      modifies(wr.StateIdle),
	{wr.StateIdle, trigModifyRTS}:       idleModifyRTS,
	{wr.StateIdle, trigModifyClosing}:   refused(wr.StateIdle, trigModifyClosing),
	{wr.StateIdle, trigModifyTerminate}: refused(wr.StateIdle, trigModifyTerminate),
	{wr.StateIdle, trigModifyError}:     idleModifyError,
	{wr.StateIdle, trigFault}:           idleFault,

	{wr.StateRTS, trigPostSQ}:            rtsPostSQ,
	{wr.StateRTS, trigPostRQ}:            rtsPostRQ,
	{wr.StateRTS, trigModifyIdle}:        refused(wr.StateRTS, trigModifyIdle),
	{wr.StateRTS, trigModifyRTS}:         modifies(wr.StateRTS),
	{wr.StateRTS, trigModifyClosing}:     rtsModifyClosing,
	{wr.StateRTS, trigModifyTerminate}:   rtsModifyTerminate,
	{wr.StateRTS, trigModifyError}:       rtsModifyError,
	{wr.StateRTS, trigSegment}:           rtsSegment,
	{wr.StateRTS, trigTerminateReceived}: rtsTerminateReceived,
	{wr.StateRTS, trigFault}:             rtsFault,
	{wr.StateRTS, trigLLPFailure}:        rtsLLPFailure,
	{wr.StateRTS, trigPeerClose}:         rtsPeerClose,
	{wr.StateRTS, trigPeerCloseBusy}:     rtsPeerCloseBusy,

	{wr.StateClosing, trigPostSQ}:            refused(wr.StateClosing, trigPostSQ),
	{wr.StateClosing, trigPostRQ}:            refused(wr.StateClosing, trigPostRQ),
	{wr.StateClosing, trigModifyIdle}:        refused(wr.StateClosing, trigModifyIdle),
	{wr.StateClosing, trigModifyRTS}:         refused(wr.StateClosing, trigModifyRTS),
	{wr.StateClosing, trigModifyClosing}:     refused(wr.StateClosing, trigModifyClosing),
	{wr.StateClosing, trigModifyTerminate}:   refused(wr.StateClosing, trigModifyTerminate),
	{wr.StateClosing, trigModifyError}:       refused(wr.StateClosing, trigModifyError),
	{wr.StateClosing, trigSegment}:           closingSegment,
	{wr.StateClosing, trigTerminateReceived}: closingTerminateReceived,
	{wr.StateClosing, trigFault}:             closingFault,
	{wr.StateClosing, trigLLPFailure}:        closingLLPFailure,
	{wr.StateClosing, trigBusy}:              closingBusy,
	{wr.StateClosing, trigClosed}:            closingClosed,

	{wr.StateTerminate, trigPostSQ}:            refused(wr.StateTerminate, trigPostSQ),
	{wr.StateTerminate, trigPostRQ}:            refused(wr.StateTerminate, trigPostRQ),
	{wr.StateTerminate, trigModifyIdle}:        refused(wr.StateTerminate, trigModifyIdle),
	{wr.StateTerminate, trigModifyRTS}:         refused(wr.StateTerminate, trigModifyRTS),
	{wr.StateTerminate, trigModifyClosing}:     refused(wr.StateTerminate, trigModifyClosing),
	{wr.StateTerminate, trigModifyTerminate}:   refused(wr.StateTerminate, trigModifyTerminate),
	{wr.StateTerminate, trigModifyError}:       refused(wr.StateTerminate, trigModifyError),
	{wr.StateTerminate, trigSegment}:           terminateSegment,
	{wr.StateTerminate, trigTerminateReceived}: terminateTerminateReceived,
	{wr.StateTerminate, trigFault}:             terminateFault,
	{wr.StateTerminate, trigLLPFailure}:        terminateLLPFailure,
	{wr.StateTerminate, trigClosed}:            terminateClosed,

	{wr.StateError, trigPostSQ}:          refused(wr.StateError, trigPostSQ),
	{wr.StateError, trigPostRQ}:          refused(wr.StateError, trigPostRQ),
	{wr.StateError, trigModifyIdle}:      errorModifyIdle,
	{wr.StateError, trigModifyRTS}:       refused(wr.StateError, trigModifyRTS),
	{wr.StateError, trigModifyClosing}:   refused(wr.StateError, trigModifyClosing),
	{wr.StateError, trigModifyTerminate}: refused(wr.StateError, trigModifyTerminate),
	{wr.StateError, trigModifyError}:     refused(wr.StateError, trigModifyError),
	{wr.StateError, trigFault}:           errorFault,
}

// do is the verb that a trigger stands for.
func (r *rig) do(t trigger) (err error) {
	switch t {
	case trigPostSQ:
		_, err = r.q.PostSend(wr.Request{ID: 1})
	case trigPostRQ:
		_, err = r.q.PostRecv(wr.Recv{ID: 1})
	case trigModifyIdle:
		err = r.q.Modify(Modify{Next: wr.StateIdle})
	case trigModifyRTS:
		err = r.q.Modify(Modify{Next: wr.StateRTS, Stream: streamFor(wr.StateRTS)})
	case trigModifyClosing:
		err = r.q.Modify(Modify{Next: wr.StateClosing})
	case trigModifyTerminate:
		err = r.q.Modify(Modify{Next: wr.StateTerminate})
	case trigModifyError:
		err = r.q.Modify(Modify{Next: wr.StateError})
	default:
		require.Fail(r.t, "no verb", "%v", t)
	}
	return err
}

// refused is a cell with an Immediate Error: nothing changes, nothing is queued.
func refused(s wr.State, trig trigger) func(*testing.T) {
	return func(t *testing.T) {
		r := in(t, s, setup{})
		before, sends, recvs := r.q.Query(), r.q.sq.tail.Load(), r.q.rq.tail.Load()
		promptly(t, trig.String(), func() { require.ErrorIs(t, r.do(trig), wr.ErrInvalidState) })
		require.Equal(t, before, r.q.Query())
		require.Equal(t, s, r.q.State())
		require.Equal(t, sends, r.q.sq.tail.Load())
		require.Equal(t, recvs, r.q.rq.tail.Load())
		r.requireEvents()
	}
}

// modifies is a cell that changes attributes only.
func modifies(s wr.State) func(*testing.T) {
	return func(t *testing.T) {
		r := in(t, s, setup{})
		require.NoError(t, r.q.Modify(Modify{Next: s, ORD: num(3), SendDepth: num(64)}))
		got := r.q.Query()
		require.Equal(t, s, got.State)
		require.Equal(t, 3, got.ORD)
		require.Equal(t, 64, got.SendDepth)
		r.requireEvents()
	}
}

// requireStays checks what the code takes for granted: a trigger that is no
// Modify and no end of a stream leads nowhere, so that nobody looks.
func requireStays(t *testing.T, s wr.State, trig trigger) {
	t.Helper()
	require.Equal(t, s, step(s, trig).Next)
}
