package cases

import (
	"context"
	"net/netip"
	"runtime"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
	"github.com/softrnic/softrnic/vipl"
)

// guardsContexts are of contexts that calls are given: when a call is over, nothing is to be told of their ends, and
// nothing that lives on keeps them.
var guardsContexts = []conformance.Case{
	apiCase("4.1/vi-contexts-let-go", viContextsLetGo, "VA-4.1-M7"),
	apiCase("7.1.2/nd-contexts-let-go", ndContextsLetGo, "ND-Receive-M1"),
}

// letsGo makes calls with a context that does not end, and waits until nothing has it any more.
func letsGo(t *conformance.T, calls func(ctx context.Context)) {
	kept := func() weak.Pointer[watched] {
		ctx := &watched{Context: t.Context(), done: make(chan struct{})}
		calls(ctx)
		eventually(t, func() bool { return ctx.watches.Load() == 0 }, "the context has nobody to tell of its end")
		return weak.Make(ctx)
	}()
	eventually(t, func() bool {
		runtime.GC()
		return kept.Value() == nil
	}, "nothing keeps the context")
}

// viContextsLetGo connects VIs in each way, or in vain, and waits at them.
func viContextsLetGo(t *conformance.T) {
	a, b := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{})
	t.Part("rejected")
	letsGo(t, func(ctx context.Context) {
		v, answer, server := a.vi(vipl.ServiceReliableDelivery), make(chan error, 1), b.address("server")
		go func() { answer <- second(v.ConnectRequest(ctx, nil, server)) }()
		require.NoError(t, must(b.nic.ConnectWait(ctx, server))(t).ConnectReject())
		viCode(t, vipl.ErrReject, receive(t, answer, "no answer"), "ConnectRequest")
		require.NoError(t, v.DestroyVi())
	})
	for _, connect := range named(t, "%s", map[string]func(ctx context.Context, va, vb *vipl.Vi){
		"one asks": func(ctx context.Context, va, vb *vipl.Vi) {
			answer, server := make(chan error, 1), b.address("server")
			go func() { answer <- second(va.ConnectRequest(ctx, nil, server)) }()
			require.NoError(t, must(b.nic.ConnectWaitFrom(ctx, server, nil))(t).ConnectAccept(vb))
			require.NoError(t, receive(t, answer, "no answer"))
		},
		"both ask": func(ctx context.Context, va, vb *vipl.Vi) {
			require.NoError(t, va.ConnectPeerRequest(ctx, a.address("a"), b.address("b")))
			require.NoError(t, vb.ConnectPeerRequest(ctx, b.address("b"), a.address("a")))
			must(va.ConnectPeerWait(ctx))(t)
			must(vb.ConnectPeerWait(ctx))(t)
		},
	}) {
		letsGo(t, func(ctx context.Context) {
			q := b.cq(4)
			va, vb := a.vi(vipl.ServiceReliableDelivery), b.tied(vipl.ServiceReliableDelivery, nil, q)
			connect(ctx, va, vb)
			b.recv(vb)
			a.sends(va)
			must(va.SendWait(ctx))(t)
			require.NoError(t, second(first2(q.CQWait(ctx))))
			must(vb.RecvDone())(t)
			succeed(t, va.Disconnect, vb.Disconnect, va.DestroyVi, vb.DestroyVi, q.DestroyCQ)
		})
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

// first2 leaves the second of three results out.
func first2[A, B any](a A, _ B, err error) (A, error) { return a, err }

// ndContextsLetGo connects queue pairs, or does not come to, waits in each way and disconnects; the connectors and the
// listener live on.
func ndContextsLetGo(t *conformance.T) {
	a, b := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	l := must(b.adapter.CreateListener())(t)
	t.Cleanup(func() { _ = l.Close() })
	require.NoError(t, l.Bind(ndLoopback))
	require.NoError(t, l.Listen(0))
	addr := must(l.GetLocalAddress())(t)
	asked := func(ctx context.Context, c *nd2.Connector, addr netip.AddrPort) *nd2.Overlapped {
		return nd2.Overlap(ctx, func(ctx context.Context) error { return c.Connect(ctx, a.qp, addr, 1, 1, nil) })
	}
	t.Part("rejected")
	asks, hears := a.connector(), b.connector()
	letsGo(t, func(ctx context.Context) {
		o := asked(ctx, asks, addr)
		require.NoError(t, l.GetConnectionRequest(ctx, hears))
		require.NoError(t, hears.Reject(nil))
		require.ErrorIs(t, o.GetOverlappedResult(true), nd2.ErrConnectionRefused)
	})
	t.Part("connected")
	letsGo(t, func(ctx context.Context) {
		o := asked(ctx, a.conn, addr)
		require.NoError(t, l.GetConnectionRequest(ctx, b.conn))
		require.NoError(t, b.conn.Accept(ctx, b.qp, 1, 1, nil))
		require.NoError(t, o.GetOverlappedResult(true))
		require.NoError(t, a.conn.CompleteConnect(ctx))
		for range 2 {
			b.receive(1, 0, 8)
			require.NoError(t, a.qp.Send(2, nil, 0))
		}
		require.NoError(t, b.in.Notify(ctx, nd2.CQNotifyAny))
		var r [1]nd2.Result
		for range 2 {
			require.NoError(t, second(b.in.Wait(ctx, r[:])))
			require.NoError(t, second(a.out.Wait(ctx, r[:])))
		}
		require.NoError(t, a.conn.Disconnect(ctx))
		require.NoError(t, b.conn.NotifyDisconnect(ctx))
		succeed(t, a.qp.Close, b.qp.Close, a.in.Close, a.out.Close, b.in.Close, b.out.Close)
	})
	for _, c := range []*nd2.Connector{asks, hears, a.conn, b.conn} {
		require.NoError(t, c.Close())
	}
	t.Part("given up")
	c := a.connector()
	o := nd2.Overlap(t.Context(), func(ctx context.Context) error {
		return l.GetConnectionRequest(ctx, b.connector())
	})
	require.ErrorIs(t, o.GetOverlappedResult(false), nd2.Pending)
	require.NoError(t, o.CancelOverlappedRequests())
	require.ErrorIs(t, o.GetOverlappedResult(false), nd2.ErrCanceled)
	done := nd2.Overlap(t.Context(), func(context.Context) error { return nil })
	receive(t, done.Done(), "it is over")
	require.NoError(t, done.CancelOverlappedRequests(), "it has ended well before")
	failed := nd2.Overlap(t.Context(), c.CompleteConnect)
	require.ErrorIs(t, failed.GetOverlappedResult(true), nd2.ErrConnectionInvalid)
	require.ErrorIs(t, failed.CancelOverlappedRequests(), nd2.ErrConnectionInvalid, "it has failed before")
	require.NoError(t, c.Close())
}
