package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// The cells of Idle, RTS and Error (verbs draft figures 7, 8 and 10).

func idlePostSQ(t *testing.T) {
	r := in(t, wr.StateIdle, setup{})
	r.postSend(wr.Request{ID: 1})
	require.Equal(t, wr.StateIdle, r.q.State())
	require.Zero(t, r.scq.Len(), "RV-6.2.1-M3")
	r.connect()
	require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next(), "it was queued")
	require.Equal(t, ok(1), r.wait(r.scq, 1))
	requireStays(t, wr.StateIdle, trigPostSQ)
}

func idlePostRQ(t *testing.T) {
	r := in(t, wr.StateIdle, setup{})
	r.postRecv(wr.Recv{ID: 1})
	require.Equal(t, wr.StateIdle, r.q.State())
	require.Zero(t, r.rcq.Len())
	r.connect()
	r.send(rawpeer.Send(1, nil).Octets())
	require.Equal(t, ok(1), r.wait(r.rcq, 1))
	requireStays(t, wr.StateIdle, trigPostRQ)
}

func idleModifyRTS(t *testing.T) {
	r := in(t, wr.StateIdle, setup{})
	r.postSend(wr.Request{ID: 1})
	r.connect()
	require.Equal(t, wr.StateRTS, r.q.State())
	require.NotNil(t, r.q.Query().Stream)
	require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
	r.requireEvents()
}

func idleModifyError(t *testing.T) {
	r := in(t, wr.StateIdle, setup{})
	r.postSend(wr.Request{ID: 1}, wr.Request{ID: 2, Flags: wr.Unsignaled})
	r.postRecv(wr.Recv{ID: 3})
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
	require.Equal(t, wr.StateError, r.q.State())
	require.Equal(t, flushed(1, 2), r.all(r.scq), "an error is reported unasked")
	require.Equal(t, flushed(3), r.all(r.rcq))
	r.requireEvents()
	r.requireReusable()
}

func idleFault(t *testing.T) {
	r := in(t, wr.StateIdle, setup{})
	r.postSend(wr.Request{ID: 1})
	r.postRecv(wr.Recv{ID: 2})
	r.q.Fail()
	require.Equal(t, wr.StateError, r.q.State())
	require.Equal(t, flushed(1), r.all(r.scq))
	require.Equal(t, flushed(2), r.all(r.rcq))
	r.requireEvents(wr.EventLocalQPCatastrophic)
	r.requireReusable()
}

func rtsPostSQ(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.postSend(wr.Request{ID: 1})
	require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
	require.Equal(t, ok(1), r.wait(r.scq, 1))
	require.Equal(t, wr.StateRTS, r.q.State())
	requireStays(t, wr.StateRTS, trigPostSQ)
}

func rtsPostRQ(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.postRecv(wr.Recv{ID: 1})
	r.send(rawpeer.Send(1, nil).Octets())
	require.Equal(t, ok(1), r.wait(r.rcq, 1))
	require.Equal(t, wr.StateRTS, r.q.State())
	requireStays(t, wr.StateRTS, trigPostRQ)
}

func rtsModifyClosing(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.arrange(true)
	promptly(t, "Modify QP", func() { require.NoError(t, r.q.Modify(Modify{Next: wr.StateClosing})) })
	r.requireEnd(rawpeer.FIN)
	require.Equal(t, flushed(1, 2), r.wait(r.rcq, 2))
	require.Equal(t, wr.StateClosing, r.q.State())
	r.requireEvents()
}

func rtsModifyTerminate(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.arrange(false)
	promptly(t, "Modify QP", func() { require.NoError(t, r.q.Modify(Modify{Next: wr.StateTerminate})) })
	require.NotNil(t, r.q.Query().Terminate, "from the moment that the state can be seen")
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	r.requireEnd(rawpeer.FIN)
	require.Equal(t, flushed(10, 11), r.wait(r.scq, 2))
	require.Equal(t, flushed(1, 2), r.wait(r.rcq, 2))
	require.Equal(t, &TerminateMessage{Sent: true, Raw: make([]byte, 4)}, r.q.Query().Terminate)
	require.Equal(t, wr.StateTerminate, r.q.State())
	r.requireEvents()
}

