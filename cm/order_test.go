package cm_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// TestInOrder: Requests come in the order of their connections, and one that does not come
// holds up the others for a tenth of a second only.
func TestInOrder(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		t.Run(fmt.Sprint(inOrder), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl := newPipeListener()
				l := cm.NewListener(pl, cm.ListenConfig{InOrder: inOrder})
				defer l.Close()
				next := func() string {
					r, err := l.Accept(t.Context())
					require.NoError(t, err)
					defer func() { assert.NoError(t, r.Reject(nil)) }()
					assert.Equal(t, "pipe", r.LocalAddr().String())
					return string(r.PrivateData())
				}
				send := func(nc net.Conn, from string) {
					go func() { // Reject closes it
						ask(t, nc, from)
						_, _ = nc.Read(make([]byte, 100))
					}()
				}
				start := time.Now()
				a, b, c := pl.dial(), pl.dial(), pl.dial()
				send(c, "c")
				if !inOrder {
					require.Equal(t, "c", next())
					require.Zero(t, time.Since(start))
					_, _ = a.Close(), b.Close()
					return
				}
				time.Sleep(20 * time.Millisecond)
				send(b, "b")
				time.Sleep(20 * time.Millisecond)
				send(a, "a")
				require.Equal(t, "a", next())
				require.Equal(t, "b", next())
				require.Equal(t, "c", next())
				require.Equal(t, 40*time.Millisecond, time.Since(start))

				start = time.Now()
				silent, d, gone, e := pl.dial(), pl.dial(), pl.dial(), pl.dial()
				send(d, "d")
				require.NoError(t, gone.Close())
				send(e, "e")
				require.Equal(t, "d", next())
				require.Equal(t, "e", next())
				require.Equal(t, 100*time.Millisecond, time.Since(start))
				_ = silent.Close()
			})
		})
	}
}

// TestOnRequestSent: it is told when the Request is out, whatever becomes of it, and not when
// there was none.
func TestOnRequestSent(t *testing.T) {
	h := newHost(t, verbs.QPConfig{})
	ours, theirs := net.Pipe()
	sent := make(chan struct{})
	cfg := cm.Config{OnRequestSent: func() { close(sent) }}
	ended := make(chan error, 1)
	go func() {
		_, err := cm.Connect(bounded(t), ours, h.qp, cfg)
		ended <- err
	}()
	one := make([]byte, 1)
	_, err := theirs.Read(one)
	require.NoError(t, err)
	select {
	case <-sent:
		require.Fail(t, "told within the Request")
	default:
	}
	_, err = theirs.Read(make([]byte, 1<<10))
	require.NoError(t, err)
	<-sent
	require.NoError(t, theirs.Close())
	require.Error(t, <-ended)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = cm.Dial(ctx, "127.0.0.1:1", h.qp, cfg) // a second close would panic
	require.Error(t, err)
}
