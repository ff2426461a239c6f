package nd2_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/nd2"
)

// atOnce runs all in goroutines that begin together, and returns their errors.
func atOnce(all ...func() error) []error {
	errs, begin, done := make([]error, len(all)), make(chan struct{}), make(chan struct{})
	for i, f := range all {
		go func() { <-begin; errs[i] = f(); done <- struct{}{} }()
	}
	close(begin)
	for range all {
		<-done
	}
	return errs
}

// one says that exactly one of errs is nil, and the others match refused.
func one(t *testing.T, refused error, errs ...error) {
	t.Helper()
	good := 0
	for _, err := range errs {
		if err == nil {
			good++
		} else {
			require.ErrorIs(t, err, refused)
		}
	}
	require.Equal(t, 1, good, "%v", errs)
}

// TestTwiceAtOnce: of two calls that exclude each other one succeeds.
func TestTwiceAtOnce(t *testing.T) {
	for range 20 {
		a, b := newSide(t, shape{}), newSide(t, shape{})
		l, err := b.a.CreateListener()
		require.NoError(t, err)
		bind := func() error { return l.Bind(loopback) }
		one(t, nd2.ErrInvalidDeviceState, atOnce(bind, bind)...)
		listen := func() error { return l.Listen(0) }
		one(t, nd2.ErrInvalidDeviceState, atOnce(listen, listen)...)
		addr, err := l.GetLocalAddress()
		require.NoError(t, err)

		connect := func() error { return a.conn.Connect(bounded(t), a.qp, addr, 1, 1, nil) }
		connected := nd2.Overlap(bounded(t), func(context.Context) error {
			one(t, nd2.ErrConnectionActive, atOnce(connect, connect)...)
			return nil
		})
		get := func() error { return l.GetConnectionRequest(bounded(t), b.conn) }
		one(t, nd2.ErrConnectionActive, atOnce(get, get)...)
		accept := func() error { return b.conn.Accept(bounded(t), b.qp, 1, 1, nil) }
		one(t, nd2.ErrConnectionInvalid, atOnce(accept, accept)...)
		require.NoError(t, connected.GetOverlappedResult(true))
		complete := func() error { return a.conn.CompleteConnect(bounded(t)) }
		one(t, nd2.ErrConnectionInvalid, atOnce(complete, complete)...)
		meet(a, b)

		disconnect := func() error { return a.conn.Disconnect(bounded(t)) }
		crossing := func() error { return b.conn.Disconnect(bounded(t)) }
		errs := atOnce(disconnect, crossing, disconnect)
		one(t, nd2.ErrConnectionInvalid, errs[0], errs[2])
		require.NoError(t, errs[1], "crossing")
		a.gone()
		b.gone()
		closing := func() error { return a.qp.Close() }
		one(t, nd2.ErrInvalidHandle, atOnce(closing, closing)...)
		for range 500 {
			require.NoError(t, errors.Join(atOnce(a.mr.Close, a.mr.Close)...))
			require.NoError(t, a.mr.Register(a.buf, 0))
		}
		for _, err := range atOnce(l.Close, l.Close) {
			require.NoError(t, err)
		}
	}
}

// TestAcceptAndReject: one request, two answers.
func TestAcceptAndReject(t *testing.T) {
	for range 20 {
		a, b := newSide(t, shape{}), newSide(t, shape{})
		l, addr := b.listen()
		connected := nd2.Overlap(bounded(t), func(ctx context.Context) error { return a.conn.Connect(ctx, a.qp, addr, 1, 1, nil) })
		require.NoError(t, l.GetConnectionRequest(bounded(t), b.conn))
		errs := atOnce(
			func() error { return b.conn.Accept(bounded(t), b.qp, 1, 1, nil) },
			func() error { return b.conn.Reject([]byte("no")) },
		)
		one(t, nd2.ErrConnectionInvalid, errs...)
		if err := connected.GetOverlappedResult(true); errs[0] == nil {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, nd2.ErrConnectionRefused)
		}
	}
}

// TestCloseDuringConnect: a connector that is closed waits for nobody.
func TestCloseDuringConnect(t *testing.T) {
	a := newSide(t, shape{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	addr := netip.MustParseAddrPort(l.Addr().String())
	connected := nd2.Overlap(t.Context(), func(ctx context.Context) error { return a.conn.Connect(ctx, a.qp, addr, 1, 1, nil) })
	nc, err := l.Accept()
	require.NoError(t, err)
	defer nc.Close()
	_, err = nc.Read(make([]byte, 1)) // its Request: it waits for the Reply
	require.NoError(t, err)
	require.NoError(t, a.conn.Close())
	require.ErrorIs(t, connected.GetOverlappedResult(true), nd2.ErrCanceled)
}

// TestCloseAsConnectSucceeds: however the two fall, nobody keeps the connection.
func TestCloseAsConnectSucceeds(t *testing.T) {
	for range 40 {
		a, b := newSide(t, shape{}), newSide(t, shape{})
		l, addr := b.listen()
		connected := nd2.Overlap(bounded(t), func(ctx context.Context) error { return a.conn.Connect(ctx, a.qp, addr, 1, 1, nil) })
		require.NoError(t, l.GetConnectionRequest(bounded(t), b.conn))
		errs := atOnce(
			func() error { return b.conn.Accept(bounded(t), b.qp, 1, 1, nil) },
			a.conn.Close,
		)
		require.NoError(t, errs[1])
		if err := connected.GetOverlappedResult(true); err != nil {
			require.ErrorIs(t, err, nd2.ErrCanceled)
		}
		if errs[0] == nil {
			b.gone()
		}
	}
}

// TestCloseDuringGetConnectionRequest: a connector that is closed takes no request.
func TestCloseDuringGetConnectionRequest(t *testing.T) {
	a := newSide(t, shape{})
	l, _ := a.listen()
	got := nd2.Overlap(t.Context(), func(ctx context.Context) error { return l.GetConnectionRequest(ctx, a.conn) })
	for a.conn.Bind(loopback) == nil { // until it waits
	}
	require.NoError(t, a.conn.Close())
	require.ErrorIs(t, got.GetOverlappedResult(true), nd2.ErrCanceled)
}

// TestListenerOfAClosedAdapter: a listener that is made while the adapter is closed is closed with it, or not made.
func TestListenerOfAClosedAdapter(t *testing.T) {
	p := nd2.Provider{}
	id, err := p.ResolveAddress(loopback.Addr())
	require.NoError(t, err)
	for range 60 {
		a, err := p.OpenAdapter(id)
		require.NoError(t, err)
		var l *nd2.Listener
		errs := atOnce(a.Close, func() (err error) {
			for err == nil { // up to the last that can be made
				var next *nd2.Listener
				if next, err = a.CreateListener(); err == nil {
					l = next
				}
			}
			return err
		})
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], nd2.ErrDeviceRemoved)
		if l != nil {
			assert.ErrorIs(t, l.Bind(loopback), nd2.ErrInvalidDeviceState)
			require.NoError(t, l.Close())
		}
	}
}
