package verbs_test

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// TestCloseFreesEverything: after Close no goroutine is left, and no peer is left
// waiting.
func TestCloseFreesEverything(t *testing.T) {
	n, m := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
	for i := range 10 {
		a, b := n.newQP(t, verbs.QPConfig{}), m.newQP(t, verbs.QPConfig{})
		join(t, a, b, i%2 == 0)
		_, err := a.PostRecv(verbs.Recv{SGL: n.mr.SGL(0, 100)})
		require.NoError(t, err)
		const size = 100_000
		_, err = a.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: n.mr.SGL(0, size), Remote: m.mr.Remote(i * size)})
		require.NoError(t, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, n.nic.Close()) })
	wg.Go(func() { _ = n.qp.Destroy() }) // by both at once, it may be gone
	wg.Wait()
	require.NoError(t, m.nic.Close())
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		left := bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("qp.(*session)"))
		if left == 0 {
			return
		}
		require.True(t, time.Now().Before(end), "%d goroutines of queue pairs", left)
	}
}

// TestDestroyInEveryState: prompt, whatever the peer does, and it gives back what
// the queue pair used.
func TestDestroyInEveryState(t *testing.T) {
	silent := func(t *testing.T, n *node) net.Conn { // the peer reads nothing
		c, d := tcpConns(t)
		start(t, n.qp, c, mpa.Initiator, true)
		return d
	}
	for name, enter := range map[string]func(t *testing.T, n *node) net.Conn{
		"Idle": func(*testing.T, *node) net.Conn { return nil },
		"RTS":  silent,
		"RTS, sending": func(t *testing.T, n *node) net.Conn {
			d := silent(t, n)
			for range 64 {
				_, err := n.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: n.mr.SGL(0, 1<<20), Remote: verbs.Remote{STag: 1}})
				require.NoError(t, err)
			}
			return d
		},
		"RTS, over a pipe": func(t *testing.T, n *node) net.Conn {
			c, d := net.Pipe()
			start(t, n.qp, c, mpa.Initiator, true)
			_, err := n.qp.PostSend(verbs.Request{})
			require.NoError(t, err)
			return d
		},
		"Closing": func(t *testing.T, n *node) net.Conn {
			d := silent(t, n)
			require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.StateClosing}))
			require.Equal(t, verbs.StateClosing, n.qp.State())
			return d
		},
		"Terminate": func(t *testing.T, n *node) net.Conn {
			d := silent(t, n)
			require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.StateTerminate}))
			require.Equal(t, verbs.StateTerminate, n.qp.State())
			return d
		},
		"Error": func(t *testing.T, n *node) net.Conn {
			require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, verbs.QPConfig{CloseTimeout: time.Hour})
			peer := enter(t, n)
			done := n.qp.Done()
			require.NoError(t, n.qp.Destroy())
			<-done
			require.ErrorIs(t, n.qp.Destroy(), verbs.ErrInvalidQP)
			_, err := n.qp.PostRecv(verbs.Recv{})
			require.ErrorIs(t, err, verbs.ErrInvalidQP)
			require.NoError(t, n.cq.Destroy(), "nothing is tied to it")
			require.NoError(t, n.mr.Deregister())
			require.NoError(t, n.pd.Deallocate())
			if peer != nil {
				_, _ = io.Copy(io.Discard, peer) // ends: the stream is gone
				require.NoError(t, peer.Close())
			}
		})
	}
}

// TestNotifySolicited: a consumer that asked for solicited completions sleeps
// through the others.
func TestNotifySolicited(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
	assert.NotZero(t, b.pd.ID())
	join(t, a.qp, b.qp, true)
	_, err := b.qp.PostRecv(verbs.Recv{ID: 1}, verbs.Recv{ID: 2})
	require.NoError(t, err)
	require.NoError(t, b.cq.Notify(verbs.NotifySolicited))
	_, err = a.qp.PostSend(verbs.Request{}, verbs.Request{Op: verbs.OpSendSE})
	require.NoError(t, err)
	<-b.cq.Events()
	got := b.wait(t, 2)
	require.Equal(t, []uint64{1, 2}, []uint64{got[0].ID, got[1].ID}, "it came with the second")
	require.Empty(t, b.cq.Events())
}

// endings makes count queue pairs of n end one after the other, and returns
// their IDs.
func endings(t *testing.T, n *node, count int) []verbs.QPID {
	var ids []verbs.QPID
	for range count {
		qp := n.newQP(t, verbs.QPConfig{})
		c, d := net.Pipe()
		start(t, qp, c, mpa.Initiator, false)
		done := qp.Done()
		require.NoError(t, d.Close())
		<-done
		ids = append(ids, qp.ID())
	}
	return ids
}

func TestEventsInOrder(t *testing.T) {
	n := newNode(t, verbs.QPConfig{})
	got := make(chan verbs.Event, 100)
	require.NoError(t, n.nic.SetEventHandler(func(e verbs.Event) {
		_, err := n.nic.CreateCQ(verbs.CQConfig{}) // a handler may call verbs
		assert.NoError(t, err)
		got <- e
	}))
	for _, id := range endings(t, n, 30) {
		require.Equal(t, verbs.Event{ID: verbs.EventLLPCloseComplete, QP: id}, <-got)
	}
	require.Empty(t, got)
}

func TestEventHandlerReplaced(t *testing.T) {
	n := newNode(t, verbs.QPConfig{})
	endings(t, n, 2) // nobody asked: lost
	first, second := make(chan verbs.Event, 10), make(chan verbs.Event, 10)
	require.NoError(t, n.nic.SetEventHandler(func(e verbs.Event) { first <- e }))
	ids := endings(t, n, 1)
	require.Equal(t, ids[0], (<-first).QP)
	require.NoError(t, n.nic.SetEventHandler(func(e verbs.Event) { second <- e }))
	ids = endings(t, n, 1)
	require.Equal(t, ids[0], (<-second).QP)
	require.NoError(t, n.nic.SetEventHandler(nil))
	endings(t, n, 1)
	require.NoError(t, n.nic.Close())
	require.Empty(t, first)
	require.Empty(t, second)
}

// TestEventsQueuedForNoHandler: events that wait while the handler is taken away
// are dropped, and Close waits for a handler that runs.
func TestEventsQueuedForNoHandler(t *testing.T) {
	n := newNode(t, verbs.QPConfig{})
	inside, leave := make(chan struct{}), make(chan struct{})
	var calls int
	require.NoError(t, n.nic.SetEventHandler(func(verbs.Event) {
		calls++
		close(inside)
		<-leave
	}))
	endings(t, n, 3)
	<-inside
	require.NoError(t, n.nic.SetEventHandler(nil))
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		assert.NoError(t, n.nic.Close())
	}()
	close(leave)
	<-closed
	require.Equal(t, 1, calls)
}
