package cases

import (
	"bytes"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// vt2 is how VIs and TCP connections belong together: VI/TCP draft 2.2.2.
var vt2 = []conformance.Case{
	apiCase("2.2.2.1/vi-unconnected", onVIHost(viUnconnected), "VT-2.2.2.1-M1", "VA-4-M1", "VA-6.2-M1", "PA-5.1-M3", "PA-5.1-M4"),
	apiCase("2.2.2.2.2/vi-disconnect-closes-tcp", eachLevel(viDisconnectCloses), "VT-2.2.2.2.2-M1", "PA-5.3-M1"),
	apiCase("2.2.2.2.2/vi-tcp-closes", eachLevel(viTCPCloses), "VT-2.2.2.2.2-M2", "VA-4.2-M3", "PA-5.4-M2", "PA-10.2-M10"),
	apiCase("2.2.2.2.2/vi-tcp-first", onVIHost(viTCPFirst), "VT-2.2.2.2.2-M3"),
	apiCase("2.2.2.2.2/vi-checked-passive", onVIHost(viCheckedPassive), "VT-2.2.2.2.2-M4"),
	apiCase("2.2.2.2.2/vi-checked-active", onVIHost(viCheckedActive), "VT-2.2.2.2.2-M4"),
	strict(apiCase("2.2.2.2.5/vi-memory-gone", viMemoryGone, "VT-2.2.2.2.5-S2")),
	apiCase("2.2.2.2.6/vi-reads-held", viReadsHeld, "VT-2.2.2.2.6-M1", "PT-3.2-M6"),
	apiCase("2.2.2.2.6/vi-reads-limited", viReadsLimited, "VT-2.2.2.2.6-M2", "PT-2.2.2.2.6-M1"),
	apiCase("2.2.2.2.6/vi-one-read-too-many", viReadTooMany, "VT-2.2.2.2.6-M2"),
}

// viUnconnected posts to a VI that is not connected, and connects it then.
func viUnconnected(t *conformance.T, h *viHost) {
	v := h.vi(vipl.ServiceReliableDelivery)
	require.Equal(t, vipl.StateIdle, h.state(v), "a new VI")
	waiting := h.recv(v, h.data(0, 16))
	h.sent(v, h.sends(v, h.data(0, 16)), viDone|viFlushed)
	h.sent(v, h.writes(v, h.remote(0), h.data(0, 16)), viDone|viFlushed|viOpWrite)
	h.sent(v, h.reads(v, h.remote(0), h.data(0, 16)), viDone|viFlushed|viOpRead)
	h.notDone(v.RecvDone)
	require.Equal(t, vipl.StateIdle, h.state(v))

	p := dialVI(t, h)
	done := serveVI(h, v, "server")
	ce := viPeerCE(vipl.ServiceReliableDelivery, "server")
	p.connects(ce, done)
	p.send("now it goes")
	h.received(v, waiting, viDone|viOpReceive)
	require.Equal(t, "now it goes", string(h.mem[:11]))
	h.sends(v, h.data(0, 11))
	require.Equal(t, "now it goes", string(p.get(viSend).payload), "the first that is ever sent")
}

// viDisconnectCloses disconnects at each level: the peer's stream ends.
func viDisconnectCloses(t *conformance.T, l viLevel) {
	r := newVIRig(t, viSetup{level: l.level})
	done := make(chan error, 1)
	go func() { done <- r.v.Disconnect() }()
	r.over()
	require.NoError(t, <-done)
	require.Equal(t, vipl.StateIdle, r.state(r.v))
}

// viTCPCloses has the peer close: the VI is no longer connected, and says so.
func viTCPCloses(t *conformance.T, l viLevel) {
	r := newVIRig(t, viSetup{level: l.level, receives: 1})
	require.NoError(t, r.conn.Close())
	r.received(r.v, r.receives[0], viDone|viFlushed|viOpReceive)
	require.Equal(t, vipl.StateError, r.state(r.v))
	r.reported(r.v, vipl.ErrorConnLost, 0)
	r.sent(r.v, r.sends(r.v, r.data(0, 1)), viDone|viFlushed)
}

// viTCPFirst has one peer with a TCP connection only, and one that asks: only this one is
// offered, and it is answered on the connection that it made.
func viTCPFirst(t *conformance.T, h *viHost) {
	v := h.vi(vipl.ServiceUnreliable)
	silent, asking := dialVI(t, h), dialVI(t, h)
	ce := viPeerCE(vipl.ServiceUnreliable, "server")
	ce.calling = "asking"
	asking.asks(ce)
	c := must(h.nic.ConnectWait(t.Context(), h.address("server")))(t)
	require.Equal(t, "asking", string(c.RemoteAddr().Discriminator))
	require.Equal(t, vipl.StateIdle, h.state(v))
	require.NoError(t, c.ConnectAccept(v))
	asking.accepted(ce)
	h.sends(v, h.data(0, 3))
	require.Equal(t, h.mem[:3], asking.get(viSend).payload)
	require.NoError(t, asking.conn.Close())
	require.NoError(t, h.nic.CloseNic())
	silent.over()
}

// viCheckedPassive sends requests whose addresses or attributes cannot be: none is
// offered to the program, and a good one then is.
func viCheckedPassive(t *conformance.T, h *viHost) {
	good := viPeerCE(vipl.ServiceReliableDelivery, "server")
	for _, spoil := range named(t, "%s", map[string]func(*viCE){
		"calling discriminator of 65 octets": func(c *viCE) { c.lengths = [2]uint16{65, 6} },
		"called discriminator of 65 octets":  func(c *viCE) { c.lengths = [2]uint16{6, 65} },
		"no level":                           func(c *viCE) { c.attributes &^= 7 },
		"two levels":                         func(c *viCE) { c.attributes |= viUnreliable },
		"an MTU of nothing":                  func(c *viCE) { c.mtu = 0 },
	}) {
		p, ce := dialVI(t, h), good
		spoil(&ce)
		p.asks(ce)
		if s, err := p.raw(); err == nil {
			require.Equal(t, byte(viReject), s[1]&0x1F, "instead of a ConnectReject: % x", s)
		}
		p.over()
	}
	t.Part("a good one")
	p := dialVI(t, h)
	good.calling = "good"
	p.asks(good)
	c := must(h.nic.ConnectWait(t.Context(), h.address("server")))(t)
	require.Equal(t, "good", string(c.RemoteAddr().Discriminator), "the only one that is offered")
	viCode(t, vipl.ErrInvalidReliabilityLevel, c.ConnectAccept(h.vi(vipl.ServiceUnreliable)), "another level")
	other := newVIHost(t, vipl.Config{})
	viCode(t, vipl.ErrInvalidParameter, c.ConnectAccept(other.vi(vipl.ServiceReliableDelivery)), "a VI of another NIC")
	require.NoError(t, c.ConnectAccept(h.vi(vipl.ServiceReliableDelivery)))
	viCode(t, vipl.ErrInvalidParameter, c.ConnectAccept(h.vi(vipl.ServiceReliableDelivery)), "a handle that is used up")
	p.accepted(good)
}

// viMemoryGone deregisters the memory of a Send of which a part has left.
func viMemoryGone(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, pipe: true, vi: func(a *vipl.ViAttributes) { a.MaxTransferSize = 1 << 24 }, ce: func(c *viCE) { c.mtu = 1 << 24 }})
	mem := make([]byte, 1<<24)
	handle := r.register(mem, vipl.MemAttributes{Ptag: r.ptag})
	d := r.sends(r.v, vipl.DataSegment{Data: vipl.AddressOf(mem), Handle: handle, Length: uint32(len(mem))})
	first := r.get(viSend)
	require.NotEmpty(t, first.payload)
	require.NoError(t, r.nic.DeregisterMem(vipl.AddressOf(mem), handle))
	for {
		s := r.get(viSend)
		if !s.last() {
			continue
		}
		require.NotZero(t, s.flags&viError, "Transmit Error")
		break
	}
	r.sent(r.v, d, viDone|viProtection|viPartial)
}

