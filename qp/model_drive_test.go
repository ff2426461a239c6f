package qp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/verbs"
)

// modelSide is an RNIC with its consumers.
type modelSide struct {
	nic    *verbs.RNIC
	fail   context.CancelCauseFunc
	shared *verbs.CQ // of all pairs, if any
	cqs    []*verbs.CQ
	single bool // one consumer a CQ: completions are seen in their order
	ends   map[verbs.QPID]*modelEnd
}

func newModelSide(t *testing.T, c modelCase, fail context.CancelCauseFunc) *modelSide {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, nic.Close()) })
	require.NoError(t, nic.SetEventHandler(func(e verbs.Event) {
		if e.ID != verbs.EventLLPCloseComplete {
			fail(fmt.Errorf("event: %v", e))
		}
	}))
	s := &modelSide{nic: nic, fail: fail, single: len(c.consume) == 1, ends: map[verbs.QPID]*modelEnd{}}
	if c.cqs == cqForAll {
		s.shared = s.newCQ(t, 4*c.depth*c.pairs)
	}
	return s
}

func (s *modelSide) newCQ(t *testing.T, entries int) *verbs.CQ {
	cq, err := s.nic.CreateCQ(verbs.CQConfig{Entries: entries})
	require.NoError(t, err)
	s.cqs = append(s.cqs, cq)
	return cq
}

// consumer takes completions from a CQ until ctx ends.
type consumer func(ctx context.Context, cq *verbs.CQ, buf []verbs.Completion, take func([]verbs.Completion))

func consumePoll(ctx context.Context, cq *verbs.CQ, buf []verbs.Completion, take func([]verbs.Completion)) {
	for ctx.Err() == nil {
		n := cq.Poll(buf)
		if n == 0 {
			runtime.Gosched()
		}
		take(buf[:n])
	}
}

func consumeWait(ctx context.Context, cq *verbs.CQ, buf []verbs.Completion, take func([]verbs.Completion)) {
	for {
		n, err := cq.Wait(ctx, buf)
		if err != nil {
			return
		}
		take(buf[:n])
	}
}

// consumeEvents sleeps on the one-shot notification (verbs draft 8.2.5): request
// it, then poll for what came before, then wait.
func consumeEvents(ctx context.Context, cq *verbs.CQ, buf []verbs.Completion, take func([]verbs.Completion)) {
	for {
		if cq.Notify(verbs.NotifyNext) != nil {
			return
		}
		for n := cq.Poll(buf); n > 0; n = cq.Poll(buf) {
			take(buf[:n])
		}
		select {
		case <-cq.Events():
		case <-ctx.Done():
			return
		}
	}
}

func (s *modelSide) startConsumers(ctx context.Context, g *errgroup.Group, list []consumer) {
	for _, cq := range s.cqs {
		for i, consume := range list {
			buf := make([]verbs.Completion, 1+3*i)
			g.Go(func() error {
				consume(ctx, cq, buf, s.take)
				return nil
			})
		}
	}
}

// take hands completions to the ends they belong to.
func (s *modelSide) take(list []verbs.Completion) {
	for _, c := range list {
		e := s.ends[c.QP]
		switch {
		case e == nil:
			s.fail(fmt.Errorf("a completion names a QP that does not exist: %+v", c))
		case c.Status != verbs.StatusSuccess:
			s.fail(fmt.Errorf("QP %d: %v %d completed with status %v", c.QP, c.Op, c.ID, c.Status))
		case c.Op == verbs.OpRecv:
			e.rq.add(c)
		default:
			e.sq.add(c)
		}
	}
}

// completionLog is what one queue has completed in this round.
type completionLog struct {
	mu       sync.Mutex
	got      []verbs.Completion
	progress chan struct{} // one token: something was added
}

func (l *completionLog) add(c verbs.Completion) {
	l.mu.Lock()
	l.got = append(l.got, c)
	l.mu.Unlock()
	select {
	case l.progress <- struct{}{}:
	default:
	}
}

