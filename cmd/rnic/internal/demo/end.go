package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/verbs"
)

// demoEnd is what both sides of the demo have: slots of memory for data,
// posted Receives, and counts of what happened in the transfer so far.
type demoEnd struct {
	*endpoint.Endpoint
	plan demoPlan

	slots   []byte
	slotsMR *verbs.MR
	// recv is the memory of the posted Receives, role.recvSize octets each; a
	// Receive's ID says which one.
	recv   []byte
	recvMR *verbs.MR
	role   demoRole

	progress *cli.Progress
	done     int                    // own messages completed: the last request of each
	credits  int                    // empty Sends received
	remote   *endpoint.RemoteBuffer // the server's slots; nil until its note
}

// demoRole is how the sides differ.
type demoRole struct {
	recvSize int          // octets of a Receive
	access   verbs.Access // rights of the slots
	shared   bool         // Receives come from an S-RQ
}

var (
	// The client's slots are sinks of its own Reads, and nothing for the server to
	// write to (verbs.QPConfig.ReadIntoLocal).
	demoClientRole = demoRole{
		recvSize: demoNoteSize,
		access:   verbs.LocalRead | verbs.LocalWrite,
	}
	// The server's region itself is closed to the peer: what gets there gets
	// through the window.
	demoServerRole = demoRole{
		recvSize: demoSlotSize,
		access:   verbs.LocalRead | verbs.LocalWrite | verbs.BindWindow,
		shared:   true,
	}
)

// demoRecvs leaves room for all that can come before a Receive is reposted:
// a message or credit for each slot.
const demoRecvs = 2 * demoSlots

// openDemo prepares everything up to the connection.
func openDemo(f *cli.ConnFlags, role demoRole) (*demoEnd, error) {
	ep, err := endpoint.Open(endpoint.Limits{
		// A message takes two requests at most; credits go between.
		SendDepth: 4 * demoSlots,
		RecvDepth: demoRecvs,
		IRD:       f.IRD,
		ORD:       f.ORD,
		Shared:    role.shared,
		RNIC:      f.RNIC,
	})
	if err != nil {
		return nil, err
	}
	d := &demoEnd{Endpoint: ep, role: role, progress: &cli.Progress{}}
	if err := d.prepare(); err != nil {
		_ = ep.Abort()
		return nil, err
	}
	return d, nil
}

func (d *demoEnd) prepare() (err error) {
	if d.slots, d.slotsMR, err = d.Register(demoSlots*demoSlotSize, d.role.access); err != nil {
		return err
	}
	if d.recv, d.recvMR, err = d.Register(demoRecvs*d.role.recvSize, verbs.LocalRead|verbs.LocalWrite); err != nil {
		return err
	}
	for i := range demoRecvs {
		if err := d.postSlot(uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

// postSlot posts the Receive with this ID.
func (d *demoEnd) postSlot(id uint64) error {
	return d.PostRecv(verbs.Recv{ID: id, SGL: d.recvMR.SGL(int(id)*d.role.recvSize, d.role.recvSize)})
}

// received is the message of the Receive that completed with wc.
func (d *demoEnd) received(wc *verbs.Completion) []byte {
	start := int(wc.ID) * d.role.recvSize
	return d.recv[start : start+int(wc.Bytes)]
}

// slot is the memory of m.
func (d *demoEnd) slot(m message) []byte {
	start := m.slot() * demoSlotSize
	return d.slots[start : start+m.length]
}

func (d *demoEnd) slotSGL(m message) []verbs.SGE {
	return d.slotsMR.SGL(m.slot()*demoSlotSize, m.length)
}

// sendCredit sends an empty Send.
func (d *demoEnd) sendCredit() error { return d.PostSend(verbs.Request{Flags: verbs.Unsignaled}) }

// deliver fills the slots with the messages of a transfer, again and again. put sends or announces one to the peer,
// freed is the number of those whose slots are free again.
func (d *demoEnd) deliver(
	ctx context.Context, transfer int, put func(message) error, freed func() int,
) (n int, verified uint64, err error) {
	filled, credited := d.plan.messages(transfer), d.plan.messages(transfer)
	for credited.more() {
		if filled.more() && filled.index-freed() < demoSlots {
			m := filled.next()
			d.plan.pattern(transfer).Fill(d.slot(m), m.offset)
			if err := put(m); err != nil {
				return 0, 0, err
			}
			continue
		}
		if err := d.step(ctx); err != nil {
			return 0, 0, err
		}
		for credited.index < freed() {
			verified += uint64(credited.next().length)
		}
		d.progress.Show(demoOps[transfer].String(), verified, filled.total)
	}
	return credited.index, verified, nil
}

// step waits for one completion and counts it.
func (d *demoEnd) step(ctx context.Context) error {
	wc, err := d.Next(ctx)
	if err != nil {
		return err
	}
	if wc.Op != verbs.OpRecv {
		d.done++
		return nil
	}
	if wc.Bytes == 0 {
		d.credits++
	} else if err := d.read(d.received(wc)); err != nil {
		return err
	}
	// After its last credit the peer may be gone. If it is gone too early,
	// the next completion says so.
	if err := d.postSlot(wc.ID); !errors.Is(err, endpoint.ErrDisconnected) {
		return err
	}
	return nil
}

// read takes a note.
func (d *demoEnd) read(data []byte) error {
	var note demoNote
	if err := json.Unmarshal(data, &note); err != nil {
		return fmt.Errorf("a Send from the peer: %w; is it rnic demo?", err)
	}
	if note.Window == nil {
		return fmt.Errorf("the peer says: %s", note.Wrong)
	}
	d.remote = note.Window
	return nil
}

// verify compares a message with its pattern.
func (d *demoEnd) verify(transfer int, m message, data []byte) error {
	if len(data) != m.length {
		return fmt.Errorf("%v %d has %d octets, want %d", demoOps[transfer], m.index, len(data), m.length)
	}
	if i := d.plan.pattern(transfer).Mismatch(data, m.offset); i >= 0 {
		return fmt.Errorf("%v %d differs from what was sent at octet %d of %d", demoOps[transfer], m.index, i, m.length)
	}
	return nil
}
