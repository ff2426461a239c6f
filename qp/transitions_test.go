package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// cell is a pair of the state table.
type cell struct {
	State
	Trigger
}

// TestEveryTransition has a subtest for each cell with content. It brings a queue
// pair into the state, has the trigger happen, and checks with values of its own
// what follows: the state, the Immediate Error, and each action by what can be
// seen of it.
func TestEveryTransition(t *testing.T) {
	for _, s := range States() {
		t.Run(s.String(), func(t *testing.T) {
			for _, trig := range Triggers() {
				run, ok := transitions[cell{s, trig}]
				require.Equal(t, Happens(s, trig), ok, "%v: a cell without test, or a test without cell", trig)
				if ok {
					t.Run(trig.String(), run)
				}
			}
		})
	}
}

var transitions = map[cell]func(*testing.T){
	{Idle, TrigPostSQ}:          idlePostSQ,
	{Idle, TrigPostRQ}:          idlePostRQ,
	{Idle, TrigModifyIdle}:      modifies(Idle),
	{Idle, TrigModifyRTS}:       idleModifyRTS,
	{Idle, TrigModifyClosing}:   refused(Idle, TrigModifyClosing),
	{Idle, TrigModifyTerminate}: refused(Idle, TrigModifyTerminate),
	{Idle, TrigModifyError}:     idleModifyError,
	{Idle, TrigFault}:           idleFault,

	{RTS, TrigPostSQ}:            rtsPostSQ,
	{RTS, TrigPostRQ}:            rtsPostRQ,
	{RTS, TrigModifyIdle}:        refused(RTS, TrigModifyIdle),
	{RTS, TrigModifyRTS}:         modifies(RTS),
	{RTS, TrigModifyClosing}:     rtsModifyClosing,
	{RTS, TrigModifyTerminate}:   rtsModifyTerminate,
	{RTS, TrigModifyError}:       rtsModifyError,
	{RTS, TrigSegment}:           rtsSegment,
	{RTS, TrigTerminateReceived}: rtsTerminateReceived,
	{RTS, TrigFault}:             rtsFault,
	{RTS, TrigLLPFailure}:        rtsLLPFailure,
	{RTS, TrigPeerClose}:         rtsPeerClose,
	{RTS, TrigPeerCloseBusy}:     rtsPeerCloseBusy,

	{Closing, TrigPostSQ}:            refused(Closing, TrigPostSQ),
	{Closing, TrigPostRQ}:            refused(Closing, TrigPostRQ),
	{Closing, TrigModifyIdle}:        refused(Closing, TrigModifyIdle),
	{Closing, TrigModifyRTS}:         refused(Closing, TrigModifyRTS),
	{Closing, TrigModifyClosing}:     refused(Closing, TrigModifyClosing),
	{Closing, TrigModifyTerminate}:   refused(Closing, TrigModifyTerminate),
	{Closing, TrigModifyError}:       refused(Closing, TrigModifyError),
	{Closing, TrigSegment}:           closingSegment,
	{Closing, TrigTerminateReceived}: closingTerminateReceived,
	{Closing, TrigFault}:             closingFault,
	{Closing, TrigLLPFailure}:        closingLLPFailure,
	{Closing, TrigBusy}:              closingBusy,
	{Closing, TrigClosed}:            closingClosed,

	{Terminate, TrigPostSQ}:            refused(Terminate, TrigPostSQ),
	{Terminate, TrigPostRQ}:            refused(Terminate, TrigPostRQ),
	{Terminate, TrigModifyIdle}:        refused(Terminate, TrigModifyIdle),
	{Terminate, TrigModifyRTS}:         refused(Terminate, TrigModifyRTS),
	{Terminate, TrigModifyClosing}:     refused(Terminate, TrigModifyClosing),
	{Terminate, TrigModifyTerminate}:   refused(Terminate, TrigModifyTerminate),
	{Terminate, TrigModifyError}:       refused(Terminate, TrigModifyError),
	{Terminate, TrigSegment}:           terminateSegment,
	{Terminate, TrigTerminateReceived}: terminateTerminateReceived,
	{Terminate, TrigFault}:             terminateFault,
	{Terminate, TrigLLPFailure}:        terminateLLPFailure,
	{Terminate, TrigClosed}:            terminateClosed,

	{Error, TrigPostSQ}:          refused(Error, TrigPostSQ),
	{Error, TrigPostRQ}:          refused(Error, TrigPostRQ),
	{Error, TrigModifyIdle}:      errorModifyIdle,
	{Error, TrigModifyRTS}:       refused(Error, TrigModifyRTS),
	{Error, TrigModifyClosing}:   refused(Error, TrigModifyClosing),
	{Error, TrigModifyTerminate}: refused(Error, TrigModifyTerminate),
	{Error, TrigModifyError}:     refused(Error, TrigModifyError),
	{Error, TrigFault}:           errorFault,
}

// do is the verb that a trigger stands for.
func (r *rig) do(t Trigger) (err error) {
	switch t {
	case TrigPostSQ:
		_, err = r.q.PostSend(wr.Send{ID: 1})
	case TrigPostRQ:
		_, err = r.q.PostRecv(wr.Recv{ID: 1})
	case TrigModifyIdle:
		err = r.q.Modify(Modify{Next: Idle})
	case TrigModifyRTS:
		err = r.q.Modify(Modify{Next: RTS, Stream: streamFor(RTS)})
	case TrigModifyClosing:
		err = r.q.Modify(Modify{Next: Closing})
	case TrigModifyTerminate:
		err = r.q.Modify(Modify{Next: Terminate})
	case TrigModifyError:
		err = r.q.Modify(Modify{Next: Error})
	default:
		require.Fail(r.t, "no verb", "%v", t)
	}
	return err
}

// refused is a cell with an Immediate Error: nothing changes, nothing is queued.
func refused(s State, trig Trigger) func(*testing.T) {
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
func modifies(s State) func(*testing.T) {
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
func requireStays(t *testing.T, s State, trig Trigger) {
	t.Helper()
	require.Equal(t, s, Step(s, trig).Next)
}
