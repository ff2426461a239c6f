package vipl

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// fill gives memory recognisable octets.
func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i)*7 + byte(i>>8) + seed
	}
}

func eachLevel(t *testing.T, run func(t *testing.T, level ReliabilityLevel, c Config)) {
	for _, level := range levels {
		for name, c := range map[string]Config{"": {}, ", CRC": {CRC: true}, ", segments of 256": {Segment: 256}} {
			t.Run(level.String()+name, func(t *testing.T) { run(t, level, c) })
		}
	}
}

// success expects a Descriptor that completed without error.
func success(t *testing.T, d *Descriptor, op Status, length int) {
	t.Helper()
	require.Equal(t, StatusDone|op, d.Control.Status&^StatusImmediate, "%v", d.Control.Status)
	require.EqualValues(t, length, d.Control.Length)
}

func TestSend(t *testing.T) {
	eachLevel(t, func(t *testing.T, level ReliabilityLevel, c Config) {
		p := newPair(t, level, c)
		fill(p.a.mem, 1)
		for _, x := range []struct {
			name      string
			segs      []DataSegment
			sinks     []DataSegment
			immediate bool
			want      int
		}{
			{"nothing at all", nil, nil, false, 0},
			{"immediate data only", nil, nil, true, 0},
			{"a zero-length segment of nowhere", []DataSegment{{}}, nil, false, 0},
			{"one octet", []DataSegment{p.a.data(5, 1)}, []DataSegment{p.b.data(0, 1)}, true, 1},
			{"gather and scatter", []DataSegment{p.a.data(0, 3), p.a.data(0, 0), p.a.data(100, 1000)},
				[]DataSegment{p.b.data(10, 500), p.b.data(0, 0), p.b.data(510, 7), p.b.data(517, 496)}, true, 1003},
			{"more room than needed", []DataSegment{p.a.data(0, 30)}, []DataSegment{p.b.data(0, 3000)}, false, 30},
			{"300 KB", []DataSegment{p.a.data(0, 300_000)}, []DataSegment{p.b.data(0, 300_000)}, false, 300_000},
			{"the whole MTU", []DataSegment{p.a.data(0, hostMemory)}, []DataSegment{p.b.data(0, hostMemory)}, false, hostMemory},
		} {
			r := p.b.desc()
			r.SetRecv(x.sinks...)
			r.SetImmediate(9) // ignored, and the bit is set or cleared (10.2, bit 2)
			p.b.postRecvOf(p.vb, r)
			s := p.a.desc()
			s.SetSend(x.segs...)
			if x.immediate {
				s.SetImmediate(0xCAFE0001)
			}
			p.a.postSend(p.va, s)
			wait(t, p.va.SendWait, s)
			wait(t, p.vb.RecvWait, r)
			success(t, s, StatusOpSend, x.want)
			success(t, r, StatusOpReceive, x.want)
			require.Equal(t, x.immediate, r.Control.Status&StatusImmediate != 0, x.name)
			require.Equal(t, x.immediate, r.Control.Control&ControlImmediate != 0, x.name)
			if x.immediate {
				require.Equal(t, uint32(0xCAFE0001), r.Control.ImmediateData)
			}
			require.Equal(t, gather(p.a.mem, p.a, x.segs), gather(p.b.mem, p.b, x.sinks)[:x.want], x.name)
		}
		p.idle(t)
	})
}

// gather is what data segments name.
func gather(mem []byte, h *host, segs []DataSegment) []byte {
	var b []byte
	for _, s := range segs {
		if s.Length > 0 {
			off := s.Data - AddressOf(h.mem)
			b = append(b, mem[off:off+Address(s.Length)]...)
		}
	}
	if b == nil {
		b = []byte{}
	}
	return b
}

// idle disconnects both and expects that nothing has been said about errors but the loss
// that one of them sees.
func (p *pair) idle(t *testing.T) {
	t.Helper()
	p.a.noError()
	p.b.noError()
	require.Equal(t, StateConnected, state(t, p.va))
	require.Equal(t, StateConnected, state(t, p.vb))
	require.NoError(t, p.va.Disconnect())
	waitState(t, p.vb, StateError) // VT-2.2.2.2.2-M2
	require.Equal(t, ErrorConnLost, p.b.waitError().ErrorCode)
	require.NoError(t, p.vb.Disconnect())
	require.NoError(t, p.va.DestroyVi())
	require.NoError(t, p.vb.DestroyVi())
}

// TestManySegments sends and receives with 252 segments (VA-10.4-M1).
func TestManySegments(t *testing.T) {
	p := newPair(t, ServiceReliableDelivery, Config{})
	fill(p.a.mem, 2)
	var from, to []DataSegment
	for i := range 252 {
		from = append(from, p.a.data(i*1000, i))
		to = append(to, p.b.data(i*2000, 251-i))
	}
	r := p.b.postRecv(p.vb, to...)
	s := p.a.desc()
	s.SetSend(from...)
	p.a.postSend(p.va, s)
	wait(t, p.vb.RecvWait, r)
	success(t, r, StatusOpReceive, 252*251/2)
	require.Equal(t, gather(p.a.mem, p.a, from), gather(p.b.mem, p.b, to))
}

