//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// unacknowledged is a side with a receive (9) whose peer has destroyed its queue pair, and two Sends (1, 2) posted behind that. They wait
// for twice 4.096 us x 2^timeout.
func unacknowledged(t *testing.T, timeout uint8) (*side, *told) {
	t.Helper()
	a, said := hasty(t, addr1)
	a.left(t, timeout)
	<-a.verbs().taken.(*link).over
	a.posted(uabi.SendWR{WRID: 1, Opcode: uabi.WRSend}, a.sge(0, 8)) // unsignaled
	a.posted(signaled(uabi.WRSend, 2), a.sge(0, 8))
	return a, said
}

// timers are those of the queue pair.
func (q *QP) timers() unanswering {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ending.unanswered
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
	assert.Equal(t, unanswering{}, a.verbs().timers())
	a.posted(signaled(uabi.WRSend, 3), a.sge(0, 8))
	assert.Equal(t, [][2]uint64{{3, uabi.WCWRFlushErr}}, a.statuses(1))
}

// TestUnacknowledgedEnds: until then, or for ever where there is no timeout, the queue pair is in RTS, and the program may end it. After
// a second the user is told.
func TestUnacknowledgedEnds(t *testing.T) {
	for _, timeout := range []uint8{0, 31} {
		a, said := unacknowledged(t, timeout)
		u := a.verbs().timers()
		require.Equal(t, [2]bool{timeout != 0, true}, [2]bool{u.limit != nil, u.saying != nil})
		require.Eventually(t, func() bool { return len(said.all()) > 0 }, time.Minute, time.Millisecond)
		assert.Contains(t, said.all()[0], "has a peer that has destroyed its queue pair")
		assert.Empty(t, a.poll(16))
		assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
		require.NoError(t, a.to(uabi.QPSErr))
		got := map[uint64]uint32{}
		for _, w := range a.poll(16) {
			got[w.WRID] = w.Status
		}
		assert.Equal(t, map[uint64]uint32{1: uabi.WCWRFlushErr, 2: uabi.WCWRFlushErr, 9: uabi.WCWRFlushErr}, got)
		assert.Equal(t, unanswering{}, a.verbs().timers())

		b, _ := unacknowledged(t, timeout)
		require.NoError(t, b.to(uabi.QPSReset))
		assert.Empty(t, b.poll(16))
		assert.Equal(t, unanswering{}, b.verbs().timers())
		c := at(t, addr2)
		b.raise(c)
		c.raise(b)
		talk(t, b, c)

		d, _ := unacknowledged(t, timeout)
		q := d.verbs()
		d.destroy()
		assert.Empty(t, d.poll(16))
		assert.Equal(t, unanswering{}, q.timers())
	}
}

// patient sets the time of the attributes.
func (s *side) patient(timeout uint8) {
	q := s.verbs()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.attr.AttrMask |= uabi.QPTimeout
	q.attr.Timeout, q.attr.RetryCnt = timeout, 1
}

// vanished is a side with a receive (20), and a Send (10) for which the peer has no receive, when the peer goes.
func vanished(t *testing.T, timeout uint8) *side {
	t.Helper()
	const longest = 0 // of min_rnr_timer: 655 ms
	a, b, _ := rnrPair(t, 6, longest)
	a.patient(timeout)
	<-a.verbs().taken.(*link).up
	<-b.verbs().taken.(*link).up
	_, err := a.recv(20, a.sge(0, 8))
	require.NoError(t, err)
	a.posted(signaled(uabi.WRSend, 10), a.sge(0, 8))
	b.destroy()
	return a
}

