package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// pa2 is what the models and levels of the VI Architecture, 2.3 to 2.5, say without a must.
var pa2 = []conformance.Case{
	apiCase("2.3.2/vi-write-consumes-at-its-end", viWriteConsumes, "PA-2.3.2-M1", "PA-2.3.2-M2"),
	apiCase("2.5.1/vi-at-most-once", viAtMostOnce, "PA-2.5.1-M1", "PT-3.2-M7"),
	apiCase("2.5.1/vi-read-refused", viReadRefused, "PA-2.5.1-M2", "PA-2.5.1-M3"),
	apiCase("2.5.2/vi-exactly-once", viExactlyOnce, "PA-2.5.2-M1", "PA-6.3.1.1-M1", "PA-6.3.1.1-M3"),
	apiCase("2.5.2/vi-later-errors-told", viLaterErrors, "PA-2.5.2-M4"),
	apiCase("2.5.3/vi-nothing-behind-an-error", viNothingBehind, "PA-2.5.2-M3", "PA-2.5.3-M2", "PA-2.5.3-M3"),
	apiCase("3.2.2.2/vi-rights-of-the-target", viRightsOfTarget, "PA-3.2.2.2-M2"),
}

// hears waits until the VI has taken all that the peer has sent: it answers an RDMA Read of
// the VI, behind that. Its answer may come within other messages (VI/TCP 2.2.2.2.3).
func (r *viRig) hears() {
	d := r.reads(r.v, vipl.AddressSegment{Data: 1, Handle: 1})
	r.put(viSegment{kind: viReadResponse, flags: viLast, number: r.get(viReadRequest).number})
	r.sent(r.v, d, viDone|viOpRead)
}

// viWriteConsumes sends an RDMA Write with immediate data in parts, and looks at the receive
// in between.
func viWriteConsumes(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, receives: 2})
	r.rdmaWrite(r.at(0, 0), "none")
	s := r.message(viSegment{kind: viWrite, flags: viImmediate, immediate: 7, rdma: r.at(100, 8), payload: []byte("half")})
	r.put(s)
	r.hears()
	require.Equal(t, "half", string(r.mem[100:104]), "it is under way")
	r.notDone(r.v.RecvDone)
	s.flags, s.offset = s.flags|viLast, 4
	r.put(s)
	r.received(r.v, r.receives[0], viDone|viOpRemoteWrite|viHasImmediate)
	require.Equal(t, "halfhalf", string(r.mem[100:108]))
	r.answer(r.rdmaRead(r.at(0, 8)))
	r.takes("x", r.receives[1], viDone|viOpReceive)
}

// viAtMostOnce sends messages again under the number that they had, whole and after a
// failure.
func viAtMostOnce(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceUnreliable, receives: 6})
	send := r.message(viSegment{kind: viSend, flags: viLast, payload: []byte("one")})
	r.put(send)
	r.put(send)
	write := r.message(viSegment{kind: viWrite, flags: viLast | viImmediate, immediate: 2, rdma: r.at(0, 3), payload: []byte("two")})
	r.put(write)
	write.payload = []byte("TWO")
	r.put(write)
	broken := r.message(viSegment{kind: viSend, flags: viError, payload: []byte("thr")})
	r.put(broken)
	broken.flags = viLast
	broken.offset = 3
	r.put(broken)
	broken.offset = 0
	r.put(broken)
	r.send("four")
	for i, want := range []uint32{viOpReceive, viOpRemoteWrite | viHasImmediate, viPartial | viOpReceive, viOpReceive} {
		r.received(r.v, r.receives[i], viDone|want)
	}
	require.Equal(t, "one", string(r.slot(0)[:3]))
	require.Equal(t, "two", string(r.mem[:3]))
	require.Equal(t, "four", string(r.slot(3)[:4]))
	r.notDone(r.v.RecvDone)

	t.Part("with CRCs, two damaged segments of one message")
	r = newCRCRig(t, vipl.ServiceUnreliable, 3)
	s := r.message(viSegment{kind: viSend, payload: []byte("first")})
	r.says(spoilt(s, 5))
	s.flags, s.offset = viLast, 5
	r.says(spoilt(s, 5))
	r.takes("good", r.receives[0], viDone|viTransport|viOpReceive)
	r.received(r.v, r.receives[1], viDone|viOpReceive)
	require.Equal(t, "good", string(r.slot(1)[:4]))
	r.notDone(r.v.RecvDone)
}

