package verbs_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// churnSide is an RNIC with CQs that a crowd looks at, in all ways.
type churnSide struct {
	t   testing.TB
	nic *verbs.RNIC
	pd  *verbs.PD
	cqs []*verbs.CQ
	wg  sync.WaitGroup // who looks
	ctx context.Context
}

func newChurnSide(ctx context.Context, t testing.TB) *churnSide {
	s := &churnSide{t: t, ctx: ctx}
	var err error
	s.nic, err = verbs.Open(verbs.Config{})
	require.NoError(t, err)
	s.pd, err = s.nic.AllocatePD()
	require.NoError(t, err)
	for range 3 {
		s.cqs = append(s.cqs, s.newCQ(polling, waiting, waiting, events))
	}
	return s
}

// newCQ is a CQ that goroutines look at until it is destroyed, or the RNIC closed.
func (s *churnSide) newCQ(ways ...how) *verbs.CQ {
	q, err := s.nic.CreateCQ(verbs.CQConfig{Entries: 4096})
	require.NoError(s.t, err)
	for _, h := range ways {
		s.wg.Go(func() { s.look(q, h) })
	}
	return q
}

func (s *churnSide) look(q *verbs.CQ, h how) {
	var buf [4]verbs.Completion
	take := func(list []verbs.Completion) {
		for _, wc := range list {
			wc.Context.(*churnEnd).completed(wc)
		}
	}
	for {
		switch h {
		case polling:
			wc, err := q.PollOne()
			switch {
			case err == nil:
				take([]verbs.Completion{wc})
			case !errors.Is(err, verbs.ErrCQEmpty):
				return
			default:
				runtime.Gosched()
			}
		case waiting:
			n, err := q.Wait(s.ctx, buf[:])
			if err != nil {
				assert.NoError(s.t, s.ctx.Err(), "the CQ, or the RNIC, has gone: %v", err)
				return
			}
			take(buf[:n])
		case events:
			if q.Notify(verbs.NotifyNext) != nil {
				return
			}
			for n := 1; n > 0; {
				n = q.Poll(buf[:])
				take(buf[:n])
			}
			select {
			case <-q.Events():
			case <-time.After(time.Millisecond): // nobody tells of the CQ's end
			}
		}
	}
}

// churnEnd is a queue pair that sends as long as it can.
type churnEnd struct {
	s        *churnSide
	qp       *verbs.QP
	mr       *verbs.MR
	mu       sync.Mutex
	posted   map[uint64]bool // requests, and whether they have completed
	last     uint64
	received atomic.Int64
	gone     atomic.Bool // it is being destroyed: completions may be lost with it
}

func (s *churnSide) newEnd(send, recv *verbs.CQ) *churnEnd {
	e := &churnEnd{s: s, posted: map[uint64]bool{}}
	var err error
	e.qp, err = s.nic.CreateQP(verbs.QPConfig{
		PD: s.pd, SendCQ: send, RecvCQ: recv, SendDepth: 8, RecvDepth: 16, CloseTimeout: time.Minute, Context: e,
	})
	require.NoError(s.t, err)
	e.mr, err = s.pd.Register(make([]byte, 128), allRights)
	require.NoError(s.t, err)
	for range 4 {
		e.receive()
	}
	return e
}

// post posts a request with a number of its own. It is refused when the stream has ended.
func (e *churnEnd) post(post func(id uint64) error) {
	e.mu.Lock()
	e.last++
	id := e.last
	e.posted[id] = false
	e.mu.Unlock()
	if post(id) != nil {
		e.mu.Lock()
		delete(e.posted, id)
		e.mu.Unlock()
	}
}

func (e *churnEnd) receive() {
	e.post(func(id uint64) error {
		return second(e.qp.PostRecv(verbs.Recv{ID: id, SGL: e.mr.SGL(0, 64)}))
	})
}

func (e *churnEnd) send() {
	e.post(func(id uint64) error {
		return second(e.qp.PostSend(verbs.Request{ID: id, SGL: e.mr.SGL(64, 64)}))
	})
}

// completed goes on as long as there is success.
func (e *churnEnd) completed(wc verbs.Completion) {
	e.mu.Lock()
	done, known := e.posted[wc.ID]
	assert.True(e.s.t, known && !done, "%+v: posted %v, completed before %v", wc, known, done)
	e.posted[wc.ID] = true
	e.mu.Unlock()
	if wc.Status != verbs.StatusSuccess || wc.Op != verbs.OpRecv {
		return
	}
	e.received.Add(1)
	e.receive()
	e.send()
}

