package perf

import (
	"context"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/verbs"
)

// exchange measures all queue pairs, with one goroutine.
func (c *scaleClient) exchange(ctx context.Context, w *manyWindow) error {
	c.fill()
	if _, err := c.connectQPs(ctx, 0, len(c.pool)); err != nil {
		return err
	}
	t := exchanger{manyWindow: w, reaper: c.reaper(c.cq[0])}
	err := w.watch(ctx, func(ctx context.Context) error {
		for i := range c.pool {
			if err := c.pool[i].send(); err != nil {
				return err
			}
			t.open++
		}
		for t.open > 0 {
			if err := t.step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range c.pool {
		if err := c.verify(i, scaleSize); err != nil {
			return err
		}
	}
	return nil
}

// exchanger sends what has come back on the queue pairs of a CQ.
type exchanger struct {
	*manyWindow
	reaper endpoint.Reaper
	open   int // messages on their way
}

// step handles a completion.
func (t *exchanger) step(ctx context.Context) error {
	wc, err := t.reaper.Next(ctx)
	if err != nil {
		return err
	}
	if wc.Op != verbs.OpRecv {
		return nil
	}
	q := wc.Context.(*scaleQP)
	t.trips[q.index].Add(1)
	if t.closing.Load() {
		t.open--
	} else if err := q.send(); err != nil {
		return err
	}
	return q.receive()
}

// exchangePlain measures as many net.Conn, a goroutine for each.
func (c *scaleClient) exchangePlain(ctx context.Context, w *manyWindow) error {
	conns := make([]net.Conn, len(w.trips))
	defer resetAll(conns)
	if _, err := c.dialTCP(ctx, conns); err != nil {
		return err
	}
	if _, err := c.request(doTCPEcho, 0); err != nil {
		return err
	}
	return w.watch(ctx, func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		stop := context.AfterFunc(ctx, func() { resetAll(conns) })
		defer stop()
		for i, conn := range conns {
			group.Go(func() error {
				trip := plainRoundTrip(conn, make([]byte, scaleSize))
				for !w.closing.Load() {
					if err := trip(); err != nil {
						return cli.Instead(ctx, err)
					}
					w.trips[i].Add(1)
				}
				return nil
			})
		}
		return group.Wait()
	})
}
