package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// va10 is the form of Descriptors: VI Architecture 10.
var va10 = []conformance.Case{
	apiCase("10.2/vi-reserved", viReserved, "VA-10.2-M1", "VA-10.2-M2", "VA-10.2-M3", "VA-10.2-M5", "VA-10.3-M3", "PA-10.2-M2"),
	apiCase("10.2/vi-length-field", onVI(vipl.ServiceUnreliable, viLengthField), "VA-10.2-M4", "PA-10.2-M8"),
	apiCase("10.2/vi-status-reserved", viStatusReserved, "VA-10.2-M6", "VA-10.2-M7"),
	apiCase("10.4/vi-too-long", eachLevel(viTooLong), "VA-10.4-M2", "PA-10.2-M7"),
}

// viReserved sets each of the reserved fields and bits, in each kind of Descriptor.
func viReserved(t *conformance.T) {
	spoils := map[string]func(*vipl.Descriptor){
		"reserved word":    func(d *vipl.Descriptor) { d.Control.Reserved = 1 },
		"status":           func(d *vipl.Descriptor) { d.Control.Status = viDone },
		"flag of a status": func(d *vipl.Descriptor) { d.Control.Status = 1 << 31 },
		"operation 3":      func(d *vipl.Descriptor) { d.Control.Control |= 3 },
	}
	for bit := 4; bit < 16; bit++ {
		spoils["control bit "+string(rune('a'+bit))] = func(d *vipl.Descriptor) { d.Control.Control |= 1 << bit }
	}
	r := newVIRig(t, viSetup{level: vipl.ServiceUnreliable})
	for _, spoil := range named(t, "%s", spoils) {
		for _, tr := range viTransfers[:2] {
			d := r.desc()
			tr.set(d, r.remote(0), r.data(0, 1))
			spoil(d)
			require.NoError(t, r.v.PostSend(d, r.dh))
			require.Same(t, d, must(r.v.SendWait(t.Context()))(t))
			require.Equal(t, vipl.Status(viDone|viFormat), d.Control.Status&(viDone|0xFFFE), tr.name)
		}
		d := r.desc()
		d.SetRecv(r.data(0, 8))
		spoil(d)
		require.NoError(t, r.v.PostRecv(d, r.dh))
		r.takes("consumes", d, viDone|viFormat|viOpReceive)
	}
	t.Part("reserved word of the address segment")
	d := r.desc()
	d.SetRdmaWrite(r.remote(0), r.data(0, 1))
	d.Address.Reserved = 1 << 31
	r.sent(r.v, r.post(r.v, d), viDone|viFormat|viOpWrite)
	r.sends(r.v, r.data(0, 2))
	require.Equal(t, r.mem[:2], r.get(viSend).payload, "the first that is sent")

	t.Part("at Reliable Delivery")
	r = newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery})
	d = r.desc()
	d.SetRdmaRead(r.remote(0), r.data(0, 1))
	d.Address.Reserved = 1
	r.sent(r.v, r.post(r.v, d), viDone|viFormat|viOpRead)
	r.over()
}

// viLengthField has the length field not be the sum of the data segments.
func viLengthField(t *conformance.T, r *viRig) {
	for _, length := range []uint32{0, 9, 11, 1<<32 - 1} {
		for _, tr := range viTransfers[:2] {
			d := r.desc()
			tr.set(d, r.remote(0), r.data(0, 4), r.data(8, 6))
			require.Equal(t, uint32(10), d.Control.Length)
			d.Control.Length = length
			r.sent(r.v, r.post(r.v, d), viDone|viLength|tr.op)
		}
	}
	d := r.desc()
	d.SetRecv(r.data(0, 4), r.data(8, 6))
	d.Control.Length = 77 // means nothing there
	require.NoError(t, r.v.PostRecv(d, r.dh))
	r.takes("ten octets", d, viDone|viOpReceive)
	require.Equal(t, uint32(10), d.Control.Length)
	r.sends(r.v, r.data(0, 2))
	require.Equal(t, r.mem[:2], r.get(viSend).payload, "the first that is sent")
}

