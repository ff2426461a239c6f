package demo

import (
	"context"
	"errors"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/verbs"
)

// demoClient drives the demo from the side that connects.
type demoClient struct{ *demoEnd }

// demoResult is one row of the table.
type demoResult struct {
	Op        string  `json:"op"`
	Target    string  `json:"target"` // at the server
	Bytes     uint64  `json:"bytes"`  // of data moved
	Messages  int     `json:"messages"`
	Seconds   float64 `json:"seconds"`
	GBps      float64 `json:"gb_per_s"`
	Verified  uint64  `json:"verified_bytes"`
	Outcome   string  `json:"outcome"`
	Terminate string  `json:"terminate,omitempty"` // if refused: its code
	Why       string  `json:"why,omitempty"`       // and the sentence of the reason
}

// demoStep is a step of the demo as the client takes it. run fills in the row
// but for its name and time.
type demoStep struct {
	op     verbs.Op
	target string
	run    func(context.Context, *demoResult) error
}

// runDemoClient connects to addr and carries out the plan.
func runDemoClient(
	ctx context.Context, addr string, f *cli.ConnFlags, plan demoPlan, p *cli.Progress,
) ([]demoResult, error) {
	c, err := dialDemo(ctx, addr, f, plan)
	if err != nil {
		return nil, err
	}
	c.progress = p
	results, err := c.run(ctx, c.steps())
	return results, c.Finish(ctx, err)
}

// dialDemo connects to the server at addr. It draws no progress.
func dialDemo(ctx context.Context, addr string, f *cli.ConnFlags, plan demoPlan) (*demoClient, error) {
	d, err := openDemo(f, demoClientRole)
	if err != nil {
		return nil, err
	}
	d.plan = plan
	cfg := f.Config()
	cfg.PrivateData = endpoint.Marshal(plan)
	if err := d.Dial(ctx, addr, cfg); err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return &demoClient{d}, nil
}

// run makes a row of each step.
func (c *demoClient) run(ctx context.Context, steps []demoStep) (results []demoResult, err error) {
	ctx, cancel := c.WhileConnected(ctx)
	defer cancel()
	for _, step := range steps {
		row := demoResult{Op: step.op.String(), Target: step.target}
		begin := time.Now()
		if err := step.run(ctx, &row); err != nil {
			return nil, err
		}
		row.Seconds = time.Since(begin).Seconds()
		row.GBps = float64(row.Bytes) / row.Seconds / 1e9
		results = append(results, row)
	}
	return results, nil
}

// steps are the rows of the table, in order.
func (c *demoClient) steps() []demoStep {
	const queue, window = "S-RQ", "window"
	return []demoStep{
		{verbs.OpSend, queue, c.transfer(sendTransfer, c.push)},
		{verbs.OpBind, window, c.awaitWindow},
		{verbs.OpWrite, window, c.transfer(writeTransfer, c.push)},
		{verbs.OpRead, window, c.transfer(readTransfer, c.pull)},
		{verbs.OpSendInvalidate, window, c.invalidate},
		{verbs.OpWrite, window, c.writeAgain},
	}
}

// transfer makes a step of a transfer.
func (c *demoClient) transfer(
	transfer int, move func(context.Context, int) (n int, verified uint64, err error),
) func(context.Context, *demoResult) error {
	return func(ctx context.Context, row *demoResult) error {
		n, verified, err := move(ctx, transfer)
		if err != nil {
			return err
		}
		// What is left over is the server's: it may have offered the
		// first slots of the next transfer already.
		c.done, c.credits = c.done-n, c.credits-n
		row.Bytes, row.Messages = c.plan.share(transfer), n
		row.Verified, row.Outcome = verified, "verified"
		return nil
	}
}

// push moves a transfer by Send or Write. The server verifies, and each credit
// stands for a message that was right.
func (c *demoClient) push(ctx context.Context, transfer int) (n int, verified uint64, err error) {
	return c.deliver(ctx, transfer,
		func(m message) error { return c.pushOne(demoOps[transfer], m) },
		func() int { return min(c.done, c.credits) })
}

func (c *demoClient) pushOne(op verbs.Op, m message) error {
	if op == verbs.OpSend {
		return c.PostSend(verbs.Request{SGL: c.slotSGL(m)})
	}
	// The Send is delivered after the Write before it has been placed
	// (RFC 5040 5.5), and its completion stands for both.
	return c.PostSend(
		verbs.Request{
			Op: verbs.OpWrite, Flags: verbs.Unsignaled,
			SGL: c.slotSGL(m), Remote: c.remote.At(m.slot() * demoSlotSize),
		},
		verbs.Request{},
	)
}

// pull moves a transfer by Read. A credit from the server means that the next
// slot is filled; one from here that it was read and verified.
func (c *demoClient) pull(ctx context.Context, transfer int) (n int, verified uint64, err error) {
	posted, checked := c.plan.messages(transfer), c.plan.messages(transfer)
	for checked.more() {
		if posted.index < c.credits {
			m := posted.next()
			if err := c.PostSend(verbs.Request{
				Op:     verbs.OpRead,
				Local:  c.slotsMR.SGE(m.slot()*demoSlotSize, m.length),
				Remote: c.remote.At(m.slot() * demoSlotSize),
			}); err != nil {
				return 0, 0, err
			}
			continue
		}
		if err := c.step(ctx); err != nil {
			return 0, 0, err
		}
		for checked.index < c.done {
			m := checked.next()
			if err := c.verify(transfer, m, c.slot(m)); err != nil {
				return 0, 0, err
			}
			verified += uint64(m.length)
			if err := c.sendCredit(); err != nil {
				return 0, 0, err
			}
		}
		c.progress.Show(demoOps[transfer].String(), verified, posted.total)
	}
	return checked.index, verified, nil
}