// viReadRefused posts an RDMA Read at Unreliable Delivery: it fails alone.
func viReadRefused(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceUnreliable, receives: 1})
	r.sent(r.v, r.reads(r.v, r.remote(0), r.data(0, 1)), viDone|viFormat|viOpRead)
	d := r.sends(r.v, r.data(0, 2))
	require.Equal(t, r.mem[:2], r.get(viSend).payload, "the first that is sent")
	r.sent(r.v, d, viDone)
	r.takes("x", r.receives[0], viDone|viOpReceive)
	require.Equal(t, vipl.StateConnected, r.state(r.v))
	require.Empty(t, r.errors)
}

// viExactlyOnce sends messages of all lengths between two VIs.
func viExactlyOnce(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[1:]) {
		a, b := newVIHost(t, vipl.Config{Segment: 256}), newVIHost(t, vipl.Config{Segment: 300})
		va, vb := a.vi(l.level), b.vi(l.level)
		connectVIs(a, va, b, vb)
		const n, slot = 60, 1024
		clear(b.mem)
		want := make([]byte, viMemory)
		var to, from []*vipl.Descriptor
		for i := range n {
			to = append(to, b.recv(vb, b.data(i*slot, slot)))
		}
		lengths := make([]int, n)
		for i := range n {
			lengths[i] = t.Rand().IntN(slot + 1)
			off := t.Rand().IntN(viMemory - slot)
			copy(want[i*slot:], a.mem[off:off+lengths[i]])
			d := a.desc()
			d.SetSend(a.data(off, lengths[i]))
			if i%3 == 0 {
				d.SetRdmaWrite(b.remote(i*slot), a.data(off, lengths[i]))
				d.SetImmediate(uint32(i))
			}
			from = append(from, a.post(va, d))
		}
		for i := range n {
			op, got := uint32(viOpReceive), lengths[i]
			if i%3 == 0 {
				op, got = viOpRemoteWrite|viHasImmediate, 0
			}
			b.received(vb, to[i], viDone|op)
			require.Equal(t, uint32(got), to[i].Control.Length, "of message %d", i)
			if i%3 == 0 {
				require.Equal(t, uint32(i), to[i].Control.ImmediateData)
				op = viOpWrite
			} else {
				op = 0
			}
			a.sent(va, from[i], viDone|op)
		}
		require.True(t, bytes.Equal(want, b.mem), "the memory")
	}
}

// viLaterErrors has a Send succeed at Reliable Delivery, and go wrong then.
func viLaterErrors(t *conformance.T) {
	for _, breaks := range named(t, "%s", map[string]func(*viRig){
		"the connection goes":   func(r *viRig) { _ = r.conn.Close() },
		"a segment out of turn": func(r *viRig) { r.number++; r.send("x") },
	}) {
		r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery})
		d := r.sends(r.v, r.data(0, 9))
		r.get(viSend)
		r.sent(r.v, d, viDone)
		breaks(r)
		r.reported(r.v, vipl.ErrorConnLost, 0)
		require.Equal(t, vipl.StateError, r.state(r.v))
		require.Equal(t, vipl.Status(viDone), d.Control.Status, "what has been told stays")
	}
	t.Part("there is no receive for it")
	p := newVIPair(t, vipl.ServiceReliableDelivery)
	d := p.a.sends(p.va, p.a.data(0, 9))
	p.a.sent(p.va, d, viDone)
	p.b.reported(p.vb, vipl.ErrorRecvQEmpty, viOpReceive)
	p.a.reported(p.va, vipl.ErrorConnLost, 0)
	require.Equal(t, vipl.StateError, p.a.state(p.va))
	require.Equal(t, vipl.StateError, p.b.state(p.vb))
}