// next waits for progress.
func (l *completionLog) next(ctx context.Context) error {
	select {
	case <-l.progress:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await waits until n requests have completed and returns the completions.
func (l *completionLog) await(ctx context.Context, n int) ([]verbs.Completion, error) {
	for {
		l.mu.Lock()
		got := l.got
		l.mu.Unlock()
		if len(got) >= n {
			return got, nil
		}
		if err := l.next(ctx); err != nil {
			return got, fmt.Errorf("%d of %d completions: %w", len(got), n, err)
		}
	}
}

// modelEnd is one end of a pair.
type modelEnd struct {
	side    *modelSide
	pd      *verbs.PD
	qp      *verbs.QP
	memory  []byte
	regions []*verbs.MR // each covers all of memory
	victims []*verbs.MR // to be invalidated by the peer in this round
	sq, rq  completionLog
	// credits counts receives that the peer may send to.
	credits chan struct{}
	t       *testing.T
}

func newModelEnd(t *testing.T, c modelCase, s *modelSide) *modelEnd {
	e := &modelEnd{side: s, memory: make([]byte, modelMemory), t: t}
	e.sq.progress, e.rq.progress = make(chan struct{}, 1), make(chan struct{}, 1)
	var err error
	e.pd, err = s.nic.AllocatePD()
	require.NoError(t, err)
	const all = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic
	for _, rc := range []verbs.RegionConfig{{}, {ZeroBased: true, Key: 7}, {VA: 1<<64 - modelMemory - 1}} {
		rc.Memory, rc.Access = e.memory, all
		mr, err := e.pd.RegisterRegion(rc)
		require.NoError(t, err)
		e.regions = append(e.regions, mr)
	}
	send, recv := s.shared, s.shared
	if s.shared == nil {
		send = s.newCQ(t, 4*c.depth)
		if recv = send; c.cqs == cqPerQueue {
			recv = s.newCQ(t, 2*c.depth)
		}
	}
	e.qp, err = s.nic.CreateQP(verbs.QPConfig{
		PD: e.pd, SendCQ: send, RecvCQ: recv, SendDepth: c.depth, RecvDepth: c.depth,
		SendSGE: modelSGE, RecvSGE: modelSGE, IRD: c.reads, ORD: c.reads, Extensions: true,
	})
	require.NoError(t, err)
	s.ends[e.qp.ID()] = e
	return e
}

// victim registers a region for the peer to invalidate.
func (e *modelEnd) victim() verbs.STag {
	mr, err := e.pd.RegisterRegion(verbs.RegionConfig{
		Memory: e.memory[:64], Access: verbs.LocalRead | verbs.RemoteRead, RemoteInvalidate: true,
	})
	require.NoError(e.t, err)
	e.victims = append(e.victims, mr)
	return mr.STag()
}

// postSends posts ops in lists of random length.
func (e *modelEnd) postSends(ctx context.Context, rng *rand.Rand, ops []*modelOp, peer *modelEnd) error {
	for len(ops) > 0 {
		var list []verbs.Request
		for n := 1 + rng.IntN(5); len(list) < n && len(ops) > 0; ops = ops[1:] {
			if ops[0].recv != nil && !peer.spend(ctx, len(list) == 0) {
				break
			}
			list = append(list, ops[0].send)
		}
		if err := post(ctx, &e.sq, list, e.qp.PostSend); err != nil {
			return fmt.Errorf("QP %d: PostSend: %w", e.qp.ID(), err)
		}
	}
	return nil
}

// spend takes a credit, waiting for it if wait is set.
func (e *modelEnd) spend(ctx context.Context, wait bool) bool {
	select {
	case <-e.credits:
		return true
	default:
	}
	if !wait {
		return false
	}
	select {
	case <-e.credits:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *modelEnd) postRecvs(ctx context.Context, rng *rand.Rand, peers []*modelOp) error {
	var list []verbs.Recv
	for _, op := range peers {
		if op.recv != nil {
			list = append(list, op.recv.recv)
		}
	}
	for len(list) > 0 {
		n := min(1+rng.IntN(4), len(list))
		posted := func(r ...verbs.Recv) (int, error) {
			n, err := e.qp.PostRecv(r...)
			for range n {
				e.credits <- struct{}{}
			}
			return n, err
		}
		if err := post(ctx, &e.rq, list[:n], posted); err != nil {
			return fmt.Errorf("QP %d: PostRecv: %w", e.qp.ID(), err)
		}
		list = list[n:]
	}
	return nil
}

// post posts list, and waits for completions when the queue is full.
func post[W any](ctx context.Context, l *completionLog, list []W, verb func(...W) (int, error)) error {
	for {
		n, err := verb(list...)
		list = list[n:]
		if len(list) == 0 && err == nil {
			return context.Cause(ctx)
		}
		if !errors.Is(err, verbs.ErrQueueFull) {
			return fmt.Errorf("%d left: %w", len(list), err)
		}
		if err := l.next(ctx); err != nil {
			return err
		}
	}
}
