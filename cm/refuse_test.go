package cm_test

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/verbs"
)

func TestReject(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{IRD: 5, ORD: 6})
	require.NoError(t, err)
	defer l.Close()
	go func() {
		r, err := l.Accept(t.Context())
		if assert.NoError(t, err) {
			assert.NoError(t, r.Reject([]byte("full")))
			assert.Error(t, r.Reject(nil), "answered twice")
			_, err = r.Accept(t.Context(), b.qp, cm.Config{})
			assert.Error(t, err, "answered twice")
		}
	}()
	_, err = cm.Dial(bounded(t), l.Addr().String(), a.qp, cm.Config{})
	var rejected *cm.RejectedError
	require.ErrorAs(t, err, &rejected)
	assert.Equal(t, "full", string(rejected.PrivateData))
	assert.Equal(t, 5, rejected.PeerIRD)
	assert.Equal(t, 6, rejected.PeerORD)
	assert.Equal(t, verbs.StateIdle, a.qp.State())
}

// TestRejectedConnIsTheCallers: MPA leaves the connection to the program (RFC
// 5044 7.1.2).
func TestRejectedConnIsTheCallers(t *testing.T) {
	a := newHost(t, verbs.QPConfig{})
	na, nb := net.Pipe()
	go func() {
		r, err := cm.Await(t.Context(), nb, cm.Config{})
		if assert.NoError(t, err) {
			assert.NoError(t, r.Reject(nil))
		}
	}()
	_, err := cm.Connect(bounded(t), na, a.qp, cm.Config{})
	require.ErrorAs(t, err, new(*cm.RejectedError))
	_, err = na.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the peer closed, this side did not")
	require.NoError(t, na.Close())
}

// TestAnsweredRequestIsLeftAlone: a late Reject does not end the connection.
func TestAnsweredRequestIsLeftAlone(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	var r *cm.Request
	x, y := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, func(seen *cm.Request) { r = seen })
	require.Error(t, r.Reject(nil))
	exchange(t, a, b)
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
}

func TestConnectRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  cm.Config
		qp   func(*testing.T, *verbs.QP)
		want error
	}{
		{name: "private data too long", cfg: cm.Config{PrivateData: make([]byte, 509)}},
		{name: "private data too long for revision 1", cfg: cm.Config{Rev: 1, PrivateData: make([]byte, 513)}},
		{name: "revision 3", cfg: cm.Config{Rev: 3}},
		{name: "peer-to-peer with revision 1", cfg: cm.Config{Rev: 1, Model: cm.PeerToPeer}},
		{name: "RTR unknown", cfg: cm.Config{Model: cm.PeerToPeer, RTR: 0x80}},
		{name: "QP in Error", want: verbs.ErrInvalidState, qp: func(t *testing.T, q *verbs.QP) {
			require.NoError(t, q.Modify(verbs.ModifyQP{Next: verbs.StateError}))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, verbs.QPConfig{})
			if c.qp != nil {
				c.qp(t, h.qp)
			}
			before := h.qp.State()
			na, nb := net.Pipe()
			_, err := cm.Connect(bounded(t), na, h.qp, c.cfg)
			require.Error(t, err)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			assert.Equal(t, before, h.qp.State())
			_, err = nb.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "the connection is closed, and nothing was sent")
			_ = nb.Close()
		})
	}
}

func TestAcceptRefusals(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	busy := newHost(t, verbs.QPConfig{})
	require.NoError(t, busy.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	x, y := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, func(r *cm.Request) {
		_, err := r.Accept(t.Context(), busy.qp, cm.Config{})
		assert.ErrorIs(t, err, verbs.ErrInvalidState)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = r.Accept(over, b.qp, cm.Config{})
		assert.ErrorIs(t, err, context.Canceled)
	}) // the Request stands after either
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
}

// TestAcceptUnusableConfig: the peer is not left waiting.
func TestAcceptUnusableConfig(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	na, nb := net.Pipe()
	go func() {
		r, err := cm.Await(t.Context(), nb, cm.Config{})
		if assert.NoError(t, err) {
			_, err = r.Accept(t.Context(), b.qp, cm.Config{PrivateData: make([]byte, 600)})
			assert.Error(t, err)
		}
	}()
	_, err := cm.Connect(bounded(t), na, a.qp, cm.Config{})
	require.Error(t, err)
	assert.Equal(t, verbs.StateIdle, a.qp.State())
}

