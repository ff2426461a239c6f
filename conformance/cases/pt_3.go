package cases

import (
	"bytes"
	"net"
	"net/netip"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// pt3 is what the VI/TCP draft, 3.2 to 3.7, says of segments without a must.
var pt3 = []conformance.Case{
	apiCase("3.2/vi-header-changes", viHeaderChanges, "PT-3.2-M3", "PT-3.2-M4", "PT-3.2-M7"),
	apiCase("3.2/vi-message-ends", viMessageEnds, "PT-3.2-M1", "PT-3.2-M4"),
	apiCase("3.4/vi-write-ends-short", viWriteEndsShort, "PT-3.2-M1", "PA-2.5.2-M3"),
	apiCase("3.2/vi-read-by-its-answer", viReadByAnswer, "PT-3.2-M12", "PT-3.2-M6"),
	apiCase("3.2/vi-posted-modulo", viPostedModulo, "PT-3.2-M8"),
	apiCase("3.3/vi-own-attributes", viOwnAttributes, "PT-3.3-M1"),
	apiCase("3.6/vi-crc-of-each-segment", viCRCOfEach, "PT-3.5-M1", "PT-3.6-M1"),
	apiCase("3.7/vi-never-urgent-unasked", viNeverUrgentUnasked, "PT-3.7-M1"),
}

// viChanges are second segments, of a Send or an RDMA Write of 4 octets and 4 more, that are
// none of the first.
var viChanges = []struct {
	name  string
	write bool // only of an RDMA Write
	spoil func(s *viSegment)
}{
	{name: "another number", spoil: func(s *viSegment) { s.number++ }},
	{name: "the number before", spoil: func(s *viSegment) { s.number-- }},
	{name: "a gap", spoil: func(s *viSegment) { s.offset++; s.payload = s.payload[1:] }},
	{name: "an overlap", spoil: func(s *viSegment) { s.offset-- }},
	{name: "the offset of the segment", spoil: func(s *viSegment) { s.offset = 0 }},
	{name: "immediate data", spoil: func(s *viSegment) { s.flags |= viImmediate }},
	{name: "another type", spoil: func(s *viSegment) { s.kind = viSend + viWrite - s.kind }},
	{name: "another address", write: true, spoil: func(s *viSegment) { s.rdma.address += 4 }},
	{name: "another handle", write: true, spoil: func(s *viSegment) { s.rdma.handle ^= 1 << 31 }},
	{name: "a greater length", write: true, spoil: func(s *viSegment) { s.rdma.length++; s.flags = 0 }},
	{name: "a length of what is left", write: true, spoil: func(s *viSegment) { s.rdma.length = 8 + 4 }},
}

// viHeaderChanges sends messages whose header changes within them.
func viHeaderChanges(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels) {
		for kind := range inTurn(t, "type %d", []byte{viSend, viWrite}) {
			for c := range inTurn(t, "%s", viChanges) {
				if c.write && kind != viWrite {
					continue
				}
				r := newVIRig(t, viSetup{level: l.level, receives: 3})
				clear(r.mem)
				s := r.message(viSegment{kind: kind, rdma: r.at(0, 8), payload: []byte("1234")})
				r.put(s)
				s.flags, s.offset, s.payload = viLast, 4, []byte("5678")
				c.spoil(&s)
				r.put(s)
				if l.level == vipl.ServiceUnreliable {
					r.number++ // one that may have been used
					r.send("next")
				} else {
					r.over()
					require.Equal(t, vipl.StateError, r.state(r.v))
				}
				r.failedIn(kind, l.level)
				require.Equal(t, make([]byte, viMemory/2-4), r.mem[4:viMemory/2], "the memory behind the first segment")
			}
		}
	}
}

