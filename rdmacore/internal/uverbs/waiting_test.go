//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// waitingPair is a pair on a device whose posts wait, in a row however long it takes, until something ends that.
func waitingPair(t testing.TB, times waitTimes) (a, b *side) {
	p := started(t, Config{})
	p.dev.waits = times
	a, b = newSide(p, allRights), newSide(p, allRights)
	connect(t, a, b)
	return a, b
}

var forGood = waitTimes{pause: time.Hour, linger: time.Hour, spare: time.Hour, stuck: time.Minute}

// series posts n Sends with numbers from first on, and reports how many waited.
func (s *side) series(first, n int) int {
	before := s.waited.Load()
	for i := range n {
		s.posted(signaled(uabi.WRSend, first+i), s.sge(0, 8))
	}
	return int(s.waited.Load() - before)
}

func (s *side) receives(first, n int) int {
	before := s.waited.Load()
	for i := range n {
		_, err := s.recv(uint64(first+i), s.sge(64, 64))
		require.NoError(s.t, err)
	}
	return int(s.waited.Load() - before)
}

// giveAway makes a ring that was spoilt another's, which the device never does: the tests of a process have all rings together.
func (r *postRing) giveAway() {
	r.busy.Store(0)
	r.put.Store(0)
	r.key.Store(0)
}

func inOrder(t testing.TB, wcs []uabi.WC, first int) {
	t.Helper()
	for i, w := range wcs {
		assert.EqualValues(t, uabi.WCSuccess, w.Status)
		assert.EqualValues(t, first+i, w.WRID)
	}
}

// sideDepth is how many requests the queues of a side have.
func sideDepth(t testing.TB, s *side) (send, recv int) {
	send, recv = verbsinternal.Room(s.verbs().qp)
	require.Positive(t, send)
	return send, recv
}

// TestPostsWait: posts behind some in a row wait, are executed in the order of the posts, and a look for completions ends the wait.
func TestPostsWait(t *testing.T) {
	a, b := waitingPair(t, forGood)
	depth, _ := sideDepth(t, a)
	n := min(depth, 2*inARow)
	for round := range 20 {
		b.receives(n*round, n)
		waited := a.series(n*round, n)
		assert.Positive(t, waited, "round %d", round)
		require.LessOrEqual(t, waited, n-inARow)
		inOrder(t, a.wait(n), n*round)
		inOrder(t, b.wait(n), n*round)
	}
}

// TestPostsThatWaitComeFirst: what waits goes ahead of whatever else the program does.
func TestPostsThatWaitComeFirst(t *testing.T) {
	for name, does := range map[string]func(a, b *side){
		"a look": func(a, _ *side) { a.poll(1) },
		"a query": func(a, _ *side) {
			must[uabi.QueryQPResp](a.program, uabi.CmdQueryQP, &uabi.QueryQP{QPHandle: a.qp.QPHandle})
		},
		"another command": func(a, _ *side) { a.program.pd() },
		"arming":          func(a, _ *side) { must[uabi.None](a.program, uabi.CmdReqNotifyCQ, &uabi.ReqNotifyCQ{CQHandle: a.cq}) },
		"two at a time": func(a, _ *side) {
			_, err := a.send(signaled(uabi.WRSend, 100), a.sge(0, 4), a.sge(4, 4))
			require.NoError(t, err)
		},
		"sleeping": func(a, _ *side) { a.dev.Watch(-1, make([]int32, 1)) },
		"rdma_cm":  func(a, _ *side) { a.dev.Settle() },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := waitingPair(t, forGood)
			n := inARow + 2
			b.receives(0, n+1)
			require.Positive(t, a.series(0, n))
			does(a, b)
			inOrder(t, b.wait(n), 0)
		})
	}
}

// TestPostsWaitForAnAnswer: a look where the answers come ends the wait of Sends that complete elsewhere.
func TestPostsWaitForAnAnswer(t *testing.T) {
	p := started(t, Config{})
	p.dev.waits = forGood
	a, b := &side{program: p, pd: p.pd(), cq: p.cq(256, -1)}, newSide(p, allRights)
	a.qp = p.qp(a.pd, p.cq(256, -1), a.cq)
	a.mem, a.mr = p.region(a.pd, sideBytes, allRights)
	connect(t, a, b)
	for round := range 3 {
		n := inARow + 2
		b.receives(n*round, n)
		require.Positive(t, a.series(n*round, n))
		assert.Empty(t, a.poll(1))
		require.False(t, a.verbs().sends.open, "they wait on")
		inOrder(t, b.wait(n), n*round)
	}
}

