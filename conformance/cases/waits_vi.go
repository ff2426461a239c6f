package cases

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// waitsVI are the ways to wait of the VI Architecture.
var waitsVI = []conformance.Case{
	waitCase("6.4.2", way{
		name: "vi-recv", open: waitVI(viWaits{recv: true}),
		keys: []string{"VA-6-S1", "VA-6.4.2-S1"},
	}),
	waitCase("6.4.2", way{name: "vi-send", open: waitVI(viWaits{}), keys: []string{"VA-6-S1", "VA-6.4.2-S1"}}),
	waitCase("6.4.2", way{
		name: "vi-cq-recv", open: waitVI(viWaits{recv: true, cq: true}),
		keys: []string{"VA-6.1-M4", "VA-6.4.2-S1"},
	}),
	waitCase("6.4.2", way{
		name: "vi-cq-send", open: waitVI(viWaits{cq: true}),
		keys: []string{"VA-6.1-M4", "VA-6.4.2-S1"},
	}),
	waitCase("9.6.10", way{
		name: "vi-recv-notify", open: waitVINotify(viWaits{recv: true}),
		keys: []string{"VA-9.6.10-M1"},
	}),
	waitCase("9.6.9", way{name: "vi-send-notify", open: waitVINotify(viWaits{}), keys: []string{"VA-9.6.9-M1"}}),
	waitCase("9.6.11", way{
		name: "vi-cq-notify", open: waitVINotify(viWaits{recv: true, cq: true}),
		keys: []string{"VA-9.6.11-M1"},
	}),
	waitCase("9.6.11", way{
		name: "vi-cq-notify-behind", open: waitVINotify(viWaits{recv: true, cq: true, behind: true}),
		keys: []string{"VA-9.6.11-M1"},
	}),
	waitCase("4.1", way{name: "vi-connect-wait", open: waitVIRequest, keys: []string{"VA-4.1-S1"}}),
	waitCase("4.1", way{
		name: "vi-connect-request", told: lasting, open: waitVIAnswer,
		keys: []string{"VA-9.4.2-M1"},
	}),
	waitCase("4.1", way{name: "vi-connect-peer-wait", told: lasting, open: waitVIPeer, keys: []string{"PT-4-M1"}}),
	waitCase("3.2", way{name: "vi-flow-control", open: waitVIFlow, keys: []string{"VT-3.2-M10"}}),
}

// viWaits is a queue of a VI at which a program waits.
type viWaits struct {
	recv   bool // the Receive Queue, for messages of the other VI; else the Send Queue, for Sends to it
	cq     bool // it is tied to a CQ: the program waits there
	behind bool // a handler is asked for when the message is there
}

// viScene is two VIs, one of which is waited at.
type viScene struct {
	*viPair
	q  viWaits
	cq *vipl.CQ
}

// pair connects a VI with one of another NIC.
func (q viWaits) pair(t *conformance.T) *viScene {
	s := &viScene{viPair: &viPair{a: newVIHost(t, vipl.Config{}), b: newVIHost(t, vipl.Config{})}, q: q}
	var send, recv *vipl.CQ
	if q.cq {
		s.cq = s.a.cq(256)
		send, recv = either(q.recv, nil, s.cq), either(q.recv, s.cq, nil)
	}
	s.va, s.vb = s.a.tied(vipl.ServiceReliableDelivery, send, recv), s.b.vi(vipl.ServiceReliableDelivery)
	connectVIs(s.a, s.va, s.b, s.vb)
	return s
}

// messages has so many pass the queue that is waited at.
func (s *viScene) messages(k int) {
	from, to := s.a, s.b
	of, at := s.va, s.vb
	if s.q.recv {
		from, to, of, at = s.b, s.a, s.vb, s.va
	}
	for range k {
		to.recv(at)
	}
	for range k {
		from.sends(of)
	}
	done := either(s.q.recv, s.vb.SendDone, s.vb.RecvDone) // the other VI's are nobody's
	for range k {
		_, err := done()
		eventually(s.a.t, func() bool {
			if err != nil {
				_, err = done()
			}
			return err == nil
		}, "the other VI completes")
	}
}

// waitVI waits for Descriptors that complete.
func waitVI(q viWaits) func(*conformance.T) *scene {
	return func(t *conformance.T) *scene {
		s := q.pair(t)
		take := either(q.recv, s.va.RecvDone, s.va.SendDone)
		wait := either(q.recv, s.va.RecvWait, s.va.SendWait)
		if q.cq {
			wait = func(ctx context.Context) (*vipl.Descriptor, error) {
				if _, _, err := s.cq.CQWait(ctx); err != nil {
					return nil, err
				}
				return take()
			}
		}
		return &scene{
			wait:   func(ctx context.Context) error { return viStatus(wait(ctx)) },
			happen: s.messages,
			end: func() error {
				err := s.va.Disconnect()
				if err == nil {
					err = s.va.DestroyVi()
				}
				if err == nil && q.cq {
					err = s.cq.DestroyCQ()
				}
				return err
			},
			endsAs: vipl.ErrInvalidParameter,
		}
	}
}

// viStatus is the error of a wait, or that of its Descriptor.
func viStatus(d *vipl.Descriptor, err error) error {
	if err == nil && d.Control.Status&(viOpReceive-1) != viDone {
		return vipl.ErrNotDone
	}
	return err
}

