package cm_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/verbs"
)

// served is a connection that a Listener has handed out, from both sides.
type served struct {
	a, b *host
	x, y *cm.Conn
}

func connectTo(t testing.TB, l *cm.Listener) (s served) {
	s.a, s.b = newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(bounded(t))
		if err == nil {
			s.y, err = r.Accept(bounded(t), s.b.qp, cm.Config{})
		}
		accepted <- err
	}()
	var err error
	s.x, err = cm.Dial(bounded(t), l.Addr().String(), s.a.qp, cm.Config{})
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	return s
}

// shutdown is a Shutdown under way: it has stopped listening.
func shutdown(ctx context.Context, l *cm.Listener) <-chan error {
	done := make(chan error, 1)
	go func() { done <- l.Shutdown(ctx) }()
	<-cm.Stopped(l)
	return done
}

// Shutdown rejects who waits for Accept, and waits for connections to end; those
// that ended before do not matter.
func TestShutdownDrains(t *testing.T) {
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	for range 20 {
		s := connectTo(t, l)
		require.NoError(t, s.x.Abort())
		<-s.y.Done()
	}
	require.Eventually(t, func() bool { return cm.HandedOut(l) == 0 }, time.Minute, time.Millisecond, "what is over is kept")
	s := connectTo(t, l)
	silent, waiting := dialFrom(t, "127.0.0.1", l), dialFrom(t, "127.0.0.1", l)
	ask(t, waiting, "x")
	cm.AwaitBacklog(l, 1)

	done := shutdown(bounded(t), l)
	rep, err := rawpeer.ReadStartup(waiting)
	require.NoError(t, err)
	assert.True(t, rep.Reject)
	_, err = silent.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = l.Accept(bounded(t))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err, "nobody listens")

	exchange(t, s.a, s.b)
	require.Empty(t, done, "a connection is left")
	require.NoError(t, s.x.Close())
	require.NoError(t, <-done)
	require.NoError(t, l.Shutdown(bounded(t)), "nothing is left")
	require.NoError(t, l.Close())
}

// A Request that the program has and has not answered counts too, and so does the
// connection that comes of it.
func TestShutdownAwaitsAnswers(t *testing.T) {
	for _, accept := range []bool{true, false} {
		l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
		require.NoError(t, err)
		h := newHost(t, verbs.QPConfig{})
		nc := dialFrom(t, "127.0.0.1", l)
		ask(t, nc, "x")
		r, err := l.Accept(bounded(t))
		require.NoError(t, err)
		done := shutdown(bounded(t), l)
		require.Empty(t, done)
		if !accept {
			require.NoError(t, r.Reject(nil))
			require.NoError(t, <-done)
			continue
		}
		c, err := r.Accept(bounded(t), h.qp, cm.Config{})
		require.NoError(t, err)
		require.Empty(t, done)
		require.NoError(t, c.Abort())
		require.NoError(t, <-done)
	}
}

// When its time is over, Shutdown aborts connections and closes Requests.
func TestShutdownAborts(t *testing.T) {
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	s := connectTo(t, l)
	undecided := dialFrom(t, "127.0.0.1", l)
	ask(t, undecided, "x")
	r, err := l.Accept(bounded(t))
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(bounded(t))
	done := shutdown(ctx, l)
	require.Empty(t, done)
	cancel()
	err = <-done
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "2 connections")
	for _, c := range []*cm.Conn{s.x, s.y} {
		<-c.Done()
	}
	assert.Equal(t, verbs.StateError, s.b.qp.State())
	_, err = undecided.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = r.Accept(bounded(t), newHost(t, verbs.QPConfig{}).qp, cm.Config{})
	require.Error(t, err, "too late")
}

// A Request whose answer is out when Shutdown's time is over comes to nothing.
func TestShutdownWhileAccepting(t *testing.T) {
	h := newHost(t, verbs.QPConfig{})
	pl := newPipeListener()
	l := cm.NewListener(pl, cm.ListenConfig{})
	nc := pl.dial()
	ask(t, nc, "x")
	r, err := l.Accept(bounded(t))
	require.NoError(t, err)
	_, err = r.Accept(bounded(t), newHost(t, verbs.QPConfig{}).errored(t), cm.Config{})
	require.ErrorIs(t, err, verbs.ErrInvalidState, "the Request stands")
	cm.GiveUp(l)
	accepted := make(chan error, 1)
	go func() {
		_, err := r.Accept(bounded(t), h.qp, cm.Config{})
		accepted <- err
	}()
	rep, err := rawpeer.ReadStartup(nc)
	require.NoError(t, err)
	assert.False(t, rep.Reject)
	require.ErrorIs(t, <-accepted, net.ErrClosed)
	assert.Equal(t, verbs.StateError, h.qp.State())
	require.NoError(t, l.Close())
}

// Close leaves what was handed out, and Shutdown waits for it then too.
func TestCloseThenShutdown(t *testing.T) {
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	s := connectTo(t, l)
	require.NoError(t, l.Close())
	exchange(t, s.a, s.b)
	done := shutdown(bounded(t), l)
	require.Empty(t, done)
	require.NoError(t, s.y.Abort())
	require.NoError(t, <-done)
}

// errored is the queue pair, in Error.
func (h *host) errored(t testing.TB) *verbs.QP {
	require.NoError(t, h.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	return h.qp
}