// failedIn expects that a message of that kind has failed, of which one segment had come, and
// at Unreliable that a Send of "next" has come behind it.
func (r *viRig) failedIn(kind byte, level vipl.ReliabilityLevel) {
	t, unreliable := r.t, level == vipl.ServiceUnreliable
	first := r.receives[0]
	got := must(r.v.RecvWait(t.Context()))(t)
	require.Same(t, first, got)
	switch {
	case kind == viSend && unreliable:
		require.Equal(t, vipl.Status(viDone|viPartial|viOpReceive), got.Control.Status)
	case kind == viSend:
		require.Equal(t, vipl.Status(viDone|viPartial|viTransport|viOpReceive), got.Control.Status)
	case unreliable: // an RDMA Write consumes none
		require.Eventually(t, func() bool { return r.usage().Untold > 0 }, patience(t), 1e6, "the RDMA Write is counted")
	default:
		require.Equal(t, vipl.Status(viDone|viFlushed|viOpReceive), got.Control.Status)
		r.reported(r.v, vipl.ErrorRdmaWAbort, viOpRemoteWrite)
	}
	if !unreliable {
		return
	}
	for {
		if n := got.Control.Length; got.Control.Status == viDone|viOpReceive && n == 4 {
			break
		}
		got = must(r.v.RecvWait(t.Context()))(t, "the message behind it")
	}
	require.Equal(t, vipl.StateConnected, r.state(r.v))
}

// viMessageEnds sends a Send in parts: the one with bit 7 is the last, whatever it is of.
func viMessageEnds(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels) {
		r := newVIRig(t, viSetup{level: l.level, receives: 3})
		s := r.message(viSegment{kind: viSend})
		for _, part := range []string{"", "a", "bc", "", "def"} {
			s.payload = []byte(part)
			r.put(s)
			s.offset += uint32(len(part))
		}
		if l.level != vipl.ServiceUnreliable {
			r.hears()
			r.notDone(r.v.RecvDone)
			require.Equal(t, "abcdef", string(r.slot(0)[:6]), "it is under way")
		}
		s.flags, s.payload = viLast, nil
		r.put(s)
		r.received(r.v, r.receives[0], viDone|viOpReceive)
		require.Equal(t, uint32(6), r.receives[0].Control.Length)
		require.Equal(t, "abcdef", string(r.slot(0)[:6]))
		r.takes("next", r.receives[1], viDone|viOpReceive)
		require.Equal(t, "next", string(r.slot(1)[:4]))
	}
}

// viWriteEndsShort sends RDMA Writes that end before their length, or go on behind it.
func viWriteEndsShort(t *conformance.T) {
	for _, l := range viLevels {
		for _, immediate := range []byte{0, viImmediate} {
			for name, parts := range map[string][]string{
				"short at once": {"1234567"}, "short in two": {"1234", "567"}, "nothing at all": {""},
				"too long at once": {"123456789"}, "too long in two": {"12345678", "9"}, "nothing at the end": {"1234", ""},
			} {
				t.Part("%s, immediate %v, %s", l.name, immediate != 0, name)
				r := newVIRig(t, viSetup{level: l.level, receives: 2})
				clear(r.mem)
				s := r.message(viSegment{kind: viWrite, flags: immediate, rdma: r.at(0, 8)})
				var b []byte
				for i, p := range parts {
					if s.payload = []byte(p); i == len(parts)-1 {
						s.flags |= viLast
					}
					b = append(b, s.octets(false)...)
					s.offset += uint32(len(p))
				}
				r.says(b)
				if l.level != vipl.ServiceUnreliable {
					r.over()
					r.becomes(r.v, vipl.StateError)
					require.NotZero(t, must(r.v.RecvWait(t.Context()))(t).Control.Status.Errors())
					receive(t, r.errors, "nothing came")
				} else {
					r.send("next")
					got := must(r.v.RecvWait(t.Context()))(t)
					if got.Control.Status != viDone|viOpReceive { // immediate data of a message that had begun
						require.Equal(t, vipl.Status(viDone|viPartial|viOpRemoteWrite|viHasImmediate), got.Control.Status)
						r.received(r.v, r.receives[1], viDone|viOpReceive)
					}
				}
				require.Zero(t, r.mem[8], "the octet behind it")
				if len(parts) == 1 {
					require.Equal(t, make([]byte, 16), r.mem[:16], "nothing of what cannot be is placed")
				}
			}
		}
	}
}