// waitVINotify waits for calls of handlers, each for one Descriptor or entry.
func waitVINotify(q viWaits) func(*conformance.T) *scene {
	return func(t *conformance.T) *scene {
		s := q.pair(t)
		calls := make(chan *vipl.Vi, 256)
		register := func() error {
			switch {
			case q.cq:
				return s.cq.CQNotify(func(_ *vipl.Nic, v *vipl.Vi, _ bool) { calls <- v })
			case q.recv:
				return s.va.RecvNotify(func(_ *vipl.Nic, v *vipl.Vi, _ *vipl.Descriptor) { calls <- v })
			}
			return s.va.SendNotify(func(_ *vipl.Nic, v *vipl.Vi, _ *vipl.Descriptor) { calls <- v })
		}
		return &scene{wait: func(ctx context.Context) error { return from(ctx, calls) }, happen: func(k int) {
			if q.behind {
				s.messages(k)
			}
			for range k {
				require.NoError(t, register(), "asking for a call")
			}
			if !q.behind {
				s.messages(k)
			}
		}}
	}
}

// requests is ConnectRequest of a VI of its own, from any goroutine.
func (h *viHost) requests(ctx context.Context, from, to *vipl.NetAddress) error {
	a := h.attributes(vipl.ServiceUnreliable)
	v, err := h.nic.CreateVi(&a, nil, nil)
	if err == nil {
		_, err = v.ConnectRequest(ctx, from, to)
	}
	return err
}

// waitVIRequest waits for requests, and rejects them.
func waitVIRequest(t *conformance.T) *scene {
	h, peer := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{})
	client, server := peer.address("client"), h.address("server")
	return &scene{
		wait: func(ctx context.Context) error {
			c, err := h.nic.ConnectWait(ctx, server)
			if err == nil {
				err = c.ConnectReject()
			}
			return err
		},
		happen: func(k int) {
			besides(t, k, func(ctx context.Context) { _ = peer.requests(ctx, client, server) })
		},
		end: h.nic.CloseNic, endsAs: vipl.ErrInvalidParameter,
	}
}

// waitVIAnswer waits for the answer to its request: from when a gate is open on the server accepts all.
func waitVIAnswer(t *conformance.T) *scene {
	h, peer := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{})
	client, server := h.address("client"), peer.address("server")
	attributes := peer.attributes(vipl.ServiceUnreliable)
	var once sync.Once
	gate := make(chan struct{})
	besides(t, 4, func(ctx context.Context) {
		for {
			c, err := peer.nic.ConnectWait(ctx, server)
			if err != nil {
				return
			}
			select {
			case <-gate:
			case <-ctx.Done():
				return
			}
			v, err := peer.nic.CreateVi(&attributes, nil, nil)
			if err != nil {
				t.Errorf("the server's VI: %v", err)
				return
			}
			_ = c.ConnectAccept(v) // it may have given up
		}
	})
	return &scene{
		wait:   func(ctx context.Context) error { return h.requests(ctx, client, server) },
		happen: func(int) { once.Do(func() { close(gate) }) },
	}
}

// waitVIPeer waits for another VI whose program asks for this one, as its own asks for that. What comes of it is told
// once: who comes later finds that it was, and the VI connected.
func waitVIPeer(t *conformance.T) *scene {
	a, b := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{})
	va, vb := a.vi(vipl.ServiceUnreliable), b.vi(vipl.ServiceUnreliable)
	at, to := a.address("one"), b.address("two")
	require.NoError(t, va.ConnectPeerRequest(t.Context(), at, to))
	var told atomic.Int32
	first := make(chan struct{})
	connected := func() bool {
		state, _, err := va.QueryVi()
		return err == nil && state == vipl.StateConnected
	}
	return &scene{
		wait: func(ctx context.Context) error {
			_, err := va.ConnectPeerWait(ctx)
			switch {
			case err == nil && told.Add(1) > 1:
				return errors.New("told twice")
			case err == nil:
				close(first)
				return nil
			case errors.Is(err, vipl.ErrInvalidParameter) && connected():
				return from(t.Context(), first)
			case errors.Is(err, vipl.ErrInvalidParameter), errors.Is(err, vipl.ErrResource): // one is told why, once
				return errAttemptOver
			}
			return err
		},
		happen: func(int) {
			if b.state(vb) == vipl.StateIdle {
				require.NoError(t, vb.ConnectPeerRequest(t.Context(), to, at))
			}
		},
		end: a.nic.CloseNic, endsAs: errAttemptOver,
	}
}

// errAttemptOver is how a wait ends for an attempt that came to nothing.
var errAttemptOver = errors.New("the attempt is over")

// waitVIFlow has Sends wait for receives of the other VI, and the program for what becomes of them.
func waitVIFlow(t *conformance.T) *scene {
	a, b := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{})
	flow := func(v *vipl.ViAttributes) { v.FlowControl = true }
	va, vb := a.vi(vipl.ServiceReliableDelivery, flow), b.vi(vipl.ServiceReliableDelivery, flow)
	connectVIs(a, va, b, vb)
	for range 64 {
		a.sends(va)
	}
	return &scene{wait: func(ctx context.Context) error { return viStatus(va.SendWait(ctx)) }, happen: func(k int) {
		for range k {
			b.recv(vb)
		}
	}}
}
