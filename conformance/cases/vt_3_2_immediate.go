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

// vt3_2Ack is Message ACK and Remote Error Code: VI/TCP draft 3.2.
var vt3_2Ack = []conformance.Case{
	apiCase("3.2/vi-ack-completes", onVI(vipl.ServiceReliableReception, viACKCompletes), "VT-3.2-M12", "PA-2.5.3-M1"),
	apiCase("3.2/vi-ack-sent", viACKSent, "VT-3.2-M12", "VT-3.2-S3", "PA-2.5.3-M1", "PT-3.2-M10"),
	apiCase("3.2/vi-ack-ignored", viACKIgnored, "VT-3.2-M13", "VT-3.2-S4", "VT-3.2-S5"),
	apiCase("3.2/vi-error-code-received", viCodeReceived, "VT-3.2-M15"),
	apiCase("3.2/vi-error-code-sent", viCodeSent, "VT-3.2-M15", "PT-3.2-M11"),
	apiCase("3.2/vi-error-code-ignored", viCodeIgnored, "VT-3.2-M16"),
	apiCase("3.2/vi-specific-code", onVIHost(viSpecificCode), "VT-3.2-M14"),
}

// viACKCompletes sends at Reliable Reception: what has left is not done before its ACK.
func viACKCompletes(t *conformance.T, r *viRig) {
	first := r.sends(r.v, r.data(0, 1))
	second := r.writes(r.v, vipl.AddressSegment{Data: 1, Handle: 1}, r.data(0, 1))
	third := r.sends(r.v, r.data(0, 1))
	numbers := []uint32{r.get(viSend).number, r.get(viWrite).number, r.get(viSend).number}
	ack := r.subject
	probe := func() { // the VI has dealt with what has left when it answers
		for range 2 {
			r.put(r.message(viSegment{kind: viReadRequest, flags: viLast, ack: ack, rdma: r.at(0, 1)}))
			r.answer(r.number)
		}
		r.notDone(r.v.SendDone)
	}
	probe()
	ack = numbers[1]
	r.nop(viSegment{ack: ack})
	r.sent(r.v, first, viDone)
	r.sent(r.v, second, viDone|viOpWrite)
	probe()
	r.nop(viSegment{ack: numbers[2] + 1}) // of a message that there is not yet
	probe()
	ack = numbers[2]
	r.nop(viSegment{ack: ack})
	r.sent(r.v, third, viDone)
}

// viACKSent receives messages at Reliable Reception: each is acknowledged, when its data
// and completion are there, by whatever is sent.
func viACKSent(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableReception, receives: 2})
	last := r.number
	r.sends(r.v, r.data(0, 1))
	require.Equal(t, last, r.get(viSend).ack, "the ConnectRequest")
	last = r.send("one")
	require.Equal(t, []uint32{last, 0}, acked(r.get(viNOP)))
	assert.True(t, r.receives[0].Done(), "the completion is written")
	assert.Equal(t, "one", string(r.slot(0)[:3]))
	last = r.rdmaWrite(r.at(10, 0), "two")
	require.Equal(t, []uint32{last, 0}, acked(r.get(viNOP)))
	assert.Equal(t, "two", string(r.mem[10:13]))
	last = r.rdmaRead(r.at(10, 3))
	require.Equal(t, "two", string(r.answer(last)))
	require.Equal(t, []uint32{last, 0}, acked(r.get(viNOP)))
	r.sends(r.v, r.data(0, 1))
	require.Equal(t, []uint32{last, 0}, acked(r.get(viSend)))
}

// viACKIgnored has the peer's ACKs be nonsense, at the other levels.
func viACKIgnored(t *conformance.T) {
	for _, l := range viLevels[:2] {
		t.Part("%s", l.name)
		r := newVIRig(t, viSetup{level: l.level, receives: 1})
		d := r.sends(r.v, r.data(0, 1))
		s := r.get(viSend)
		r.sent(r.v, d, viDone)
		assert.Equal(t, []uint32{0, 0}, acked(s), "what the VI says itself")
		for _, ack := range []uint32{0, s.number + 1, s.number, 0xFFFFFFFF} {
			r.nop(viSegment{ack: ack})
		}
		d = r.sends(r.v, r.data(0, 1))
		assert.Equal(t, []uint32{0, 0}, acked(r.get(viSend)))
		r.sent(r.v, d, viDone)
		r.send("x")
		r.received(r.v, r.receives[0], viDone|viOpReceive)
		require.Equal(t, vipl.StateConnected, r.state(r.v))
	}
}

