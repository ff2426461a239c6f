package cases

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

// waitsND are the ways to wait of NetworkDirect.
var waitsND = []conformance.Case{
	waitCase("Receive", way{name: "nd-results", open: waitND(ndResults), keys: []string{"ND-Receive-R1"}}),
	waitCase("Receive", way{
		name: "nd-any", told: toAll, open: waitND(ndNotified(nd2.CQNotifyAny)),
		keys: []string{"ND-Receive-R1"},
	}),
	waitCase("Send", way{
		name: "nd-solicited", told: toAll, open: waitND(ndNotified(nd2.CQNotifySolicited)),
		keys: []string{"ND-Send-F3"},
	}),
	waitCase("Send", way{
		name: "nd-errors", told: toAll, open: waitNDErrors,
		keys: []string{"ND-Send-F3", "ND-Flush-M1"},
	}),
	waitCase("7.1.2", way{name: "nd-request", open: waitNDRequest(false), keys: []string{"R5044-7.1.2-M2"}}),
	waitCase("7.1.2", way{name: "nd-overlapped", open: waitNDRequest(true), keys: []string{"R5044-7.1.2-M2"}}),
	waitCase("7.1.2", way{name: "nd-connect", told: lasting, open: waitNDConnect, keys: []string{"R5044-7.1.2-M5"}}),
	waitCase("6.2.2.2", way{
		name: "nd-disconnect", told: lasting, open: waitNDDisconnect,
		keys: []string{"RV-6.2.2.2-M2"},
	}),
	waitCase("6.2.2.2", way{
		name: "nd-disconnecting", told: lasting, open: waitNDDisconnecting,
		keys: []string{"RV-6.2.2.2-M2", "ND-Flush-M2"},
	}),
	apiCase("6.2.2.2/nd-disconnect-given-up", ndDisconnectGivenUp, "ND-Flush-M2"),
	waitCase("7.1.2", way{name: "nd-accept", open: waitNDAccept, keys: []string{"R5044-7.1.2-M2"}}),
	apiCase("7.1.2/nd-accept-given-up", ndAcceptGivenUp, "R5044-7.1.2-M2"),
	waitCase("Receive", way{
		name: "nd-srq", told: toAll, open: waitNDSRQ,
		keys: []string{"RV-6.3.8-M5", "ND-Receive-R1"},
	}),
}

// ndWaits is a wait at a completion queue.
type ndWaits func(context.Context, *nd2.CompletionQueue) error

// ndResults is the one that is beside NetworkDirect.
func ndResults(ctx context.Context, q *nd2.CompletionQueue) error {
	var r [1]nd2.Result
	_, err := q.Wait(ctx, r[:])
	if err == nil && r[0].Status != nd2.Success {
		return r[0].Status
	}
	return err
}

// ndNotified is Notify, and GetResults of all there is.
func ndNotified(k nd2.NotifyType) ndWaits {
	return func(ctx context.Context, q *nd2.CompletionQueue) error {
		var r [16]nd2.Result
		err := q.Notify(ctx, k)
		if err == nil {
			q.GetResults(r[:])
		}
		return err
	}
}

// waitND waits for messages of a peer, which are solicited.
func waitND(wait ndWaits) func(*conformance.T) *scene {
	return func(t *conformance.T) *scene {
		r := newNDRig(t, ndShape{depth: 16})
		return &scene{
			wait: func(ctx context.Context) error { return wait(ctx, r.in) },
			happen: func(k int) {
				var ulpdus [][]byte
				for range k {
					r.receive(0, 0, 8)
					ulpdus = append(ulpdus, untagged(lastUntagged, opSendSE, 0, 0, r.peer.nextSend(), 0, nil))
				}
				r.peer.sendAtOnce(ulpdus...)
			},
			end: func() error {
				r.peer.drop()
				return errors.Join(r.qp.Close(), r.in.Close())
			},
			endsAs: nd2.ErrCanceled,
		}
	}
}

// waitNDErrors waits for errors among other results, which do not wake it: of queue pairs that are flushed.
func waitNDErrors(t *conformance.T) *scene {
	r := newNDRig(t, ndShape{depth: 16})
	wait := ndNotified(nd2.CQNotifyErrors)
	return &scene{
		wait: func(ctx context.Context) error { return wait(ctx, r.in) },
		happen: func(k int) {
			r.receive(0, 0, 8)
			r.peer.sendMessage(nil)
			for range k {
				q := r.pair(r.ndHost, ndShape{depth: 4, sge: 1})
				require.NoError(t, q.Receive(0, r.list(0, 8)), "Receive")
				require.NoError(t, q.Flush(), "Flush")
			}
		},
	}
}

