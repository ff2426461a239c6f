package nd2_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/nd2"
)

// Several goroutines post, several retrieve by polling, waiting and notification, all at
// a time: every result comes once, with its context.
func TestManyGoroutines(t *testing.T) {
	const posters, each = 4, 400
	a, b := pair(t, shape{depth: 16, cqDepth: 64})
	ctx, cancel := context.WithCancel(bounded(t))
	var sent, received [posters * each]atomic.Int32
	var left atomic.Int32
	left.Store(2 * posters * each)
	note := func(r nd2.Result) error {
		id, ok := r.RequestContext.(*atomic.Int32)
		if !ok || r.Status != nd2.Success {
			return errors.New(r.Status.String())
		}
		id.Add(1)
		if left.Add(-1) == 0 {
			cancel()
		}
		return nil
	}
	var g errgroup.Group
	for p := range posters {
		retry := func(post func() error) error {
			for {
				if err := post(); !errors.Is(err, nd2.ErrNoMoreEntries) || ctx.Err() != nil {
					return err
				}
			}
		}
		g.Go(func() error {
			for i := range each {
				n := p*each + i
				if err := retry(func() error { return b.qp.Receive(&received[n], b.sge(n, 1)) }); err != nil {
					return err
				}
				if err := retry(func() error { return a.qp.Send(&sent[n], a.sge(n, 1), 0) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, cq := range []*nd2.CompletionQueue{a.out, b.in} {
		take := func(get func([]nd2.Result) int) func() error {
			return func() error {
				var r [3]nd2.Result
				for ctx.Err() == nil {
					for _, r := range r[:get(r[:])] {
						if err := note(r); err != nil {
							return err
						}
					}
				}
				return nil
			}
		}
		g.Go(take(func(r []nd2.Result) int { n, _ := cq.Wait(ctx, r); return n }))
		g.Go(take(func(r []nd2.Result) int { n, _ := cq.Wait(ctx, r); return n }))
		g.Go(take(func(r []nd2.Result) int { _ = cq.Notify(ctx, nd2.CQNotifyAny); return cq.GetResults(r) }))
	}
	require.NoError(t, g.Wait())
	require.Zero(t, left.Load())
	for i := range sent {
		require.EqualValues(t, 1, sent[i].Load())
		require.EqualValues(t, 1, received[i].Load())
	}
}

// Closing while others post and wait: nothing hangs, and all requests end.
func TestCloseAmongOthers(t *testing.T) {
	for range 10 {
		a, b := pair(t, shape{})
		var g errgroup.Group
		g.Go(func() error {
			for i := 0; ; i++ {
				switch err := a.qp.Send(i, a.sge(0, 100), nd2.OpFlagSilentSuccess); {
				case errors.Is(err, nd2.ErrConnectionInvalid):
					return nil
				case errors.Is(err, nd2.ErrNoMoreEntries), err == nil:
				default:
					return err
				}
			}
		})
		g.Go(func() error {
			for i := 0; ; i++ {
				switch err := b.qp.Receive(i, b.sge(0, 100)); {
				case errors.Is(err, nd2.ErrInvalidHandle):
					return nil
				case errors.Is(err, nd2.ErrNoMoreEntries), err == nil:
					var r [8]nd2.Result
					b.in.GetResults(r[:])
				default:
					return err
				}
			}
		})
		g.Go(func() error { return a.conn.NotifyDisconnect(bounded(t)) })
		for range 3 {
			var r [1]nd2.Result
			for b.in.GetResults(r[:]) == 0 {
				if b.conn.NotifyDisconnect(ended) == nil { // a Send may find no Receive
					break
				}
			}
		}
		require.NoError(t, b.qp.Close())
		require.NoError(t, g.Wait())
	}
}

var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