// viReadByAnswer acknowledges an RDMA Read, and then answers it.
func viReadByAnswer(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[1:]) {
		r := newVIRig(t, viSetup{level: l.level, receives: 1})
		d := r.reads(r.v, vipl.AddressSegment{Data: 1, Handle: 1}, r.data(0, 8))
		n := r.get(viReadRequest).number
		r.nop(viSegment{ack: n})
		s := r.message(viSegment{kind: viSend, flags: viLast, ack: n})
		r.put(s)
		r.received(r.v, r.receives[0], viDone|viOpReceive)
		r.notDone(r.v.SendDone)
		r.put(viSegment{kind: viReadResponse, number: n, ack: n, payload: []byte("1234")})
		if l.level == vipl.ServiceReliableReception {
			require.Equal(t, s.number, r.get(viNOP).ack)
		}
		r.rdmaRead(r.at(0, 4))
		require.Equal(t, "1234", string(r.answer(r.number)), "half of it")
		r.notDone(r.v.SendDone)
		r.put(viSegment{kind: viReadResponse, flags: viLast, offset: 4, number: n, payload: []byte("5678")})
		r.sent(r.v, d, viDone|viOpRead)
		require.Equal(t, "12345678", string(r.mem[:8]))
	}
}

// viPostedModulo posts 65,536 receives and some, and then looks what the peer is told.
func viPostedModulo(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceUnreliable, receives: 3})
	posted := 3
	told := func() {
		r.sends(r.v)
		require.Equal(t, uint16(posted), r.get(viSend).posted)
		require.NoError(t, second(r.v.SendWait(t.Context())))
	}
	told()
	for range 3 {
		r.send("")
		require.NoError(t, second(r.v.RecvWait(t.Context())))
	}
	told()
	const burst = 256
	for posted < 1<<16+burst {
		for range burst {
			r.recv(r.v)
		}
		posted += burst
		told()
		var b []byte
		for range burst {
			s := r.message(viSegment{kind: viSend, flags: viLast})
			b = append(b, s.octets(false)...)
		}
		r.says(b)
		for range burst {
			require.NoError(t, second(r.v.RecvWait(t.Context())))
		}
	}
	told()
}

// viOwnAttributes connects ends that have each what the other does not.
func viOwnAttributes(t *conformance.T) {
	for bits := range counted(t, "the peer has %03b", uint16(8)) {
		r := newVIRig(t, viSetup{
			level: vipl.ServiceReliableDelivery, receives: 1,
			vi: func(a *vipl.ViAttributes) {
				a.EnableRdmaWrite, a.EnableRdmaRead, a.FlowControl = bits&1 == 0, bits&2 == 0, bits&4 == 0
			},
			ce: func(c *viCE) { c.attributes = viDelivery | bits*viWriteEnable },
		})
		require.Equal(t, viDelivery|(bits^7)*viWriteEnable, r.accept.ce.attributes, "what the VI says")
		r.takes("x", r.receives[0], viDone|viOpReceive)
		_, a, err := r.v.QueryVi()
		require.NoError(t, err)
		require.Equal(t, []bool{bits&1 == 0, bits&2 == 0, bits&4 == 0}, []bool{a.EnableRdmaWrite, a.EnableRdmaRead, a.FlowControl})
	}
}

