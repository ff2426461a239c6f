package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/wire"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// The cells of Idle, RTS and Error (verbs draft figures 7, 8 and 10).

func idlePostSQ(t *testing.T) {
	r := in(t, Idle, setup{})
	r.postSend(wr.Send{ID: 1})
	require.Equal(t, Idle, r.q.State())
	require.Zero(t, r.scq.Len(), "RV-6.2.1-M3")
	r.connect()
	require.Equal(t, wire.Send(1, nil).Octets(), r.next(), "it was queued")
	require.Equal(t, ok(1), r.wait(r.scq, 1))
	requireStays(t, Idle, TrigPostSQ)
}

func idlePostRQ(t *testing.T) {
	r := in(t, Idle, setup{})
	r.postRecv(wr.Recv{ID: 1})
	require.Equal(t, Idle, r.q.State())
	require.Zero(t, r.rcq.Len())
	r.connect()
	r.send(wire.Send(1, nil).Octets())
	require.Equal(t, ok(1), r.wait(r.rcq, 1))
	requireStays(t, Idle, TrigPostRQ)
}

func idleModifyRTS(t *testing.T) {
	r := in(t, Idle, setup{})
	r.postSend(wr.Send{ID: 1})
	r.connect()
	require.Equal(t, RTS, r.q.State())
	require.NotNil(t, r.q.Query().Stream)
	require.Equal(t, wire.Send(1, nil).Octets(), r.next())
	r.requireEvents()
}

func idleModifyError(t *testing.T) {
	r := in(t, Idle, setup{})
	r.postSend(wr.Send{ID: 1}, wr.Send{ID: 2, Flags: wr.Unsignaled})
	r.postRecv(wr.Recv{ID: 3})
	require.NoError(t, r.q.Modify(Modify{Next: Error}))
	require.Equal(t, Error, r.q.State())
	require.Equal(t, flushed(1, 2), r.all(r.scq), "an error is reported unasked")
	require.Equal(t, flushed(3), r.all(r.rcq))
	r.requireEvents()
	r.requireReusable()
}

func idleFault(t *testing.T) {
	r := in(t, Idle, setup{})
	r.postSend(wr.Send{ID: 1})
	r.postRecv(wr.Recv{ID: 2})
	r.q.Fail()
	require.Equal(t, Error, r.q.State())
	require.Equal(t, flushed(1), r.all(r.scq))
	require.Equal(t, flushed(2), r.all(r.rcq))
	r.requireEvents(wr.EventLocalQPCatastrophic)
	r.requireReusable()
}

func rtsPostSQ(t *testing.T) {
	r := in(t, RTS, setup{})
	r.postSend(wr.Send{ID: 1})
	require.Equal(t, wire.Send(1, nil).Octets(), r.next())
	require.Equal(t, ok(1), r.wait(r.scq, 1))
	require.Equal(t, RTS, r.q.State())
	requireStays(t, RTS, TrigPostSQ)
}

func rtsPostRQ(t *testing.T) {
	r := in(t, RTS, setup{})
	r.postRecv(wr.Recv{ID: 1})
	r.send(wire.Send(1, nil).Octets())
	require.Equal(t, ok(1), r.wait(r.rcq, 1))
	require.Equal(t, RTS, r.q.State())
	requireStays(t, RTS, TrigPostRQ)
}

func rtsModifyClosing(t *testing.T) {
	r := in(t, RTS, setup{})
	r.arrange(true)
	promptly(t, "Modify QP", func() { require.NoError(t, r.q.Modify(Modify{Next: Closing})) })
	r.requireEnd(wire.FIN)
	require.Equal(t, flushed(1, 2), r.wait(r.rcq, 2))
	require.Equal(t, Closing, r.q.State())
	r.requireEvents()
}

func rtsModifyTerminate(t *testing.T) {
	r := in(t, RTS, setup{})
	r.arrange(false)
	promptly(t, "Modify QP", func() { require.NoError(t, r.q.Modify(Modify{Next: Terminate})) })
	require.NotNil(t, r.q.Query().Terminate, "from the moment that the state can be seen")
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	r.requireEnd(wire.FIN)
	require.Equal(t, flushed(10, 11), r.wait(r.scq, 2))
	require.Equal(t, flushed(1, 2), r.wait(r.rcq, 2))
	require.Equal(t, &TerminateMessage{Sent: true, Raw: make([]byte, 4)}, r.q.Query().Terminate)
	require.Equal(t, Terminate, r.q.State())
	r.requireEvents()
}

