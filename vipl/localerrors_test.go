package vipl

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// localCases are errors of this end's own, each in a Descriptor of the send queue between
// two good ones.
var localCases = []struct {
	name string
	// spoil makes d a Descriptor with the error.
	spoil func(p *pair, d *Descriptor)
	want  Status
	only  ReliabilityLevel // with unreliableOnly
	once  bool
}{
	{name: "reserved bits", want: format, spoil: func(_ *pair, d *Descriptor) { d.Control.Reserved = 1 }},
	{name: "operation 3", want: format, spoil: func(_ *pair, d *Descriptor) { d.Control.Control = 3 }},
	{name: "status not zero", want: format, spoil: func(_ *pair, d *Descriptor) { d.Control.Status = StatusDone }},
	{name: "segment count", want: format, spoil: func(_ *pair, d *Descriptor) { d.Control.SegCount++ }},
	{name: "253 segments", want: format, spoil: func(_ *pair, d *Descriptor) { d.SetSend(make([]DataSegment, 253)...) }},
	{name: "write without address", want: format | opWrite, spoil: func(_ *pair, d *Descriptor) { d.Control.Control = ControlOpRdmaWrite }},
	{name: "read at Unreliable", want: format | opRead, once: true, only: ServiceUnreliable,
		spoil: func(p *pair, d *Descriptor) { d.SetRdmaRead(p.b.at(0), p.a.data(0, 1)) }}, // 2.5.1
	{name: "length", want: length, spoil: func(_ *pair, d *Descriptor) { d.Control.Length++ }},
	{name: "beyond the MTU", want: length, spoil: func(p *pair, d *Descriptor) { d.SetSend(p.a.data(0, hostMemory), p.a.data(0, 1)) }},
	{name: "no handle", want: protection, spoil: func(_ *pair, d *Descriptor) { d.Data[0].Handle = 0 }},
	{name: "beyond the region", want: protection, spoil: func(_ *pair, d *Descriptor) { d.Data[0].Data += hostMemory }},
	{name: "write from no handle", want: protection | opWrite, spoil: func(p *pair, d *Descriptor) {
		d.SetRdmaWrite(p.b.at(0), DataSegment{Handle: 3, Length: 10})
	}},
	{name: "from descriptors", want: protection, spoil: func(p *pair, d *Descriptor) {
		d.SetSend(DataSegment{Data: AddressOf(p.a.descs), Handle: p.a.dh, Length: 10})
	}},
	{name: "another tag", want: protection, spoil: func(p *pair, d *Descriptor) { // VA-9.5.1-M1
		tag, err := p.a.nic.CreatePtag()
		require.NoError(p.a.t, err)
		h, err := p.a.nic.RegisterMem(p.a.mem, &MemAttributes{Ptag: tag})
		require.NoError(p.a.t, err)
		d.Data[0].Handle = h
	}},
	{name: "deregistered, 3.2.1", want: protection, spoil: func(p *pair, d *Descriptor) {
		h, err := p.a.nic.RegisterMem(p.a.mem, &MemAttributes{Ptag: p.a.ptag})
		require.NoError(p.a.t, err)
		require.NoError(p.a.t, p.a.nic.DeregisterMem(AddressOf(p.a.mem), h))
		d.Data[0].Handle = h
	}},
}