// viNothingBehind posts a Descriptor with an error between good ones, and has a message with
// an error come before good ones.
func viNothingBehind(t *conformance.T) {
	for l := range inTurn(t, "%s, sent", viLevels[1:]) {
		r := newVIRig(t, viSetup{level: l.level, receives: 1})
		good := r.sends(r.v, r.data(0, 4))
		bad := r.desc()
		bad.SetSend(r.data(4, 4))
		bad.Control.Reserved = 1
		r.post(r.v, bad)
		behind := []*vipl.Descriptor{r.sends(r.v, r.data(8, 4)), r.writes(r.v, r.remote(0), r.data(8, 4)), r.reads(r.v, r.remote(0), r.data(8, 4))}
		s := r.get(viSend)
		require.Equal(t, r.mem[:4], s.payload)
		if l.level == vipl.ServiceReliableReception {
			r.nop(viSegment{ack: s.number})
		}
		r.over()
		r.sent(r.v, good, viDone)
		r.sent(r.v, bad, viDone|viFormat)
		for i, op := range []uint32{0, viOpWrite, viOpRead} {
			r.sent(r.v, behind[i], viDone|viFlushed|op)
		}
		r.received(r.v, r.receives[0], viDone|viFlushed|viOpReceive)
		require.Equal(t, vipl.StateError, r.state(r.v))

		t.Part("%s, received", l.name)
		r = newVIRig(t, viSetup{level: l.level})
		small, large := r.recv(r.v, r.data(0, 3)), r.recv(r.v, r.data(100, 100))
		before := bytes.Clone(r.mem[3:])
		var b []byte
		for _, s := range []viSegment{
			{kind: viSend, flags: viLast, payload: []byte("four")},
			{kind: viWrite, flags: viLast, rdma: r.at(200, 4), payload: []byte("four")},
			{kind: viSend, flags: viLast, payload: []byte("four")},
		} {
			s = r.message(s)
			b = append(b, s.octets(false)...)
		}
		r.says(b)
		r.over()
		r.received(r.v, small, viDone|viLength|viOpReceive)
		r.received(r.v, large, viDone|viFlushed|viOpReceive)
		require.True(t, bytes.Equal(before, r.mem[3:]), "the memory")
		require.Equal(t, vipl.StateError, r.state(r.v))
	}
}

// viRightsOfTarget posts RDMA requests where neither the VI nor the region that is here has
// a right enabled.
func viRightsOfTarget(t *conformance.T) {
	r := newVIRig(t, viSetup{
		level: vipl.ServiceReliableDelivery,
		vi:    func(a *vipl.ViAttributes) { a.EnableRdmaWrite, a.EnableRdmaRead = false, false },
	})
	mem := []byte("no right")
	handle := r.register(mem, vipl.MemAttributes{Ptag: r.ptag})
	here := vipl.DataSegment{Data: vipl.AddressOf(mem), Handle: handle, Length: 8}
	to := vipl.AddressSegment{Data: 1, Handle: 1}
	w, rd := r.writes(r.v, to, here), r.reads(r.v, to, here)
	require.Equal(t, "no right", string(r.get(viWrite).payload))
	s := r.get(viReadRequest)
	require.Equal(t, viRDMA{1, 1, 8}, s.rdma)
	r.put(viSegment{kind: viReadResponse, flags: viLast, number: s.number, payload: []byte("and yet!")})
	r.sent(r.v, w, viDone|viOpWrite)
	r.sent(r.v, rd, viDone|viOpRead)
	require.Equal(t, "and yet!", string(mem))
	t.Part("the other way they count")
	r.rdmaWrite(viRDMA{uint64(here.Data), uint32(handle), 8}, "replaced")
	r.reported(r.v, vipl.ErrorRdmaWProt, viOpRemoteWrite)
	require.Equal(t, "and yet!", string(mem))
}

