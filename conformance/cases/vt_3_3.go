package cases

import (
	"bytes"
	"context"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/vipl"
)

// vt3_3 is what the two ends agree on: VI/TCP draft 3.3.
var vt3_3 = []conformance.Case{
	apiCase("3.3/vi-level-differs", viLevelDiffers,
		"VT-3.3-M1", "VA-4.1-M4", "VA-4.1-M6", "VA-9.4.2-M1", "VA-9.4.2-S1", "PA-4.1-M2", "PA-9.4.2-M1"),
	apiCase("3.3/vi-level-differs-active", viLevelDiffersActive, "VT-3.3-M1", "VA-4.1-M4"),
	apiCase("3.3/vi-peer-to-peer", viPeerToPeerDiffers, "VT-3.3-M2"),
	apiCase("3.3/vi-receives-told", viReceivesTold, "VT-3.3-M3", "VT-3.2-S2", "PT-3.2-M8"),
	apiCase("3.3/vi-mtu", viMTU, "VT-3.3-M4", "VA-4.1-M5"),
	apiCase("3.3/vi-mtu-exceeded", viMTUExceeded, "VT-3.3-M4", "VA-4.1-M5"),
	apiCase("3.3/vi-mtu-active", viMTUActive, "VT-3.3-M4", "VA-4.1-M5"),
	apiCase("3.3/vi-unknown-options", viUnknownOptions, "VT-3.3-M5"),
	apiCase("3.3/vi-crc-option", viCRCOptionForm, "VT-3.3-M6", "VT-3.3-M7"),
}

// viLevelDiffers accepts with VIs of other levels: the request stands, the peer is told
// nothing, and in the end it is accepted, or rejected.
func viLevelDiffers(t *conformance.T) {
	for reject := range inTurn(t, "rejected in the end: %v", []bool{false, true}) {
		h := newVIHost(t, vipl.Config{})
		p, ce := dialVI(t, h), viPeerCE(vipl.ServiceReliableDelivery, "server")
		p.asks(ce)
		c := must(h.nic.ConnectWait(t.Context(), h.address("server")))(t)
		for _, level := range []vipl.ReliabilityLevel{vipl.ServiceUnreliable, vipl.ServiceReliableReception} {
			v := h.vi(level)
			viCode(t, vipl.ErrInvalidReliabilityLevel, c.ConnectAccept(v), "ConnectAccept")
			require.Equal(t, vipl.StateIdle, h.state(v))
		}
		if reject {
			require.NoError(t, c.ConnectReject())
			p.get(viReject)
			p.over()
		} else {
			require.NoError(t, c.ConnectAccept(h.vi(vipl.ServiceReliableDelivery)))
			require.Equal(t, viDelivery, int(p.accepted(ce).ce.attributes&7), "the first that the peer is told")
		}
		viCode(t, vipl.ErrInvalidParameter, c.ConnectAccept(h.vi(vipl.ServiceReliableDelivery)), "another ConnectAccept")
		viCode(t, vipl.ErrInvalidParameter, c.ConnectReject(), "another ConnectReject")
	}
}

// viLevelDiffersActive is answered with another level.
func viLevelDiffersActive(t *conformance.T) {
	for levels := range inTurn(t, "level bits %x", []uint16{0, viUnreliable, viReception, viDelivery | viReception}) {
		r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
		ce := r.agrees()
		ce.attributes = ce.attributes&^7 | levels
		viCode(t, vipl.ErrInvalidReliabilityLevel, r.answers(ce), "ConnectRequest")
		require.NotEqual(t, vipl.StateConnected, r.state(r.v))
		r.over()
	}
}

