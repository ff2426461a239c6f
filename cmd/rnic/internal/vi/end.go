package vi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/vipl"
)

// viEnd is one end of a connection: a VI, with memory and Descriptors of its own under
// a protection tag of its own.
type viEnd struct {
	nic    *vipl.Nic
	ptag   vipl.ProtectionHandle
	vi     *vipl.Vi
	broken chan vipl.ErrorDescriptor // the arguments of the error handler for vi

	descriptors []vipl.Descriptor // the first is for the Send Queue, the others for the Receive Queue
	posting     vipl.MemHandle    // of descriptors
	posted      int               // on the Receive Queue, so far

	notes, slots viMemory // no peer may access notes
	slot         uint64   // length of a slot
}

// viMemory is registered memory.
type viMemory struct {
	octets []byte
	handle vipl.MemHandle
}

// segment names n octets of m from off on.
func (m *viMemory) segment(off, n uint64) vipl.DataSegment {
	return vipl.DataSegment{Data: vipl.AddressOf(m.octets) + vipl.Address(off), Handle: m.handle, Length: uint32(n)}
}

// The two halves of notes.
const viNoteOut, viNoteIn = 0, viNoteSize

// openViEnd makes the end, with a receive for the peer's note posted.
func openViEnd(nic *vipl.Nic, level vipl.ReliabilityLevel) (*viEnd, error) {
	e := &viEnd{nic: nic, broken: make(chan vipl.ErrorDescriptor, 1), descriptors: make([]vipl.Descriptor, 3)}
	err := e.prepare(level)
	if err == nil {
		err = e.postRecv(e.notes.segment(viNoteIn, viNoteSize))
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *viEnd) prepare(level vipl.ReliabilityLevel) (err error) {
	if e.ptag, err = e.nic.CreatePtag(); err != nil {
		return fmt.Errorf("creating a protection tag: %w", err)
	}
	if e.posting, err = e.nic.RegisterDescriptors(e.descriptors, e.ptag); err != nil {
		return fmt.Errorf("registering descriptors: %w", err)
	}
	if e.notes, err = e.register(2*viNoteSize, false); err != nil {
		return err
	}
	attributes := vipl.ViAttributes{
		ReliabilityLevel: level, MaxTransferSize: maxViSize, Ptag: e.ptag,
		EnableRdmaWrite: true, EnableRdmaRead: level != vipl.ServiceUnreliable,
	}
	if e.vi, err = e.nic.CreateVi(&attributes, nil, nil); err != nil {
		return fmt.Errorf("creating a VI: %w", err)
	}
	vi, broken := e.vi, e.broken
	return e.nic.ErrorCallback(func(d *vipl.ErrorDescriptor) {
		if d.ViHandle != vi || d.ErrorCode == vipl.ErrorNoCRC {
			return // of an earlier connection, or the server's CRC that the client does not want: nothing broke
		}
		select {
		case broken <- *d:
		default: // the first one is the cause
		}
	})
}

// crc reports whether the connection has CRCs: both ends have to ask.
func (e *viEnd) crc() (bool, error) {
	_, attributes, err := e.vi.QueryVi()
	if err != nil {
		return false, err
	}
	return attributes.CRC, nil
}

func (e *viEnd) register(n int, remote bool) (m viMemory, err error) {
	m.octets = make([]byte, n)
	a := vipl.MemAttributes{Ptag: e.ptag, EnableRdmaWrite: remote, EnableRdmaRead: remote}
	if m.handle, err = e.nic.RegisterMem(m.octets, &a); err != nil {
		return m, fmt.Errorf("registering %d octets of memory: %w", n, err)
	}
	return m, nil
}

// allocate makes the slots, of size octets each.
func (e *viEnd) allocate(size uint64) (err error) {
	e.slot = size
	e.slots, err = e.register(int(viSlots*size), true)
	return err
}

// data are the first n octets of slot i.
func (e *viEnd) data(i int, n uint64) []byte { return e.slots.octets[uint64(i)*e.slot:][:n] }

// part names them to the provider.
func (e *viEnd) part(i int, n uint64) vipl.DataSegment {
	return e.slots.segment(uint64(i)*e.slot, n)
}

// buffer names the slots, from slot i on, to the peer.
func (e *viEnd) buffer(i int) viBuffer {
	return viBuffer{Address: vipl.AddressOf(e.slots.octets) + vipl.Address(uint64(i)*e.slot), Handle: e.slots.handle}
}

// postRecv posts a receive into data; two at most are posted at a time.
func (e *viEnd) postRecv(data ...vipl.DataSegment) error {
	d := &e.descriptors[1+e.posted%2]
	e.posted++
	d.SetRecv(data...)
	if err := e.vi.PostRecv(d, e.posting); err != nil {
		return fmt.Errorf("posting a receive: %w", err)
	}
	return nil
}

// postSend posts the one request of the Send Queue, which set fills in. It is over when sent
// has returned.
func (e *viEnd) postSend(set func(*vipl.Descriptor)) error {
	d := &e.descriptors[0]
	set(d)
	if err := e.vi.PostSend(d, e.posting); err != nil {
		return fmt.Errorf("posting a request: %w", err)
	}
	return nil
}

// sendNote sends a note.
func (e *viEnd) sendNote(ctx context.Context, note any) error {
	n := copy(e.notes.octets[viNoteOut:][:viNoteSize], endpoint.Marshal(note))
	return e.send(ctx, e.notes.segment(viNoteOut, uint64(n)))
}

// send sends data and waits until that is done.
func (e *viEnd) send(ctx context.Context, data ...vipl.DataSegment) error {
	return e.do(ctx, func(d *vipl.Descriptor) { d.SetSend(data...) })
}

// do posts a request and waits until that is done.
func (e *viEnd) do(ctx context.Context, set func(*vipl.Descriptor)) error {
	if err := e.postSend(set); err != nil {
		return err
	}
	return e.sent(ctx)
}

// note is the contents of the receive d of a note.
func (e *viEnd) note(d *vipl.Descriptor) []byte { return e.notes.octets[viNoteIn:][:d.Control.Length] }

// sent waits for the request of the Send Queue.
func (e *viEnd) sent(ctx context.Context) error {
	d, err := e.vi.SendWait(ctx)
	_, err = e.completed(d, err)
	return err
}

// recv waits for the next receive, which has to be of operation op.
func (e *viEnd) recv(ctx context.Context, op vipl.Status) (*vipl.Descriptor, error) {
	d, err := e.vi.RecvWait(ctx)
	if d, err = e.completed(d, err); err != nil {
		return nil, err
	}
	if got := d.Control.Status.Op(); got != op {
		return nil, fmt.Errorf("a %v completed where a %v was to come: the peer does not speak the protocol of rnic vi ping",
			got, op)
	}
	return d, nil
}

// errViEnded is the end of a connection by the peer.
var errViEnded = errors.New("the peer ended the connection; what it printed says why")

// completed judges what a wait returned.
func (e *viEnd) completed(d *vipl.Descriptor, err error) (*vipl.Descriptor, error) {
	switch {
	case errors.Is(err, vipl.ErrTimeout):
		return nil, fmt.Errorf("%w: no answer within --timeout; a slow path needs a longer one, or smaller -S", err)
	case err != nil:
		return nil, err
	case d.Control.Status.Errors() == 0:
		return d, nil
	}
	return nil, e.failure(d.Control.Status)
}

// failure is the meaning of the errors of a Descriptor.
func (e *viEnd) failure(s vipl.Status) error {
	const (
		flushed = vipl.StatusDescFlushedError
		partial = vipl.StatusPartialError
	)
	why, broken := e.why()
	if broken && why.ErrorCode != vipl.ErrorConnLost {
		return fmt.Errorf("the connection broke: %v; descriptor: %v", &why, s)
	}
	switch errs := s.Errors(); {
	case broken && errs&^partial == flushed:
		return errViEnded
	case broken && errs == partial|vipl.StatusTransportError: // a receive that was being filled
		return fmt.Errorf("in the middle of a message %w", errViEnded)
	}
	return fmt.Errorf("descriptor completed with an error: %v", s)
}

// why is the argument of the error handler if the connection has broken: exactly one (VI
// Architecture 7). It may come a moment after the Descriptors.
func (e *viEnd) why() (vipl.ErrorDescriptor, bool) {
	state, _, err := e.vi.QueryVi()
	if err != nil || state != vipl.StateError {
		return vipl.ErrorDescriptor{}, false
	}
	select {
	case d := <-e.broken:
		return d, true
	case <-time.After(time.Second):
		return vipl.ErrorDescriptor{}, false
	}
}

// close ends the connection and gives everything back to the NIC: in the order of the VI
// Architecture, which destroys no VI with Descriptors on it, and no tag that is in use.
func (e *viEnd) close() error {
	var errs []error
	do := func(err error) { errs = append(errs, err) }
	if e.vi != nil {
		do(e.vi.Disconnect())
		for _, done := range []func() (*vipl.Descriptor, error){e.vi.SendDone, e.vi.RecvDone} {
			for err := error(nil); err == nil; {
				_, err = done()
			}
		}
		do(e.vi.DestroyVi())
	}
	for _, m := range []*viMemory{&e.notes, &e.slots} {
		if m.handle != 0 {
			do(e.nic.DeregisterMem(vipl.AddressOf(m.octets), m.handle))
		}
	}
	if e.posting != 0 {
		do(e.nic.DeregisterMem(vipl.AddressOf(e.descriptors), e.posting))
	}
	if e.ptag != 0 {
		do(e.nic.DestroyPtag(e.ptag))
	}
	return errors.Join(errs...)
}
