package vipl

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// none is the absence of an asynchronous error.
const none = numErrorCodes

// verdict is what an error comes to at one level: the error bits of the two Descriptors
// concerned, and the asynchronous error of each end. Reliable levels are in StateError
// after it, at both ends.
type verdict struct {
	send, recv           Status
	sendError, recvError ErrorCode
	noRecv               bool // no Receive Descriptor is consumed
	sendOp, recvOp       Status
	stays                bool // both ends stay connected
	written              bool // remote memory
}

// remoteCase is an error that the end which receives finds.
type remoteCase struct {
	name string
	// arrange posts the receive, if there is to be one, and prepares the send.
	arrange func(p *pair, d *Descriptor)
	levels  [numLevels]*verdict // nil: not at this level
}

// unreliable is a verdict that leaves the connection alone (2.5.1, 7.1).
func unreliable(v verdict) *verdict {
	v.sendError, v.recvError, v.stays = none, none, true
	return &v
}

// broken is one that breaks it: the sender hears of the loss.
func broken(v verdict) *verdict {
	v.sendError = ErrorConnLost
	return &v
}

// forbidden is a region of b that takes no RDMA.
func (p *pair) forbidden() AddressSegment {
	h, err := p.b.nic.RegisterMem(p.b.mem, &MemAttributes{Ptag: p.b.ptag})
	require.NoError(p.b.t, err)
	return AddressSegment{Data: AddressOf(p.b.mem), Handle: h}
}

const (
	format, protection, length = StatusFormatError, StatusProtectionError, StatusLengthError
	transport, rdmaProt        = StatusTransportError, StatusRdmaProtError
	remoteDesc, flushed        = StatusRemoteDescError, StatusDescFlushedError
	opRecv, opWrite, opRead    = StatusOpReceive, StatusOpRdmaWrite, StatusOpRdmaRead
	opRemote                   = StatusOpRemoteRdmaWrite
)

// sendTo makes d a Send of 100 octets, with a receive that change has changed.
func sendTo(change func(p *pair, r *Descriptor)) func(*pair, *Descriptor) {
	return func(p *pair, d *Descriptor) {
		r := p.b.desc()
		r.SetRecv(p.b.data(0, 100))
		change(p, r)
		p.b.postRecvOf(p.vb, r)
		d.SetSend(p.a.data(0, 100))
	}
}

func (h *host) postRecvOf(v *Vi, d *Descriptor) {
	h.t.Helper()
	require.NoError(h.t, v.PostRecv(d, h.dh))
}

// badReceive are the verdicts for a Receive Descriptor with an error of its own (10.2, bit
// 8; VA-2.5.1-M1).
func badReceive(s Status) [numLevels]*verdict {
	return [numLevels]*verdict{
		unreliable(verdict{recv: s, recvOp: opRecv}),
		broken(verdict{recv: s, recvOp: opRecv, recvError: ErrorConnLost}),
		broken(verdict{recv: s, recvOp: opRecv, recvError: ErrorConnLost, send: remoteDesc}),
	}
}

// badWrite are those for an RDMA Write without immediate data to memory that it may not
// write to, which no Receive Descriptor tells (9.9.1).
var badWrite = [numLevels]*verdict{
	unreliable(verdict{noRecv: true, sendOp: opWrite}),
	broken(verdict{noRecv: true, sendOp: opWrite, recvError: ErrorRdmaWProt}),
	broken(verdict{noRecv: true, sendOp: opWrite, recvError: ErrorRdmaWProt, send: rdmaProt}),
}

var badRead = [numLevels]*verdict{
	nil,
	broken(verdict{noRecv: true, sendOp: opRead, recvError: ErrorRdmaRProt, send: rdmaProt}),
	broken(verdict{noRecv: true, sendOp: opRead, recvError: ErrorRdmaRProt, send: rdmaProt}),
}