// viPeerToPeerDiffers calls a server peer to peer, and a VI that waits for a peer as a client;
// and answers a client as a peer.
func viPeerToPeerDiffers(t *conformance.T) {
	for asks := range inTurn(t, "asked %v", []bool{false, true}) {
		for waits := range inTurn(t, "waiting %v", []bool{false, true}) {
			near, far := loopbackPair(t)
			p, ce := newVIPeer(t, far), viPeerCE(vipl.ServiceUnreliable, "server")
			if asks {
				ce.attributes |= viPeerToPeer
			}
			p.asks(ce)
			r, err := vitcp.Await(t.Context(), near, vitcp.Filter{Called: "server", PeerToPeer: waits})
			if asks == waits {
				require.NoError(t, err)
				require.NoError(t, r.Close())
				continue
			}
			require.Error(t, err)
			p.get(viReject)
			p.over()
		}
	}
	t.Part("a server that is called by a peer first")
	h := newVIHost(t, vipl.Config{})
	first, second := dialVI(t, h), dialVI(t, h)
	ce := viPeerCE(vipl.ServiceUnreliable, "server")
	ce.attributes |= viPeerToPeer
	first.asks(ce)
	ce.attributes &^= viPeerToPeer
	ce.calling = "second"
	second.asks(ce)
	c := must(h.nic.ConnectWait(t.Context(), h.address("server")))(t)
	require.Equal(t, "second", string(c.RemoteAddr().Discriminator), "who is offered")
	require.NoError(t, c.ConnectAccept(h.vi(vipl.ServiceUnreliable)))
	require.Zero(t, second.accepted(ce).ce.attributes&viPeerToPeer)

	t.Part("answered by a peer")
	r := newVICaller(t, vipl.ServiceUnreliable, vipl.Config{})
	require.Zero(t, r.req.ce.attributes&viPeerToPeer)
	ce = r.agrees()
	ce.attributes |= viPeerToPeer
	require.Error(t, r.answers(ce))
	r.over()

	t.Part("two peers")
	low, high := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{})
	vl, vh := low.vi(vipl.ServiceUnreliable), high.vi(vipl.ServiceUnreliable)
	require.NoError(t, vl.ConnectPeerRequest(t.Context(), low.address("one"), high.address("two")))
	require.NoError(t, vh.ConnectPeerRequest(t.Context(), high.address("two"), low.address("one")))
	for _, v := range []*vipl.Vi{vl, vh} {
		must(v.ConnectPeerWait(t.Context()))(t)
	}
}

// viReceivesTold posts receives at a VI whose peer has flow control: the count in the
// ConnectAccept, in NOPs, and in whatever else is sent.
func viReceivesTold(t *conformance.T) {
	r := newVIRig(t, viSetup{
		level: vipl.ServiceUnreliable, receives: 3,
		ce: func(c *viCE) { c.attributes |= viFlowControl },
	})
	require.Equal(t, uint16(3), r.accept.posted, "in the ConnectAccept")
	for i := range 3 {
		r.takes("x", r.receives[i], viDone|viOpReceive)
	}
	r.recv(r.v, r.data(0, 1))
	require.Equal(t, uint16(4), r.get(viNOP).posted, "the peer has no other left")
	r.sends(r.v, r.data(0, 1))
	require.Equal(t, uint16(4), r.get(viSend).posted)
	r.send("x")
	for range 9 {
		r.recv(r.v, r.data(0, 1))
	}
	// Not each is told; but of more, before what is known of is used up.
	for known := uint16(4); known < 13; {
		s := r.get(viNOP)
		require.Greater(t, s.posted, known)
		for ; known < s.posted && known < 12; known++ {
			r.send("x")
		}
		known = s.posted
	}
}

// viMTU is called with a smaller MTU and with a larger one.
func viMTU(t *conformance.T) {
	for _, c := range []struct{ asked, agreed uint32 }{{5000, 5000}, {1, 1}, {viMemory, viMemory}, {1 << 20, viMemory}, {1<<32 - 1, viMemory}} {
		t.Part("asked for %d", c.asked)
		r := newVIRig(t, viSetup{level: vipl.ServiceUnreliable, ce: func(ce *viCE) { ce.mtu = c.asked }})
		require.Equal(t, c.agreed, r.accept.ce.mtu, "in the ConnectAccept")
		_, a, err := r.v.QueryVi()
		require.NoError(t, err)
		require.Equal(t, c.agreed, a.MaxTransferSize, "at the VI")
		if c.agreed < viMemory {
			r.sent(r.v, r.sends(r.v, r.data(0, int(c.agreed)+1)), viDone|viLength)
			r.sends(r.v, r.data(0, int(c.agreed)))
			_, payload := r.whole(viSend)
			require.Len(t, payload, int(c.agreed), "the longest that may be sent")
		}
	}
}

// viMTUExceeded sends the VI messages of the MTU that was agreed upon, and of an octet more, of each kind, whole and in
// parts. There is memory for them.
func viMTUExceeded(t *conformance.T) {
	const mtu = 600
	for l := range inTurn(t, "%s", viLevels) {
		for kind := range inTurn(t, "type %d", []byte{viSend, viWrite, viReadRequest}) {
			if kind == viReadRequest && l.level == vipl.ServiceUnreliable {
				continue
			}
			for parts := range inTurn(t, "%d parts", []int{1, 2}) {
				if kind == viReadRequest && parts > 1 {
					continue
				}
				r := newVIRig(t, viSetup{level: l.level, receives: 3, ce: func(ce *viCE) { ce.mtu = mtu }})
				r.exceeds(kind, mtu, parts)
				switch kind {
				case viReadRequest:
					require.Len(t, r.answer(r.number), mtu, "what may be asked for")
				case viSend:
					r.received(r.v, r.receives[0], viDone|viOpReceive)
				default:
					r.takes("behind", r.receives[0], viDone|viOpReceive)
				}
				before := bytes.Clone(r.mem[:viSlots])
				r.exceeds(kind, mtu+1, parts)
				switch {
				case kind == viSend:
					r.received(r.v, r.receives[1], viDone|viLength|viOpReceive)
				case l.level == vipl.ServiceUnreliable:
					r.takes("behind", r.receives[1], viDone|viOpReceive)
				}
				require.True(t, bytes.Equal(before, r.mem[:viSlots]), "the memory")
				if l.level != vipl.ServiceUnreliable {
					r.over()
					r.becomes(r.v, vipl.StateError)
				}
			}
		}
	}
}

