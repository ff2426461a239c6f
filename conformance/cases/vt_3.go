package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// vt3 is the form of segments: VI/TCP draft 3 to 3.2.
var vt3 = []conformance.Case{
	apiCase("3/vi-rdma-header", viRDMAHeader, "VT-3-M1", "PT-3-M1"),
	apiCase("3/vi-ce-header", viCEHeader, "VT-3-M2", "PT-3-M1"),
	strict(apiCase("3.2/vi-version", eachLevel(viVersion), "VT-3.2-S1")),
	apiCase("3.2/vi-transmit-error", eachLevel(viTransmitError), "VT-3.2-M3"),
	apiCase("3.2/vi-transmit-error-write", onVI(vipl.ServiceReliableDelivery, viTransmitErrorWrite), "VT-3.2-M3"),
	apiCase("3.2/vi-single-segment", viSingleSegment, "VT-3.2-M4"),
	apiCase("3.2/vi-flow-control", viFlowControlled, "VT-3.2-M10"),
	apiCase("3.2/vi-nop-number", viNOPNumber, "VT-3.2-M11", "PT-3.2-M9"),
}

// viRDMAHeader looks at the RDMA headers that the VI sends, and sends segments without.
func viRDMAHeader(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, nic: vipl.Config{Segment: 256}})
	to := vipl.AddressSegment{Data: 0x123456789ABCDEF0, Handle: 0xA1B2C3D4}
	r.writes(r.v, to, r.data(0, 500), r.data(600, 100))
	parts, payload := r.whole(viWrite)
	require.Equal(t, append(append([]byte(nil), r.mem[:500]...), r.mem[600:700]...), payload)
	require.Greater(t, len(parts), 2)
	for _, s := range parts {
		require.Equal(t, viRDMA{0x123456789ABCDEF0, 0xA1B2C3D4, 600}, s.rdma)
	}
	r.reads(r.v, to, r.data(0, 300))
	require.Equal(t, viRDMA{0x123456789ABCDEF0, 0xA1B2C3D4, 300}, r.get(viReadRequest).rdma)
	for kind := range inTurn(t, "type %d without a header", []byte{viWrite, viReadRequest}) {
		r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery})
		r.put(r.message(viSegment{kind: kind, flags: viLast, bare: true}))
		r.over()
		r.becomes(r.v, vipl.StateError)
	}
}

// viCEHeader looks at the CE headers of both ends, and sends a ConnectRequest without.
func viCEHeader(t *conformance.T) {
	r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{ReadWindow: 9})
	want := viCE{
		attributes: viDelivery | viWriteEnable | viReadEnable, mtu: viMemory, window: 9,
		calling: "client", called: "server", options: viEndOfOptions,
	}
	require.Equal(t, want, r.req.ce, "of the ConnectRequest")

	p := newVIRig(t, viSetup{level: vipl.ServiceReliableReception, ce: func(c *viCE) { c.window = 3 }})
	want.attributes, want.window = viReception|viWriteEnable|viReadEnable, 3
	require.Equal(t, want, p.accept.ce, "of the ConnectAccept")

	bare := dialVI(t, p.viHost)
	bare.put(bare.message(viSegment{kind: viRequest, flags: viLast, bare: true}))
	bare.over()
}

// viVersion sends another version.
func viVersion(t *conformance.T, l viLevel) {
	r := newVIRig(t, viSetup{level: l.level, receives: 1})
	r.sends(r.v, r.data(0, 1))
	r.get(viSend) // which is read only if its version is 1
	r.put(r.message(viSegment{kind: viSend, flags: viLast, version: 2}))
	r.over()
	r.received(r.v, r.receives[0], viDone|viFlushed|viOpReceive)
}

// viTransmitError sets the bit in one of two segments of a Send.
func viTransmitError(t *conformance.T, l viLevel) {
	for bad := range counted(t, "segment %d", 2) {
		r := newVIRig(t, viSetup{level: l.level, receives: 2})
		first := r.message(viSegment{kind: viSend, payload: []byte("one")})
		second := viSegment{kind: viSend, flags: viLast, number: first.number, offset: 3, payload: []byte("two")}
		for i, s := range []viSegment{first, second} {
			if i == bad {
				s.flags |= viError
			}
			_, _ = r.conn.Write(s.octets(false)) // it may have closed by the second
		}
		r.received(r.v, r.receives[0], viDone|viPartial|viOpReceive)
		if l.level == vipl.ServiceUnreliable {
			r.takes("good", r.receives[1], viDone|viOpReceive)
			continue
		}
		r.received(r.v, r.receives[1], viDone|viFlushed|viOpReceive)
		require.Equal(t, vipl.StateError, r.state(r.v))
	}
}

