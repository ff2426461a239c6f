package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// vt3_2Immediate is immediate data: VI/TCP draft 3.2.
var vt3_2Immediate = []conformance.Case{
	apiCase("3.2/vi-immediate-sent", viImmediateSent, "VT-3.2-M1", "VT-3.2-M5"),
	apiCase("3.2/vi-immediate-received", eachLevel(viImmediateReceived), "VT-3.2-M9", "PA-6.3.1.1-M1", "PA-10.2-M15"),
	apiCase("3.2/vi-immediate-differs", viImmediateDiffers, "VT-3.2-M1", "VT-3.2-M5"),
	apiCase("3.2/vi-no-immediate", viNoImmediate, "VT-3.2-M6", "PA-10.2-M15"),
	apiCase("3.2/vi-immediate-elsewhere-sent", viImmediateElsewhereSent, "VT-3.2-M2", "VT-3.2-M7", "PA-10.2-M3"),
	apiCase("3.2/vi-immediate-elsewhere-received", viImmediateElsewhereReceived, "VT-3.2-M2", "VT-3.2-M8"),
}

// viImmediateSent sends messages of several segments, and of none of payload.
func viImmediateSent(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, nic: vipl.Config{Segment: 256}})
	for _, n := range []int{0, 1, 1000} {
		for _, kind := range []byte{viSend, viWrite} {
			t.Part("type %d of %d octets", kind, n)
			d := r.desc()
			d.SetSend(r.data(0, n))
			if kind == viWrite {
				d.SetRdmaWrite(vipl.AddressSegment{Data: 1, Handle: 1}, r.data(0, n))
			}
			d.SetImmediate(0xCAFE0001)
			r.post(r.v, d)
			parts, payload := r.whole(kind)
			require.Equal(t, r.mem[:n], payload)
			require.Equal(t, n > 256, len(parts) > 1)
			for i, s := range parts {
				assert.NotZero(t, s.flags&viImmediate, "Immediate Data Valid of segment %d", i)
				assert.Equal(t, uint32(0xCAFE0001), s.immediate, "of segment %d", i)
			}
		}
	}
}

// viImmediateReceived sends immediate data in a Send, in an empty one, and in RDMA Writes.
func viImmediateReceived(t *conformance.T, l viLevel) {
	r := newVIRig(t, viSetup{level: l.level, receives: 4})
	parts := func(s viSegment, payload string) {
		s = r.message(s)
		s.flags |= viImmediate
		for i := range payload {
			s.offset, s.payload = uint32(i), []byte(payload[i:i+1])
			if i == len(payload)-1 {
				s.flags |= viLast
			}
			r.put(s)
		}
		if payload == "" {
			s.flags |= viLast
			r.put(s)
		}
	}
	parts(viSegment{kind: viSend, immediate: 1}, "parts")
	parts(viSegment{kind: viSend, immediate: 0xFFFFFFFE}, "")
	parts(viSegment{kind: viWrite, immediate: 3, rdma: r.at(5, 4)}, "four")
	parts(viSegment{kind: viWrite, immediate: 0, rdma: r.at(0, 0)}, "")
	for i, want := range []struct {
		immediate, op, length uint32
	}{{1, viOpReceive, 5}, {0xFFFFFFFE, viOpReceive, 0}, {3, viOpRemoteWrite, 0}, {0, viOpRemoteWrite, 0}} {
		d := r.receives[i]
		r.received(r.v, d, viDone|viHasImmediate|want.op)
		require.Equal(t, want.immediate, d.Control.ImmediateData)
		require.Equal(t, want.length, d.Control.Length)
		require.NotZero(t, d.Control.Control&vipl.ControlImmediate)
	}
	require.Equal(t, "four", string(r.mem[5:9]))
}