// viCodeReceived has the peer report errors at Reliable Reception.
func viCodeReceived(t *conformance.T) {
	to := vipl.AddressSegment{Data: 1, Handle: 1}
	for c := range inTurn(t, "%s", []struct {
		name         string
		code, status uint32
		write        bool
	}{
		{name: "no receive", code: viDescriptorCode, status: viRemoteDescriptor},
		{name: "memory protection", code: viProtectionCode, status: viRemoteProtection | viOpWrite, write: true},
		{name: "transport", code: viTransportCode, status: viTransport},
	}) {
		r := newVIRig(t, viSetup{level: vipl.ServiceReliableReception})
		good := r.sends(r.v, r.data(0, 1))
		bad := r.desc()
		bad.SetSend(r.data(0, 1))
		if c.write {
			bad.SetRdmaWrite(to, r.data(0, 1))
		}
		r.post(r.v, bad)
		behind := r.sends(r.v, r.data(0, 1))
		r.get(viSend)
		n := r.next().number
		r.get(viSend)
		r.nop(viSegment{ack: n, code: uint16(c.code)})
		r.sent(r.v, good, viDone)
		r.sent(r.v, bad, viDone|c.status)
		r.sent(r.v, behind, viDone|viFlushed)
		require.Equal(t, vipl.StateError, r.state(r.v))
		r.over()
	}
	t.Part("of no message in flight")
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableReception})
	first, second := r.sends(r.v, r.data(0, 1)), r.sends(r.v, r.data(0, 1))
	r.get(viSend)
	r.nop(viSegment{ack: r.get(viSend).number + 1, code: uint16(viTransportCode)})
	r.sent(r.v, first, viDone|viTransport)
	r.sent(r.v, second, viDone|viFlushed)
	require.Equal(t, vipl.StateError, r.state(r.v))
	r.over()
}

// viCodeSent meets errors at Reliable Reception, and is told of them.
func viCodeSent(t *conformance.T) {
	for c := range inTurn(t, "%s", []struct {
		name string
		code uint32
		do   func(*viRig)
	}{
		{"no receive", viDescriptorCode, func(r *viRig) { r.send("x") }},
		{"receive too small", viDescriptorCode, func(r *viRig) {
			r.recv(r.v, r.data(0, 1))
			r.send("two")
		}},
		{"receive outside of memory", viDescriptorCode, func(r *viRig) {
			r.recv(r.v, vipl.DataSegment{Data: 1, Handle: r.handle, Length: 9})
			r.send("two")
		}},
		{"RDMA Write to no memory", viProtectionCode, func(r *viRig) { r.rdmaWrite(viRDMA{address: 1, handle: 1}, "x") }},
		{"aborted", viTransportCode, func(r *viRig) {
			r.recv(r.v, r.data(0, 9))
			r.put(r.message(viSegment{kind: viSend, flags: viLast | viError}))
		}},
	}) {
		r := newVIRig(t, viSetup{level: vipl.ServiceReliableReception})
		c.do(r)
		require.Equal(t, []uint32{r.number, c.code}, acked(r.last()))
		r.becomes(r.v, vipl.StateError)
	}
	t.Part("a number out of turn")
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableReception, receives: 2})
	want := r.number + 1
	s := r.message(viSegment{kind: viSend, flags: viLast})
	s.number++
	r.put(s)
	require.Equal(t, []uint32{want, viTransportCode}, acked(r.last()), "all before it count as received")
}

// viCodeIgnored has the peer report errors at the other levels.
func viCodeIgnored(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[:2]) {
		r := newVIRig(t, viSetup{level: l.level, receives: 1})
		d := r.sends(r.v, r.data(0, 1))
		n := r.get(viSend).number
		for code := uint16(1); code < 8; code++ {
			r.nop(viSegment{ack: n, code: code})
			r.nop(viSegment{ack: n + 1, code: code})
		}
		r.sent(r.v, d, viDone)
		r.takes("x", r.receives[0], viDone|viOpReceive)
		r.sent(r.v, r.sends(r.v, r.data(0, 1)), viDone)
		require.Equal(t, vipl.StateConnected, r.state(r.v))
	}
}

// viSpecificCode has requests rejected for various reasons: who finds an implementation
// specific code finds the request's number beside it.
func viSpecificCode(t *conformance.T, h *viHost) {
	some := 0
	for _, change := range named(t, "%s", map[string]func(*viCE){
		"two levels":    func(c *viCE) { c.attributes |= viUnreliable },
		"no MTU":        func(c *viCE) { c.mtu = 0 },
		"by the server": nil,
	}) {
		p, ce := dialVI(t, h), viPeerCE(vipl.ServiceReliableDelivery, "server")
		if change != nil {
			change(&ce)
		}
		p.asks(ce)
		if change == nil {
			c := must(h.nic.ConnectWait(t.Context(), h.address("server")))(t)
			require.NoError(t, c.ConnectReject())
		}
		s := p.get(viReject)
		if s.code>>8 != 0 {
			some++
			require.Equal(t, p.number, s.ack, "Message ACK beside code %#x", s.code)
		}
		p.over()
	}
	require.NotZero(t, some, "codes seen")
}