// viTooLong sends an octet more than the maximum transfer size, in one segment and in
// two that are in order by themselves.
func viTooLong(t *conformance.T, l viLevel) {
	for _, tr := range viTransfers {
		if tr.op == viOpRead && l.level == vipl.ServiceUnreliable {
			continue
		}
		r := newVIRig(t, viSetup{level: l.level, vi: func(a *vipl.ViAttributes) { a.MaxTransferSize = 1000 }})
		d := r.desc()
		tr.set(d, r.remote(0), r.data(0, 1000), r.data(0, 1))
		r.sent(r.v, r.post(r.v, d), viDone|viLength|tr.op)
		if l.level != vipl.ServiceUnreliable {
			r.over()
			require.Equal(t, vipl.StateError, r.state(r.v))
			continue
		}
		r.sends(r.v, r.data(0, 1000))
		_, payload := r.whole(viSend)
		require.Len(t, payload, 1000, "the most")
	}
}

// viStatusReserved collects statuses of success and of every error.
func viStatusReserved(t *conformance.T) {
	seen := vipl.Status(0)
	look := func(d *vipl.Descriptor) {
		require.True(t, d.Done())
		s := d.Control.Status
		assert.Zero(t, s&0x0000FE00, "reserved error bits of %v", s)
		assert.Zero(t, s&0xFFF00000, "reserved flag bits of %v", s)
		assert.LessOrEqual(t, s>>16&7, vipl.Status(4), "operation of %v", s)
		seen |= s
	}
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableReception, receives: 1})
	wait := func(v *vipl.Vi) {
		d := must(v.SendWait(t.Context()))(t)
		look(d)
	}
	r.put(r.message(viSegment{kind: viSend, flags: viLast | viImmediate}))
	r.received(r.v, r.receives[0], viDone|viOpReceive|viHasImmediate)
	look(r.receives[0])
	w := r.writes(r.v, r.remote(0), r.data(0, 1))
	behind := r.sends(r.v)
	for s := r.next(); s.kind != viWrite; s = r.next() {
	}
	n := r.get(viSend).number
	r.nop(viSegment{ack: n - 1, code: viProtectionCode | viDescriptorCode | viTransportCode})
	wait(r.v)
	wait(r.v)
	look(w)
	look(behind)

	r = newVIRig(t, viSetup{level: vipl.ServiceReliableReception})
	r.sends(r.v)
	r.nop(viSegment{ack: r.get(viSend).number, code: viDescriptorCode})
	wait(r.v)

	u := newVIRig(t, viSetup{level: vipl.ServiceUnreliable})
	bad := u.desc()
	bad.SetSend()
	bad.Control.Reserved = 1
	u.post(u.v, bad)
	u.sends(u.v, vipl.DataSegment{Length: 1})
	bad = u.desc()
	bad.SetSend()
	bad.Control.Length = 1
	u.post(u.v, bad)
	for range 3 {
		wait(u.v)
	}
	d := u.recv(u.v, u.data(0, 1))
	u.put(u.message(viSegment{kind: viSend, flags: viLast | viError}))
	u.received(u.v, d, viDone|viPartial|viOpReceive)
	look(d)
	require.Equal(t, vipl.Status(viDone|viFormat|viProtection|viLength|viPartial|viFlushed|viTransport|viRemoteProtection|viRemoteDescriptor),
		seen&0xFFFF, "every error has been seen")
}