// viTransmitErrorWrite sets the bit in an RDMA Write: no Descriptor tells, so the error
// handler does.
func viTransmitErrorWrite(t *conformance.T, r *viRig) {
	r.put(r.message(viSegment{kind: viWrite, rdma: r.at(0, 8), payload: []byte("half")}))
	r.put(viSegment{kind: viWrite, flags: viLast | viError, number: r.number, offset: 4, rdma: r.at(0, 8)})
	r.reported(r.v, vipl.ErrorRdmaWAbort, viOpRemoteWrite)
	r.over()

	t.Part("the answer to an RDMA Read")
	r = newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery})
	d := r.reads(r.v, vipl.AddressSegment{Data: 1, Handle: 1}, r.data(0, 8))
	n := r.get(viReadRequest).number
	r.put(viSegment{kind: viReadResponse, flags: viLast | viError, number: n})
	r.sent(r.v, d, viDone|viRemoteProtection|viOpRead)
	require.Equal(t, vipl.StateError, r.state(r.v))
}

// viSingleSegment sends requests in parts, and looks whether those of the VI are whole.
func viSingleSegment(t *conformance.T) {
	r := newVIRig(t, viSetup{
		level: vipl.ServiceReliableReception, receives: 1, nic: vipl.Config{Segment: 256},
		ce: func(c *viCE) { c.attributes |= viFlowControl },
	})
	whole := func(s viSegment) {
		require.Equal(t, []any{byte(viLast), uint32(0)}, []any{s.flags & viLast, s.offset}, "%v", &s)
	}
	whole(r.accept)
	r.reads(r.v, vipl.AddressSegment{Data: 1, Handle: 1}, r.data(0, 5000))
	whole(r.get(viReadRequest))
	r.send("x")
	for _, s := range []viSegment{
		{kind: viReadRequest, rdma: r.at(0, 8)},
		{kind: viReadRequest, flags: viLast, offset: 8, rdma: r.at(0, 8)},
	} {
		t.Part("%v", &s)
		r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery})
		r.put(r.message(s))
		r.over()
		r.becomes(r.v, vipl.StateError)
	}
	t.Part("a ConnectRequest in parts")
	p := dialVI(t, r.viHost)
	p.put(p.message(viSegment{kind: viRequest, ce: viPeerCE(vipl.ServiceReliableDelivery, "server")}))
	p.over()
}

// viFlowControlled has Sends wait until the peer has receives for them.
func viFlowControlled(t *conformance.T) {
	r := newVIRig(t, viSetup{
		level: vipl.ServiceReliableDelivery,
		vi:    func(a *vipl.ViAttributes) { a.FlowControl = true },
	})
	require.NotZero(t, r.accept.ce.attributes&viFlowControl, "Descriptor Flow Control Enabled")
	to := vipl.AddressSegment{Data: 0x1000, Handle: 1}
	free := r.writes(r.v, to, r.data(0, 1)) // consumes nothing
	first := r.sends(r.v, r.data(0, 2))
	behind := r.desc()
	behind.SetRdmaWrite(to, r.data(0, 3))
	behind.SetImmediate(1)
	r.post(r.v, behind)
	r.get(viWrite)
	r.sent(r.v, free, viDone|viOpWrite)
	silent := func(what string) {
		for range 3 { // what may be sent would come between the answers
			r.answer(r.rdmaRead(r.at(0, 8)))
		}
		require.ErrorIs(t, second(r.v.SendDone()), vipl.ErrNotDone, what)
	}
	silent("no receive at the peer")
	// The answers above told nothing: the count is zero still.
	r.nop(viSegment{posted: 1})
	r.get(viSend)
	r.sent(r.v, first, viDone)
	p := func(s viSegment) { s.posted = 1; r.put(r.message(s)) }
	for range 3 {
		p(viSegment{kind: viReadRequest, flags: viLast, rdma: r.at(0, 8)})
		r.answer(r.number)
	}
	r.nop(viSegment{posted: 2})
	r.get(viWrite)
	r.sent(r.v, behind, viDone|viOpWrite)
}

// viNOPNumber provokes NOPs by posting receives at a VI whose peer has flow control.
func viNOPNumber(t *conformance.T) {
	r := newVIRig(t, viSetup{
		level: vipl.ServiceReliableDelivery,
		ce:    func(c *viCE) { c.attributes |= viFlowControl },
	})
	last := r.subject
	nop := func(posted int) {
		r.recv(r.v, r.data(0, 1))
		s := r.get(viNOP)
		require.Equal(t, last, s.number, "the last message sent")
		require.Equal(t, uint16(posted), s.posted)
	}
	nop(1)
	r.send("x")
	for i := range 2 {
		r.sends(r.v, r.data(0, 1))
		last++
		require.Equal(t, last, r.get(viSend).number, "NOPs have no place in the sequence")
		r.answer(r.rdmaRead(r.at(0, 4))) // has a number that is not the VI's
		nop(2 + i)
		r.send("x")
	}
}

