package qp

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// TestLastMessageStalls has a peer that does not take the last streaming message:
// the other verbs go on, a second Modify is refused, and Destroy ends it.
func TestLastMessageStalls(t *testing.T) {
	start := func(t *testing.T, c setup) (*rig, net.Conn, chan error) {
		r := newIdleRig(t, c)
		mine, theirs := net.Pipe() // takes nothing until it is read
		t.Cleanup(func() { _, _ = mine.Close(), theirs.Close() })
		done := make(chan error, 1)
		go func() {
			done <- r.q.Modify(Modify{
				Next: wr.StateRTS, Stream: &mpa.Stream{Conn: mine}, LastMessage: []byte("last words"),
				SendDepth: num(2), RecvDepth: num(64), ORD: num(1),
			})
		}()
		_, err := io.ReadFull(theirs, make([]byte, 4))
		require.NoError(t, err)
		return r, theirs, done
	}
	t.Run("other verbs", func(t *testing.T) {
		r, theirs, done := start(t, setup{})
		promptly(t, "Query", func() { assert.Equal(t, wr.StateIdle, r.q.Query().State) })
		n, err := r.q.PostSend(wr.Request{ID: 1}, wr.Request{ID: 2}, wr.Request{ID: 3})
		require.ErrorIs(t, err, wr.ErrQueueFull, "it has shrunk")
		require.Equal(t, 2, n)
		n, err = r.q.PostRecv(make([]wr.Recv, 17)...)
		require.ErrorIs(t, err, wr.ErrQueueFull, "it has not grown yet")
		require.Equal(t, 16, n)
		for _, next := range []wr.State{wr.StateIdle, wr.StateRTS, wr.StateError} {
			promptly(t, "Modify", func() {
				assert.ErrorIs(t, r.q.Modify(Modify{Next: next, Stream: streamFor(next)}), wr.ErrInvalidState)
			})
		}
		rest := make([]byte, 6)
		_, err = io.ReadFull(theirs, rest)
		require.NoError(t, err)
		require.Equal(t, " words", string(rest))
		require.NoError(t, <-done)
		a := r.q.Query()
		assert.Equal(t, []any{wr.StateRTS, 2, 64, 1}, []any{a.State, a.SendDepth, a.RecvDepth, a.ORD})
		r.peer = rawpeer.New(theirs, rawpeer.Options{Patience: patience})
		require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
	})
	t.Run("Destroy", func(t *testing.T) {
		r, _, done := start(t, setup{})
		promptly(t, "Destroy", func() { assert.NoError(t, r.q.Destroy()) })
		require.ErrorIs(t, <-done, wr.ErrInvalidQP)
		require.Nil(t, r.q.session.Load())
	})
	t.Run("Fail", func(t *testing.T) {
		r, theirs, done := start(t, setup{})
		r.q.Fail()
		require.Equal(t, wr.StateError, r.q.State())
		_, err := io.ReadFull(theirs, make([]byte, 6))
		require.NoError(t, err)
		require.ErrorIs(t, <-done, wr.ErrInvalidState)
		require.Equal(t, wr.StateError, r.q.State())
		r.requireEvents(wr.EventLocalQPCatastrophic)
		r.requireReusable()
	})
	t.Run("timeout changes nothing", func(t *testing.T) {
		before := newIdleRig(t, setup{}).q.Query()
		r := newIdleRig(t, setup{closeTimeout: 30 * time.Millisecond})
		mine, theirs := net.Pipe() // which nobody reads
		t.Cleanup(func() { _, _ = mine.Close(), theirs.Close() })
		require.ErrorIs(t, r.q.Modify(Modify{
			Next: wr.StateRTS, Stream: &mpa.Stream{Conn: mine}, LastMessage: []byte("last words"),
			SendDepth: num(2), RecvDepth: num(64), ORD: num(1),
		}), wr.ErrInvalidLLPStream)
		require.Equal(t, before, r.q.Query())
		r.connect()
	})
}

// TestLastMessageAndShrink: what cannot shrink is found before the message goes
// out.
func TestLastMessageAndShrink(t *testing.T) {
	r := newIdleRig(t, setup{})
	r.postSend(make([]wr.Request, 5)...)
	st := r.streamTo()
	before := r.q.Query()
	require.ErrorIs(t, r.q.Modify(Modify{Next: wr.StateRTS, Stream: st, LastMessage: []byte("x"), SendDepth: num(4)}), wr.ErrShrinkFailed)
	require.Equal(t, before, r.q.Query())
	require.True(t, r.peer.Silent(10*time.Millisecond))
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateRTS, Stream: st, SendDepth: num(5)}))
}

// TestEarlyTooLong changes nothing, and no last message goes out.
func TestEarlyTooLong(t *testing.T) {
	r := newIdleRig(t, setup{})
	st := r.streamTo()
	st.Early = make([]byte, 1<<20)
	before := r.q.Query()
	require.ErrorIs(t, r.q.Modify(Modify{Next: wr.StateRTS, Stream: st, LastMessage: []byte("x"), SendDepth: num(64)}), wr.ErrInvalidLLPStream)
	require.Equal(t, before, r.q.Query())
	require.True(t, r.peer.Silent(10*time.Millisecond))
}

// TestClosedStream is not an LLP stream to start on (verbs draft 6.2.1.2).
func TestClosedStream(t *testing.T) {
	r := newIdleRig(t, setup{})
	st := r.streamTo()
	require.NoError(t, st.Conn.Close())
	before := r.q.Query()
	require.ErrorIs(t, r.q.Modify(Modify{Next: wr.StateRTS, Stream: st, SendDepth: num(64)}), wr.ErrInvalidLLPStream)
	require.Equal(t, before, r.q.Query())
	r.connect()
}

// TestStreamKeepsNoDeadline of its startup.
func TestStreamKeepsNoDeadline(t *testing.T) {
	r := newIdleRig(t, setup{stream: func(s *mpa.Stream) { require.NoError(t, s.Conn.SetDeadline(time.Unix(1, 0))) }})
	r.connect()
	r.postSend(wr.Request{ID: 1})
	require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
	r.postRecv(wr.Recv{ID: 2})
	r.send(rawpeer.Send(1, nil).Octets())
	require.Equal(t, ok(2), r.wait(r.rcq, 1))
}