// pa10 is what the VI Architecture, 10.2, says of the bits of Descriptors without a must.
var pa10 = []conformance.Case{
	apiCase("10.2/vi-rdma-on-receive-queue", viRDMAOnReceive, "PA-10.2-M1", "PA-10.2-M2"),
	apiCase("10.2/vi-immediate-bit-of-receive", viImmediateOfReceive, "PA-10.2-M15"),
	apiCase("10.2/vi-immediate-bit-of-read", viImmediateOfRead, "PA-10.2-M3", "PA-10.2-M15"),
	apiCase("10.2/vi-rdma-protection-bit", viProtectionBit, "PA-10.2-M12"),
	apiCase("10.2/vi-remote-descriptor-bit", viDescriptorBit, "PA-10.2-M13"),
}

// viRDMAOnReceive posts RDMA Descriptors to the receive queue, and Receives with the operation
// of such a one, or of none.
func viRDMAOnReceive(t *conformance.T) {
	operation := func(op vipl.Control) func(*viRig, *vipl.Descriptor) {
		return func(r *viRig, d *vipl.Descriptor) {
			d.SetRecv(r.data(0, 8))
			d.Control.Control = op
		}
	}
	for l := range inTurn(t, "%s", viLevels) {
		for _, set := range named(t, "%s", map[string]func(*viRig, *vipl.Descriptor){
			"an RDMA Write": func(r *viRig, d *vipl.Descriptor) { d.SetRdmaWrite(r.remote(0), r.data(0, 8)) },
			"an RDMA Read":  func(r *viRig, d *vipl.Descriptor) { d.SetRdmaRead(r.remote(0), r.data(0, 8)) },
			"operation 1":   operation(1),
			"operation 2":   operation(2),
			"operation 3":   operation(3),
		}) {
			r := newVIRig(t, viSetup{level: l.level})
			d := r.desc()
			set(r, d)
			require.NoError(t, r.v.PostRecv(d, r.dh))
			before := string(r.mem)
			r.takes("consumes", d, viDone|viFormat|viOpReceive)
			require.Equal(t, before, string(r.mem))
		}
	}
}

// viImmediateOfReceive posts receives that have the bit, and a value, already.
func viImmediateOfReceive(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels) {
		r := newVIRig(t, viSetup{level: l.level})
		for _, s := range []viSegment{
			{kind: viSend},
			{kind: viSend, flags: viImmediate, immediate: 9},
			{kind: viSend, payload: []byte("x")},
			{kind: viWrite, flags: viImmediate},
		} {
			d := r.desc()
			d.SetRecv(r.data(0, 8))
			d.SetImmediate(0x77)
			d.Control.Control |= vipl.ControlQFence // means nothing there either
			require.NoError(t, r.v.PostRecv(d, r.dh))
			s.flags |= viLast
			r.put(r.message(s))
			want := either(s.kind == viWrite, viDone|viOpRemoteWrite, uint32(viDone|viOpReceive))
			if s.flags&viImmediate != 0 {
				want |= viHasImmediate
			}
			r.received(r.v, d, want)
			require.Equal(t, s.flags&viImmediate != 0, d.Control.Control&vipl.ControlImmediate != 0, "the bit of the control field")
			if s.flags&viImmediate != 0 {
				require.Equal(t, s.immediate, d.Control.ImmediateData)
			}
		}
	}
	t.Part("one that is flushed")
	h := newVIHost(t, vipl.Config{})
	v := h.vi(vipl.ServiceUnreliable)
	d := h.desc()
	d.SetRecv()
	d.SetImmediate(0x77)
	require.NoError(t, v.PostRecv(d, h.dh))
	require.NoError(t, v.Disconnect())
	h.received(v, d, viDone|viFlushed|viOpReceive)
	require.Zero(t, d.Control.Control&vipl.ControlImmediate)
}

// viImmediateOfRead posts an RDMA Read with the bit between two VIs: nothing comes of it.
func viImmediateOfRead(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[1:]) {
		p := newVIPair(t, l.level)
		waits := p.b.recv(p.vb, p.b.data(0, 8))
		d := p.a.desc()
		d.SetRdmaRead(p.b.remote(1000), p.a.data(2000, 100))
		d.SetImmediate(0x77)
		p.a.sent(p.va, p.a.post(p.va, d), viDone|viOpRead)
		require.Equal(t, p.b.mem[1000:1100], p.a.mem[2000:2100])
		s := p.a.sends(p.va, p.a.data(0, 1))
		p.b.received(p.vb, waits, viDone|viOpReceive)
		p.a.sent(p.va, s, viDone)
	}
}

