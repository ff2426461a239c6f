package vipl

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// segments are n data segments of size octets.
func segments(n int, size uint32) []DataSegment {
	s := make([]DataSegment, n)
	for i := range s {
		s[i] = DataSegment{Data: 1, Handle: 2, Length: size}
	}
	return s
}

func TestFormat(t *testing.T) {
	send := func(c Control, segs int, length uint32) *Descriptor {
		d := &Descriptor{Data: segments(segs, length)}
		d.Control = ControlSegment{Control: c, SegCount: uint16(segs), Length: uint32(segs) * length}
		if c.op() != ControlOpSendRecv {
			d.Control.SegCount++
		}
		return d
	}
	change := func(d *Descriptor, f func(*Descriptor)) *Descriptor { f(d); return d }
	const (
		w, r = ControlOpRdmaWrite, ControlOpRdmaRead
		rd   = ServiceReliableDelivery
		bad  = StatusFormatError
		long = StatusLengthError
	)
	for _, c := range []struct {
		name       string
		level      ReliabilityLevel
		d          *Descriptor
		send, recv Status
	}{
		{"nothing", 0, send(0, 0, 0), 0, 0},
		{"zero-length segments", 0, send(0, 3, 0), 0, 0},
		{"252 segments, VA-10.4-M1", 0, send(0, 252, 10), 0, 0},
		{"253 segments", 0, send(0, 253, 1), bad, bad},
		{"immediate and fence", 0, send(ControlImmediate|ControlQFence, 1, 4), 0, 0},
		{"write", 0, send(w, 1, 4), 0, bad},
		{"write of 252 segments", rd, send(w, 252, 4), 0, bad},
		{"read at Unreliable, 2.5.1", 0, send(r, 1, 4), bad, bad},
		{"read", rd, send(r, 1, 4), 0, bad},
		{"read with immediate data", rd, send(r|ControlImmediate, 1, 4), 0, bad}, // ignored there
		{"operation 3", rd, send(3, 1, 4), bad, bad},
		{"reserved control bit 4", 0, send(0x10, 1, 4), bad, bad},
		{"reserved control bit 15", 0, send(0x8000, 1, 4), bad, bad},
		{"reserved word, VA-10.2-M3", 0, change(send(0, 1, 4), func(d *Descriptor) { d.Control.Reserved = 1 }), bad, bad},
		{"status, VA-10.2-M5", 0, change(send(0, 1, 4), func(d *Descriptor) { d.Control.Status = StatusDone }), bad, bad},
		{"reserved flag in status", 0, change(send(0, 1, 4), func(d *Descriptor) { d.Control.Status = 1 << 31 }), bad, bad},
		{"address segment reserved, VA-10.3-M3", rd, change(send(w, 1, 4), func(d *Descriptor) { d.Address.Reserved = 1 }), bad, bad},
		{"address of a send", rd, change(send(0, 1, 4), func(d *Descriptor) { d.Address.Reserved = 1 }), 0, 0}, // it has none
		{"write without address segment", rd, change(send(w, 1, 4), func(d *Descriptor) { d.Control.SegCount = 1 }), bad, bad},
		{"send with address segment", rd, change(send(0, 1, 4), func(d *Descriptor) { d.Control.SegCount = 2 }), bad, bad},
		{"too few segments counted", rd, change(send(0, 3, 4), func(d *Descriptor) { d.Control.SegCount = 2 }), bad, bad},
		{"length short of the sum, VA-10.2-M4", rd, change(send(0, 2, 4), func(d *Descriptor) { d.Control.Length = 7 }), long, 0},
		{"length beyond the sum", rd, change(send(r, 2, 4), func(d *Descriptor) { d.Control.Length = 9 }), long, bad},
		{"no length", rd, change(send(0, 2, 4), func(d *Descriptor) { d.Control.Length = 0 }), long, 0},
		{"the MTU", rd, send(0, 2, 500), 0, 0},
		{"beyond the MTU, VA-10.4-M2", rd, send(0, 7, 143), long, long},
		{"sum beyond 32 bits", rd, change(send(0, 2, math.MaxUint32), func(d *Descriptor) { d.Control.Length = math.MaxUint32 - 1 }), long, long},
	} {
		limits := terms{level: c.level, segments: maxSegments, transfer: 1000}
		if len(c.d.Data) == 252 {
			limits.transfer = 2520
		}
		assert.Equal(t, c.send, limits.checkSend(c.d), "send: %s", c.name)
		assert.Equal(t, c.recv, limits.checkRecv(c.d), "recv: %s", c.name)
	}
}

// TestSetters: what the Set methods fill in is what the checks ask for.
func TestSetters(t *testing.T) {
	limits := terms{level: ServiceReliableDelivery, segments: maxSegments, transfer: math.MaxUint32}
	d := &Descriptor{Control: ControlSegment{Status: StatusDone, Reserved: 7, Control: 0xFFF0}}
	at := AddressSegment{Data: 3, Handle: 4}
	for name, set := range map[string]func(){
		"send":  func() { d.SetSend(segments(3, 5)...) },
		"write": func() { d.SetRdmaWrite(at, segments(252, 5)...) },
		"read":  func() { d.SetRdmaRead(at) },
	} {
		set()
		require.Zero(t, limits.checkSend(d), name)
		d.SetImmediate(9)
		d.Fence()
		require.Zero(t, limits.checkSend(d), name)
		require.Equal(t, ControlImmediate|ControlQFence, d.Control.Control&^controlOpMask)
		require.EqualValues(t, 9, d.Control.ImmediateData)
	}
	d.SetRecv(segments(2, 1<<31)...)
	require.EqualValues(t, 0, d.Control.Length, "a length of 33 bits is no length")
	require.Equal(t, StatusLengthError, limits.checkRecv(d))
	d.SetSend(segments(1<<16, 0)...)
	require.Equal(t, StatusFormatError, limits.checkSend(d), "more than SegCount can say")

	require.Zero(t, testing.AllocsPerRun(100, func() { d.SetSend(DataSegment{Length: 1}, DataSegment{Length: 2}) }))
	require.False(t, d.Done())
	d.setStatus(StatusDone)
	require.True(t, d.Done())
}
