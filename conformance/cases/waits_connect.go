package cases

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// waitsConnect are the ways to wait of connecting.
var waitsConnect = []conformance.Case{
	waitCase("7.1.2", way{name: "accept", open: waitAccept, keys: []string{"R5044-7.1.2-M2"}}),
	waitCase("7.1.2", way{name: "dial", told: lasting, open: waitDial, keys: []string{"R5044-7.1.2-M5"}}),
	waitCase("6.2.2.2", way{
		name: "close", told: lasting, unstoppable: true, open: waitClose(func(c *cm.Conn, _ context.Context) error { return c.Close() }),
		keys: []string{"RV-6.2.2.2-M5", "RV-6.2.5-M22"},
	}),
	waitCase("6.2.2.2", way{
		name: "close-context", told: lasting, final: true, open: waitClose((*cm.Conn).CloseContext),
		keys: []string{"RV-6.2.2.2-M5", "RV-6.2.5-M22"},
	}),
	waitCase("6.2.2.2", way{
		name: "shutdown", told: lasting, final: true, open: waitShutdown,
		keys: []string{"RV-6.2.5-M22"},
	}),
}

// listener is one of cm's, which ends with the case.
func listener(t *conformance.T) (l *cm.Listener, addr string) {
	l = must(cm.Listen("127.0.0.1:0", cm.ListenConfig{}))(t, "Listen")
	t.Cleanup(func() { _ = l.Close() })
	return l, l.Addr().String()
}

// besides calls f in goroutines of its own, which end with the case.
func besides(t *conformance.T, n int, f func(context.Context)) {
	var g sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range n {
		g.Go(func() { f(ctx) })
	}
	t.Cleanup(g.Wait)
	t.Cleanup(stop)
}

// waitAccept waits for requests, and rejects them.
func waitAccept(t *conformance.T) *scene {
	n, pd, cq := openRNIC(t, verbs.Config{}), (*verbs.PD)(nil), (*verbs.CQ)(nil)
	pd, cq = must(n.AllocatePD())(t), must(n.CreateCQ(verbs.CQConfig{}))(t)
	l, addr := listener(t)
	return &scene{
		wait: func(ctx context.Context) error {
			req, err := l.Accept(ctx)
			if err == nil {
				err = req.Reject(nil)
			}
			return err
		},
		happen: func(k int) {
			besides(t, k, func(ctx context.Context) {
				if qp, err := n.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq}); err == nil {
					_, _ = cm.Dial(ctx, addr, qp, cm.Config{})
				}
			})
		},
		end: l.Close, endsAs: net.ErrClosed,
	}
}

// waitDial waits for the answer to its request: from when a gate is open on the server accepts all.
func waitDial(t *conformance.T) *scene {
	a, b := newHost(t, hostConfig{}), newHost(t, hostConfig{})
	l, addr := listener(t)
	var once sync.Once
	gate := make(chan struct{})
	besides(t, 4, func(ctx context.Context) {
		for {
			req, err := l.Accept(ctx)
			if err != nil {
				return
			}
			select {
			case <-gate:
			case <-ctx.Done():
				return
			}
			qp, err := b.nic.CreateQP(b.withDefaults(verbs.QPConfig{}))
			if err != nil {
				t.Errorf("the server's queue pair: %v", err)
				return
			}
			_, _ = req.Accept(ctx, qp, cm.Config{}) // it may have given up
		}
	})
	t.Cleanup(func() { _ = l.Close() })
	return &scene{
		wait: func(ctx context.Context) error {
			qp, err := a.nic.CreateQP(a.withDefaults(verbs.QPConfig{}))
			if err == nil {
				_, err = cm.Dial(ctx, addr, qp, cm.Config{})
			}
			return err
		},
		happen: func(int) { once.Do(func() { close(gate) }) },
	}
}

// waitClose waits for the answer to an RDMA Read and for the peer's close, in this order. A connection of which one has
// given up before the answer is reset.
func waitClose(wait func(*cm.Conn, context.Context) error) func(*conformance.T) *scene {
	return func(t *conformance.T) *scene {
		l := newIdleLink(t, verbs.QPConfig{})
		w, y := byHand(t)
		var conn *cm.Conn
		connected := make(chan error, 1)
		go func() {
			c, err := cm.Connect(t.Context(), y, l.qp, cm.Config{Rev: 1, CloseTimeout: hour})
			conn = c
			connected <- err
		}()
		w.frame()
		w.raw(replyFrame(frameC, 1, nil))
		require.NoError(t, receive(t, connected, "it is not connected"))
		post(t, l.qp, l.aRead(1))
		w.expect(l.asks(1))
		return &scene{
			inLine: true, wait: func(ctx context.Context) error { return wait(conn, ctx) },
			happen: func(int) { _ = errors.Join(w.Send(l.answer()), w.CloseWrite()) }, // that it has: the waiters tell
			outcome: func(gaveUp bool) {
				receive(t, conn.Done(), "the connection has ended")
				if gaveUp {
					return // before the answer, or behind it
				}
				require.NoError(t, conn.Err(), "nobody gave up")
				require.Equal(t, verbs.StateIdle, l.qp.State(), "nobody gave up")
			},
		}
	}
}

// waitShutdown waits for what a listener has handed out: a request without an answer, and a connection. Both end when
// one gives up.
func waitShutdown(t *conformance.T) *scene {
	a, b := newHost(t, hostConfig{}), newHost(t, hostConfig{})
	l, addr := listener(t)
	dialled := make(chan *cm.Conn, 1)
	besides(t, 1, func(ctx context.Context) {
		c, _ := cm.Dial(ctx, addr, a.qp, cm.Config{})
		dialled <- c
	})
	accepted := must(must(l.Accept(t.Context()))(t, "Accept").Accept(t.Context(), b.qp, cm.Config{}))(t, "Accept")
	conn := receive(t, dialled, "it is not connected")
	require.NotNil(t, conn, "Dial")
	other := a.newQP(verbs.QPConfig{})
	answer := make(chan error, 1)
	besides(t, 1, func(ctx context.Context) { answer <- second(cm.Dial(ctx, addr, other, cm.Config{})) })
	req := must(l.Accept(t.Context()))(t, "Accept")
	t.Cleanup(func() { _ = req.Reject(nil) }) // where nothing happens
	return &scene{
		wait: func(ctx context.Context) error {
			if err := l.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
				return err
			}
			return nil
		},
		happen: func(int) { _ = errors.Join(req.Reject(nil), conn.Close()) }, // that both go: the waiters tell
		outcome: func(bool) {
			receive(t, accepted.Done(), "what was accepted has ended")
			receive(t, conn.Done(), "and with it what the peer has")
			require.Error(t, receive(t, answer, "and who was not accepted waits no more"))
			require.Error(t, second(req.Accept(t.Context(), b.newQP(verbs.QPConfig{}), cm.Config{})), "it is too late")
		},
	}
}
