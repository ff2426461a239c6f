//go:build linux && (amd64 || arm64)

package uverbs

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

func (s *side) destroy() {
	s.t.Helper()
	must[uabi.DestroyQPResp](s.program, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: s.qp.QPHandle})
}

// over waits until the side's own view of the end is settled.
func (s *side) over() {
	s.t.Helper()
	<-s.verbs().Verbs().Done()
	require.Eventually(s.t, func() bool { return s.verbs().Verbs().State() == verbs.StateError }, time.Minute, time.Millisecond)
}

// left has s, with a timeout, lose a peer that it has talked to. Its receive 9 is posted.
func (s *side) left(t *testing.T, timeout uint8) {
	t.Helper()
	b := at(t, addr2)
	s.raiseTo(b.gid(), b.qp.QPN, timeout, 1)
	b.raise(s)
	talk(t, s, b)
	talk(t, s, b) // after which no nudge can cross the close (decision 0014)
	_, err := s.recv(9, s.sge(0, 8))
	require.NoError(t, err)
	b.destroy()
	s.over()
}

// alone is a side with a receive whose peer has ended its queue pair.
func alone(t *testing.T) *side {
	a := at(t, addr1)
	a.left(t, 1)
	assert.NoError(t, a.verbs().Verbs().LLPStream().Err())
	assert.Empty(t, a.poll(16))
	assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
	return a
}

// TestByHandPeerEnds: as on InfiniBand the next Send learns of it, and flushes.
func TestByHandPeerEnds(t *testing.T) {
	a := alone(t)
	_, err := a.recv(10, a.sge(0, 8))
	require.NoError(t, err, "receives can be posted still")
	assert.Empty(t, a.poll(16))
	a.posted(signaled(uabi.WRSend, 11), a.sge(0, 8))
	a.posted(signaled(uabi.WRSend, 12), a.sge(0, 8))
	_, err = a.recv(13, a.sge(0, 8))
	require.NoError(t, err)
	got := map[uint64]uint32{}
	for _, w := range a.wait(5) {
		got[w.WRID] = w.Status
		assert.Equal(t, a.qp.QPN, w.QPNum)
	}
	assert.Equal(t, map[uint64]uint32{
		9: uabi.WCWRFlushErr, 10: uabi.WCWRFlushErr, 11: uabi.WCRetryExcErr, 12: uabi.WCWRFlushErr, 13: uabi.WCWRFlushErr,
	}, got)
	assert.EqualValues(t, uabi.QPSErr, a.query().QPState)
	assert.Empty(t, a.poll(16))
}

// TestByHandDestroyedEarly: what was posted before the connection was there arrives, though the queue pair is destroyed meanwhile.
func TestByHandDestroyedEarly(t *testing.T) {
	a, b := at(t, addr2), at(t, addr1)
	b.raise(a)
	awaitEarly(t, a.dev, 1) // b has asked for a connection
	b.fill(0, []byte("last words"))
	b.posted(uabi.SendWR{WRID: 1, Opcode: uabi.WRSend}, b.sge(0, 10))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = write[uabi.DestroyQPResp](b.program, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: b.qp.QPHandle})
	}()
	q := b.verbs()
	require.Eventually(t, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.ending.parting
	}, time.Minute, time.Millisecond)
	_, err := a.recv(7, a.sge(0, 64))
	require.NoError(t, err)
	a.raise(b)
	assert.EqualValues(t, 10, a.one().ByteLen)
	assert.Equal(t, "last words", string(a.read(0, 10)))
	<-gone
}

// TestByHandPeerEndsThenError: a change to ERR flushes, one to RESET drops.
func TestByHandPeerEndsThenError(t *testing.T) {
	a := alone(t)
	require.NoError(t, a.to(uabi.QPSErr))
	assert.EqualValues(t, uabi.WCWRFlushErr, a.wait(1)[0].Status)
	b := alone(t)
	require.NoError(t, b.to(uabi.QPSReset))
	assert.Empty(t, b.poll(16))
	c := at(t, addr2)
	b.raise(c)
	c.raise(b)
	talk(t, b, c)
}

// TestByHandPeerFails: a reset may have lost what has completed as sent, so it is told: by completions, and no event.
func TestByHandPeerFails(t *testing.T) {
	a, b := at(t, addr1), at(t, addr2)
	a.raiseTo(b.gid(), b.qp.QPN, 1, 1)
	b.raise(a)
	talk(t, a, b)
	_, err := a.recv(9, a.sge(0, 8))
	require.NoError(t, err)
	require.NoError(t, b.to(uabi.QPSErr))
	assert.EqualValues(t, uabi.WCWRFlushErr, a.wait(1)[0].Status)
	qp := a.verbs().Verbs()
	<-qp.Done()
	for id := range lost {
		a.dev.event(verbs.Event{ID: id, QP: qp.ID()})
	}
	a.dev.event(verbs.Event{ID: verbs.EventProtSTag, QP: qp.ID()})
	assert.EqualValues(t, uabi.EventQPAccessErr, a.async().EventType)
}