// viImmediateDiffers sends messages whose segments do not agree.
func viImmediateDiffers(t *conformance.T) {
	for _, second := range named(t, "%s", map[string]viSegment{
		"flag only in the first":   {flags: viLast, immediate: 5},
		"another value afterwards": {flags: viLast | viImmediate, immediate: 6},
	}) {
		r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, receives: 1})
		first := r.message(viSegment{kind: viSend, flags: viImmediate, immediate: 5, payload: []byte("a")})
		second.kind, second.number, second.offset, second.payload = viSend, first.number, 1, []byte("b")
		r.put(first)
		r.put(second)
		must(r.v.RecvWait(t.Context()))(t)
		require.NotZero(t, r.receives[0].Control.Status.Errors(), "the message is not whole")
		r.over()
	}
}

// viNoImmediate sends a Descriptor with something in its field but without the bit.
func viNoImmediate(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, receives: 1, nic: vipl.Config{Segment: 256}})
	for _, kind := range []byte{viSend, viWrite} {
		d := r.desc()
		d.SetSend(r.data(0, 600))
		if kind == viWrite {
			d.SetRdmaWrite(vipl.AddressSegment{Data: 1, Handle: 1}, r.data(0, 600))
		}
		d.Control.ImmediateData = 0x5EC2E7
		r.post(r.v, d)
		parts, _ := r.whole(kind)
		for i, s := range parts {
			assert.Zero(t, s.flags&viImmediate, "the flag of segment %d", i)
			assert.Zero(t, s.immediate, "the field of segment %d", i)
		}
	}
	t.Part("received")
	r.put(r.message(viSegment{kind: viSend, flags: viLast, immediate: 77}))
	r.received(r.v, r.receives[0], viDone|viOpReceive)
	require.Zero(t, r.receives[0].Control.Control&vipl.ControlImmediate)
}

// viImmediateElsewhereSent looks at requests and answers of RDMA Reads and at NOPs.
func viImmediateElsewhereSent(t *conformance.T) {
	r := newVIRig(t, viSetup{
		level: vipl.ServiceReliableDelivery,
		ce:    func(c *viCE) { c.attributes |= viFlowControl },
	})
	none := func(s viSegment) {
		assert.Zero(t, s.flags&viImmediate, "%v", &s)
		assert.Zero(t, s.immediate, "%v", &s)
	}
	none(r.accept)
	d := r.desc()
	d.SetRdmaRead(vipl.AddressSegment{Data: 1, Handle: 1}, r.data(0, 4))
	d.SetImmediate(99)
	r.post(r.v, d)
	s := r.get(viReadRequest)
	none(s)
	r.put(viSegment{kind: viReadResponse, flags: viLast, number: s.number, payload: []byte("four")})
	r.sent(r.v, d, viDone|viOpRead)
	r.put(r.message(viSegment{kind: viReadRequest, flags: viLast | viImmediate, immediate: 98, rdma: r.at(0, 4)}))
	none(r.get(viReadResponse))
	r.recv(r.v, r.data(0, 4))
	none(r.get(viNOP))
}

// viImmediateElsewhereReceived sets flag and field in types that have no immediate data.
func viImmediateElsewhereReceived(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableReception, receives: 1})
	d := r.reads(r.v, vipl.AddressSegment{Data: 1, Handle: 1}, r.data(0, 4))
	n := r.get(viReadRequest).number
	r.put(viSegment{kind: viReadResponse, flags: viLast | viImmediate, immediate: 9, number: n, payload: []byte("four")})
	r.sent(r.v, d, viDone|viOpRead)
	require.Equal(t, uint32(4), d.Control.Length)
	r.put(r.message(viSegment{kind: viReadRequest, flags: viLast | viImmediate, immediate: 9, rdma: r.at(0, 4)}))
	require.Equal(t, "four", string(r.answer(r.number)))
	r.put(viSegment{kind: viNOP, flags: viLast | viImmediate, immediate: 9, number: r.number})
	r.takes("the first that needs a receive", r.receives[0], viDone|viOpReceive)
	require.Equal(t, "the first", string(r.slot(0)[:9]))
}