// ndListener is a listener of the host's adapter.
func (h *ndHost) listener() (l *nd2.Listener, at netip.AddrPort) {
	l = must(h.adapter.CreateListener())(h.t, "CreateListener")
	h.t.Cleanup(func() { _ = l.Close() })
	require.NoError(h.t, l.Bind(ndLoopback), "Bind")
	require.NoError(h.t, l.Listen(0), "Listen")
	return l, must(l.GetLocalAddress())(h.t, "GetLocalAddress")
}

// connects is Connect of a queue pair and a connector of its own, from any goroutine.
func (h *ndHost) connects(ctx context.Context, to netip.AddrPort) error {
	q, err := h.adapter.CreateQueuePair(h.in, h.out, nil, 1, 1, 1, 1, 0)
	if err != nil {
		return err
	}
	c, err := h.adapter.CreateConnector()
	if err != nil {
		return err
	}
	return c.Connect(ctx, q, to, 0, 0, nil)
}

// waitNDRequest waits for requests, and rejects them.
func waitNDRequest(overlapped bool) func(*conformance.T) *scene {
	return func(t *conformance.T) *scene {
		h, peer := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
		l, at := h.listener()
		return &scene{
			wait: func(ctx context.Context) error {
				c, err := h.adapter.CreateConnector()
				if err != nil {
					return err
				}
				if overlapped {
					o := nd2.Overlap(ctx, func(ctx context.Context) error { return l.GetConnectionRequest(ctx, c) })
					err = o.GetOverlappedResult(true)
				} else {
					err = l.GetConnectionRequest(ctx, c)
				}
				if err == nil {
					err = c.Reject(nil)
				}
				return err
			},
			happen: func(k int) { besides(t, k, func(ctx context.Context) { _ = peer.connects(ctx, at) }) },
			end:    l.Close, endsAs: nd2.ErrCanceled,
		}
	}
}

// waitNDConnect waits for the answer to its request: from when a gate is open on the server accepts all.
func waitNDConnect(t *conformance.T) *scene {
	h, peer := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	l, at := peer.listener()
	var once sync.Once
	gate := make(chan struct{})
	besides(t, 4, func(ctx context.Context) {
		for {
			c, err := peer.adapter.CreateConnector()
			if err != nil || l.GetConnectionRequest(ctx, c) != nil {
				return
			}
			select {
			case <-gate:
			case <-ctx.Done():
				return
			}
			q, err := peer.adapter.CreateQueuePair(peer.in, peer.out, nil, 1, 1, 1, 1, 0)
			if err != nil {
				t.Errorf("the server's queue pair: %v", err)
				return
			}
			_ = c.Accept(ctx, q, 0, 0, nil) // it may have given up
		}
	})
	t.Cleanup(func() { _ = l.Close() })
	return &scene{
		wait:   func(ctx context.Context) error { return h.connects(ctx, at) },
		happen: func(int) { once.Do(func() { close(gate) }) },
	}
}

// waitNDDisconnect waits for the peer to close.
func waitNDDisconnect(t *conformance.T) *scene {
	r := newNDRig(t, ndShape{})
	return &scene{wait: r.conn.NotifyDisconnect, happen: func(int) { r.peer.shut() }}
}

// waitNDDisconnecting waits for the peer to close too. Who comes second waits for the end: a connector is disconnected
// once.
func waitNDDisconnecting(t *conformance.T) *scene {
	r := newNDRig(t, ndShape{})
	return &scene{
		wait: func(ctx context.Context) error {
			err := r.conn.Disconnect(ctx)
			if errors.Is(err, nd2.ErrConnectionInvalid) {
				return r.conn.NotifyDisconnect(ctx)
			}
			return err
		},
		happen: func(int) { _ = r.peer.peer.CloseWrite() }, // one that gave up very early has reset the connection
	}
}

