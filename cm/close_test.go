package cm_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

func TestBothCloseAtOnce(t *testing.T) {
	for name, l := range links {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
			for range 10 {
				x, y := connect(t, l, a, b, cm.Config{}, cm.Config{}, nil)
				exchange(t, a, b)
				var wg sync.WaitGroup
				for _, c := range []*cm.Conn{x, y, x, y} {
					wg.Go(func() { assert.NoError(t, c.Close()) })
				}
				wg.Wait()
				assert.Equal(t, verbs.StateIdle, a.qp.State())
				assert.Equal(t, verbs.StateIdle, b.qp.State())
			}
		})
	}
}

// TestReceivesBehindAGoodClose: a good close flushes those that were posted, and leaves the queue pair
// in Idle, which takes more for the next stream. Who wants these back takes it to Error.
func TestReceivesBehindAGoodClose(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	x, y := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, nil)
	flushed := func(ids ...uint64) {
		t.Helper()
		var c [4]verbs.Completion
		require.Equal(t, len(ids), b.cq.Poll(c[:]))
		for i, id := range ids {
			assert.Equal(t, []any{id, verbs.OpRecv, verbs.StatusFlushed}, []any{c[i].ID, c[i].Op, c[i].Status})
		}
	}
	b.recv(t, 1)
	b.recv(t, 2)
	a.send(t, verbs.Request{SGL: a.mr.SGL(0, 8)})
	b.next(t, verbs.OpRecv, 1)
	b.recv(t, 3)
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
	require.Equal(t, verbs.StateIdle, b.qp.State())
	flushed(2, 3)
	b.recv(t, 4)
	flushed()
	require.NoError(t, b.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	flushed(4)
	_, err := b.qp.PostRecv(verbs.Recv{})
	require.ErrorIs(t, err, verbs.ErrInvalidState)
	require.NoError(t, b.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle}))
}

// TestCloseWaitsForTheQueue: what was posted before Close arrives.
func TestCloseWaitsForTheQueue(t *testing.T) {
	for name, l := range links {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
			// No nudge: one behind the Read Request may be unread when y closes, over a connection without a half-close.
			x, y := connect(t, l, a, b, cm.Config{CloseTimeout: time.Minute, NoNudge: true, Model: cm.ClientServer}, cm.Config{}, nil)
			const size = 1 << 20
			for i := range a.mr.Bytes() {
				a.mr.Bytes()[i] = byte(i * 7)
			}
			for range 16 {
				a.send(t, verbs.Request{Op: verbs.OpWrite, SGL: a.mr.SGL(0, size), Remote: b.mr.Remote(0)})
			}
			a.send(t, verbs.Request{Op: verbs.OpRead, Local: a.mr.SGE(0, size), Remote: b.mr.Remote(0)})
			require.NoError(t, x.Close())
			require.NoError(t, y.Close())
			assert.Equal(t, a.mr.Bytes(), b.mr.Bytes())
			for range 16 {
				a.next(t, verbs.OpWrite, 0)
			}
			a.next(t, verbs.OpRead, 0)
		})
	}
}

// TestCloseGivesUp: a Responder that never heard from the Initiator cannot
// empty its Send Queue.
func TestCloseGivesUp(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	x, y := connect(t, tcpLink, a, b, cm.Config{Model: cm.ClientServer}, cm.Config{CloseTimeout: time.Millisecond}, nil)
	b.send(t, verbs.Request{ID: 4})
	require.ErrorContains(t, y.Close(), "did not empty")
	assert.Equal(t, verbs.StateError, b.qp.State())
	var c [1]verbs.Completion
	require.Equal(t, 1, b.cq.Poll(c[:]))
	assert.Equal(t, verbs.StatusFlushed, c[0].Status)
	<-x.Done()
	require.Error(t, x.Close())
}

func TestAbort(t *testing.T) {
	for name, l := range links {
		for _, who := range []string{"initiator", "responder", "both"} {
			t.Run(name+"/"+who, func(t *testing.T) {
				a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
				x, y := connect(t, l, a, b, cm.Config{}, cm.Config{}, nil)
				exchange(t, a, b)
				a.recv(t, 1)
				b.recv(t, 2)
				var wg sync.WaitGroup
				if who != "responder" {
					wg.Go(func() { assert.NoError(t, x.Abort()) })
				}
				if who != "initiator" {
					wg.Go(func() { assert.NoError(t, y.Abort()) })
				}
				wg.Wait()
				<-x.Done()
				<-y.Done()
				for h, aborted := range map[*host]bool{a: who != "responder", b: who != "initiator"} {
					var c [2]verbs.Completion
					require.Equal(t, 1, h.cq.Poll(c[:]))
					assert.Equal(t, verbs.StatusFlushed, c[0].Status)
					if aborted && who != "both" {
						assert.Equal(t, verbs.StateError, h.qp.State())
					}
				}
				require.NoError(t, x.Abort(), "again")
				require.NoError(t, y.Abort(), "again")
			})
		}
	}
}

// TestCloseOfAnOldConn: a Conn that has ended does nothing to the next one of
// the same queue pair.
func TestCloseOfAnOldConn(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	x1, y1 := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, nil)
	require.NoError(t, x1.Close())
	<-y1.Done()
	x2, y2 := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, nil)
	require.NoError(t, x1.Close())
	require.NoError(t, y1.Close())
	require.NoError(t, y1.Abort())
	exchange(t, a, b)
	require.NoError(t, x2.Close())
	require.NoError(t, y2.Close())
}

// TestCloseAfterTerminate: Close says what the peer complained about.
func TestCloseAfterTerminate(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	x, y := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, nil)
	a.send(t, verbs.Request{ID: 1}) // no receive is posted for it
	<-x.Done()
	<-y.Done()
	require.ErrorContains(t, x.Close(), "the peer says 0x1202")
	require.ErrorContains(t, y.Close(), "sent Terminate 0x1202")
	require.Equal(t, x.Err(), x.Close())
}