// vt3_6 is CRCs and urgent data: VI/TCP draft 3.5 to 3.7.
var vt3_6 = []conformance.Case{
	apiCase("3.6/vi-crc-by-both", viCRCByBoth, "VT-3.5-M1", "VT-3.6-M1", "VT-3.6-M2", "VT-3.6-M3", "VT-3.6-M4", "PT-3.5-M1", "PT-3.6-M1"),
	apiCase("3.6/vi-crc-by-both-active", viCRCByBothActive, "VT-3.5-M1", "VT-3.6-M1", "VT-3.6-M3", "VT-3.6-M4"),
	apiCase("3.6/vi-wrong-crc", eachLevel(viWrongCRC), "VT-3.6-M5", "VT-3.6-M6", "VA-2.5.1-M1", "PT-3.6-M1"),
	apiCase("3.6/vi-wrong-crc-answer", viWrongCRCAnswer, "VT-3.6-M5", "VT-3.6-M6"),
	apiCase("3.6/vi-wrong-crc-of-each-type", viWrongCRCOfEachType, "VT-3.6-M5", "VT-3.6-M6", "PT-3.6-M1"),
	apiCase("3.6/vi-wrong-crc-told", viWrongCRCTold, "VT-3.6-M7"),
	apiCase("3.7/vi-never-urgent", viNeverUrgent, "VT-3.7-M1", "VT-3.7-M2", "VT-3.7-M3"),
}

// exchanges sends each kind of segment either way, to a peer with flow control. The peer reads a trailer if there are
// CRCs to be, and takes one for payload if not.
func (r *viRig) exchanges() {
	t := r.t
	r.sends(r.v, r.data(0, 9))
	require.Equal(t, r.mem[:9], r.get(viSend).payload)
	r.writes(r.v, vipl.AddressSegment{Data: 1, Handle: 1}, r.data(1, 5))
	require.Equal(t, r.mem[1:6], r.get(viWrite).payload)
	d := r.reads(r.v, vipl.AddressSegment{Data: 1, Handle: 1}, r.data(100, 4))
	s := r.get(viReadRequest)
	require.Empty(t, s.payload)
	r.put(viSegment{kind: viReadResponse, flags: viLast, number: s.number, ack: s.number, payload: []byte("read")})
	for range 2 {
		require.NoError(t, second(r.v.SendWait(t.Context())))
	}
	r.sent(r.v, d, viDone|viOpRead)
	require.Equal(t, "read", string(r.mem[100:104]))
	require.Equal(t, "read", string(r.answer(r.rdmaRead(r.at(100, 4)))))
	r.nop(viSegment{})
	r.rdmaWrite(r.at(200, 0), "written")
	r.takes("sent", r.receives[0], viDone|viOpReceive)
	require.Equal(t, "sent", string(r.slot(0)[:4]))
	require.Equal(t, "written", string(r.mem[200:207]))
	r.recv(r.v)
	r.get(viNOP)
}

// viCRCByBoth calls a VI with and without the option, which has it itself or not.
func viCRCByBoth(t *conformance.T) {
	for here := range inTurn(t, "peer %v", []bool{false, true}) {
		for there := range inTurn(t, "VI %v", []bool{false, true}) {
			r := newVIRig(t, viSetup{
				level: vipl.ServiceReliableDelivery, receives: 1, nic: vipl.Config{CRC: there},
				ce: func(c *viCE) {
					c.attributes |= viFlowControl // for the sake of NOPs
					if here {
						c.options = viCRCOption
					}
				},
			})
			want := either(here && there, viCRCOption, viEndOfOptions)
			require.Equal(t, want, r.accept.ce.options, "of the ConnectAccept")
			_, attributes, err := r.v.QueryVi()
			require.NoError(t, err)
			require.Equal(t, here && there, attributes.CRC, "what the program sees")
			r.exchanges()
		}
	}
}

// viCRCByBothActive has the VI call.
func viCRCByBothActive(t *conformance.T) {
	for here := range inTurn(t, "peer %v", []bool{false, true}) {
		for there := range inTurn(t, "VI %v", []bool{false, true}) {
			if here && !there {
				continue // it may not accept what was not offered
			}
			newVIRig(t, viSetup{
				level: vipl.ServiceReliableDelivery, receives: 1, nic: vipl.Config{CRC: there}, pipe: true,
				ce: func(c *viCE) {
					c.attributes |= viFlowControl // for the sake of NOPs
					if here {
						c.options = viCRCOption
					}
				},
			}).exchanges()
		}
	}
}