// ndDisconnectGivenUp gives up before what is under way has ended: that is canceled, and the connection reset.
func ndDisconnectGivenUp(t *conformance.T) {
	r := newNDRig(t, ndShape{})
	r.pendingRead(1, 0)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	err := r.conn.Disconnect(ctx)
	require.ErrorIs(t, err, nd2.ErrCanceled)
	require.ErrorIs(t, err, context.Canceled)
	r.done(1, nd2.RequestTypeRead, nd2.ErrCanceled)
	r.over()
	r.peer.peer.endsAs(endReset, "a Terminate Message, or whatever")
	r.none()
}

// waitNDAccept waits for requests, and accepts them. A peer whose request was refused, because one has given up with it
// in hand, asks again.
func waitNDAccept(t *conformance.T) *scene {
	h, peer := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	l, at := h.listener()
	return &scene{
		wait: func(ctx context.Context) error {
			q, err := h.adapter.CreateQueuePair(h.in, h.out, nil, 1, 1, 1, 1, 0)
			if err != nil {
				return err
			}
			c, err := h.adapter.CreateConnector()
			if err == nil {
				err = l.GetConnectionRequest(ctx, c)
			}
			if err == nil {
				err = c.Accept(ctx, q, 0, 0, nil)
			}
			return err
		},
		happen: func(k int) {
			besides(t, k, func(ctx context.Context) {
				for errors.Is(peer.connects(ctx, at), nd2.ErrConnectionRefused) && ctx.Err() == nil {
					continue
				}
			})
		},
		end: l.Close, endsAs: nd2.ErrCanceled,
	}
}

// ndAcceptGivenUp gives up with a request in hand: its peer is told, and the queue pair is there for the next one.
func ndAcceptGivenUp(t *conformance.T) {
	h, peer := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	l, at := h.listener()
	asks := func() <-chan error {
		answer := make(chan error, 1)
		besides(t, 1, func(ctx context.Context) { answer <- peer.connects(ctx, at) })
		return answer
	}
	answer := asks()
	require.NoError(t, l.GetConnectionRequest(t.Context(), h.conn))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	err := h.conn.Accept(ctx, h.qp, 0, 0, nil)
	require.ErrorIs(t, err, nd2.ErrCanceled)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, receive(t, answer, "the peer is told"), nd2.ErrConnectionRefused)
	require.ErrorIs(t, h.conn.Accept(t.Context(), h.qp, 0, 0, nil), nd2.ErrConnectionInvalid, "the connector is of no more use")

	answer = asks()
	c := h.connector()
	require.NoError(t, l.GetConnectionRequest(t.Context(), c))
	require.NoError(t, c.Accept(t.Context(), h.qp, 0, 0, nil))
	require.NoError(t, receive(t, answer, "the next one is answered"))
}

// waitNDSRQ waits until fewer Receives are outstanding than a threshold says, and posts more.
func waitNDSRQ(t *conformance.T) *scene {
	const threshold = 4
	h := newNDHost(t, ndShape{})
	srq := must(h.adapter.CreateSharedReceiveQueue(4*threshold, 1, threshold))(t)
	h.qp = must(h.adapter.CreateQueuePairWithSrq(h.in, h.out, srq, h, 4, 1, 0))(t)
	r := ndRigOf(h)
	var mu sync.Mutex
	var sent, taken int // guarded by mu
	receives := func(n int) (err error) {
		for ; n > 0 && err == nil; n-- {
			err = srq.Receive(nil, h.list(0, 8))
		}
		return err
	}
	require.NoError(t, receives(threshold))
	r.peer.sendMessage(nil) // the event of which is for nobody
	r.received(nil, 0)
	require.NoError(t, receives(1))
	return &scene{
		wait: func(ctx context.Context) error {
			if err := srq.Notify(ctx); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for taken < sent { // the queue pair has them: their results come
				var done [threshold]nd2.Result
				n, err := h.in.Wait(t.Context(), done[:])
				if err = errors.Join(err, receives(n)); err != nil {
					return err
				}
				taken += n
			}
			return nil
		},
		happen: func(k int) {
			var ulpdus [][]byte
			for range k {
				ulpdus = append(ulpdus, r.peer.aSend(nil))
			}
			mu.Lock()
			defer mu.Unlock()
			sent += k
			r.peer.sendAtOnce(ulpdus...)
		},
		end: func() error {
			r.peer.drop()
			return errors.Join(h.qp.Close(), srq.Close())
		},
		endsAs: nd2.ErrCanceled,
	}
}