// viReadsHeld sends as many RDMA Read Requests as the window allows, and reads nothing
// before the last is sent.
func viReadsHeld(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableReception, pipe: true})
	var numbers []uint32
	for i := range 4 {
		numbers = append(numbers, r.rdmaRead(r.at(i*100, viMemory/2)))
	}
	for i, n := range numbers {
		require.True(t, bytes.Equal(r.mem[i*100:][:viMemory/2], r.answer(n)), "the data of RDMA Read %d", i)
	}
}

// viReadsLimited posts more RDMA Reads than the peer has granted.
func viReadsLimited(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, ce: func(c *viCE) { c.window = 2 }})
	var posted []*vipl.Descriptor
	for i := range 4 {
		posted = append(posted, r.reads(r.v, vipl.AddressSegment{Data: 0x1000, Handle: 7}, r.data(i, 1)))
	}
	requests := []viSegment{r.get(viReadRequest), r.get(viReadRequest)}
	for range 3 { // if there were another, it would have come between the answers
		r.answer(r.rdmaRead(r.at(0, 8)))
	}
	for i, d := range posted {
		r.put(viSegment{kind: viReadResponse, flags: viLast, number: requests[i].number, payload: []byte{0xEE}})
		r.sent(r.v, d, viDone|viOpRead)
		if i < 2 {
			requests = append(requests, r.get(viReadRequest))
		}
	}
}