// viProtectionBit has RDMA Writes and RDMA Reads meet protection errors at Reliable Delivery.
func viProtectionBit(t *conformance.T) {
	nowhere := vipl.AddressSegment{Data: 1, Handle: 1}
	p := newVIPair(t, vipl.ServiceReliableDelivery)
	d := p.a.writes(p.va, nowhere, p.a.data(0, 8))
	p.a.sent(p.va, d, viDone|viOpWrite)
	p.b.reported(p.vb, vipl.ErrorRdmaWProt, viOpRemoteWrite)
	p.a.becomes(p.va, vipl.StateError)
	require.Equal(t, vipl.Status(viDone|viOpWrite), d.Control.Status, "it had left")

	t.Part("an RDMA Read, with others behind it")
	p = newVIPair(t, vipl.ServiceReliableDelivery)
	p.b.recv(p.vb, p.b.data(0, 8))
	d = p.a.reads(p.va, nowhere, p.a.data(0, 8))
	others := []*vipl.Descriptor{p.a.writes(p.va, p.b.remote(0), p.a.data(0, 8)), p.a.sends(p.va, p.a.data(0, 8))}
	p.a.sent(p.va, d, viDone|viRemoteProtection|viOpRead)
	for _, d := range others {
		require.Same(t, d, must(p.va.SendWait(t.Context()))(t))
		require.Zero(t, d.Control.Status&viRemoteProtection, "%v", d.Control.Status)
	}

	t.Part("told by an error code, which means nothing there")
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, receives: 1})
	rd := r.reads(r.v, nowhere, r.data(0, 8))
	w := r.writes(r.v, nowhere, r.data(0, 8))
	n := r.get(viReadRequest).number
	r.nop(viSegment{ack: r.get(viWrite).number, code: viProtectionCode})
	r.takes("x", r.receives[0], viDone|viOpReceive)
	r.put(viSegment{kind: viReadResponse, flags: viLast, number: n, payload: []byte("12345678")})
	r.sent(r.v, rd, viDone|viOpRead)
	r.sent(r.v, w, viDone|viOpWrite)
}

// viDescriptorBit has the peer find fault with its Descriptors at Reliable Reception, or say
// so of a message that has none there.
func viDescriptorBit(t *conformance.T) {
	to := vipl.AddressSegment{Data: 1, Handle: 1}
	for c := range inTurn(t, "%s", []struct {
		name string
		set  func(r *viRig, d *vipl.Descriptor)
		want uint32
	}{
		{"Send", func(r *viRig, d *vipl.Descriptor) { d.SetSend(r.data(0, 8)) }, viRemoteDescriptor},
		{"RDMA Write with immediate data", func(r *viRig, d *vipl.Descriptor) {
			d.SetRdmaWrite(to, r.data(0, 8))
			d.SetImmediate(1)
		}, viRemoteDescriptor | viOpWrite},
		{"RDMA Write", func(r *viRig, d *vipl.Descriptor) { d.SetRdmaWrite(to, r.data(0, 8)) }, viTransport | viOpWrite},
		{"RDMA Read", func(r *viRig, d *vipl.Descriptor) { d.SetRdmaRead(to, r.data(0, 8)) }, viTransport | viOpRead},
	}) {
		r := newVIRig(t, viSetup{level: vipl.ServiceReliableReception})
		d := r.desc()
		c.set(r, d)
		r.post(r.v, d)
		r.nop(viSegment{ack: r.next().number, code: viDescriptorCode})
		r.sent(r.v, d, viDone|c.want)
		require.Equal(t, vipl.StateError, r.state(r.v))
	}
}