func TestLocalErrors(t *testing.T) {
	for _, c := range localCases {
		for _, level := range levels {
			if c.once && level != c.only {
				continue
			}
			t.Run(c.name+", "+level.String(), func(t *testing.T) {
				p := newPair(t, level, Config{})
				others := newBystanders(t, p)
				for range 2 {
					p.b.postRecv(p.vb, p.b.data(0, 10))
				}
				good := func() *Descriptor { d := p.a.desc(); d.SetSend(p.a.data(0, 10)); return d }
				first, bad, last := good(), good(), good()
				c.spoil(p, bad)
				p.a.postSend(p.va, first)
				p.a.postSend(p.va, bad)
				wait(t, p.va.SendWait, first)
				success(t, first, StatusOpSend, 10) // it was posted before
				wait(t, p.va.SendWait, bad)
				assert.Equal(t, StatusDone|c.want, bad.Control.Status, "%v", bad.Control.Status)
				p.a.postSend(p.va, last)
				wait(t, p.va.SendWait, last)
				success(t, wait(t, p.vb.RecvWait, nil), opRecv, 10)
				if !level.reliable() { // 2.5.1: the error is simply reported
					success(t, last, StatusOpSend, 10)
					success(t, wait(t, p.vb.RecvWait, nil), opRecv, 10)
					others.check(t)
					p.idle(t)
					return
				}
				assert.Equal(t, StatusDone|flushed, last.Control.Status) // 2.5.2
				for _, end := range []struct {
					h  *host
					v  *Vi
					op Status
				}{{p.a, p.va, c.want.Op()}, {p.b, p.vb, 0}} {
					assert.Equal(t, ErrorDescriptor{
						NicHandle: end.h.nic, ViHandle: end.v, OpCode: end.op, ResourceCode: ResourceVi, ErrorCode: ErrorConnLost,
					}, end.h.waitError())
					assert.Equal(t, StateError, state(t, end.v))
					end.h.noError()
				}
				r := wait(t, p.vb.RecvWait, nil)
				assert.Equal(t, StatusDone|flushed|opRecv, r.Control.Status)
				others.check(t)
			})
		}
	}
}

// TestPostFaults: errors that no Descriptor tells (9.9.1), on a connected VI.
func TestPostFaults(t *testing.T) {
	for _, level := range levels {
		for _, c := range []struct {
			name string
			code ErrorCode
			res  ResourceCode
			err  Return
			do   func(p *pair) error
		}{
			{"not registered", ErrorPostDesc, ResourceDescriptor, ErrInvalidParameter, func(p *pair) error {
				return p.va.PostRecv(new(Descriptor), p.a.dh)
			}},
			{"too many", ErrorViOverrun, ResourceVi, ErrResource, func(p *pair) error {
				for range 8 {
					p.a.postRecv(p.va)
				}
				return p.va.PostRecv(p.a.desc(), p.a.dh)
			}},
		} {
			t.Run(c.name+", "+level.String(), func(t *testing.T) {
				p := newPair(t, level, Config{MaxDescriptorsPerQueue: 9})
				others := newBystanders(t, p)
				waiting := p.a.postRecv(p.va)
				require.ErrorIs(t, c.do(p), c.err)
				if level.reliable() { // 7.2, 7.3
					e := p.a.waitError()
					require.NotNil(t, e.DescriptorPtr)
					e.DescriptorPtr = nil
					assert.Equal(t, ErrorDescriptor{
						NicHandle: p.a.nic, ViHandle: p.va, OpCode: opRecv, ResourceCode: c.res, ErrorCode: c.code,
					}, e)
					assert.Equal(t, StateError, state(t, p.va))
					wait(t, p.va.RecvWait, waiting)
					assert.Equal(t, StatusDone|flushed|opRecv, waiting.Control.Status)
					assert.Equal(t, ErrorConnLost, p.b.waitError().ErrorCode)
				} else { // 7.1
					assert.Equal(t, StateConnected, state(t, p.va))
					assert.False(t, waiting.Done())
				}
				p.a.noError()
				p.b.noError()
				others.check(t)
			})
		}
	}
}

