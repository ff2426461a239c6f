package stress

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/nd2"
	"github.com/softrnic/softrnic/verbs"
)

// server is a listener whose program takes every request, and an honest client's
// way to it.
type server struct {
	addr string
	// script is what a client says that breaks off.
	script droppedpeer.Script
	// connect connects, ends the connection, and returns how long connecting took.
	connect func(ctx context.Context) (time.Duration, error)
}

// serverOf is a kind of server.
type serverOf struct {
	name  string
	start func(*testing.T) server
}

// servers are the listeners, as they are without configuration; that of nd2 with the shortest backlog.
var servers = []serverOf{{"cm", startCM}, {"nd2", startND}, {"VI", startVI}, {"rsocket", startRsocket}, {"NVMe", startNVMe}, {"proxy", startProxy}}

// end is one end's RNIC.
type end struct {
	nic *verbs.RNIC
	pd  *verbs.PD
	cq  *verbs.CQ
}

func newEnd(t *testing.T) *end {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, nic.Close()) })
	e := &end{nic: nic}
	e.pd, err = nic.AllocatePD()
	require.NoError(t, err)
	e.cq, err = nic.CreateCQ(verbs.CQConfig{})
	require.NoError(t, err)
	return e
}

func (e *end) qp() (*verbs.QP, error) {
	return e.nic.CreateQP(verbs.QPConfig{PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq})
}

// serving runs the server's goroutines until the test ends.
func serving(t *testing.T, run func(ctx context.Context, wg *sync.WaitGroup), stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { run(ctx, &wg) })
	t.Cleanup(func() {
		cancel()
		stop()
		wg.Wait()
	})
}

func startCM(t *testing.T) server { return listen(t, cm.ListenConfig{}) }

func listen(t *testing.T, c cm.ListenConfig) server {
	near, far := newEnd(t), newEnd(t)
	l, err := cm.Listen("127.0.0.1:0", c)
	require.NoError(t, err)
	serving(t, func(ctx context.Context, wg *sync.WaitGroup) {
		for {
			req, err := l.Accept(ctx)
			if err != nil {
				return
			}
			wg.Go(func() { far.accept(ctx, t, req) })
		}
	}, func() { _ = l.Close() })
	return server{l.Addr().String(), droppedpeer.MPA(nil), near.connector(l.Addr().String(), nil)}
}

// accept accepts a client, and waits until it has gone.
func (e *end) accept(ctx context.Context, t *testing.T, req *cm.Request) {
	qp, err := e.qp()
	if !assert.NoError(t, err) {
		return
	}
	if c, err := req.Accept(ctx, qp, cm.Config{}); err == nil {
		<-c.Done()
	}
	assert.NoError(t, qp.Destroy())
}

// connector connects by cm, and ends the connection.
func (e *end) connector(addr string, private []byte) func(ctx context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		qp, err := e.qp()
		if err != nil {
			return 0, err
		}
		defer func() { _ = qp.Destroy() }()
		start := time.Now()
		c, err := cm.Dial(ctx, addr, qp, cm.Config{PrivateData: private})
		took := time.Since(start)
		if err == nil {
			err = c.Abort()
		}
		return took, err
	}
}

func startND(t *testing.T) server {
	type adapter struct {
		*nd2.Adapter
		cq *nd2.CompletionQueue
	}
	open := func() adapter {
		var p nd2.Provider
		id, err := p.ResolveAddress(netip.MustParseAddr("127.0.0.1"))
		require.NoError(t, err)
		a, err := p.OpenAdapter(id)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, a.Close()) })
		cq, err := a.CreateCompletionQueue(16)
		require.NoError(t, err)
		return adapter{a, cq}
	}
	near, far := open(), open()
	l, err := far.CreateListener()
	require.NoError(t, err)
	require.NoError(t, l.Bind(netip.MustParseAddrPort("127.0.0.1:0")))
	require.NoError(t, l.Listen(1))
	at, err := l.GetLocalAddress()
	require.NoError(t, err)
	serving(t, func(ctx context.Context, wg *sync.WaitGroup) {
		for {
			c, err := far.CreateConnector()
			if !assert.NoError(t, err) || l.GetConnectionRequest(ctx, c) != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				qp, err := far.CreateQueuePair(far.cq, far.cq, nil, 2, 2, 1, 1, 0)
				if !assert.NoError(t, err) {
					return
				}
				defer qp.Close()
				if c.Accept(ctx, qp, 1, 1, nil) == nil {
					_ = c.NotifyDisconnect(ctx)
				}
			})
		}
	}, func() { _ = l.Close() })
	return server{at.String(), droppedpeer.MPA(nil), func(ctx context.Context) (time.Duration, error) {
		qp, err := near.CreateQueuePair(near.cq, near.cq, nil, 2, 2, 1, 1, 0)
		if err != nil {
			return 0, err
		}
		defer qp.Close()
		c, err := near.CreateConnector()
		if err != nil {
			return 0, err
		}
		defer c.Close()
		start := time.Now()
		err = c.Connect(ctx, qp, at, 1, 1, nil)
		took := time.Since(start)
		if err == nil {
			err = c.CompleteConnect(ctx)
		}
		return took, err
	}}
}

func startVI(t *testing.T) server {
	l, err := vitcp.Listen("127.0.0.1:0", vitcp.ListenConfig{MatchTimeout: 500 * time.Millisecond})
	require.NoError(t, err)
	var begun sync.WaitGroup // a goroutine that has not run yet is not counted as one of the server's
	begun.Add(honestOnes)
	serving(t, func(ctx context.Context, wg *sync.WaitGroup) {
		// As many wait as come at once: where requests fill what a host may have there, its next one needs a Wait under way.
		for range honestOnes {
			wg.Go(func() {
				begun.Done()
				for {
					p, err := l.Wait(ctx, vitcp.Filter{Called: "siege"})
					if err != nil {
						return
					}
					wg.Go(func() {
						if a, err := p.Accept(ctx, vitcp.Config{}); err == nil {
							_, _ = a.Conn.Read(make([]byte, 1)) // until the client ends it
							_ = a.Conn.Close()
						}
					})
				}
			})
		}
	}, func() { _ = l.Close() })
	begun.Wait()
	to := vitcp.Address{Host: netip.MustParseAddrPort(l.Addr().String()), Discriminator: "siege"}
	return server{l.Addr().String(), droppedpeer.VI("siege", segment.Unreliable), func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		a, err := vitcp.Dial(ctx, vitcp.Address{}, to, vitcp.Config{})
		took := time.Since(start)
		if err == nil {
			err = a.Conn.Close()
		}
		return took, err
	}}
}