// TestPostsWaitNoLonger: what a program leaves is posted soon, and then its posts do not wait for a while.
func TestPostsWaitNoLonger(t *testing.T) {
	a, b := waitingPair(t, waitTimes{pause: time.Hour, linger: time.Millisecond, stuck: time.Minute})
	n := inARow + 2
	b.receives(0, n)
	b.verbs().recvs.left()
	require.Positive(t, a.series(0, n))
	inOrder(t, b.wait(n), 0) // b looks in a queue of its own: a's is not looked at
	a.wait(n)
	b.verbs().recvs.left()
	require.NoError(t, a.verbs().qp.Drain(t.Context()))
	_, recv := sideDepth(t, b)
	n = min(recv, inARow+4)
	b.receives(n, n)
	assert.Zero(t, a.series(n, n), "in doubt")
	a.wait(n)
}

// TestPostsDoNotWaitForAll: a pause, a poll, a list of requests or Inline Data end a row.
func TestPostsDoNotWaitForAll(t *testing.T) {
	a, b := waitingPair(t, waitTimes{pause: -1, linger: time.Hour, stuck: time.Minute})
	b.receives(0, 8)
	assert.Zero(t, a.series(0, 8), "a pause")
	a.wait(8)
	a, b = waitingPair(t, forGood)
	b.receives(0, 3*inARow)
	for i := range 3 * inARow {
		assert.Zero(t, a.series(i, 1), "a poll")
		a.poll(1)
	}
	b.wait(3 * inARow)
}

// TestPostsWaitForRoom: a queue that is full is full, however many of its posts wait.
func TestPostsWaitForRoom(t *testing.T) {
	a, b := waitingPair(t, forGood)
	_, depth := sideDepth(t, b)
	b.receives(0, depth)
	_, err := b.recv(9999, b.sge(0, 8))
	assert.Equal(t, "cannot allocate memory", errnoOf(t, err).Error())
	a.series(0, 1)
	inOrder(t, b.wait(1), 0)
	_, err = b.recv(uint64(depth), b.sge(0, 8))
	require.NoError(t, err, "one has completed")
}

// TestSpareReceivesWait: while the core has plenty of receives more may wait, whatever the program does between them; a look takes
// them and lets the next wait, and so does time for one that does not look.
func TestSpareReceivesWait(t *testing.T) {
	a, b := waitingPair(t, waitTimes{pause: -1, linger: time.Hour, spare: time.Hour, stuck: time.Minute})
	_, depth := sideDepth(t, b)
	require.GreaterOrEqual(t, depth, plenty+8)
	assert.Zero(t, b.receives(0, plenty))
	assert.Equal(t, 7, b.receives(plenty, 7), "of which the core has one less than plenty before the first")
	_, room := sideDepth(t, b)
	assert.Equal(t, depth-plenty, room)
	b.poll(1)
	_, room = sideDepth(t, b)
	assert.Equal(t, depth-plenty-7, room)
	assert.Equal(t, 1, b.receives(plenty+7, 1), "the look left the ring open")
	a.series(0, plenty+8)
	inOrder(t, b.wait(plenty+8), 0)
	assert.Zero(t, b.receives(100, plenty), "all have been used")
	assert.Equal(t, 2, b.receives(100+plenty, 2))
	b.verbs().recvs.left()
	_, room = sideDepth(t, b)
	assert.Equal(t, depth-plenty-2, room)
	assert.Zero(t, b.receives(102+plenty, 1), "time has closed the ring")
	assert.Equal(t, 1, b.receives(103+plenty, 1))
}

// TestSpareReceivesOfFullQueue: a receive takes the place of one that has completed, without a call of the device.
func TestSpareReceivesOfFullQueue(t *testing.T) {
	a, b := waitingPair(t, waitTimes{pause: -1, linger: time.Hour, spare: time.Hour, stuck: time.Minute})
	_, depth := sideDepth(t, b)
	b.receives(0, depth)
	for i := range 50 {
		a.series(i, 1)
		inOrder(t, b.wait(1), i)
		a.wait(1)
		assert.Equal(t, 1, b.receives(depth+i, 1))
	}
	_, err := b.recv(9999, b.sge(0, 8))
	assert.Equal(t, "cannot allocate memory", errnoOf(t, err).Error())
}