// TestCompletionProtection: the memory of a posted Descriptor goes (3.2.1, 9.9.1). Nothing
// is written to it any more.
func TestCompletionProtection(t *testing.T) {
	for _, level := range levels {
		t.Run(level.String(), func(t *testing.T) {
			p := newPair(t, level, Config{})
			others := newBystanders(t, p)
			mine := make([]Descriptor, 1)
			h, err := p.b.nic.RegisterDescriptors(mine, p.b.ptag)
			require.NoError(t, err)
			mine[0].SetRecv(p.b.data(0, 10))
			require.NoError(t, p.vb.PostRecv(&mine[0], h))
			require.NoError(t, p.b.nic.DeregisterMem(AddressOf(mine), h))
			d := p.a.desc()
			d.SetSend(p.a.data(0, 10))
			p.a.postSend(p.va, d)
			wait(t, p.vb.RecvWait, &mine[0])
			want := Descriptor{Data: mine[0].Data}
			want.Control.SegCount, want.Control.Length = 1, 10
			assert.Equal(t, want, mine[0], "as it was posted")
			if level.reliable() {
				assert.Equal(t, ErrorDescriptor{
					NicHandle: p.b.nic, ViHandle: p.vb, DescriptorPtr: &mine[0], OpCode: opRecv,
					ResourceCode: ResourceDescriptor, ErrorCode: ErrorCompProt,
				}, p.b.waitError())
				assert.Equal(t, StateError, state(t, p.vb))
				waitState(t, p.va, StateError)
			} else {
				p.b.noError()
				assert.Equal(t, StateConnected, state(t, p.vb))
			}
			others.check(t)
		})
	}
}

// TestDisconnect is 9.4.5, with work on all queues: flushed here, lost there.
func TestDisconnect(t *testing.T) {
	for _, level := range levels {
		t.Run(level.String(), func(t *testing.T) {
			a, b := newHost(t, Config{}), newHost(t, Config{})
			attributes := a.attributes(level)
			attributes.FlowControl = true // so that a Send waits
			va, err := a.nic.CreateVi(attributes, nil, nil)
			require.NoError(t, err)
			vb := b.vi(level, nil, nil)
			connect(t, a, va, b, vb)
			d := a.desc()
			d.SetSend(a.data(0, 10))
			a.postSend(va, d)
			r, far := a.postRecv(va, a.data(0, 10)), b.postRecv(vb, b.data(0, 10))
			require.NoError(t, va.Disconnect())
			require.Equal(t, StateIdle, state(t, va))
			require.Equal(t, StatusDone|flushed|opRecv, r.Control.Status)
			if d.Control.Status.Errors() != 0 { // it may have left for far meanwhile
				require.Equal(t, StatusDone|flushed, d.Control.Status&^StatusPartialError)
			}
			wait(t, va.SendWait, d)
			wait(t, va.RecvWait, r)
			a.noError() // it was this end that wanted it

			waitState(t, vb, StateError)
			wait(t, vb.RecvWait, far)
			if far.Control.Status.Errors() != 0 { // likewise
				require.Equal(t, StatusDone|flushed|opRecv, far.Control.Status)
			}
			require.NoError(t, va.DestroyVi())
		})
	}
}

// TestCompletionProtectionIdle: it goes while the VI is Idle, and Disconnect ends the wait of its
// Descriptors, which handlers take off at once. The error is told when the VI is next to be
// connected (5.1), with its Descriptor.
func TestCompletionProtectionIdle(t *testing.T) {
	h := newHost(t, Config{})
	v := h.vi(ServiceReliableDelivery, nil, nil)
	mine := make([]Descriptor, 3)
	handle, err := h.nic.RegisterDescriptors(mine, h.ptag)
	require.NoError(t, err)
	told := make(chan *Descriptor, len(mine))
	for i := range mine {
		mine[i].SetRecv(h.data(0, 10))
		require.NoError(t, v.PostRecv(&mine[i], handle))
		require.NoError(t, v.RecvNotify(func(_ *Nic, _ *Vi, d *Descriptor) { told <- d }))
	}
	require.NoError(t, h.nic.DeregisterMem(AddressOf(mine), handle))
	require.NoError(t, v.Disconnect())
	for i := range mine {
		require.Same(t, &mine[i], <-told)
	}
	h.noError()
	require.NoError(t, v.ConnectPeerRequest(t.Context(), nil, h.address("nobody"))) // reports before anything else
	for i := range mine {
		assert.Equal(t, ErrorDescriptor{
			NicHandle: h.nic, ViHandle: v, DescriptorPtr: &mine[i], OpCode: opRecv,
			ResourceCode: ResourceDescriptor, ErrorCode: ErrorCompProt,
		}, h.waitError())
	}
	require.NoError(t, v.Disconnect())
}