func rtsModifyError(t *testing.T) {
	r := in(t, RTS, setup{})
	r.arrange(false)
	promptly(t, "Modify QP", func() { require.NoError(t, r.q.Modify(Modify{Next: Error})) })
	require.Equal(t, flushed(10, 11), r.all(r.scq))
	require.Equal(t, flushed(1, 2), r.all(r.rcq))
	r.requireEnd(wire.Reset)
	r.requireSettled(Error)
	require.Nil(t, r.q.Query().Terminate)
	r.requireReusable()
}

func rtsSegment(t *testing.T) {
	r := in(t, RTS, setup{})
	r.postRecv(wr.Recv{ID: 1})
	r.send(someWrite(r), wire.Send(1, nil).Octets())
	require.Equal(t, ok(1), r.wait(r.rcq, 1))
	r.full.expect(0, filled(4))
	r.requireMemory()
	require.Equal(t, RTS, r.q.State())
	requireStays(t, RTS, TrigSegment)
}

func rtsTerminateReceived(t *testing.T) {
	r := in(t, RTS, setup{})
	r.arrange(false)
	r.send(terminate(0x0207, echoNone, nil))
	r.requireEnd(wire.FIN) // and none is sent back
	require.Equal(t, flushed(10, 11), r.wait(r.scq, 2))
	require.Equal(t, flushed(1, 2), r.wait(r.rcq, 2))
	require.Equal(t, &TerminateMessage{Code: 0x0207, Raw: []byte{2, 7, 0, 0}}, r.q.Query().Terminate)
	require.Equal(t, Terminate, r.q.State())
	r.requireEvents(wr.EventTerminateReceived)
}

func rtsFault(t *testing.T) {
	r := in(t, RTS, setup{})
	r.arrange(false)
	bad := wire.Segment{Op: rdmap.Opcode(0xF), MSN: 1}.Octets()
	r.send(bad)
	require.Equal(t, terminate(0x0206, echoDDP, bad), r.next())
	r.requireEnd(wire.FIN)
	require.Equal(t, flushed(10, 11), r.wait(r.scq, 2))
	require.Equal(t, flushed(1, 2), r.wait(r.rcq, 2))
	require.Equal(t, Terminate, r.q.State())
	r.requireEvents(wr.EventUnexpectedOpcode)
}

// rtsLLPFailure has the stream end within a length: the peer is still there to
// see the RST.
func rtsLLPFailure(t *testing.T) {
	r := in(t, RTS, setup{})
	r.arrange(false)
	require.NoError(t, r.peer.Raw([]byte{0}))
	peerCloses(r)
	r.requireEnd(wire.Reset)
	r.requireToldIn(Error)
	r.requireSettled(Error, wr.EventLLPLost)
	require.Equal(t, flushed(10, 11), r.all(r.scq))
	require.Equal(t, flushed(1, 2), r.all(r.rcq))
	r.requireReusable()
}

// rtsPeerClose goes on to Idle at once: the peer's half is closed.
func rtsPeerClose(t *testing.T) {
	r := in(t, RTS, setup{})
	r.arrange(true)
	peerCloses(r)
	r.requireEnd(wire.FIN)
	r.requireSettled(Idle, wr.EventLLPCloseComplete)
	require.Equal(t, flushed(1, 2), r.all(r.rcq))
}

// rtsPeerCloseBusy goes on to Error at once.
func rtsPeerCloseBusy(t *testing.T) {
	r := in(t, RTS, setup{})
	r.arrange(false)
	peerCloses(r)
	require.Equal(t, terminate(0x0207, echoNone, nil), r.next())
	r.requireEnd(wire.FIN)
	r.requireToldIn(Terminate)
	r.requireSettled(Error, wr.EventBadLLPClose)
	require.Equal(t, flushed(10, 11), r.all(r.scq))
	require.Equal(t, flushed(1, 2), r.all(r.rcq))
	r.requireReusable()
}

func errorModifyIdle(t *testing.T) {
	r := in(t, Error, setup{})
	require.NoError(t, r.q.Modify(Modify{Next: Idle}))
	require.Equal(t, Idle, r.q.State())
	r.postSend(wr.Send{ID: 1})
	r.connect()
	require.Equal(t, wire.Send(1, nil).Octets(), r.next())
	r.requireEvents()
}

func errorFault(t *testing.T) {
	r := in(t, Error, setup{})
	r.q.Fail()
	require.Equal(t, Error, r.q.State())
	r.requireEvents()
	r.requireReusable()
}

// soon waits for what happens without the peer.
func soon(t *testing.T, what func() bool) {
	t.Helper()
	require.Eventually(t, what, patience, time.Millisecond)
}
