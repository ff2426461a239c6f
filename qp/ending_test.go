package qp

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// TestReadFaultBehindAnAnswer has the second of two Reads fail: the first is
// answered ahead of the Terminate (RFC 5040 6.2.1).
func TestReadFaultBehindAnAnswer(t *testing.T) {
	r := newRig(t, setup{})
	r.arrange(true)
	r.s.tx.mu.Lock()
	bad := readRequest(2, 9, r.gone, 3).Octets()
	r.send(goodRead(1)(r), bad)
	require.Eventually(t, func() bool { return r.s.irrq.len() == 2 }, patience, time.Millisecond)
	r.s.tx.mu.Unlock()
	r.s.tx.tryTransmit()
	require.Equal(t, rawpeer.ReadResponse(0x5151, 0x6262, r.full.mem()[:4]).Octets(), r.next())
	require.Equal(t, terminate(0x0100, echoRead, bad), r.next())
	r.requireEnd(rawpeer.FIN)
	require.NoError(t, r.peer.Close())
	r.over()
	r.requireEvents(wr.EventIRRQSTag)
}

// TestGate has a Responder keep silent until it has a good FPDU (RFC 5044 7.1.2
// rule 6), the Terminate included.
func TestGate(t *testing.T) {
	c := setup{role: mpa.Responder, crc: true}
	t.Run("opens with the first FPDU", func(t *testing.T) {
		r := newRig(t, c)
		r.postSend(wr.Request{ID: 1})
		require.True(t, r.peer.Silent(20*time.Millisecond))
		require.Empty(t, r.all(r.scq))
		r.openGate()
		require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
		require.Equal(t, []comp{{1, 0, 0}}, r.wait(r.scq, 1))
	})
	t.Run("bad first FPDU", func(t *testing.T) {
		r := newRig(t, c)
		r.postSend(wr.Request{ID: 1})
		b := r.peer.Frame(rawpeer.Send(1, nil).Octets())
		b[len(b)-1] ^= 1
		require.NoError(t, r.peer.Raw(b))
		r.requireEnd(rawpeer.FIN)
		require.NoError(t, r.peer.Close())
		r.over()
		r.requireEvents(wr.EventBadCRC)
		assert.Equal(t, flushed(1), r.all(r.scq))
		r.set.role = mpa.Initiator
		r.requireReusable()
	})
	t.Run("Modify to Terminate", func(t *testing.T) {
		r := newRig(t, c)
		require.NoError(t, r.q.Modify(Modify{Next: wr.StateTerminate}))
		r.requireEnd(rawpeer.FIN)
		require.NoError(t, r.peer.Close())
		r.over()
		r.requireEvents()
	})
	t.Run("FIN with work", func(t *testing.T) {
		r := newRig(t, c)
		r.postSend(wr.Request{ID: 1})
		require.NoError(t, r.peer.CloseWrite())
		r.requireEnd(rawpeer.FIN)
		r.over()
		r.requireEvents(wr.EventBadLLPClose)
		assert.Equal(t, flushed(1), r.all(r.scq))
	})
}

func streamFor(s wr.State) *mpa.Stream {
	if s == wr.StateRTS {
		return &mpa.Stream{}
	}
	return nil
}

// noHalf is a connection whose half-close fails.
type noHalf struct{ net.Conn }

func (noHalf) CloseWrite() error { return io.ErrClosedPipe }

// TestHalfCloseFails: the peer's close is no end of an LLP Close that this side
// could not begin.
func TestHalfCloseFails(t *testing.T) {
	r := newIdleRig(t, setup{})
	a, b, err := rawpeer.Pair()
	require.NoError(t, err)
	r.start(noHalf{a}, b)
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateClosing}))
	peerCloses(r)
	r.requireSettled(wr.StateError, wr.EventLLPLost)
	r.requireReusable()
}

// slowClose is a connection whose Close blocks, from the second call on.
type slowClose struct {
	net.Conn
	calls chan struct{}
	free  chan struct{}
}

func (c *slowClose) Close() error {
	err := c.Conn.Close()
	select {
	case c.calls <- struct{}{}:
	default:
		<-c.free
	}
	return err
}

// TestStillFlushing asks for Idle while the way to Error is not over yet (verbs
// draft 6.2.4).
func TestStillFlushing(t *testing.T) {
	r := newIdleRig(t, setup{})
	a, b, err := rawpeer.Pair()
	require.NoError(t, err)
	c := &slowClose{a, make(chan struct{}, 1), make(chan struct{})}
	free := sync.OnceFunc(func() { close(c.free) })
	t.Cleanup(free)
	r.start(c, b)
	r.postRecv(wr.Recv{ID: 1})
	done := make(chan error)
	go func() { done <- r.q.Modify(Modify{Next: wr.StateError}) }()
	<-r.s.decided
	require.Equal(t, wr.StateError, r.q.State())
	require.ErrorIs(t, r.q.Modify(Modify{Next: wr.StateIdle}), wr.ErrStillFlushing)
	require.Equal(t, wr.StateError, r.q.State())
	free()
	require.NoError(t, <-done)
	require.Equal(t, flushed(1), r.all(r.rcq))
	r.requireReusable()
}

// TestPostedInIdle is sent once there is a stream, behind the last message of
// streaming mode; what came early is received (verbs draft 6.2.1.2, 6.6.1).
func TestPostedInIdle(t *testing.T) {
	r := newIdleRig(t, setup{})
	r.postSend(wr.Request{ID: 1})
	r.postRecv(wr.Recv{ID: 2, SGL: r.full.sgl(0, 9)})
	a, b, err := rawpeer.Pair()
	require.NoError(t, err)
	r.peer = rawpeer.New(b, rawpeer.Options{})
	early := r.peer.Frame(rawpeer.Send(1, filled(9)).Octets())
	require.NoError(t, r.peer.Raw(early[20:]))
	require.NoError(t, r.q.Modify(Modify{
		Next: wr.StateRTS, LastMessage: []byte("last words"),
		Stream: &mpa.Stream{Conn: a, Role: mpa.Initiator, Early: early[:20]},
	}))
	r.s = r.q.session.Load()
	last := make([]byte, 10)
	_, err = io.ReadFull(b, last)
	require.NoError(t, err)
	require.Equal(t, "last words", string(last))
	require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
	require.Equal(t, []comp{{2, 0, 9}}, r.wait(r.rcq, 1))
	r.full.expect(0, filled(9))
	r.requireMemory()
}
