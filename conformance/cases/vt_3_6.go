package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// vt3_6 is CRCs and urgent data: VI/TCP draft 3.5 to 3.7.
var vt3_6 = []conformance.Case{
	apiCase("3.6/vi-crc-by-both", viCRCByBoth,
		"VT-3.5-M1", "VT-3.6-M1", "VT-3.6-M2", "VT-3.6-M3", "VT-3.6-M4", "PT-3.5-M1", "PT-3.6-M1"),
	apiCase("3.6/vi-crc-by-both-active", viCRCByBothActive, "VT-3.5-M1", "VT-3.6-M1", "VT-3.6-M3", "VT-3.6-M4"),
	apiCase("3.6/vi-wrong-crc", eachLevel(viWrongCRC), "VT-3.6-M5", "VT-3.6-M6", "VA-2.5.1-M1", "PT-3.6-M1"),
	apiCase("3.6/vi-wrong-crc-answer", viWrongCRCAnswer, "VT-3.6-M5", "VT-3.6-M6"),
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

// newCRCRig is a rig with CRCs.
func newCRCRig(t *conformance.T, level vipl.ReliabilityLevel, receives int) *viRig {
	return newVIRig(t, viSetup{
		level: level, receives: receives, nic: vipl.Config{CRC: true},
		ce: func(c *viCE) { c.options = viCRCOption },
	})
}

// spoilt is a segment of which an octet, counted from its end, is not what it was.
func spoilt(s viSegment, back int) []byte {
	b := s.octets(true)
	b[len(b)-back] ^= 0x40
	return b
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
