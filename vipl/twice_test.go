package vipl

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// atOnce runs all in goroutines that begin together, and returns their errors.
func atOnce(all ...func() error) []error {
	errs, begin := make([]error, len(all)), make(chan struct{})
	var wg sync.WaitGroup
	for i, f := range all {
		wg.Go(func() { <-begin; errs[i] = f() })
	}
	close(begin)
	wg.Wait()
	return errs
}

// one says that exactly one of errs is nil, and the others are ErrInvalidParameter.
func one(t *testing.T, errs ...error) {
	t.Helper()
	good := 0
	for _, err := range errs {
		if err == nil {
			good++
		} else {
			require.ErrorIs(t, err, ErrInvalidParameter)
		}
	}
	require.Equal(t, 1, good, "%v", errs)
}

// TestTwiceAtOnce: of two calls that exclude each other one succeeds.
func TestTwiceAtOnce(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{MatchTimeout: long})
	for range 20 {
		v, w, x := a.vi(0, nil, nil), b.vi(0, nil, nil), b.vi(0, nil, nil)
		connect := func() error {
			_, err := v.ConnectRequest(within(t), nil, b.address("x"))
			return err
		}
		connected := make(chan []error)
		go func() { connected <- atOnce(connect, connect) }()
		c, err := b.nic.ConnectWait(within(t), b.address("x"))
		require.NoError(t, err)
		errs := atOnce(func() error { return c.ConnectAccept(w) }, func() error { return c.ConnectAccept(x) })
		one(t, errs...)
		one(t, <-connected...)
		taken, other := w, x
		if errs[0] != nil {
			taken, other = x, w
		}
		require.Equal(t, []ViState{StateConnected, StateConnected, StateIdle}, []ViState{state(t, v), state(t, taken), state(t, other)})
		for _, err := range atOnce(v.Disconnect, taken.Disconnect, v.Disconnect) {
			require.NoError(t, err)
		}
		require.Equal(t, []ViState{StateIdle, StateIdle}, []ViState{state(t, v), state(t, taken)})
		one(t, atOnce(v.DestroyVi, v.DestroyVi)...)
	}
}

// TestAcceptAndReject: one request, two answers.
func TestAcceptAndReject(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{MatchTimeout: long})
	for range 20 {
		v, w := a.vi(0, nil, nil), b.vi(0, nil, nil)
		result := request(t, v, nil, b.address("x"))
		c, err := b.nic.ConnectWait(within(t), b.address("x"))
		require.NoError(t, err)
		errs := atOnce(func() error { return c.ConnectAccept(w) }, c.ConnectReject)
		one(t, errs...)
		if err := <-result; errs[0] == nil {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrReject)
		}
	}
}

// asked is a context that tells when somebody waits for it.
type asked struct {
	context.Context
	waits chan struct{}
}

func (c *asked) Done() <-chan struct{} {
	close(c.waits)
	return c.Context.Done()
}

// TestConnectPeerWaitOfTheLast: who waits for an attempt is told of that one, or that its end has been told, and
// never that another one goes on.
func TestConnectPeerWaitOfTheLast(t *testing.T) {
	v := newHost(t, Config{}).vi(0, nil, nil)
	first, second := &attempt{done: make(chan struct{})}, &attempt{done: make(chan struct{})}
	v.peer = first
	ctx := &asked{t.Context(), make(chan struct{})}
	result := make(chan error)
	go func() {
		_, err := v.ConnectPeerWait(ctx)
		result <- err
	}()
	<-ctx.waits
	v.mu.Lock()
	close(first.done)
	v.peer = second
	v.mu.Unlock()
	require.ErrorIs(t, <-result, ErrInvalidParameter)
	v.mu.Lock()
	v.peer = nil
	v.mu.Unlock()
}