// TestByHandLate: what was posted is sent before DESTROY ends the stream, and arrives.
func TestByHandLate(t *testing.T) {
	a, b := at(t, addr1), at(t, addr2)
	a.raise(b)
	b.raise(a)
	talk(t, a, b)
	const n = 16
	for i := range uint64(n) {
		_, err := b.recv(i, b.sge(0, 1024))
		require.NoError(t, err)
	}
	for i := range n {
		a.posted(signaled(uabi.WRSend, i), a.sge(0, 1024))
	}
	a.destroy()
	for i, w := range b.wait(n) {
		assert.Equal(t, [2]uint64{uint64(i), uabi.WCSuccess}, [2]uint64{w.WRID, uint64(w.Status)})
	}
}

// TestByHandOverrun: posts to a peer that is gone are bounded as an adapter bounds them.
func TestByHandOverrun(t *testing.T) {
	a := alone(t)
	var err error
	n := 0
	for ; err == nil && n < 10000; n++ {
		_, err = a.recv(1, a.sge(0, 8))
	}
	assert.Equal(t, syscall.ENOMEM, errnoOf(t, err))
	assert.LessOrEqual(t, n, int(a.qp.MaxRecvWR))
}

// TestAnnounced: receives of a connection of rdma_cm flush after its event.
func TestAnnounced(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	c := &ended{}
	require.NoError(t, a.verbs().Take(c))
	_, err := a.recv(1, a.sge(0, 8))
	require.NoError(t, err)
	require.NoError(t, b.to(uabi.QPSErr))
	<-a.verbs().Verbs().Done()
	assert.Empty(t, a.poll(16))
	a.verbs().Over(&ended{}) // of another life
	assert.Empty(t, a.poll(16))
	a.verbs().Over(c) // the event is out
	assert.EqualValues(t, uabi.WCWRFlushErr, a.wait(1)[0].Status)
}

// TestAnnouncedLate: what is posted to a connection of rdma_cm after its end is taken, and flushes: a receive after the
// event, as those before it, a Send at once. Without a connection it is refused.
func TestAnnouncedLate(t *testing.T) {
	for _, good := range []bool{true, false} {
		a, b := pair(t, Config{}, allRights)
		c := &ended{}
		require.NoError(t, a.verbs().Take(c))
		_, err := a.recv(1, a.sge(0, 8))
		require.NoError(t, err)
		if good {
			require.NoError(t, b.verbs().Verbs().Modify(verbs.ModifyQP{Next: verbs.StateClosing}))
		} else {
			require.NoError(t, b.to(uabi.QPSErr))
		}
		<-a.verbs().Verbs().Done()
		a.verbs().Over(c) // the event is out
		_, err = a.recv(2, a.sge(0, 8))
		require.NoError(t, err)
		a.posted(signaled(uabi.WRSend, 3), a.sge(0, 8))
		got := map[uint64]uint32{}
		for _, w := range a.wait(3) {
			got[w.WRID] = w.Status
		}
		assert.Equal(t, map[uint64]uint32{1: uabi.WCWRFlushErr, 2: uabi.WCWRFlushErr, 3: uabi.WCWRFlushErr}, got)
		_, err = a.recv(4, a.sge(0, 8))
		require.NoError(t, err, "the program knows now")
		assert.EqualValues(t, 4, a.wait(1)[0].WRID)
	}
	alone := newSide(started(t, Config{}), allRights)
	require.NoError(t, alone.to(uabi.QPSErr))
	_, err := alone.recv(1, alone.sge(0, 8))
	assert.Equal(t, syscall.EINVAL, errnoOf(t, err))
}

// TestResetDrops: what was posted to a queue pair that was never connected is gone with RESET, and nothing of another's.
func TestResetDrops(t *testing.T) {
	p := started(t, Config{})
	a, b := newSide(p, allRights), newSide(p, allRights)
	b.qp = p.qp(b.pd, a.cq, a.cq)
	b.cq = a.cq
	for i, s := range []*side{a, b} {
		_, err := s.recv(uint64(i), s.sge(0, 8))
		require.NoError(t, err)
	}
	require.NoError(t, b.to(uabi.QPSErr))
	require.NoError(t, a.to(uabi.QPSReset))
	w := a.wait(1)
	assert.Equal(t, [2]uint64{1, uabi.WCWRFlushErr}, [2]uint64{w[0].WRID, uint64(w[0].Status)})
	require.NoError(t, a.to(uabi.QPSErr))
	assert.Empty(t, a.poll(16))
}

