package qp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/verbs"
)

// modelPair is a connection, with the model of both its ends.
type modelPair struct {
	rng   *rand.Rand
	ends  [2]*modelEnd
	twins [2]*twin
	turn  int // of the halves of memory
	id    uint64
}

func newModelPair(t *testing.T, c modelCase, rng *rand.Rand, sides [2]*modelSide) *modelPair {
	p := &modelPair{rng: rng}
	for i, s := range sides {
		e := newModelEnd(t, c, s)
		for j := 0; j+8 <= len(e.memory); j += 8 {
			v := rng.Uint64()
			for k := range 8 {
				e.memory[j+k] = byte(v >> (8 * k))
			}
		}
		p.ends[i] = e
		p.twins[i] = &twin{memory: append([]byte(nil), e.memory...)}
	}
	var conns [2]net.Conn
	conns[0], conns[1] = c.link(t)
	for i, st := range c.streams(conns) {
		require.NoError(t, p.ends[i].qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: st}))
	}
	return p
}

// round makes work for both ends, has it done, and compares.
func (p *modelPair) round(ctx context.Context, c modelCase) error {
	p.turn = 1 - p.turn
	sink := (1 - p.turn) * modelHalf
	g := &generator{Rand: p.rng, c: c, ends: p.ends, source: p.turn * modelHalf, nextID: &p.id}
	g.sinks = [2]arena{{sink, sink + modelHalf}, {sink, sink + modelHalf}}
	var ops [2][]*modelOp
	for i := range ops {
		ops[i] = g.ops(i)
	}
	for i, e := range p.ends {
		p.twins[i].sq, p.twins[i].rq = nil, nil
		e.sq.got, e.rq.got = nil, nil
		e.credits = make(chan struct{}, len(ops[1-i]))
	}
	qps := [2]verbs.QPID{p.ends[0].qp.ID(), p.ends[1].qp.ID()}
	for i := range ops {
		apply(p.twins, qps, i, ops[i])
	}
	if err := p.run(ctx, ops); err != nil {
		return err
	}
	var errs []error
	for i, e := range p.ends {
		name := fmt.Sprintf("side %d, QP %d", i, qps[i])
		for _, err := range []error{
			compareCompletions("SQ", e.sq.got, p.twins[i].sq, e.side.single),
			compareCompletions("RQ", e.rq.got, p.twins[i].rq, e.side.single),
			compareMemory(e.memory, p.twins[i].memory),
		} {
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
		for _, mr := range e.victims {
			errs = append(errs, mr.Deregister())
		}
		e.victims = nil
	}
	return errors.Join(errs...)
}

// run posts ops and waits for all that has to complete.
func (p *modelPair) run(ctx context.Context, ops [2][]*modelOp) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, e := range p.ends {
		send, recv := rand.New(rand.NewPCG(p.rng.Uint64(), 1)), rand.New(rand.NewPCG(p.rng.Uint64(), 2))
		g.Go(func() error {
			if err := e.postSends(ctx, send, ops[i], p.ends[1-i]); err != nil {
				return err
			}
			_, err := e.sq.await(ctx, len(p.twins[i].sq))
			return err
		})
		g.Go(func() error {
			if err := e.postRecvs(ctx, recv, ops[1-i]); err != nil {
				return err
			}
			_, err := e.rq.await(ctx, len(p.twins[i].rq))
			return err
		})
	}
	return g.Wait()
}

// close closes from either side; both end in Idle.
func (p *modelPair) close(ctx context.Context) error {
	done := [2]<-chan struct{}{p.ends[0].qp.Done(), p.ends[1].qp.Done()}
	if err := p.ends[p.rng.IntN(2)].qp.Modify(verbs.ModifyQP{Next: verbs.StateClosing}); err != nil {
		return err
	}
	for i, e := range p.ends {
		select {
		case <-done[i]:
		case <-ctx.Done():
			return fmt.Errorf("close: %w", context.Cause(ctx))
		}
		if s := e.qp.State(); s != verbs.StateIdle {
			return fmt.Errorf("close: QP %d ended in %v", e.qp.ID(), s)
		}
	}
	return nil
}