// viCRCOfEach sends messages of many segments with CRCs, both ways, and damages each octet of
// a segment in turn.
func viCRCOfEach(t *conformance.T) {
	r := newVIRig(t, viSetup{
		level: vipl.ServiceReliableDelivery, receives: 1, nic: vipl.Config{CRC: true, Segment: 257},
		ce: func(c *viCE) { c.options = viCRCOption },
	})
	require.True(t, r.crc)
	r.sends(r.v, r.data(0, 1001))
	parts, payload := r.whole(viSend) // whose CRCs are looked at
	require.Greater(t, len(parts), 3)
	require.Equal(t, r.mem[:1001], payload)
	r.sends(r.v)
	require.Empty(t, r.get(viSend).payload, "nothing but headers")
	s := r.message(viSegment{kind: viSend})
	for i, p := range []string{"", "a", "bc", "def", "ghij", "klmno"} {
		if s.payload = []byte(p); i == 5 {
			s.flags = viLast
		}
		r.put(s)
		s.offset += uint32(len(p))
	}
	r.received(r.v, r.receives[0], viDone|viOpReceive)
	require.Equal(t, "abcdefghijklmno", string(r.slot(0)[:15]))

	whole := viSegment{kind: viWrite, flags: viLast, rdma: viRDMA{length: 3}, payload: []byte("abc")}
	for i := range whole.octets(true) {
		if i == 0 || i == 2 || i == 3 {
			continue // the version and the length, without which there is no segment
		}
		t.Part("octet %d", i)
		r := newCRCRig(t, vipl.ServiceReliableDelivery, 1)
		before := bytes.Clone(r.mem)
		s := r.message(whole)
		s.rdma = r.at(0, 3)
		b := s.octets(true)
		b[i] ^= 0x08
		r.says(b)
		r.over()
		r.becomes(r.v, vipl.StateError)
		require.True(t, bytes.Equal(before, r.mem), "the memory")
	}
}

// viNeverUrgentUnasked is connected to a peer without the option. Urgent octets are not among
// those that a stream is read as, so one of them would be missing.
func viNeverUrgentUnasked(t *conformance.T) {
	for _, l := range viLevels {
		r := newVIRig(t, viSetup{level: l.level, receives: 1, nic: vipl.Config{Segment: 256}})
		require.Equal(t, viEndOfOptions, r.accept.ce.options)
		for n := range 20 {
			r.sends(r.v, r.data(n, 100*n))
			_, payload := r.whole(viSend)
			require.Equal(t, r.mem[n:][:100*n], payload)
		}
		if l.level != vipl.ServiceUnreliable {
			require.Len(t, r.answer(r.rdmaRead(r.at(0, 3000))), 3000)
		}
		r.takes("x", r.receives[0], viDone|viOpReceive)
	}
}

// pt4 is what the VI/TCP draft, 4, says of connections between peers without a must.
var pt4 = []conformance.Case{
	apiCase("4/vi-higher-address-asks", viHigherAsks, "PT-4-M1"),
	apiCase("4/vi-lower-address-waits", viLowerWaits, "PT-4-M1"),
	apiCase("4/vi-no-match-again", viNoMatchAgain, "PT-4-M2"),
}

// viLow and viHigh are addresses of which the second is the higher one as a number, though
// not as text.
const (
	viLow  = "127.0.0.9"
	viHigh = "127.0.0.10"
)

// viNeighbour is a NIC at one address, and a raw peer's listener at another.
type viNeighbour struct {
	*viHost
	t      *conformance.T
	listen net.Listener
	there  *vipl.NetAddress // of the peer
}

