package verbs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// TestRNICFail: RNIC Catastrophic Failure of figure 25.
func TestRNICFail(t *testing.T) {
	w := newWorld(t, verbs.Config{ID: someID})
	events := make(chan verbs.Event, 10)
	require.NoError(t, w.nic.SetEventHandler(func(e verbs.Event) { events <- e }))
	w.connect()
	require.NoError(t, second(w.qp.PostRecv(verbs.Recv{ID: 8})))
	require.NoError(t, second(w.sharing.PostSend(verbs.Request{ID: 9})), "Idle, with work")
	done := w.qp.Done()
	fault.Provoke(w.nic)
	fault.Provoke(w.nic) // once is enough
	for name, call := range everyVerb(w) {
		if _, verb, _ := strings.Cut(name, "."); verb == "Query" {
			assert.NoError(t, call(), name)
			continue
		}
		if name != "CQ.PollOne" && name != "CQ.Wait" && name != "CQ.WaitOne" { // what has completed is still there
			assert.ErrorIs(t, call(), verbs.ErrInvalidRNIC, name)
		}
	}
	<-done
	<-w.peer.qp.Done()
	for _, qp := range []*verbs.QP{w.qp, w.peer.qp} {
		assert.EqualValues(t, 0x0208, query(t, qp).Terminate.Code, "Global Catastrophic Error")
	}
	assert.Equal(t, verbs.StateError, w.qp.State())
	assert.Equal(t, verbs.StateError, w.sharing.State())
	var ids []uint64
	for range 2 {
		c := waitOne(t, w.cq)
		assert.Equal(t, verbs.StatusFlushed, c.Status)
		ids = append(ids, c.ID)
	}
	assert.ElementsMatch(t, []uint64{8, 9}, ids)
	assert.ErrorIs(t, second(w.cq.PollOne()), verbs.ErrInvalidRNIC)
	assert.ErrorIs(t, second(verbs.Open(verbs.Config{ID: someID})), verbs.ErrRNICInUse)

	// The only way on is to close it and open it again.
	require.NoError(t, w.nic.Close())
	assert.Equal(t, verbs.Event{ID: verbs.EventRNICCatastrophic}, <-events)
	assert.Empty(t, events, "and nothing else")
	again, err := verbs.Open(verbs.Config{ID: someID})
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

// TestRNICFailWhileClosing: a queue pair that is closing ends in Idle after the
// failure, and is unusable all the same.
func TestRNICFailWhileClosing(t *testing.T) {
	n := newNode(t, verbs.QPConfig{CloseTimeout: time.Hour})
	x, y := tcpConns(t)
	start(t, n.qp, x, mpa.Initiator, false)
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.StateClosing}))
	done := n.qp.Done()
	fault.Provoke(n.nic)
	require.NoError(t, y.Close())
	<-done
	require.Eventually(t, func() bool { return n.qp.State() == verbs.StateError }, time.Minute, time.Millisecond)
	require.ErrorIs(t, second(n.qp.PostSend(verbs.Request{})), verbs.ErrInvalidRNIC)
}

// TestRNICFailAndCloseAtOnce neither hangs nor leaves anything.
func TestRNICFailAndCloseAtOnce(t *testing.T) {
	for range 20 {
		a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
		join(t, a.qp, b.qp, false)
		failed := make(chan struct{})
		go func() {
			defer close(failed)
			fault.Provoke(a.nic)
		}()
		require.NoError(t, a.nic.Close())
		<-failed
		require.ErrorIs(t, second(a.nic.Query()), verbs.ErrInvalidRNIC)
	}
}
