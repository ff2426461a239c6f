package verbs_test

import (
	"context"
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// crowdPatience bounds what a crowd may take. It is no measure.
const crowdPatience = 2 * time.Minute

// how a goroutine comes by completions.
type how string

const (
	polling how = "polling"
	waiting how = "waiting"
	events  how = "events"
)

// ends are the CQs of a link's near queue pair, by their number in the crowd.
type ends struct{ send, recv int }

// crowd is a number of links from one RNIC to another. On each of them one request at a time
// makes its round: a Send that comes back, or an RDMA Read. Whoever finds its completion
// begins the next one.
type crowd struct {
	t      testing.TB
	near   *verbs.RNIC
	cqs    []*verbs.CQ // of the near RNIC
	far    *verbs.RNIC
	farCQ  *verbs.CQ
	links  []*crowdLink
	read   bool // RDMA Reads
	rounds int
	left   atomic.Int64 // rounds that are to be finished
	half   chan struct{}
	done   chan struct{}
	paced  chan *crowdLink // if set, rounds that are over: the test begins the next one
	hot    *hotLink
	ctx    context.Context
}

// crowdLink is two queue pairs, and what has completed at the near one.
type crowdLink struct {
	c         *crowd
	near, far *verbs.QP
	mr        *verbs.MR // near: what is sent, then what is received
	farMR     *verbs.MR
	sent, got []atomic.Int32 // completions of each request
	finished  int            // rounds; whoever has the completion owns it
	hot       *hotLink       // set for the one that is always busy
	began     atomic.Int64   // messages of that one when the round began; -1: it has not quite
	during    int64          // and how many since, when it was over
}

const crowdMessage = 64

// newCrowd connects links with such CQs, each for so many rounds. The far side is served by
// a goroutine of its own.
func newCrowd(t testing.TB, rounds int, read bool, links ...ends) *crowd {
	c := &crowd{t: t, rounds: rounds, read: read, half: make(chan struct{}), done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), crowdPatience)
	c.ctx = ctx
	var err error
	open := func() *verbs.RNIC {
		nic, err := verbs.Open(verbs.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, nic.Close()) })
		return nic
	}
	c.near, c.far = open(), open()
	entries := len(links)*(2*rounds+8) + 16 // nobody may look for long
	for _, l := range links {
		for len(c.cqs) <= max(l.send, l.recv) {
			q, err := c.near.CreateCQ(verbs.CQConfig{Entries: entries})
			require.NoError(t, err)
			c.cqs = append(c.cqs, q)
		}
	}
	c.farCQ, err = c.far.CreateCQ(verbs.CQConfig{Entries: entries})
	require.NoError(t, err)
	c.left.Store(int64(len(links) * rounds))
	for _, l := range links {
		c.links = append(c.links, c.link(l, nil))
	}
	var serving sync.WaitGroup
	serving.Go(c.serve)
	t.Cleanup(func() { // before the RNICs close
		cancel()
		serving.Wait()
	})
	return c
}

func (c *crowd) link(e ends, hot *hotLink) *crowdLink {
	l := &crowdLink{c: c, hot: hot, sent: make([]atomic.Int32, c.rounds), got: make([]atomic.Int32, c.rounds)}
	l.near, l.mr = c.qp(l, c.near, c.cqs[e.send], c.cqs[e.recv])
	l.far, l.farMR = c.qp(l, c.far, c.farCQ, c.farCQ)
	join(c.t, l.near, l.far, false)
	for range 2 {
		require.NoError(c.t, second(l.far.PostRecv(verbs.Recv{SGL: l.farMR.SGL(0, crowdMessage)})))
	}
	return l
}

func (c *crowd) qp(l *crowdLink, nic *verbs.RNIC, send, recv *verbs.CQ) (*verbs.QP, *verbs.MR) {
	pd, err := nic.AllocatePD()
	require.NoError(c.t, err)
	qp, err := nic.CreateQP(verbs.QPConfig{
		PD: pd, SendCQ: send, RecvCQ: recv, SendDepth: c.rounds + 2*hotWindow, RecvDepth: 2 * hotWindow, CloseTimeout: time.Minute, Context: l,
	})
	require.NoError(c.t, err)
	mr, err := pd.Register(make([]byte, 2*crowdMessage), allRights)
	require.NoError(c.t, err)
	return qp, mr
}

// serve sends back what comes to the far side.
func (c *crowd) serve() {
	var buf [16]verbs.Completion
	for {
		n, err := c.farCQ.Wait(c.ctx, buf[:])
		if err != nil {
			return
		}
		for _, wc := range buf[:n] {
			if wc.Op != verbs.OpRecv || wc.Status != verbs.StatusSuccess {
				continue
			}
			l := wc.Context.(*crowdLink)
			from := 0
			if l.hot != nil { // more may come
				from = crowdMessage
			}
			_, err := l.far.PostSend(verbs.Request{SGL: l.farMR.SGL(from, crowdMessage)})
			if err == nil { // what came has left by then: one is under way at a time
				_, err = l.far.PostRecv(verbs.Recv{SGL: l.farMR.SGL(0, crowdMessage)})
			}
			assert.NoError(c.t, err)
		}
	}
}

