package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// vt3_2Ack is Message ACK and Remote Error Code: VI/TCP draft 3.2.
var vt3_2Ack = []conformance.Case{
	apiCase("3.2/vi-ack-completes", viACKCompletes, "VT-3.2-M12", "PA-2.5.3-M1"),
	apiCase("3.2/vi-ack-sent", viACKSent, "VT-3.2-M12", "VT-3.2-S3", "PA-2.5.3-M1", "PT-3.2-M10"),
	apiCase("3.2/vi-ack-ignored", viACKIgnored, "VT-3.2-M13", "VT-3.2-S4", "VT-3.2-S5"),
	apiCase("3.2/vi-error-code-received", viCodeReceived, "VT-3.2-M15"),
	apiCase("3.2/vi-error-code-sent", viCodeSent, "VT-3.2-M15", "PT-3.2-M11"),
	apiCase("3.2/vi-error-code-ignored", viCodeIgnored, "VT-3.2-M16"),
	apiCase("3.2/vi-specific-code", onVIHost(viSpecificCode), "VT-3.2-M14"),
}

// viACKCompletes sends at Reliable Reception: what has left is not done before its ACK.
func viACKCompletes(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableReception})
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

// acked is what a segment says of the peer's messages.
func acked(s viSegment) []uint32 { return []uint32{s.ack, uint32(s.code)} }

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