var remoteCases = []remoteCase{
	{"no receive", func(p *pair, d *Descriptor) { d.SetSend(p.a.data(0, 100)) }, [numLevels]*verdict{
		unreliable(verdict{noRecv: true}),
		broken(verdict{noRecv: true, recvError: ErrorRecvQEmpty}),
		broken(verdict{noRecv: true, recvError: ErrorRecvQEmpty, send: remoteDesc}),
	}},
	{"no receive for immediate data", func(p *pair, d *Descriptor) {
		d.SetRdmaWrite(p.b.at(0), p.a.data(0, 100))
		d.SetImmediate(1)
	}, [numLevels]*verdict{
		unreliable(verdict{noRecv: true, written: true, sendOp: opWrite}),
		broken(verdict{noRecv: true, written: true, sendOp: opWrite, recvError: ErrorRecvQEmpty}),
		broken(verdict{noRecv: true, written: true, sendOp: opWrite, recvError: ErrorRecvQEmpty, send: remoteDesc}),
	}},
	{"receive too short", sendTo(func(p *pair, r *Descriptor) { r.SetRecv(p.b.data(0, 99)) }), badReceive(length)},
	{"receive of nothing", sendTo(func(_ *pair, r *Descriptor) { r.SetRecv() }), badReceive(length)},
	{"receive of no handle", sendTo(func(_ *pair, r *Descriptor) { r.Data[0].Handle++ }), badReceive(protection)},
	{"receive beyond its region", sendTo(func(_ *pair, r *Descriptor) { r.Data[0].Data += hostMemory - 99 }), badReceive(protection)},
	{"receive into descriptors", sendTo(func(p *pair, r *Descriptor) {
		r.SetRecv(DataSegment{Data: AddressOf(p.b.descs), Handle: p.b.dh, Length: 100})
	}), badReceive(protection)},
	{"receive of another tag", sendTo(func(p *pair, _ *Descriptor) {
		other, err := p.b.nic.CreatePtag()
		require.NoError(p.b.t, err)
		require.NoError(p.b.t, p.b.nic.SetMemAttributes(AddressOf(p.b.mem), p.b.handle, &MemAttributes{Ptag: other}))
	}), badReceive(protection)},
	{"receive deregistered, 3.2.1", func(p *pair, d *Descriptor) {
		sendTo(func(*pair, *Descriptor) {})(p, d)
		require.NoError(p.b.t, p.b.nic.DeregisterMem(AddressOf(p.b.mem), p.b.handle))
	}, badReceive(protection)},
	{"receive with reserved bits", sendTo(func(_ *pair, r *Descriptor) { r.Control.Reserved = 1 }), badReceive(format)},
	{"receive that is a Write", sendTo(func(_ *pair, r *Descriptor) { r.Control.Control = ControlOpRdmaWrite }), badReceive(format)},

	{"write without the region's right", func(p *pair, d *Descriptor) { d.SetRdmaWrite(p.forbidden(), p.a.data(0, 100)) }, badWrite},
	{"write to no handle", func(p *pair, d *Descriptor) {
		d.SetRdmaWrite(AddressSegment{Data: AddressOf(p.b.mem), Handle: 77}, p.a.data(0, 100))
	}, badWrite},
	{"write beyond the region", func(p *pair, d *Descriptor) { d.SetRdmaWrite(p.b.at(hostMemory-99), p.a.data(0, 100)) }, badWrite},
	{"write to descriptors", func(p *pair, d *Descriptor) {
		d.SetRdmaWrite(AddressSegment{Data: AddressOf(p.b.descs), Handle: p.b.dh}, p.a.data(0, 100))
	}, badWrite},
	{"write with immediate data without the right", func(p *pair, d *Descriptor) {
		p.b.postRecv(p.vb, p.b.data(0, 100))
		d.SetRdmaWrite(p.forbidden(), p.a.data(0, 100))
		d.SetImmediate(5)
	}, [numLevels]*verdict{
		unreliable(verdict{sendOp: opWrite, recv: protection, recvOp: opRemote}),
		broken(verdict{sendOp: opWrite, recv: protection, recvOp: opRemote, recvError: ErrorConnLost}),
		broken(verdict{sendOp: opWrite, recv: protection, recvOp: opRemote, recvError: ErrorConnLost, send: rdmaProt}),
	}},
	{"read without the region's right", func(p *pair, d *Descriptor) { d.SetRdmaRead(p.forbidden(), p.a.data(0, 100)) }, badRead},
	{"read beyond the region", func(p *pair, d *Descriptor) { d.SetRdmaRead(p.b.at(hostMemory-99), p.a.data(0, 100)) }, badRead},
}

// TestRemoteErrors is the table, with the VI's own rights in place of the region's as well.
func TestRemoteErrors(t *testing.T) {
	for _, c := range remoteCases {
		for _, level := range levels {
			if v := c.levels[level]; v != nil {
				t.Run(c.name+", "+level.String(), func(t *testing.T) { c.run(t, level, v) })
			}
		}
	}
}

func (c *remoteCase) run(t *testing.T, level ReliabilityLevel, v *verdict) {
	p := newPair(t, level, Config{})
	others := newBystanders(t, p)
	fill(p.a.mem, 1)
	d := p.a.desc()
	c.arrange(p, d)
	before := bytes.Clone(p.b.mem)
	p.a.postSend(p.va, d)
	p.judge(t, d, v)
	if !v.written {
		assert.True(t, bytes.Equal(before, p.b.mem), "nothing is written")
	}
	others.check(t)
}