// missing is how many requests have not completed.
func (e *churnEnd) missing() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, done := range e.posted {
		if !done {
			n++
		}
	}
	return n
}

// churnEndings are what ends a stream, by any goroutine.
var churnEndings = []func(*churnEnd){
	func(e *churnEnd) { _ = e.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}) },
	func(e *churnEnd) { _ = e.qp.Modify(verbs.ModifyQP{Next: verbs.StateTerminate}) },
	func(e *churnEnd) { _ = e.qp.Modify(verbs.ModifyQP{Next: verbs.StateClosing}) },
	func(e *churnEnd) { e.gone.Store(true); _ = e.qp.Destroy() },
	func(e *churnEnd) { fault.Provoke(e.qp) },
}

// TestCrowdChurn connects and ends streams of all CQs at any moment, by any goroutine, while
// a crowd looks at the CQs. Each request completes once, unless its queue pair is destroyed,
// and all ends by itself. Last of all the RNICs close, with streams that are busy.
func TestCrowdChurn(t *testing.T) {
	duration := 300 * time.Millisecond
	if s := os.Getenv(raceSecondsEnv); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		duration = time.Duration(n) * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), duration+crowdPatience)
	defer cancel()
	near, far := newChurnSide(ctx, t), newChurnSide(ctx, t)
	end := time.Now().Add(duration)
	var actors sync.WaitGroup
	var rounds atomic.Int64
	for range 6 {
		actors.Go(func() {
			for once := true; once || time.Now().Before(end) && !t.Failed(); once = false {
				churnOnce(ctx, t, near, far)
				rounds.Add(1)
			}
		})
	}
	actors.Wait()
	for range 8 {
		churnLink(t, near, far, near.cqs, far.cqs)
	}
	var closing sync.WaitGroup
	for _, s := range []*churnSide{near, far} {
		closing.Go(func() { assert.NoError(t, s.nic.Close()); s.wg.Wait() })
	}
	closing.Wait()
	require.NoError(t, ctx.Err())
	t.Logf("%d rounds", rounds.Load())
}

// churnLink connects two new queue pairs, with any of the CQs, and makes them busy.
func churnLink(t testing.TB, near, far *churnSide, nearCQs, farCQs []*verbs.CQ) (a, b *churnEnd) {
	any := func(list []*verbs.CQ) *verbs.CQ { return list[rand.IntN(len(list))] }
	a, b = near.newEnd(any(nearCQs), any(nearCQs)), far.newEnd(any(farCQs), any(farCQs))
	x, y := tcpConns(t)
	start(t, b.qp, y, mpa.Responder, false)
	start(t, a.qp, x, mpa.Initiator, false)
	a.send()
	a.send()
	return a, b
}

// churnOnce is a link's life.
func churnOnce(ctx context.Context, t testing.TB, near, far *churnSide) {
	nearCQs, own := near.cqs, rand.IntN(3) == 0
	if own { // a CQ that goes with it
		nearCQs = []*verbs.CQ{near.newCQ(waiting, polling)}
	}
	a, b := churnLink(t, near, far, nearCQs, far.cqs)
	for a.received.Load()+b.received.Load() < rand.Int64N(20) && ctx.Err() == nil {
		runtime.Gosched()
	}
	doneA, doneB := a.qp.Done(), b.qp.Done()
	var ending sync.WaitGroup
	for range 1 + rand.IntN(3) {
		e, how := []*churnEnd{a, b}[rand.IntN(2)], churnEndings[rand.IntN(len(churnEndings))]
		ending.Go(func() { how(e) })
	}
	ending.Wait()
	<-doneA
	<-doneB
	for _, e := range []*churnEnd{a, b} {
		// A close that both wanted leaves receives to the next stream.
		_ = e.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})
		for !e.gone.Load() && e.missing() > 0 {
			if !assert.NoError(t, ctx.Err(), "%d requests do not complete, %v", e.missing(), e.qp.State()) {
				break
			}
			runtime.Gosched()
		}
		e.gone.Store(true)
		_ = e.qp.Destroy()
		assert.NoError(t, e.mr.Deregister())
	}
	if own {
		assert.NoError(t, nearCQs[0].Destroy())
	}
}
