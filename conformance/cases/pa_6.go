package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

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
			e := receive(t, r.errors, "nothing came")
			require.Equal(t, vipl.ErrorViOverrun, e.ErrorCode)
			require.Equal(t, op, e.OpCode)
			require.Same(t, r.v, e.ViHandle)
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
			r.reported(vipl.ErrorConnLost)
			r.over()
			require.NoError(t, r.v.Disconnect())
			require.Empty(t, r.errors)
		}
	}
}