// viReadTooMany sends one RDMA Read Request more than the VI granted. The first answer is
// too long to be out of the way by then.
func viReadTooMany(t *conformance.T) {
	r := newVIRig(t, viSetup{
		level: vipl.ServiceReliableDelivery, pipe: true, nic: vipl.Config{ReadWindow: 1},
		vi: func(a *vipl.ViAttributes) { a.MaxTransferSize = 1 << 24 },
		ce: func(c *viCE) { c.mtu, c.window = 1<<24, 1 },
	})
	mem := make([]byte, 1<<24)
	handle := r.register(mem, vipl.MemAttributes{Ptag: r.ptag, EnableRdmaRead: true})
	long := viRDMA{uint64(vipl.AddressOf(mem)), uint32(handle), uint32(len(mem))}
	r.rdmaRead(long)
	require.Equal(t, vipl.StateConnected, r.state(r.v))
	r.rdmaRead(r.at(0, 1))
	r.becomes(r.v, vipl.StateError)
}

// viCheckedActive asks with addresses that cannot be, and answers with a ConnectAccept of
// other VIs or attributes.
func viCheckedActive(t *conformance.T, h *viHost) {
	v := h.vi(vipl.ServiceReliableDelivery)
	for name, a := range map[string][2]*vipl.NetAddress{
		"a local address of somebody else": {{HostAddress: []byte{192, 0, 2, 1}}, h.address("x")},
		"no remote address":                {nil, {Discriminator: []byte("x")}},
		"a remote address of 5 octets":     {nil, {HostAddress: []byte{1, 2, 3, 4, 5}}},
		"a discriminator of 65 octets":     {nil, {HostAddress: []byte{127, 0, 0, 1}, Discriminator: make([]byte, 65)}},
	} {
		viCode(t, vipl.ErrInvalidParameter, second(v.ConnectRequest(t.Context(), a[0], a[1])), name)
		require.Equal(t, vipl.StateIdle, h.state(v), name)
	}
	for _, spoil := range named(t, "%s", map[string]func(*viCE){
		"another calling VI": func(c *viCE) { c.calling = "clienT" },
		"another called VI":  func(c *viCE) { c.called = "serveR" },
		"another level":      func(c *viCE) { c.attributes ^= viDelivery | viReception },
		"a larger MTU":       func(c *viCE) { c.mtu++ },
		"an MTU of nothing":  func(c *viCE) { c.mtu = 0 },
		"a CRC unasked":      func(c *viCE) { c.options = viCRCOption },
	}) {
		r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
		ce := r.agrees()
		spoil(&ce)
		require.Error(t, r.answers(ce), "ConnectRequest")
		require.NotEqual(t, vipl.StateConnected, r.state(r.v))
		r.over()
	}
	t.Part("nothing wrong")
	r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	require.NoError(t, r.answers(r.agrees()))
}