// TestEndsWithoutEvents: what the program does not find raises no event, and leaves the queue armed for what it does: gloo destroys a
// queue when all that it waits for has come.
func TestEndsWithoutEvents(t *testing.T) {
	armed := func(t *testing.T, roce bool) (a, b *side, fd int) {
		p := started(t, Config{Addr: addr1, CRC: true, RoCE: roce})
		fd = p.channel()
		a, b = onChannel(t, fd, p), newSide(started(t, Config{Addr: addr2, CRC: true, RoCE: roce}), allRights)
		a.raise(b)
		b.raise(a)
		talk(t, a, b)
		talk(t, a, b) // see alone
		for i := range uint64(4) {
			_, err := a.recv(i, a.sge(0, 8))
			require.NoError(t, err)
		}
		assert.Empty(t, a.poll(16)) // hands over the posts that wait
		a.arm(0)
		return a, b, fd
	}
	for _, roce := range []bool{false, true} {
		t.Run(fmt.Sprint("peer ends, roce ", roce), func(t *testing.T) {
			a, b, fd := armed(t, roce)
			b.destroy()
			a.over()
			assert.Zero(t, pending(fd))
			a.patient(1)
			a.posted(signaled(uabi.WRSend, 4), a.sge(0, 8))
			await(t, fd, 8)
			require.Len(t, a.wait(5), 5)
			assert.Equal(t, 8, pending(fd), "once")
		})
		t.Run(fmt.Sprint("peer fails, roce ", roce), func(t *testing.T) {
			a, b, fd := armed(t, roce)
			require.NoError(t, b.to(uabi.QPSErr))
			a.over()
			assert.Zero(t, pending(fd))
			require.NoError(t, a.to(uabi.QPSErr))
			await(t, fd, 8)
			require.Len(t, a.poll(16), 4)
		})
		t.Run(fmt.Sprint("DESTROY, roce ", roce), func(t *testing.T) {
			a, _, fd := armed(t, roce)
			a.destroy()
			assert.Zero(t, pending(fd))
			assert.Empty(t, a.poll(16))
		})
		t.Run(fmt.Sprint("RESET, roce ", roce), func(t *testing.T) {
			a, _, fd := armed(t, roce)
			require.NoError(t, a.to(uabi.QPSReset))
			assert.Zero(t, pending(fd))
			assert.Empty(t, a.poll(16))
		})
		t.Run(fmt.Sprint("ERR, roce ", roce), func(t *testing.T) {
			a, _, fd := armed(t, roce)
			require.NoError(t, a.to(uabi.QPSErr))
			await(t, fd, 8)
			require.Len(t, a.wait(4), 4)
		})
	}
}

// TestLateBeforeOver: a stream that was reset takes posts, which flush, before what brought it up has told of its end: UCX cancels what a queue pair has so.
func TestLateBeforeOver(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	c := &link{} // by hand, and tells when the test says so
	require.NoError(t, a.verbs().Take(c))
	a.patient(1)
	require.NoError(t, b.to(uabi.QPSErr))
	<-a.verbs().Verbs().Done()
	_, err := a.recv(1, a.sge(0, 8))
	require.NoError(t, err)
	assert.Empty(t, a.poll(16))
	inline := func(id int) uabi.SendWR { // which does not wait to be posted
		w := signaled(uabi.WRSend, id)
		w.SendFlags |= uabi.SendInline
		return w
	}
	a.posted(inline(2), uabi.SGE{Addr: a.mem, Length: 8})
	assert.Empty(t, a.poll(16), "others before it may not have completed")
	a.verbs().Over(c)
	a.posted(inline(3), uabi.SGE{Addr: a.mem, Length: 8})
	got := map[uint64]uint32{}
	for _, w := range a.wait(3) {
		got[w.WRID] = w.Status
	}
	assert.Equal(t, map[uint64]uint32{1: uabi.WCWRFlushErr, 2: uabi.WCRetryExcErr, 3: uabi.WCWRFlushErr}, got)
}

// TestLateInIdle: a good close that was under way at the post may be done when the device looks why that is refused.
func TestLateInIdle(t *testing.T) {
	a, c := newSide(started(t, Config{}), allRights), &link{}
	q := a.verbs()
	a.patient(1)
	require.NoError(t, q.Take(c))
	require.Equal(t, verbs.StateIdle, q.Verbs().State())
	for sends, ids := range map[bool][]uint64{false: {1}, true: {2, 3}} {
		n, ended := q.late(sends, ids...)
		require.True(t, ended)
		require.Len(t, ids, n)
	}
	q.Over(c)
	got := map[uint64]uint32{}
	for _, w := range a.wait(3) {
		got[w.WRID] = w.Status
	}
	assert.Equal(t, map[uint64]uint32{1: uabi.WCWRFlushErr, 2: uabi.WCRetryExcErr, 3: uabi.WCWRFlushErr}, got)
}