// start begins the first round of each link.
func (c *crowd) start() {
	for _, l := range c.links {
		l.next()
	}
}

// next begins a round.
func (l *crowdLink) next() {
	w := verbs.Request{ID: uint64(l.finished), SGL: l.mr.SGL(0, crowdMessage)}
	if l.c.read {
		w = verbs.Request{ID: w.ID, Op: verbs.OpRead, Local: l.mr.SGE(crowdMessage, crowdMessage), Remote: l.farMR.Remote(0)}
	} else {
		binary.BigEndian.PutUint64(l.mr.Bytes(), w.ID)
		assert.NoError(l.c.t, second(l.near.PostRecv(verbs.Recv{ID: w.ID, SGL: l.mr.SGL(crowdMessage, crowdMessage)})))
	}
	assert.NoError(l.c.t, second(l.near.PostSend(w)))
}

// handle takes a completion, and begins what follows.
func (c *crowd) handle(wc verbs.Completion) {
	l, ok := wc.Context.(*crowdLink)
	if !ok { // not one of the crowd
		return
	}
	if !assert.Equal(c.t, verbs.StatusSuccess, wc.Status, "%+v", wc) {
		return
	}
	if l.hot != nil {
		l.hot.completed(wc)
		return
	}
	if wc.Op != verbs.OpRecv {
		assert.EqualValues(c.t, 1, l.sent[wc.ID].Add(1), "request %d", wc.ID)
		if !c.read {
			return
		}
	} else {
		assert.EqualValues(c.t, 1, l.got[wc.ID].Add(1), "receive %d", wc.ID)
		assert.Equal(c.t, wc.ID, binary.BigEndian.Uint64(l.mr.Bytes()[crowdMessage:]))
	}
	if l.finished++; c.paced != nil {
		if b := l.began.Load(); b >= 0 {
			l.during = c.hot.trips.Load() - b
		}
		c.paced <- l
	} else if l.finished < c.rounds {
		l.next()
	}
	switch left := c.left.Add(-1); {
	case left == 0:
		close(c.done)
	case left == int64(len(c.links)*c.rounds/2):
		close(c.half)
	}
}

// consume handles completions of a CQ until ctx ends.
func (c *crowd) consume(ctx context.Context, q *verbs.CQ, h how) {
	var buf [4]verbs.Completion
	poll := func() bool {
		n := q.Poll(buf[:])
		for _, wc := range buf[:n] {
			c.handle(wc)
		}
		return n > 0
	}
	for taken := false; ctx.Err() == nil || taken; {
		switch taken = false; h {
		case polling:
			if !poll() {
				runtime.Gosched()
			}
		case waiting:
			n, _ := q.Wait(ctx, buf[:])
			for _, wc := range buf[:n] {
				c.handle(wc)
			}
		case events:
			assert.NoError(c.t, q.Notify(verbs.NotifyNext))
			for poll() {
			}
			select {
			case <-q.Events(): // whoever takes the token looks, and asks for the next, before leaving
				taken = true
			case <-ctx.Done():
			}
		}
	}
}

// consumers starts a goroutine for each way to look at a CQ. They end with stop, which
// returns when they have.
func (c *crowd) consumers(q int, ways ...how) (stop func()) {
	ctx, cancel := context.WithCancel(c.ctx)
	var wg sync.WaitGroup
	for _, h := range ways {
		wg.Go(func() { c.consume(ctx, c.cqs[q], h) })
	}
	stop = func() { cancel(); wg.Wait() }
	c.t.Cleanup(stop)
	return stop
}

// await waits for half or all of the rounds.
func (c *crowd) await(reached <-chan struct{}) {
	c.t.Helper()
	select {
	case <-reached:
	case <-c.ctx.Done():
		require.Fail(c.t, "no progress", "%d rounds are left", c.left.Load())
	}
}

// finish polls what nobody has looked at, and wants each completion to have come once.
func (c *crowd) finish() {
	c.t.Helper()
	c.await(c.done)
	missing := func() (n int) {
		for _, l := range c.links {
			for i := range c.rounds {
				if l.sent[i].Load() == 0 {
					n++
				}
				if !c.read && l.got[i].Load() == 0 {
					n++
				}
			}
		}
		return n
	}
	var buf [16]verbs.Completion
	require.Eventually(c.t, func() bool {
		for _, q := range c.cqs {
			for _, wc := range buf[:q.Poll(buf[:])] {
				c.handle(wc)
			}
		}
		return missing() == 0
	}, crowdPatience, time.Millisecond, "completions are missing")
	for _, q := range c.cqs {
		require.Zero(c.t, q.Poll(buf[:]), "more completions than requests")
	}
}

// several repeats a way.
func several(n int, ways ...how) (list []how) {
	for i := range n {
		list = append(list, ways[i%len(ways)])
	}
	return list
}
