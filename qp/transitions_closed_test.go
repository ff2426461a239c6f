package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// The cells of Closing and Terminate (verbs draft figures 11 and 9).

// inClosing is a rig in Closing whose peer has seen the FIN.
func inClosing(t *testing.T) *rig {
	r := in(t, wr.StateClosing, setup{})
	r.requireEnd(rawpeer.FIN)
	return r
}

func closingSegment(t *testing.T) {
	r := inClosing(t)
	r.send(someWrite(r))
	r.requireToldIn(wr.StateError)
	r.requireSettled(wr.StateError, wr.EventBadClose)
	r.requireReset()
	r.requireMemory() // it is not processed
	require.Nil(t, r.q.Query().Terminate)
	r.requireReusable()
}

func closingTerminateReceived(t *testing.T) {
	r := inClosing(t)
	r.send(terminate(0x0207, echoNone, nil))
	r.requireToldIn(wr.StateError)
	r.requireSettled(wr.StateError, wr.EventBadClose)
	r.requireReset()
	require.Equal(t, &TerminateMessage{Code: 0x0207, Raw: []byte{2, 7, 0, 0}}, r.q.Query().Terminate)
	r.requireReusable()
}

func closingFault(t *testing.T) {
	r := inClosing(t)
	r.q.Fail()
	r.requireToldIn(wr.StateError)
	r.requireSettled(wr.StateError, wr.EventLocalQPCatastrophic)
	r.requireReset()
	r.requireReusable()
}

// closingLLPFailure is the LLP's final timeout: the peer is still there to see
// the RST.
func closingLLPFailure(t *testing.T) {
	r := in(t, wr.StateRTS, short)
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateClosing}))
	r.requireToldIn(wr.StateError)
	r.requireSettled(wr.StateError, wr.EventLLPLost)
	r.requireReset()
	r.requireReusable()
}

func closingBusy(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.arrange(false)
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateClosing}))
	r.requireToldIn(wr.StateError)
	r.requireSettled(wr.StateError, wr.EventBadClose)
	r.requireEnd(rawpeer.Reset)
	require.Equal(t, flushed(10, 11), r.all(r.scq))
	require.Equal(t, flushed(1, 2), r.all(r.rcq))
	r.requireReusable()
}

func closingClosed(t *testing.T) {
	r := inClosing(t)
	peerCloses(r)
	r.requireSettled(wr.StateIdle, wr.EventLLPCloseComplete)
	r.connect()
}

// inTerminate is a rig in Terminate whose peer has seen the Terminate Message and
// the FIN.
func inTerminate(t *testing.T) *rig {
	r := in(t, wr.StateTerminate, setup{})
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	r.requireEnd(rawpeer.FIN)
	return r
}

func terminateSegment(t *testing.T) {
	r := inTerminate(t)
	r.send(someWrite(r), rawpeer.Send(9, nil).Octets())
	for range 20 { // more than the receive buffer takes
		r.send(rawpeer.Send(9, make([]byte, 60000)).Octets())
	}
	require.NoError(t, r.peer.Raw([]byte{1}), "part of one")
	peerCloses(r)
	r.requireSettled(wr.StateError)
	r.requireMemory()
	r.requireReusable()
}

func terminateTerminateReceived(t *testing.T) {
	r := inTerminate(t)
	r.send(terminate(0x0207, echoNone, nil))
	peerCloses(r)
	r.requireSettled(wr.StateError)
	require.Equal(t, &TerminateMessage{Sent: true, Raw: make([]byte, 4)}, r.q.Query().Terminate, "the first one stays")
	r.requireReusable()
}

func terminateFault(t *testing.T) {
	r := inTerminate(t)
	r.q.Fail()
	soon(t, func() bool { return r.s.laterFault.Load() == 0 })
	require.Equal(t, wr.StateTerminate, r.q.State())
	peerCloses(r)
	r.requireSettled(wr.StateError)
	r.requireReusable()
}

func terminateLLPFailure(t *testing.T) {
	r := in(t, wr.StateRTS, short)
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateTerminate}))
	r.requireToldIn(wr.StateError)
	r.requireSettled(wr.StateError, wr.EventBadClose)
	r.requireReset()
	r.requireReusable()
}

func terminateClosed(t *testing.T) {
	r := inTerminate(t)
	peerCloses(r)
	r.requireSettled(wr.StateError)
	r.requireReusable()
}
