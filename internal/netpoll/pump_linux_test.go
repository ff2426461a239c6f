package netpoll

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo is a Member that counts the octets that come.
type echo struct {
	conn   *Conn
	got    atomic.Int64
	driven atomic.Int64
}

func (e *echo) Drive(Ready) bool {
	e.driven.Add(1)
	var b [1000]byte
	n, _ := e.conn.TryRead(b[:])
	e.got.Add(int64(n))
	return n > 0
}

func (e *echo) Flush(bool) {}

// echoed is a stream of g without a descriptor, and its peer.
func echoed(t *testing.T, g *Group) (*echo, net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	conn, err := Own(a, nil)
	require.NoError(t, err)
	e := &echo{conn: conn}
	sock, err := conn.Join(g, e)
	require.NoError(t, err)
	conn.Take()
	sock.Begin()
	t.Cleanup(func() {
		_ = b.Close()
		conn.Reset()
		conn.Wait()
	})
	return e, b
}

// TestMixedGroup: streams with a descriptor and without are of one group, whichever comes first: who sleeps there goes on
// to sleep on both.
func TestMixedGroup(t *testing.T) {
	for _, s := range []Server{BackgroundPoller, Waiter} {
		g := newGroup(t)
		e, peer := echoed(t, g)
		if s == Waiter {
			claimed, done := make(chan bool), make(chan struct{})
			go func() {
				defer close(done)
				ok := g.Claim()
				if claimed <- ok; !ok {
					return
				}
				for g.Sleep() {
				}
				g.Leave()
			}()
			t.Cleanup(func() {
				g.Close()
				<-done
			})
			require.True(t, <-claimed)
		}
		until(t, g, s)
		p := add(t, g)
		for i := range int64(20) {
			until(t, g, s)
			p.send(5)
			p.has(5 * (1 + i))
			until(t, g, s)
			_, err := peer.Write(make([]byte, 10))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return e.got.Load() == 10*(1+i) }, patience, 100*time.Microsecond)
		}
	}
}

// TestWatchPump: a thread that sleeps on descriptors hears nothing of a stream that has none: the background poller takes over.
func TestWatchPump(t *testing.T) {
	g := newGroup(t)
	g.Slack = time.Hour
	e, peer := echoed(t, g)
	pollersServe(t, g)
	fds, got := g.Watch(nil)
	require.False(t, got)
	require.Empty(t, fds)
	_, err := peer.Write(make([]byte, 10))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return e.got.Load() == 10 }, patience, time.Millisecond)
}