// TestPostsOfAnEndedQueuePair: what waits while the queue pair ends flushes.
func TestPostsOfAnEndedQueuePair(t *testing.T) {
	a, b := waitingPair(t, forGood)
	n := inARow + 3
	waited := b.receives(0, n)
	require.Positive(t, waited)
	require.NoError(t, b.verbs().qp.LLPStream().Reset())
	wcs := b.wait(n)
	for i, w := range wcs {
		assert.EqualValues(t, i, w.WRID)
		assert.EqualValues(t, uabi.WCWRFlushErr, w.Status)
		assert.EqualValues(t, uabi.WCRecv, w.Opcode)
		assert.Equal(t, b.qp.QPN, w.QPNum)
	}
	a.file.Close()
}

// TestRingOfPostsIsGivenBack: who comes next gets the place; a ring that a thread has left in the middle is nobody's, and nothing waits there.
func TestRingOfPostsIsGivenBack(t *testing.T) {
	a, _ := waitingPair(t, waitTimes{pause: time.Hour, linger: time.Millisecond, stuck: 1})
	r := a.verbs().sends.ring
	key := r.key.Load()
	must[uabi.DestroyQPResp](a.program, uabi.CmdDestroyQP, &uabi.DestroyQP{QPHandle: a.qp.QPHandle})
	assert.Zero(t, r.key.Load())
	assert.NotZero(t, key)

	a, b := waitingPair(t, waitTimes{pause: time.Hour, linger: time.Hour, stuck: 1})
	b.receives(0, inARow+8)
	require.Positive(t, a.series(0, inARow+2))
	r = a.verbs().sends.ring
	r.busy.Store(1)
	inOrder(t, a.wait(inARow+2), 0)
	assert.NotZero(t, r.put.Load()&ringSpoilt, "who comes back late must not put its post where nobody takes it")
	r.busy.Store(0)
	assert.Zero(t, a.series(inARow+2, 6))
	a.wait(6)
	assert.Equal(t, key>>32+1, r.key.Load()>>32, "is not given away")
	r.giveAway()
}

// TestRingSpoilt: a signal handler has interrupted a thread that was putting a post in, and comes to the device itself. Nobody waits
// for the thread, what was put in whole is posted, and nothing waits there any more.
func TestRingSpoilt(t *testing.T) {
	a, b := waitingPair(t, forGood)
	b.receives(0, inARow+8)
	require.Positive(t, a.series(0, inARow+2))
	r := a.verbs().sends.ring
	r.busy.Store(1)
	r.put.Or(ringSpoilt)
	inOrder(t, a.wait(inARow+2), 0)
	assert.Nil(t, a.verbs().sends.ring)
	r.busy.Store(0)
	assert.Zero(t, a.series(inARow+2, 6))
	inOrder(t, a.wait(6), inARow+2)
	r.giveAway()
}

// TestThreadsWait: threads post to one queue pair while others look; each request completes once, and those of a thread in order.
func TestThreadsWait(t *testing.T) {
	times := waitsFor
	times.pause = time.Hour
	a, b := waitingPair(t, times)
	send, recv := sideDepth(t, a)
	const threads, rounds = 4, 60
	each := min(send, recv) / threads
	require.Positive(t, each)
	var group sync.WaitGroup
	turn := make(chan struct{}, threads)
	got := make(map[uint64]int)
	for range rounds {
		for k := range threads {
			group.Go(func() {
				o := b.thread()
				o.receives(k*each, each)
			})
		}
		group.Wait()
		for k := range threads {
			group.Go(func() {
				o := a.thread()
				o.series(k<<16, each)
				turn <- struct{}{}
			})
		}
		last := map[uint64]int64{}
		for _, w := range a.wait(threads * each) {
			require.EqualValues(t, uabi.WCSuccess, w.Status)
			k, i := w.WRID>>16, int64(w.WRID&0xffff)
			before, ok := last[k]
			require.True(t, i == 0 && !ok || ok && before == i-1, "thread %d: %d behind %d", k, i, before)
			last[k] = i
		}
		for _, w := range b.wait(threads * each) {
			got[w.WRID]++
		}
		for range threads {
			<-turn
		}
		group.Wait()
	}
	for id, n := range got {
		require.Equal(t, rounds, n, "receive %d", id)
	}
}
