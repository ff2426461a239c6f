//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// unacknowledged is a side with a receive (9) whose peer has destroyed its queue pair, and two Sends (1, 2) posted behind that. They wait
// for twice 4.096 us x 2^timeout.
func unacknowledged(t *testing.T, timeout uint8) (*side, *told) {
	t.Helper()
	a, said := hasty(t, addr1)
	b := at(t, addr2)
	a.raiseTo(b.gid(), b.qp.QPN, timeout, 1)
	b.raise(a)
	talk(t, a, b)
	talk(t, a, b) // after which no nudge can cross the close (decision 0014)
	_, err := a.recv(9, a.sge(0, 8))
	require.NoError(t, err)
	b.destroy()
	a.over()
	a.posted(uabi.SendWR{WRID: 1, Opcode: uabi.WRSend}, a.sge(0, 8)) // unsignaled
	a.posted(signaled(uabi.WRSend, 2), a.sge(0, 8))
	return a, said
}

// statuses are those of n completions, in their order.
func (s *side) statuses(n int) (all [][2]uint64) {
	for _, w := range s.wait(n) {
		all = append(all, [2]uint64{w.WRID, uint64(w.Status)})
	}
	return all
}

// TestUnacknowledged: a Send to a queue pair that is no more ends when the time of the attributes is over, and not before.
func TestUnacknowledged(t *testing.T) {
	const timeout = 14
	begun := time.Now()
	a, _ := unacknowledged(t, timeout)
	assert.Equal(t, [][2]uint64{{1, uabi.WCRetryExcErr}, {2, uabi.WCWRFlushErr}, {9, uabi.WCWRFlushErr}}, a.statuses(3))
	assert.GreaterOrEqual(t, time.Since(begun), 2*4096*time.Nanosecond<<timeout)
	assert.EqualValues(t, uabi.QPSErr, a.query().QPState)
	assert.Equal(t, unanswering{}, a.verbs().ending.unanswered)
	a.posted(signaled(uabi.WRSend, 3), a.sge(0, 8))
	assert.Equal(t, [][2]uint64{{3, uabi.WCWRFlushErr}}, a.statuses(1))
}

// TestUnacknowledgedEnds: until then, or for ever where there is no timeout, the queue pair is in RTS, and the program may end it. After
// a second the user is told.
func TestUnacknowledgedEnds(t *testing.T) {
	for _, timeout := range []uint8{0, 31} {
		a, said := unacknowledged(t, timeout)
		a.verbs().mu.Lock()
		u := a.verbs().ending.unanswered
		a.verbs().mu.Unlock()
		require.Equal(t, [2]bool{timeout != 0, true}, [2]bool{u.limit != nil, u.saying != nil})
		require.Eventually(t, func() bool { return len(said.all()) > 0 }, time.Minute, time.Millisecond)
		assert.Contains(t, said.all()[0], "sends to a peer that has destroyed its queue pair")
		assert.Empty(t, a.poll(16))
		assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
		require.NoError(t, a.to(uabi.QPSErr))
		got := map[uint64]uint32{}
		for _, w := range a.poll(16) {
			got[w.WRID] = w.Status
		}
		assert.Equal(t, map[uint64]uint32{1: uabi.WCWRFlushErr, 2: uabi.WCWRFlushErr, 9: uabi.WCWRFlushErr}, got)
		assert.Equal(t, unanswering{}, a.verbs().ending.unanswered)

		b, _ := unacknowledged(t, timeout)
		require.NoError(t, b.to(uabi.QPSReset))
		assert.Empty(t, b.poll(16))
		assert.Equal(t, unanswering{}, b.verbs().ending.unanswered)
		c := at(t, addr2)
		b.raise(c)
		c.raise(b)
		talk(t, b, c)

		d, _ := unacknowledged(t, timeout)
		q := d.verbs()
		d.destroy()
		assert.Empty(t, d.poll(16))
		assert.Equal(t, unanswering{}, q.ending.unanswered)
	}
}

// TestUnacknowledgedDepth: no more Sends wait than the queue pair has room for.
func TestUnacknowledgedDepth(t *testing.T) {
	a, _ := unacknowledged(t, 31)
	room := a.verbs().sendDepth - 2
	for id := range room {
		a.posted(signaled(uabi.WRSend, 100+id), a.sge(0, 8))
	}
	_, err := a.send(signaled(uabi.WRSend, 1000), a.sge(0, 8))
	require.Error(t, err)
	require.NoError(t, a.to(uabi.QPSErr))
	assert.Len(t, a.wait(room+3), room+3)
}