// pt2 is what the VI/TCP draft, 2.2.2, says of messages on a stream without a must.
var pt2 = []conformance.Case{
	apiCase("2.2.2.2.3/vi-answers-between", viAnswersBetween, "PT-2.2.2.2.3-M2", "PT-3.2-M6"),
	apiCase("2.2.2.2.3/vi-answers-between-sent", viAnswersBetweenSent,
		"PT-2.2.2.2.3-M1", "PT-2.2.2.2.3-M2", "PT-3.2-M3", "PT-3.2-M4"),
	apiCase("2.2.2.2.3/vi-answers-apart", viAnswersApart, "PT-2.2.2.2.3-M2"),
	apiCase("2.2.2.2.3/vi-messages-apart", viMessagesApart, "PT-2.2.2.2.3-M1"),
	apiCase("2.2.2.2.6/vi-window-for-life", viWindowForLife, "PT-2.2.2.2.6-M1"),
}

// viAnswersBetween answers two RDMA Reads between the segments of a Send and of an RDMA
// Write, one answer after the other.
func viAnswersBetween(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[1:]) {
		r := newVIRig(t, viSetup{level: l.level, receives: 1})
		from := vipl.AddressSegment{Data: 1, Handle: 1}
		reads := []*vipl.Descriptor{r.reads(r.v, from, r.data(0, 4)), r.reads(r.v, from, r.data(4, 4))}
		answers := []viSegment{r.get(viReadRequest), r.get(viReadRequest)}
		answer := func(i int, flags byte, offset uint32, payload string) {
			r.put(viSegment{kind: viReadResponse, flags: flags, number: answers[i].number, offset: offset, payload: []byte(payload)})
		}
		s := r.message(viSegment{kind: viSend, payload: []byte("Se")})
		r.put(s)
		answer(0, 0, 0, "on")
		s.offset, s.payload = 2, []byte("n")
		r.put(s)
		answer(0, viLast, 2, "e.")
		s.flags, s.offset, s.payload = viLast, 3, []byte("d")
		r.put(s)
		w := r.message(viSegment{kind: viWrite, rdma: r.at(8, 4), payload: []byte("W")})
		r.put(w)
		answer(1, 0, 0, "two")
		w.flags, w.offset, w.payload = viLast, 1, []byte("ite")
		r.put(w)
		answer(1, viLast, 3, ".")
		for _, d := range reads {
			r.sent(r.v, d, viDone|viOpRead)
		}
		r.received(r.v, r.receives[0], viDone|viOpReceive)
		require.Equal(t, "Send", string(r.slot(0)[:4]))
		require.Equal(t, "one.two.Wite", string(r.mem[:12]))
	}
}

// viAnswersBetweenSent asks for much while the VI has much to send itself. Its first answer waits
// in the pipe, so the other two have to be in order for sure.
func viAnswersBetweenSent(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, pipe: true, nic: vipl.Config{Segment: 512}})
	reads := []uint32{r.rdmaRead(r.at(0, 20000)), r.rdmaRead(r.at(7, 20000)), r.rdmaRead(r.at(9, 20000))}
	last := reads[len(reads)-1]
	const n = 4
	for i := range n {
		d := r.desc()
		d.SetSend(r.data(i, 9000))
		if i%2 == 1 {
			d.SetRdmaWrite(vipl.AddressSegment{Data: 1, Handle: 1}, r.data(i, 9000))
		}
		r.post(r.v, d)
	}
	sent, answered := make([][]byte, 0, n), map[uint32][]byte{}
	open := false // a message of the VI
	for len(sent) < n || open || len(answered[last]) < 20000 {
		s := r.next()
		if s.kind == viReadResponse {
			require.Equal(t, uint32(len(answered[s.number])), s.offset, "%v", &s)
			require.Contains(t, reads, s.number)
			for _, earlier := range reads[:slices.Index(reads, s.number)] {
				require.Len(t, answered[earlier], 20000, "an answer is whole before the next one")
			}
			answered[s.number] = append(answered[s.number], s.payload...)
			require.Equal(t, len(answered[s.number]) == 20000, s.last(), "%v", &s)
			continue
		}
		if !open {
			sent = append(sent, nil)
		}
		i := len(sent) - 1
		require.Equal(t, []any{[]byte{viSend, viWrite}[i%2], r.subject + 1 + uint32(i), uint32(len(sent[i]))},
			[]any{s.kind, s.number, s.offset}, "%v", &s)
		sent[i] = append(sent[i], s.payload...)
		open = !s.last()
		require.Equal(t, len(sent[i]) < 9000, open, "%v", &s)
	}
	for i, b := range sent {
		require.True(t, bytes.Equal(r.mem[i:][:9000], b), "message %d", i)
	}
	for i, at := range []int{0, 7, 9} {
		require.True(t, bytes.Equal(r.mem[at:][:20000], answered[reads[i]]), "answer %d", i)
	}
}