// TestPeerVanishes: what is under way when the peer goes, and what is posted then, waits as on an adapter.
func TestPeerVanishes(t *testing.T) {
	const timeout = 14
	begun := time.Now()
	a := vanished(t, timeout)
	a.posted(signaled(uabi.WRSend, 11), a.sge(0, 8))
	assert.Equal(t, [][2]uint64{{10, uabi.WCRetryExcErr}, {11, uabi.WCWRFlushErr}, {20, uabi.WCWRFlushErr}}, a.statuses(3))
	assert.GreaterOrEqual(t, time.Since(begun), 2*4096*time.Nanosecond<<timeout)
	assert.EqualValues(t, uabi.QPSErr, a.query().QPState)
	assert.Empty(t, a.poll(16))
	assert.True(t, a.quiet())

	for _, timeout := range []uint8{0, 31} {
		a := vanished(t, timeout)
		a.over()
		a.posted(signaled(uabi.WRSend, 11), a.sge(0, 8))
		_, err := a.recv(21, a.sge(0, 8))
		require.NoError(t, err)
		assert.Empty(t, a.poll(16))
		assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
		<-a.verbs().taken.(*link).over
		require.NoError(t, a.to(uabi.QPSErr))
		all := a.poll(16)
		require.Len(t, all, 4)
		for _, w := range all {
			assert.EqualValues(t, uabi.WCWRFlushErr, w.Status, "%+v", w)
		}

		a = vanished(t, timeout)
		require.NoError(t, a.to(uabi.QPSReset))
		assert.Empty(t, a.poll(16))
		b := at(t, addr2)
		a.raise(b)
		assert.False(t, a.verbs().waitsForPeer(), "that was another connection")
		b.raise(a)
		talk(t, a, b)

		a = vanished(t, timeout)
		q := a.verbs()
		a.destroy()
		assert.Equal(t, unanswering{}, q.timers())
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
	require.Equal(t, syscall.ENOMEM, errnoOf(t, err))
	require.NoError(t, a.to(uabi.QPSErr))
	assert.Len(t, a.wait(room+3), room+3)
}

// TestUnacknowledgedInIdle: so does a Send that the core takes between the close and the device's word of it, behind one of the close.
func TestUnacknowledgedInIdle(t *testing.T) {
	a, _ := hasty(t, addr1)
	b := at(t, addr2)
	a.raiseTo(b.gid(), b.qp.QPN, 14, 1)
	b.raise(a)
	talk(t, a, b)
	talk(t, a, b)
	q := a.verbs()
	q.mu.Lock() // nothing is told of the close
	b.destroy()
	require.Eventually(t, func() bool { return q.qp.State() == verbs.StateIdle }, time.Minute, time.Millisecond)
	a.posted(signaled(uabi.WRSend, 2), a.sge(0, 8))
	q.ending.behind = []uabi.WC{{WRID: 1, Status: uabi.WCWRFlushErr, QPNum: q.qpn}} // of one that was posted while it closed
	q.mu.Unlock()
	assert.Equal(t, [][2]uint64{{1, uabi.WCRetryExcErr}, {2, uabi.WCWRFlushErr}}, a.statuses(2))
}

// TestVanishedOnce: what would end the queue pair otherwise, and comes behind the peer's end, takes no completion along.
func TestVanishedOnce(t *testing.T) {
	for _, late := range []func(q *QP){func(q *QP) { q.unready(RNRForever) }, func(q *QP) { q.giveUp() }} {
		a := vanished(t, 14)
		a.over()
		q := a.verbs()
		late(q)
		require.False(t, q.ending.unready || q.ending.stalled)
		assert.Equal(t, [][2]uint64{{10, uabi.WCRetryExcErr}, {20, uabi.WCWRFlushErr}}, a.statuses(2))
	}
}

// TestUnacknowledgedUnheard: Sends that wait raise no event, which a program would find nothing behind, until they complete.
func TestUnacknowledgedUnheard(t *testing.T) {
	a := vanished(t, 14)
	v := a.verbs().sendCQ
	require.NoError(t, v.cq.Notify(verbs.NotifyNext))
	a.over()
	assert.Zero(t, v.cq.Stats().Notifications)
	require.Eventually(t, func() bool { return v.cq.Stats().Notifications == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, [][2]uint64{{10, uabi.WCRetryExcErr}, {20, uabi.WCWRFlushErr}}, a.statuses(2))
}

// TestVanishedInRTR: a queue pair whose peer has come and gone before RTS is in RTR still, and has its time from RTS on.
func TestVanishedInRTR(t *testing.T) {
	for lossless, end := range map[bool]func(b *side){true: (*side).destroy, false: func(b *side) { b.verbs().abort() }} {
		a, _ := roceAt(t)
		b, _ := roceAt(t)
		require.NoError(t, a.to(uabi.QPSInit))
		require.NoError(t, a.rtr(b.gid(), b.qp.QPN))
		b.raise(a)
		q := a.verbs()
		l := q.taken.(*link)
		<-l.up
		<-b.verbs().taken.(*link).up
		_, err := a.recv(9, a.sge(0, 8))
		require.NoError(t, err)
		end(b)
		<-l.over
		assert.EqualValues(t, uabi.QPSRTR, a.query().QPState)
		assert.Equal(t, unanswering{}, q.timers())
		m := a.whole(uabi.QPSRTS)
		m.Timeout, m.RetryCnt = 14, 1
		if !lossless {
			m.Timeout = 31
		}
		require.NoError(t, a.modify(m))
		assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
		if lossless {
			a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
			assert.Equal(t, [][2]uint64{{1, uabi.WCRetryExcErr}, {9, uabi.WCWRFlushErr}}, a.statuses(2))
		} else {
			assert.NotEqual(t, unanswering{}, q.timers())
		}
	}
}

// TestEndOfAnother: what was on its way to tell of an end, and comes behind RESET, tells nothing of the next connection.
func TestEndOfAnother(t *testing.T) {
	a, _ := unacknowledged(t, 31)
	q := a.verbs()
	old := q.taken
	require.NoError(t, a.to(uabi.QPSReset))
	a.left(t, 31)
	a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
	for _, tell := range []func(Connection){q.completeLate, q.released, q.endStruck} {
		tell(old)
		assert.False(t, q.ending.told)
		assert.Empty(t, a.poll(16))
		assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
	}
}