// exceeds sends a message of n octets, or asks for so many.
func (r *viRig) exceeds(kind byte, n, parts int) {
	s := r.message(viSegment{kind: kind, flags: viLast, rdma: r.at(0, n)})
	if kind == viReadRequest {
		r.put(s)
		return
	}
	octets := fill(make([]byte, n), 7)
	for i := range parts {
		s.offset = uint32(i * n / parts)
		s.payload = octets[s.offset : (i+1)*n/parts]
		s.flags = either[byte](i == parts-1, viLast, 0)
		_, _ = r.conn.Write(s.octets(false)) // it may have closed
	}
}

// viMTUActive is answered with a smaller MTU, and with a larger one than it asked for.
func viMTUActive(t *conformance.T) {
	r := newVICaller(t, vipl.ServiceUnreliable, vipl.Config{})
	require.Equal(t, uint32(viMemory), r.req.ce.mtu, "what the VI can do")
	ce := r.agrees()
	ce.mtu = 77
	require.NoError(t, r.answers(ce))
	_, a, err := r.v.QueryVi()
	require.NoError(t, err)
	require.Equal(t, uint32(77), a.MaxTransferSize)

	r = newVICaller(t, vipl.ServiceUnreliable, vipl.Config{})
	ce = r.agrees()
	ce.mtu = viMemory + 1
	viCode(t, vipl.ErrInvalidMTU, r.answers(ce), "a larger one")
}

// viUnknownOptions puts options that nobody knows around those that there are.
func viUnknownOptions(t *conformance.T) {
	unknown := []byte{0x7F, 0x01, 0, 7, 'a', 'b', 'c', 0, 3, 0, 4}
	for _, options := range named(t, "%s", map[string][]byte{
		"before the end": append(append([]byte(nil), unknown...), 0, 0),
		"without an end": unknown,
		"none at all":    nil,
	}) {
		newVIRig(t, viSetup{level: vipl.ServiceUnreliable, ce: func(c *viCE) { c.options = options }})
	}
	t.Part("behind the CRC option")
	r := newVIRig(t, viSetup{
		level: vipl.ServiceUnreliable, receives: 1, nic: vipl.Config{CRC: true},
		ce: func(c *viCE) { c.options = append(append([]byte{0, 1, 0, 4}, unknown...), 0, 0) },
	})
	require.True(t, r.crc, "the CRC option was seen")
	r.takes("x", r.receives[0], viDone|viOpReceive)
}

// viCRCOptionForm has the CRC option in segments that are not right otherwise.
func viCRCOptionForm(t *conformance.T) {
	r := newVICaller(t, vipl.ServiceUnreliable, vipl.Config{CRC: true})
	require.Equal(t, viCRCOption, r.req.ce.options, "what the VI sends, which has the right CRC")

	h := newVIHost(t, vipl.Config{CRC: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	none := make(chan error, 1)
	go func() {
		c, err := h.nic.ConnectWait(ctx, h.address("server"))
		if err == nil {
			_ = c.ConnectReject()
		}
		none <- err
	}()
	ce := viPeerCE(vipl.ServiceUnreliable, "server")
	ce.options = viCRCOption
	good := (&viSegment{kind: viRequest, flags: viLast, ce: ce}).octets(true)
	for _, b := range named(t, "%s", map[string][]byte{
		"wrong CRC":   append(good[:len(good)-1:len(good)-1], good[len(good)-1]^1),
		"another MTU": func() []byte { b := append([]byte(nil), good...); b[viHeaderLen+7]++; return b }(),
		"no CRC":      (&viSegment{kind: viRequest, flags: viLast, ce: ce}).octets(false),
		"no end of the list": func() []byte {
			c := ce
			c.options = viCRCOption[:4]
			return (&viSegment{kind: viRequest, flags: viLast, ce: c}).octets(true)
		}(),
		"nothing of the rest": func() []byte {
			c := ce
			c.options = viCRCOption[:4]
			return (&viSegment{kind: viRequest, flags: viLast, ce: c}).octets(false)
		}(),
	}) {
		p := dialVI(t, h)
		p.says(b)
		if got, err := p.raw(); err == nil {
			assert.Equal(t, byte(viReject), got[1]&0x1F, "% x", got)
		}
		p.over()
	}
	cancel()
	require.ErrorIs(t, <-none, context.Canceled, "none of them was a request")
}