// viWrongCRC sends a Send with a wrong octet in the payload, or in the trailer.
func viWrongCRC(t *conformance.T, l viLevel) {
	for back := range inTurn(t, "octet %d from the end", []int{5, 1}) {
		r := newCRCRig(t, l.level, 2)
		r.says(spoilt(r.message(viSegment{kind: viSend, flags: viLast, payload: []byte("corrupt")}), back))
		r.received(r.v, r.receives[0], viDone|viTransport|viOpReceive)
		if l.level == vipl.ServiceUnreliable {
			r.takes("good", r.receives[1], viDone|viOpReceive)
			continue
		}
		require.Equal(t, vipl.StateError, r.state(r.v))
		r.over()
	}
}

// viWrongCRCAnswer spoils the answer to an RDMA Read.
func viWrongCRCAnswer(t *conformance.T) {
	for _, level := range []vipl.ReliabilityLevel{vipl.ServiceReliableDelivery, vipl.ServiceReliableReception} {
		r := newCRCRig(t, level, 0)
		before := string(r.mem[:8])
		d := r.reads(r.v, vipl.AddressSegment{Data: 1, Handle: 1}, r.data(0, 8))
		n := r.get(viReadRequest).number
		r.says(spoilt(viSegment{kind: viReadResponse, flags: viLast, number: n, payload: []byte("12345678")}, 6))
		r.sent(r.v, d, viDone|viTransport|viOpRead)
		require.Equal(t, before, string(r.mem[:8]), "the memory")
		require.Equal(t, vipl.StateError, r.state(r.v))
		r.over()
	}
}

// viWrongCRCOfEachType spoils each kind of segment that a peer sends unasked, in its header and in its trailer: none of
// them has an effect, and the connection ends.
func viWrongCRCOfEachType(t *conformance.T) {
	for kind := range inTurn(t, "type %d", []byte{viSend, viWrite, viReadRequest, viNOP}) {
		for back := range inTurn(t, "octet %d from the end", []int{20, 1}) {
			for l := range inTurn(t, "%s", viLevels[1:]) {
				r := newCRCRig(t, l.level, 1)
				before := bytes.Clone(r.mem)
				s := viSegment{kind: kind, flags: viLast, rdma: r.at(0, 8)}
				switch kind {
				case viSend, viWrite:
					s.payload = []byte("12345678")
				case viNOP:
					s.number = r.number
				}
				if kind != viNOP {
					s = r.message(s)
				}
				r.says(spoilt(s, back))
				r.over() // no answer to a Read either
				r.becomes(r.v, vipl.StateError)
				require.True(t, bytes.Equal(before, r.mem), "the memory")
				status := uint32(viDone | viFlushed | viOpReceive)
				if kind == viSend {
					status = viDone | viTransport | viOpReceive
				}
				r.received(r.v, r.receives[0], status)
			}
		}
	}
}

// viWrongCRCTold spoils a Send and an RDMA Write at Reliable Reception.
func viWrongCRCTold(t *conformance.T) {
	for kind := range inTurn(t, "type %d", []byte{viSend, viWrite}) {
		r := newCRCRig(t, vipl.ServiceReliableReception, 2)
		good := r.send("good")
		r.says(spoilt(r.message(viSegment{kind: kind, flags: viLast, rdma: r.at(0, 3), payload: []byte("bad")}), 5))
		s := r.next()
		if acked(s)[1] == 0 { // of the good one
			require.Equal(t, good, s.ack)
			s = r.last()
		}
		require.Equal(t, []uint32{good + 1, viTransportCode}, acked(s))
	}
}

// viNeverUrgent takes urgent data, and gets none: urgent octets are not among those that
// a stream is read as, so one of them would be missing.
func viNeverUrgent(t *conformance.T) {
	r := newVIRig(t, viSetup{
		level: vipl.ServiceReliableReception, receives: 1, nic: vipl.Config{Segment: 256},
		ce: func(c *viCE) { c.options = []byte{0, 2, 0, 4, 0, 0} },
	})
	require.Equal(t, viEndOfOptions, r.accept.ce.options, "the VI takes none")
	for n := range 20 {
		r.sends(r.v, r.data(n, 100*n))
		_, payload := r.whole(viSend)
		require.Equal(t, r.mem[n:][:100*n], payload)
	}
	require.Len(t, r.answer(r.rdmaRead(r.at(0, 3000))), 3000)
	require.Equal(t, r.number, r.get(viNOP).ack)
	r.send("x")
	require.Equal(t, r.number, r.get(viNOP).ack)
}
