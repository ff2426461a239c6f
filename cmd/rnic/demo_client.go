package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// demoClient drives the demo from the side that connects.
type demoClient struct {
	*demoEnd
	remote   remoteBuffer // the server's slots
	progress *progress
}

// demoResult is one row of the table.
type demoResult struct {
	Op       string  `json:"op"`
	Bytes    uint64  `json:"bytes"`
	Messages int     `json:"messages"`
	Seconds  float64 `json:"seconds"`
	GBps     float64 `json:"gb_per_s"`
	Verified uint64  `json:"verified_bytes"`
}

// runDemoClient connects to addr and carries out the plan.
func runDemoClient(ctx context.Context, addr string, f *connFlags, plan demoPlan, p *progress) (results []demoResult, err error) {
	d, err := openDemo(f, demoNoteSize)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := d.close(); err == nil && closeErr != nil {
			err = fmt.Errorf("closing the connection: %w", closeErr)
		}
	}()
	d.plan = plan
	cfg := f.config()
	cfg.PrivateData = marshal(plan)
	if err := d.dial(ctx, addr, cfg); err != nil {
		return nil, err
	}
	c := &demoClient{demoEnd: d, progress: p}
	if err := json.Unmarshal(d.conn.PrivateData(), &c.remote); err != nil {
		return nil, fmt.Errorf("the server's private data: %w; is it rnic demo?", err)
	}
	ctx, cancel := d.whileConnected(ctx)
	defer cancel()

	for transfer, op := range demoOps {
		begin := time.Now()
		move := c.push
		if op == verbs.OpRead {
			move = c.pull
		}
		n, verified, err := move(ctx, transfer)
		if err != nil {
			return nil, err
		}
		// What is left over is the server's: it may have offered the
		// first slots of the next transfer already.
		d.done, d.credits = d.done-n, d.credits-n
		seconds := time.Since(begin).Seconds()
		results = append(results, demoResult{
			Op: op.String(), Bytes: plan.share(transfer), Messages: n,
			Seconds: seconds, GBps: float64(plan.share(transfer)) / seconds / 1e9,
			Verified: verified,
		})
	}
	return results, nil
}

// push moves a transfer by Send or Write. The server verifies, and each credit
// stands for a message that was right.
func (c *demoClient) push(ctx context.Context, transfer int) (n int, verified uint64, err error) {
	posted, credited := c.plan.messages(transfer), c.plan.messages(transfer)
	for credited.more() {
		if posted.more() && posted.index-min(c.done, c.credits) < demoSlots {
			m := posted.next()
			c.plan.pattern(transfer).fill(c.slot(m), m.offset)
			if err := c.pushOne(demoOps[transfer], m); err != nil {
				return 0, 0, err
			}
			continue
		}
		if err := c.step(ctx); err != nil {
			return 0, 0, err
		}
		for credited.index < min(c.done, c.credits) {
			verified += uint64(credited.next().length)
		}
		c.progress.show(demoOps[transfer].String(), verified, posted.total)
	}
	return credited.index, verified, nil
}

func (c *demoClient) pushOne(op verbs.Op, m message) error {
	if op == verbs.OpSend {
		return c.postSend(verbs.Send{SGL: c.slotSGL(m)})
	}
	// The Send is delivered after the Write before it has been placed
	// (RFC 5040 5.5), and its completion stands for both.
	return c.postSend(
		verbs.Send{
			Op: verbs.OpWrite, Flags: verbs.Unsignaled,
			SGL: c.slotSGL(m), Remote: c.remote.at(m.slot() * demoSlotSize),
		},
		verbs.Send{},
	)
}

// pull moves a transfer by Read. A credit from the server says that the next
// slot is filled; one from here that it was read and verified.
func (c *demoClient) pull(ctx context.Context, transfer int) (n int, verified uint64, err error) {
	posted, checked := c.plan.messages(transfer), c.plan.messages(transfer)
	for checked.more() {
		if posted.index < c.credits {
			m := posted.next()
			if err := c.postSend(verbs.Send{
				Op:     verbs.OpRead,
				Local:  c.slotsMR.SGE(m.slot()*demoSlotSize, m.length),
				Remote: c.remote.at(m.slot() * demoSlotSize),
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
		c.progress.show(demoOps[transfer].String(), verified, posted.total)
	}
	return checked.index, verified, nil
}