func newVINeighbour(t *conformance.T, here, there string) *viNeighbour {
	l := must(net.Listen("tcp", there+":0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return &viNeighbour{
		viHost: newVIHostAt(t, here+":0", vipl.Config{}), t: t, listen: l,
		there: vipl.NewNetAddress(netip.MustParseAddrPort(l.Addr().String()), []byte("there")),
	}
}

// asked is the next connection of the NIC, and the request on it.
func (n *viNeighbour) asked() (*viPeer, viSegment) {
	_ = n.listen.(*net.TCPListener).SetDeadline(time.Now().Add(patience(n.t)))
	c := must(n.listen.Accept())(n.t, "a connection to the peer")
	p := newVIPeer(n.t, c)
	s := p.get(viRequest)
	require.NotZero(n.t, s.ce.attributes&viPeerToPeer, "the peer-to-peer bit")
	require.Equal(n.t, "here", s.ce.calling)
	require.Equal(n.t, "there", s.ce.called)
	return p, s
}

// agrees answers a request by a ConnectAccept.
func (p *viPeer) agrees(request viSegment) {
	ce := request.ce
	ce.options = viEndOfOptions
	s := p.message(viSegment{kind: viAccept, flags: viLast, ce: ce})
	p.says(s.octets(false))
}

// viHigherAsks connects a VI to a peer at a lower address.
func viHigherAsks(t *conformance.T) {
	n := newVINeighbour(t, viHigh, viLow)
	v := n.vi(vipl.ServiceReliableDelivery)
	require.NoError(t, v.ConnectPeerRequest(t.Context(), n.address("here"), n.there))
	p, s := n.asked()
	p.agrees(s)
	require.NoError(t, second(v.ConnectPeerWait(t.Context())))
	require.Equal(t, vipl.StateConnected, n.state(v))
	n.sends(v, n.data(0, 4))
	require.Equal(t, n.mem[:4], p.get(viSend).payload)
}

// viLowerWaits connects a VI to a peer at a higher address, which asks. The NIC has made no
// connection by itself.
func viLowerWaits(t *conformance.T) {
	n := newVINeighbour(t, viLow, viHigh)
	v := n.vi(vipl.ServiceReliableDelivery)
	require.NoError(t, v.ConnectPeerRequest(t.Context(), n.address("here"), n.there))
	host := must(n.address("").AddrPort())(t)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(viHigh)}}
	c := must(d.DialContext(t.Context(), "tcp", host.String()))(t)
	p, ce := newVIPeer(t, c), viPeerCE(vipl.ServiceReliableDelivery, "here")
	ce.calling = "there"
	ce.attributes |= viPeerToPeer
	p.asks(ce)
	require.NotZero(t, p.accepted(ce).ce.attributes&viPeerToPeer)
	require.NoError(t, second(v.ConnectPeerWait(t.Context())))
	require.Equal(t, vipl.StateConnected, n.state(v))

	mine := must(net.Dial("tcp", n.listen.Addr().String()))(t)
	defer mine.Close()
	first := must(n.listen.Accept())(t)
	defer first.Close()
	require.Equal(t, mine.LocalAddr().String(), first.RemoteAddr().String(), "the first connection to the peer")
}

// viNoMatchAgain answers by ConnectNoMatch until the third attempt, and for ever.
func viNoMatchAgain(t *conformance.T) {
	n := newVINeighbour(t, viHigh, viLow)
	v := n.vi(vipl.ServiceReliableDelivery)
	refuse := func() {
		p, _ := n.asked()
		p.put(viSegment{kind: viNoMatch, flags: viLast})
		p.over()
	}
	require.NoError(t, v.ConnectPeerRequest(t.Context(), n.address("here"), n.there))
	refuse()
	refuse()
	require.Equal(t, vipl.StateConnectPending, n.state(v))
	p, s := n.asked()
	p.agrees(s)
	_, err := v.ConnectPeerWait(t.Context())
	require.NoError(t, err)

	t.Part("until the time is over")
	w := n.vi(vipl.ServiceReliableDelivery)
	ctx, cancel := vipl.TimeoutContext(t.Context(), vipl.Infinite)
	require.NoError(t, w.ConnectPeerRequest(ctx, n.address("here"), n.there))
	for range 3 {
		refuse()
	}
	cancel()
	_, err = w.ConnectPeerWait(t.Context())
	require.Error(t, err)
	require.Equal(t, vipl.ErrTimeout, vipl.ReturnOf(err))
	require.Equal(t, vipl.StateIdle, n.state(w))

	t.Part("a client has one attempt")
	r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	r.put(viSegment{kind: viNoMatch, flags: viLast})
	viCode(t, vipl.ErrReject, <-r.done, "ConnectRequest")
}