func TestRdmaWrite(t *testing.T) {
	eachLevel(t, func(t *testing.T, level ReliabilityLevel, c Config) {
		p := newPair(t, level, c)
		fill(p.a.mem, 3)
		w := p.a.desc()
		w.SetRdmaWrite(p.b.at(1000), p.a.data(0, 50_000), p.a.data(60_000, 7))
		p.a.postSend(p.va, w)
		wait(t, p.va.SendWait, w)
		success(t, w, StatusOpRdmaWrite, 50_007)

		r := p.b.postRecv(p.vb, p.b.data(0, 10))
		w = p.a.desc()
		w.SetRdmaWrite(p.b.at(51_007), p.a.data(70_000, 9))
		w.SetImmediate(77)
		p.a.postSend(p.va, w)
		wait(t, p.vb.RecvWait, r) // consumed, so all before is there too
		wait(t, p.va.SendWait, w)
		success(t, w, StatusOpRdmaWrite, 9)
		success(t, r, StatusOpRemoteRdmaWrite, 0)
		require.NotZero(t, r.Control.Status&StatusImmediate)
		require.EqualValues(t, 77, r.Control.ImmediateData)
		want := append(append(bytes.Clone(p.a.mem[:50_000]), p.a.mem[60_000:60_007]...), p.a.mem[70_000:70_009]...)
		require.Equal(t, want, p.b.mem[1000:1000+50_016])
		require.Equal(t, make([]byte, 1000), p.b.mem[:1000])
		require.Equal(t, make([]byte, 1000), p.b.mem[51_016:52_016])
		p.idle(t)
	})
}

func TestRdmaRead(t *testing.T) {
	eachLevel(t, func(t *testing.T, level ReliabilityLevel, c Config) {
		if !level.reliable() {
			return // a format error there, see TestLocalErrors
		}
		p := newPair(t, level, c)
		fill(p.b.mem, 4)
		var ds []*Descriptor
		for i := range 20 { // more than the window of 16
			d := p.a.desc()
			d.SetRdmaRead(p.b.at(i*5000), p.a.data(i*5000, 3000), p.a.data(i*5000+3000, 2000))
			ds = append(ds, p.a.postSend(p.va, d))
			s := p.a.desc() // may pass it, but is dequeued after it
			s.SetSend()
			p.b.postRecv(p.vb)
			if i%2 == 0 {
				s.Fence()
			}
			ds = append(ds, p.a.postSend(p.va, s))
		}
		for i, d := range ds {
			wait(t, p.va.SendWait, d) // 6.3.1.1
			if i%2 == 0 {
				success(t, d, StatusOpRdmaRead, 5000)
			} else {
				success(t, d, StatusOpSend, 0)
				wait(t, p.vb.RecvWait, nil)
			}
		}
		require.Equal(t, p.b.mem[:100_000], p.a.mem[:100_000])
		p.idle(t)
	})
}

// TestFence is VA-6.3.1.2-M1: a Write behind a Read of the same memory, in both directions.
func TestFence(t *testing.T) {
	p := newPair(t, ServiceReliableDelivery, Config{})
	for i := range 50 {
		fill(p.b.mem[:10_000], byte(i))
		want := bytes.Clone(p.b.mem[:10_000])
		read, send := p.a.desc(), p.a.desc()
		read.SetRdmaRead(p.b.at(0), p.a.data(0, 10_000))
		send.SetRdmaWrite(p.b.at(20_000), p.a.data(0, 10_000)) // what was read
		send.Fence()
		send.SetImmediate(1)
		r := p.b.postRecv(p.vb)
		p.a.postSend(p.va, read)
		p.a.postSend(p.va, send)
		wait(t, p.vb.RecvWait, r)
		require.Equal(t, want, p.b.mem[20_000:30_000])
		wait(t, p.va.SendWait, read)
		wait(t, p.va.SendWait, send)
	}
}

// TestCompletionQueues: both queues of both ends on CQs; each entry is a Descriptor.
func TestCompletionQueues(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{})
	qa, qb := a.cq(2048), b.cq(2048)
	va, vb := a.vi(ServiceReliableReception, qa, qa), b.vi(ServiceReliableReception, nil, qb)
	connect(t, a, va, b, vb)
	const n = 500
	for range n {
		b.postRecv(vb, b.data(0, 64))
	}
	for range n {
		d := a.desc()
		d.SetSend(a.data(0, 64))
		a.postSend(va, d)
	}
	ctx, cancel := TimeoutContext(t.Context(), 30_000)
	defer cancel()
	for range n {
		v, recv, err := qa.CQWait(ctx)
		require.NoError(t, err)
		require.Same(t, va, v)
		require.False(t, recv)
		d, err := v.SendDone()
		require.NoError(t, err)
		success(t, d, StatusOpSend, 64)
		v, recv, err = qb.CQWait(ctx)
		require.NoError(t, err)
		require.Same(t, vb, v)
		require.True(t, recv)
		d, err = v.RecvDone()
		require.NoError(t, err)
		success(t, d, StatusOpReceive, 64)
	}
}

// TestFlowControl: a Send ahead of its receive (VI/TCP 2.2.1), at the level that would
// break.
func TestFlowControl(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{})
	attributes := a.attributes(ServiceReliableDelivery)
	attributes.FlowControl = true
	va, err := a.nic.CreateVi(attributes, nil, nil)
	require.NoError(t, err)
	vb := b.vi(ServiceReliableDelivery, nil, nil)
	first := b.postRecv(vb, b.data(0, 8)) // told when the connection is made
	connect(t, a, va, b, vb)
	var sent []*Descriptor
	for i := range 10 {
		d := a.desc()
		d.SetSend(a.data(i, 1))
		sent = append(sent, a.postSend(va, d))
	}
	wait(t, va.SendWait, sent[0])
	wait(t, vb.RecvWait, first)
	_, err = va.SendDone()
	require.ErrorIs(t, err, ErrNotDone)
	for i := 1; i < 10; i++ {
		r := b.postRecv(vb, b.data(0, 8))
		wait(t, vb.RecvWait, r)
		wait(t, va.SendWait, sent[i])
		success(t, r, StatusOpReceive, 1)
	}
	a.noError()
	b.noError()
}