// viAnswersApart begins the second answer within the first, or goes on with it there.
func viAnswersApart(t *conformance.T) {
	for i := range 4 {
		l, offset := viLevels[1+i/2], i%2*2
		t.Part("%s, offset %d", l.name, offset)
		r := newVIRig(t, viSetup{level: l.level})
		from := vipl.AddressSegment{Data: 1, Handle: 1}
		reads := []*vipl.Descriptor{r.reads(r.v, from, r.data(0, 4)), r.reads(r.v, from, r.data(4, 4))}
		before := string(r.mem[4:8])
		first, second := r.get(viReadRequest).number, r.get(viReadRequest).number
		r.put(viSegment{kind: viReadResponse, number: first, payload: []byte("on")})
		r.put(viSegment{kind: viReadResponse, flags: viLast, number: second, offset: uint32(offset), payload: []byte("two.")[offset:]})
		r.over()
		for _, d := range reads {
			require.Same(t, d, must(r.v.SendWait(t.Context()))(t))
			require.NotZero(t, d.Control.Status.Errors())
		}
		require.Equal(t, before, string(r.mem[4:8]))
	}
}

// viMessagesApart begins another message within one: whatever else than an answer may not
// come there.
func viMessagesApart(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels) {
		for kind := range inTurn(t, "type %d", []byte{viSend, viWrite, viReadRequest}) {
			if kind == viReadRequest && l.level == vipl.ServiceUnreliable {
				continue
			}
			r := newVIRig(t, viSetup{level: l.level, receives: 2})
			before := bytes.Clone(r.mem[:viSlots])
			begun := r.message(viSegment{kind: viSend, payload: []byte("begun")})
			r.put(begun)
			other := viSegment{kind: kind, flags: viLast, rdma: r.at(0, 5), payload: []byte("other")}
			if kind == viReadRequest {
				other.payload = nil
			}
			r.put(r.message(other))
			if begun.flags, begun.offset = viLast, 5; l.level == vipl.ServiceUnreliable {
				r.put(begun)
			}
			got := must(r.v.RecvWait(t.Context()))(t)
			require.Same(t, r.receives[0], got)
			if l.level == vipl.ServiceUnreliable {
				require.Equal(t, vipl.Status(viDone|viPartial|viOpReceive), got.Control.Status)
				if kind == viWrite {
					r.send("x")
				}
				r.received(r.v, r.receives[1], viDone|viOpReceive)
				continue
			}
			require.Equal(t, vipl.Status(viDone|viTransport|viPartial|viOpReceive), got.Control.Status)
			r.over()
			r.received(r.v, r.receives[1], viDone|viFlushed|viOpReceive)
			require.True(t, bytes.Equal(before, r.mem[:viSlots]), "the memory")
		}
	}
}

// viWindowForLife posts many RDMA Reads to a peer that takes three at a time, on each of two
// VIs.
func viWindowForLife(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[1:]) {
		r := newVIRig(t, viSetup{level: l.level, ce: func(c *viCE) { c.window = 3 }})
		const n = 12
		var posted []*vipl.Descriptor
		for i := range n {
			posted = append(posted, r.reads(r.v, vipl.AddressSegment{Data: 1, Handle: 1}, r.data(i, 1)))
		}
		var open []uint32
		for i := range n {
			for len(open) < min(3, n-i) {
				open = append(open, r.get(viReadRequest).number)
			}
			r.answer(r.rdmaRead(r.at(0, 8))) // another request would come first
			if l.level == vipl.ServiceReliableReception {
				r.get(viNOP)
			}
			r.put(viSegment{kind: viReadResponse, flags: viLast, number: open[0], payload: []byte{byte(i)}})
			r.sent(r.v, posted[i], viDone|viOpRead)
			open = open[1:]
		}
	}
}
