package cm_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// pipeListener is a net.Listener over net.Pipe, for tests with a clock of their
// own.
type pipeListener struct {
	conns chan net.Conn
	gone  chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), gone: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.gone:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.gone); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// dial returns the client's end once the listener has taken the other.
func (l *pipeListener) dial() net.Conn {
	a, b := net.Pipe()
	l.conns <- b
	return a
}

// TestSilentPeersDoNotStarve: of peers that send nothing, or an octet now and
// then, more than there are places for keep nobody out.
func TestSilentPeersDoNotStarve(t *testing.T) {
	for name, sent := range map[string]int{"silent": 0, "trickling": 5} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
				pl := newPipeListener()
				failed := make(chan error, 10)
				l := cm.NewListener(pl, cm.ListenConfig{
					MaxStartups: 3, Timeout: 3 * time.Second,
					OnStartupError: func(_ net.Addr, err error) { failed <- err },
				})
				start := time.Now()
				var peers sync.WaitGroup
				for range 9 {
					c := pl.dial()
					peers.Go(func() {
						for i := range sent {
							if _, err := c.Write([]byte("MPA ID")[i : i+1]); err != nil {
								return
							}
							time.Sleep(time.Second)
						}
					})
					t.Cleanup(func() { c.Close() })
				}
				go func() {
					r, err := l.Accept(t.Context())
					if assert.NoError(t, err) {
						_, err = r.Accept(t.Context(), b.qp, cm.Config{})
						assert.NoError(t, err)
					}
				}()
				x, err := cm.Connect(t.Context(), pl.dial(), a.qp, cm.Config{})
				require.NoError(t, err)
				assert.Zero(t, time.Since(start), "at once")
				exchange(t, a, b)
				require.NoError(t, x.Close())
				for range 7 {
					require.ErrorIs(t, <-failed, cm.ErrCrowded)
				}
				for range 2 {
					require.ErrorIs(t, <-failed, context.DeadlineExceeded)
				}
				assert.Equal(t, 3*time.Second, time.Since(start), "the last two had their time")
				require.NoError(t, l.Close())
				peers.Wait()
			})
		})
	}
}

// TestSlowPeerDelaysNoOther: a peer within its startup does not hold up those
// behind it.
func TestSlowPeerDelaysNoOther(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	slow, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer slow.Close()
	_, err = slow.Write([]byte("MPA ID"))
	require.NoError(t, err)
	go func() {
		r, err := l.Accept(t.Context())
		if assert.NoError(t, err) {
			_, err = r.Accept(t.Context(), b.qp, cm.Config{})
			assert.NoError(t, err)
		}
	}()
	x, err := cm.Dial(bounded(t), l.Addr().String(), a.qp, cm.Config{})
	require.NoError(t, err)
	exchange(t, a, b)
	require.NoError(t, x.Close())
	require.NoError(t, l.Close())
	_, err = io.ReadAll(slow)
	require.NoError(t, err, "closed with the Listener")
}

func TestListenerClose(t *testing.T) {
	h := newHost(t, verbs.QPConfig{})
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{
		OnStartupError: func(net.Addr, error) { assert.Fail(t, "the end of the Listener is no startup error") },
	})
	require.NoError(t, err)
	dialed := make(chan error, 1)
	go func() { // gets as far as waiting for somebody to call Accept
		_, err := cm.Dial(context.Background(), l.Addr().String(), h.qp, cm.Config{})
		dialed <- err
	}()
	waiting, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer waiting.Close()
	accepted := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Accept(ctx)
	if err != nil { // or the Request was quicker
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NoError(t, l.Close())
	go func() {
		_, err := l.Accept(context.Background())
		accepted <- err
	}()
	require.ErrorIs(t, <-accepted, net.ErrClosed)
	require.NoError(t, l.Close(), "twice is once")
	if err == nil {
		return // the Request that Accept returned is the program's
	}
	require.Error(t, <-dialed)
	assert.Equal(t, verbs.StateIdle, h.qp.State())
}

func TestAcceptContext(t *testing.T) {
	l := cm.NewListener(newPipeListener(), cm.ListenConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := l.Accept(ctx)
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	go func() {
		_, err := l.Accept(context.Background())
		done <- err
	}()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-done, net.ErrClosed)
}

func TestListenFailure(t *testing.T) {
	_, err := cm.Listen("127.0.0.1:99999", cm.ListenConfig{})
	require.Error(t, err)
}

// TestUnfitListener: a Listener that could take no peer says so, and waits for none.
func TestUnfitListener(t *testing.T) {
	for text, cfg := range map[string]cm.ListenConfig{
		"Config.Rev is 3: use 1 or 2":             {Rev: 3},
		"Config.IRD is 16383: the most is 16382":  {IRD: mpa.NotNegotiated},
		"Config.ORD is 100000: the most is 16382": {ORD: 100_000},
	} {
		_, err := cm.Listen("127.0.0.1:0", cfg)
		require.ErrorContains(t, err, text)
		nl, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		l := cm.NewListener(nl, cfg)
		over, end := context.WithCancel(bounded(t))
		end() // in place of a peer, which would wait
		_, err = l.Accept(over)
		require.ErrorContains(t, err, text)
		require.NoError(t, l.Close())
	}
}

// TestNegativeDepths: what is none for package mpa is a mistake here, and the peer hears of nothing.
func TestNegativeDepths(t *testing.T) {
	for text, cfg := range map[string]cm.Config{
		"Config.IRD is -1: use 1 or more, verbs.None for none": {IRD: -1},
		"Config.ORD is -7: use 1 or more, verbs.None for none": {ORD: -7},
	} {
		near, far := net.Pipe()
		_, err := cm.Connect(bounded(t), near, newHost(t, verbs.QPConfig{}).qp, cfg)
		require.ErrorContains(t, err, text)
		n, _ := far.Read(make([]byte, 1))
		require.Zero(t, n)

		near, far = net.Pipe()
		connected := make(chan error, 1)
		go func() {
			_, err := cm.Connect(bounded(t), far, newHost(t, verbs.QPConfig{}).qp, cm.Config{})
			connected <- err
		}()
		req, err := cm.Await(bounded(t), near, cm.Config{})
		require.NoError(t, err)
		_, err = req.Accept(bounded(t), newHost(t, verbs.QPConfig{}).qp, cfg)
		require.ErrorContains(t, err, text)
		require.Error(t, <-connected)
	}
}