// judge compares what has become of d and of its receive with a verdict.
func (p *pair) judge(t *testing.T, d *Descriptor, v *verdict) {
	t.Helper()
	wait(t, p.va.SendWait, d)
	assert.Equal(t, StatusDone|v.send|v.sendOp, d.Control.Status, "send: %v", d.Control.Status)
	if !v.noRecv {
		r := wait(t, p.vb.RecvWait, nil)
		assert.Equal(t, StatusDone|v.recv|v.recvOp, r.Control.Status&^StatusImmediate, "receive: %v", r.Control.Status)
		assert.Zero(t, r.Control.Length)
	}
	if v.stays {
		if v.noRecv { // nobody is told, so ask
			require.Eventually(t, func() bool { return p.b.nic.untold.Load() == 1 }, long, time.Millisecond)
		}
		p.works(t)
		p.a.noError()
		p.b.noError()
		return
	}
	for _, end := range []struct {
		h    *host
		v    *Vi
		code ErrorCode
		bits Status // of the Descriptor, of an operation
		op   Status
	}{{p.a, p.va, v.sendError, v.send, v.sendOp}, {p.b, p.vb, v.recvError, v.recv, v.recvOp}} {
		e := end.h.waitError()
		assert.Equal(t, end.code, e.ErrorCode)
		if end.bits&(format|protection|length|rdmaProt|remoteDesc) != 0 {
			assert.Equal(t, end.op, e.OpCode, "%v", e.OpCode)
		}
		assert.Same(t, end.v, e.ViHandle)
		assert.Same(t, end.h.nic, e.NicHandle)
		assert.Equal(t, StateError, state(t, end.v))
		end.h.flushes(t, end.v)
		end.h.noError()
		require.NoError(t, end.v.Disconnect())
	}
}

// works sends a message from a to b.
func (p *pair) works(t *testing.T) {
	t.Helper()
	r := p.b.desc()
	r.SetRecv()
	p.b.postRecvOf(p.vb, r)
	d := p.a.desc()
	d.SetSend()
	p.a.postSend(p.va, d)
	wait(t, p.va.SendWait, d)
	wait(t, p.vb.RecvWait, r)
	success(t, d, StatusOpSend, 0)
	success(t, r, opRecv, 0)
}

// flushes is 5.4: what is posted in StateError completes in error.
func (h *host) flushes(t *testing.T, v *Vi) {
	t.Helper()
	d := h.desc()
	d.SetRdmaRead(h.at(0))
	h.postSend(v, d)
	wait(t, v.SendWait, d)
	assert.Equal(t, StatusDone|flushed|opRead, d.Control.Status)
	r := h.postRecv(v)
	wait(t, v.RecvWait, r)
	assert.Equal(t, StatusDone|flushed|opRecv, r.Control.Status)
}

// bystanders are two more VIs of the same Nics, connected with each other.
type bystanders struct{ pair }

func newBystanders(t *testing.T, p *pair) *bystanders {
	o := &bystanders{pair{a: p.a, b: p.b}}
	o.va, o.vb = p.a.vi(ServiceReliableReception, nil, nil), p.b.vi(ServiceReliableReception, nil, nil)
	connect(t, p.a, o.va, p.b, o.vb)
	return o
}

// check: an error of one VI touches no other.
func (o *bystanders) check(t *testing.T) {
	t.Helper()
	o.works(t)
	assert.Equal(t, StateConnected, state(t, o.va))
	assert.Equal(t, StateConnected, state(t, o.vb))
}

// TestViRights: the rights of the VI count as those of the region do (3.2.2.2).
func TestViRights(t *testing.T) {
	for _, level := range levels {
		for name, v := range map[string]*verdict{"write": badWrite[level], "read": badRead[level]} {
			if v == nil {
				continue
			}
			t.Run(name+", "+level.String(), func(t *testing.T) {
				a, b := newHost(t, Config{}), newHost(t, Config{})
				attributes := b.attributes(level)
				attributes.EnableRdmaWrite, attributes.EnableRdmaRead = false, false
				vb, err := b.nic.CreateVi(attributes, nil, nil)
				require.NoError(t, err)
				p := &pair{a: a, b: b, va: a.vi(level, nil, nil), vb: vb}
				connect(t, a, p.va, b, vb)
				d := a.desc()
				if name == "write" {
					d.SetRdmaWrite(b.at(0), a.data(0, 10))
				} else {
					d.SetRdmaRead(b.at(0), a.data(0, 10))
				}
				a.postSend(p.va, d)
				p.judge(t, d, v)
			})
		}
	}
}