func rtsModifyError(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.arrange(false)
	promptly(t, "Modify QP", func() { require.NoError(t, r.q.Modify(Modify{Next: wr.StateError})) })
	require.Equal(t, flushed(10, 11), r.all(r.scq))
	require.Equal(t, flushed(1, 2), r.all(r.rcq))
	r.requireEnd(rawpeer.Reset)
	r.requireSettled(wr.StateError)
	require.Nil(t, r.q.Query().Terminate)
	r.requireReusable()
}

func rtsSegment(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.postRecv(wr.Recv{ID: 1})
	r.send(someWrite(r), rawpeer.Send(1, nil).Octets())
	require.Equal(t, ok(1), r.wait(r.rcq, 1))
	r.full.expect(0, filled(4))
	r.requireMemory()
	require.Equal(t, wr.StateRTS, r.q.State())
	requireStays(t, wr.StateRTS, trigSegment)
}

func rtsTerminateReceived(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.arrange(false)
	r.send(terminate(0x0207, echoNone, nil))
	r.requireEnd(rawpeer.FIN) // and none is sent back
	require.Equal(t, flushed(10, 11), r.wait(r.scq, 2))
	require.Equal(t, flushed(1, 2), r.wait(r.rcq, 2))
	require.Equal(t, &TerminateMessage{Code: 0x0207, Raw: []byte{2, 7, 0, 0}}, r.q.Query().Terminate)
	require.Equal(t, wr.StateTerminate, r.q.State())
	r.requireEvents(wr.EventTerminateReceived)
}

func rtsFault(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.arrange(false)
	bad := rawpeer.Segment{Op: rdmap.Opcode(0xF), MSN: 1}.Octets()
	r.send(bad)
	require.Equal(t, terminate(0x0206, echoDDP, bad), r.next())
	r.requireEnd(rawpeer.FIN)
	require.Equal(t, flushed(10, 11), r.wait(r.scq, 2))
	require.Equal(t, flushed(1, 2), r.wait(r.rcq, 2))
	require.Equal(t, wr.StateTerminate, r.q.State())
	r.requireEvents(wr.EventUnexpectedOpcode)
}

// rtsLLPFailure has the stream end within a length: the peer is still there to
// see the RST.
func rtsLLPFailure(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.arrange(false)
	require.NoError(t, r.peer.Raw([]byte{0}))
	peerCloses(r)
	r.requireEnd(rawpeer.Reset)
	r.requireToldIn(wr.StateError)
	r.requireSettled(wr.StateError, wr.EventLLPLost)
	require.Equal(t, flushed(10, 11), r.all(r.scq))
	require.Equal(t, flushed(1, 2), r.all(r.rcq))
	r.requireReusable()
}

// rtsPeerClose goes on to Idle at once: the peer's half is closed.
func rtsPeerClose(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.arrange(true)
	peerCloses(r)
	r.requireEnd(rawpeer.FIN)
	r.requireSettled(wr.StateIdle, wr.EventLLPCloseComplete)
	require.Equal(t, flushed(1, 2), r.all(r.rcq))
}

// rtsPeerCloseBusy goes on to Error at once.
func rtsPeerCloseBusy(t *testing.T) {
	r := in(t, wr.StateRTS, setup{})
	r.arrange(false)
	peerCloses(r)
	require.Equal(t, terminate(0x0207, echoNone, nil), r.next())
	r.requireEnd(rawpeer.FIN)
	r.requireToldIn(wr.StateTerminate)
	r.requireSettled(wr.StateError, wr.EventBadLLPClose)
	require.Equal(t, flushed(10, 11), r.all(r.scq))
	require.Equal(t, flushed(1, 2), r.all(r.rcq))
	r.requireReusable()
}

func errorModifyIdle(t *testing.T) {
	r := in(t, wr.StateError, setup{})
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateIdle}))
	require.Equal(t, wr.StateIdle, r.q.State())
	r.postSend(wr.Request{ID: 1})
	r.connect()
	require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
	r.requireEvents()
}

func errorFault(t *testing.T) {
	r := in(t, wr.StateError, setup{})
	r.q.Fail()
	require.Equal(t, wr.StateError, r.q.State())
	r.requireEvents()
	r.requireReusable()
}

// soon waits for what happens without the peer.
func soon(t *testing.T, what func() bool) {
	t.Helper()
	require.Eventually(t, what, patience, time.Millisecond)
}