// pa6 is what the VI Architecture, 6 to 9, says of Descriptors and errors without a must.
var pa6 = []conformance.Case{
	apiCase("6.3.1.1/vi-completes-in-order", viCompletesInOrder, "PA-6.3.1.1-M2", "PA-6.3.1.1-M3"),
	apiCase("6.3.1.1/vi-answers-in-order", viAnswersInOrder, "PA-6.3.1.1-M4"),
	apiCase("6.4.1/vi-overrun", viOverrun, "PA-6.4.1-M1", "PA-10.2-M9"),
	apiCase("9.5.3/vi-no-octets", viNoOctets, "PA-9.5.3-M1"),
	apiCase("9.9.1/vi-queue-overrun", viQueueOverrun, "PA-9.9.1-M2"),
	apiCase("9.9.1/vi-write-error-in-receive", viWriteErrorInReceive, "PA-9.9.1-M3"),
}

// viCompletesInOrder has an RDMA Write, which nothing holds up, behind a Send that the peer
// has no receive for.
func viCompletesInOrder(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels) {
		r := newVIRig(t, viSetup{level: l.level, receives: 2, vi: func(a *vipl.ViAttributes) { a.FlowControl = true }})
		ds := []*vipl.Descriptor{r.sends(r.v, r.data(0, 1)), r.writes(r.v, r.remote(0), r.data(1, 1)), r.sends(r.v, r.data(2, 1))}
		done := func(want ...bool) {
			for i, d := range ds {
				require.Equal(t, want[i], d.Done(), "Descriptor %d", i)
			}
		}
		r.send("x") // whatever could have been done is done by then
		r.received(r.v, r.receives[0], viDone|viOpReceive)
		done(false, false, false)
		r.nop(viSegment{posted: 1, ack: r.subject})
		var numbers []uint32
		for s := r.next(); len(numbers) < 2; s = r.next() {
			if s.kind == viNOP { // an ACK
				continue
			}
			require.Equal(t, []byte{viSend, viWrite}[len(numbers)], s.kind)
			if numbers = append(numbers, s.number); len(numbers) == 2 {
				break
			}
		}
		if l.level == vipl.ServiceReliableReception {
			done(false, false, false)
			r.nop(viSegment{posted: 1, ack: numbers[1]})
		}
		r.sent(r.v, ds[0], viDone)
		r.sent(r.v, ds[1], viDone|viOpWrite)
		r.put(r.message(viSegment{kind: viSend, flags: viLast, posted: 1, ack: numbers[1]}))
		r.received(r.v, r.receives[1], viDone|viOpReceive)
		done(true, true, false)
	}
}

// viAnswersInOrder answers the second of two RDMA Reads first: neither succeeds.
func viAnswersInOrder(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[1:]) {
		r := newVIRig(t, viSetup{level: l.level})
		before := bytes.Clone(r.mem)
		from := vipl.AddressSegment{Data: 1, Handle: 1}
		first, second := r.reads(r.v, from, r.data(0, 1)), r.reads(r.v, from, r.data(1, 1))
		r.get(viReadRequest)
		r.put(viSegment{kind: viReadResponse, flags: viLast, number: r.get(viReadRequest).number, payload: []byte("2")})
		r.over()
		for _, d := range []*vipl.Descriptor{first, second} {
			require.Same(t, d, must(r.v.SendWait(t.Context()))(t))
			require.NotZero(t, d.Control.Status.Errors())
		}
		require.True(t, bytes.Equal(before, r.mem), "the memory")
	}
}

// viOverrun sends more than a receive has room for, in one segment and by the second of two.
func viOverrun(t *conformance.T) {
	for _, l := range viLevels {
		for _, parts := range [][]string{{"12345678"}, {"1234", "5678"}, {"1234567", "8"}} {
			t.Part("%s, %d segments", l.name, len(parts))
			r := newVIRig(t, viSetup{level: l.level})
			d := r.desc()
			d.SetRecv(r.data(0, 3), r.data(100, 4))
			d.Control.Length = 77
			require.NoError(t, r.v.PostRecv(d, r.dh))
			s := r.message(viSegment{kind: viSend})
			for i, p := range parts {
				if s.payload = []byte(p); i == len(parts)-1 {
					s.flags |= viLast
				}
				r.put(s)
				s.offset += uint32(len(p))
			}
			r.received(r.v, d, viDone|viLength|viOpReceive)
			require.Zero(t, d.Control.Length)
			if l.level == vipl.ServiceUnreliable {
				require.Equal(t, vipl.StateConnected, r.state(r.v))
			} else {
				require.Equal(t, vipl.StateError, r.state(r.v))
			}
		}
	}
}