// TestContextEndsConnect cancels at each stage at which Connect and Await can
// wait for the peer.
func TestContextEndsConnect(t *testing.T) {
	for _, c := range []struct {
		name string
		peer func(nb net.Conn) // what the peer does before it falls silent
		call func(ctx context.Context, na net.Conn, h *host) error
	}{
		{"before anything", func(net.Conn) {}, connectCall},
		{"within the Request", func(nb net.Conn) { _, _ = io.ReadFull(nb, make([]byte, 5)) }, connectCall},
		{"waiting for the Reply", func(nb net.Conn) { _, _ = io.ReadFull(nb, make([]byte, 24)) }, connectCall},
		{"within the Reply", func(nb net.Conn) {
			_, _ = io.ReadFull(nb, make([]byte, 24))
			_, _ = nb.Write([]byte("MPA ID Rep"))
		}, connectCall},
		{"waiting for the Request", func(net.Conn) {}, awaitCall},
		{"within the Request, responding", func(nb net.Conn) { _, _ = nb.Write([]byte("MPA ID")) }, awaitCall},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, verbs.QPConfig{})
			na, nb := net.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.call(ctx, na, h) }()
			c.peer(nb)
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
			assert.Equal(t, verbs.StateIdle, h.qp.State())
			_, err := io.Copy(io.Discard, nb)
			require.NoError(t, err, "closed")
			_ = nb.Close()
		})
		t.Run(c.name+", timeout", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, verbs.QPConfig{})
				na, nb := net.Pipe()
				done := make(chan error, 1)
				go func() { done <- c.call(context.Background(), na, h) }()
				c.peer(nb)
				start := time.Now()
				require.ErrorIs(t, <-done, context.DeadlineExceeded)
				assert.Equal(t, 10*time.Second, time.Since(start), "the default")
				_ = nb.Close()
			})
		})
	}
}

func connectCall(ctx context.Context, na net.Conn, h *host) error {
	_, err := cm.Connect(ctx, na, h.qp, cm.Config{})
	return err
}

func awaitCall(ctx context.Context, na net.Conn, _ *host) error {
	_, err := cm.Await(ctx, na, cm.Config{})
	return err
}

func TestDialContext(t *testing.T) {
	h := newHost(t, verbs.QPConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := cm.Dial(ctx, "127.0.0.1:1", h.qp, cm.Config{})
	require.ErrorIs(t, err, context.Canceled)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = cm.Dial(bounded(t), l.Addr().String(), h.qp, cm.Config{})
	require.Error(t, err, "nobody listens")
	assert.Equal(t, verbs.StateIdle, h.qp.State())
}

// TestQueuePairGoneMeanwhile: an Initiator whose queue pair is not to be had when the
// Reply comes tells the Responder so (RFC 6581 9.3).
func TestQueuePairGoneMeanwhile(t *testing.T) {
	terminate := []byte{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, 0x05, 0, 0}
	for name, c := range map[string]struct {
		lose func(*host) error
		want error
	}{
		"destroyed":   {func(h *host) error { return h.qp.Destroy() }, verbs.ErrInvalidQP},
		"in Error":    {func(h *host) error { return h.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}) }, verbs.ErrInvalidState},
		"RNIC closed": {func(h *host) error { return h.nic.Close() }, verbs.ErrInvalidRNIC},
	} {
		for _, l := range []string{"TCP", "pipe"} {
			t.Run(name+" "+l, func(t *testing.T) {
				h := newHost(t, verbs.QPConfig{})
				na, nb := links[l](t)
				defer nb.Close()
				failed := make(chan error, 1)
				go func() {
					_, err := cm.Connect(bounded(t), na, h.qp, cm.Config{Model: cm.PeerToPeer})
					failed <- err
				}()
				req, err := rawpeer.ReadStartup(nb)
				require.NoError(t, err)
				require.NoError(t, c.lose(h))
				req.Reply = true
				require.NoError(t, rawpeer.WriteStartup(nb, req))
				p := rawpeer.New(nb, rawpeer.Options{CRC: true})
				u, err := p.Next()
				require.NoError(t, err)
				assert.Equal(t, terminate, u)
				_, err = p.Next()
				require.ErrorIs(t, err, io.EOF)
				require.ErrorIs(t, <-failed, c.want)
			})
		}
	}
}
