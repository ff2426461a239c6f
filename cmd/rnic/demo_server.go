package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// serveDemo serves one client of the demo, and says through announce where it
// listens.
func serveDemo(ctx context.Context, f *connFlags, announce func(address string) error) error {
	l, err := cm.Listen("127.0.0.1:0", f.config())
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer l.Close()
	if err := announce(l.Addr().String()); err != nil {
		return err
	}
	req, err := l.Accept(ctx)
	if err != nil {
		return fmt.Errorf("waiting for the client: %w", err)
	}
	var plan demoPlan
	if err := json.Unmarshal(req.PrivateData(), &plan); err != nil {
		return errors.Join(fmt.Errorf("the client's private data: %w", err), req.Reject([]byte("not a demo plan")))
	}
	d, err := openDemo(f, demoSlotSize)
	if err != nil {
		return errors.Join(err, req.Reject([]byte("no resources")))
	}
	d.plan = plan
	cfg := f.config()
	cfg.PrivateData = marshal(addressOf(d.slotsMR, 0))
	err = d.accept(ctx, req, cfg)
	if err == nil {
		err = d.serve(ctx)
	}
	return errors.Join(err, d.close())
}

// serve takes part in all transfers, and stays until the client has left: what
// was sent last must reach it.
func (d *demoEnd) serve(ctx context.Context) error {
	ctx, cancel := d.whileConnected(ctx)
	defer cancel()
	for transfer, op := range demoOps {
		var err error
		if op == verbs.OpRead {
			err = d.offer(ctx, transfer)
		} else {
			err = d.take(ctx, transfer)
		}
		if err != nil {
			return err
		}
	}
	return d.untilDisconnected(ctx)
}

func (d *demoEnd) untilDisconnected(ctx context.Context) error {
	for {
		if _, err := d.next(ctx); errors.Is(err, errDisconnected) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// take verifies the messages of a Send or Write transfer.
func (d *demoEnd) take(ctx context.Context, transfer int) error {
	for expected := d.plan.messages(transfer); expected.more(); {
		m := expected.next()
		wc, err := d.nextRecv(ctx)
		if err != nil {
			return err
		}
		data := d.received(wc)
		if demoOps[transfer] == verbs.OpWrite {
			data = d.slot(m)
		}
		if err := d.verify(transfer, m, data); err != nil {
			return d.fail(ctx, err)
		}
		if err := d.postSlot(wc.ID); err != nil {
			return err
		}
		if err := d.sendCredit(); err != nil {
			return err
		}
	}
	return nil
}

// offer fills slots for the client to read, each again when it was read.
func (d *demoEnd) offer(ctx context.Context, transfer int) error {
	filled := d.plan.messages(transfer)
	for filled.more() || d.credits < filled.index {
		if filled.more() && filled.index-d.credits < demoSlots {
			m := filled.next()
			d.plan.pattern(transfer).fill(d.slot(m), m.offset)
			if err := d.sendCredit(); err != nil {
				return err
			}
			continue
		}
		if err := d.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fail tells the client what was wrong, and waits for it to leave.
func (d *demoEnd) fail(ctx context.Context, cause error) error {
	note := cause.Error()
	n := copy(d.slots, note[:min(len(note), demoNoteSize)])
	if err := d.postSend(verbs.Send{SGL: d.slotsMR.SGL(0, n)}); err != nil {
		return errors.Join(cause, err)
	}
	return errors.Join(cause, d.untilDisconnected(ctx))
}