// viNoOctets registers nothing at all.
func viNoOctets(t *conformance.T) {
	h := newVIHost(t, vipl.Config{})
	regions := h.usage().Regions
	for name, mem := range map[string][]byte{"nil": nil, "empty": {}, "of a length of zero": h.mem[8:8]} {
		for _, a := range []vipl.MemAttributes{{Ptag: h.ptag}, {Ptag: h.ptag, EnableRdmaWrite: true, EnableRdmaRead: true}} {
			viCode(t, vipl.ErrInvalidParameter, second(h.nic.RegisterMem(mem, &a)), name)
		}
	}
	for _, descs := range [][]vipl.Descriptor{nil, {}, h.descs[:0]} {
		viCode(t, vipl.ErrInvalidParameter, second(h.nic.RegisterDescriptors(descs, h.ptag)), "Descriptors")
	}
	require.Equal(t, regions, h.usage().Regions)
}

// viQueueOverrun posts a Descriptor more than a work queue holds.
func viQueueOverrun(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels) {
		for recv := range inTurn(t, "receives %v", []bool{false, true}) {
			r := newVIRig(t, viSetup{level: l.level, nic: vipl.Config{MaxDescriptorsPerQueue: 2}})
			set, post, op := (*vipl.Descriptor).SetSend, r.v.PostSend, vipl.Status(0)
			if recv {
				set, post, op = (*vipl.Descriptor).SetRecv, r.v.PostRecv, vipl.Status(viOpReceive)
			}
			var d *vipl.Descriptor
			for i := range 3 {
				d = r.desc()
				set(d)
				if err := post(d, r.dh); i < 2 {
					require.NoError(t, err)
				} else {
					viCode(t, vipl.ErrResource, err, "one too many")
				}
			}
			require.False(t, d.Done())
			if l.level == vipl.ServiceUnreliable { // 7.1: the return code tells it
				require.Equal(t, vipl.StateConnected, r.state(r.v))
				require.Empty(t, r.errors)
				continue
			}
			r.told(vipl.ErrorDescriptor{
				ViHandle: r.v, DescriptorPtr: d, OpCode: op, ResourceCode: vipl.ResourceVi, ErrorCode: vipl.ErrorViOverrun,
			})
			require.Equal(t, vipl.StateError, r.state(r.v))
		}
	}
}

// viWriteErrorInReceive has RDMA Writes with immediate data go where they may not.
func viWriteErrorInReceive(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels) {
		for c := range inTurn(t, "%s", viRefused) {
			if c.read || c.name == "deregistered" { // along with the receives' memory
				continue
			}
			r := newVIRig(t, viSetup{level: l.level, vi: c.vi, receives: 2})
			at := c.at(r)
			before := bytes.Clone(r.mem)
			r.put(r.message(viSegment{kind: viWrite, flags: viLast | viImmediate, immediate: 5, rdma: at, payload: []byte("12345678")}))
			r.received(r.v, r.receives[0], viDone|viProtection|viOpRemoteWrite|viHasImmediate)
			require.True(t, bytes.Equal(before, r.mem), "the memory")
			if l.level == vipl.ServiceUnreliable {
				r.takes("next", r.receives[1], viDone|viOpReceive)
				require.Empty(t, r.errors)
				require.Zero(t, r.usage().Untold)
				continue
			}
			r.received(r.v, r.receives[1], viDone|viFlushed|viOpReceive)
			r.reported(r.v, vipl.ErrorConnLost, viOpRemoteWrite)
			r.over()
			require.NoError(t, r.v.Disconnect())
			require.Empty(t, r.errors)
		}
	}
}
