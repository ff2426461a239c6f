package cases

import (
	"encoding/binary"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_5_2 is RDMA Reads and what is asked of a peer: RFC 5040 5.2.1.
var r5040_5_2 = []conformance.Case{
	upperCase("5.2.1/read-requests-sent", onRig(readRequestsSent),
		"R5040-5.2-M1", "R5040-5.2.1-M2", "R5040-5.2.1-M7", "R5040-5.2.1-M8", "R5040-5.2.1-M10"),
	upperCase("5.2.1/reads-answered", readsAnswered,
		"R5040-5.2-M1", "R5040-5.2.1-M4", "R5040-5.2.1-M5", "R5040-5.2.1-M12", "R5040-5.2.2-M2"),
	upperCase("5.2.1/answers-in-order", answersInOrder, "R5040-5.2.1-M9", "R5040-5.2.2-M5", "R5040-5.2.2-M6", "R5040-5.5-M10"),
	upperCase("5.2.1/read-request-queue", readRequestQueue, "R5040-5.2.1-M3", "R5040-5.2.1-M6", "R5040-5.2.2-M3", "R5040-6.1-M5"),
	upperCase("5.2.1/source-refused", sourceRefused,
		"R5040-5.2.1-M13", "R5040-7.2-M9", "R5040-7.2-M10", "R5040-7.2-M11", "R5040-7.2-M12", "R5040-7.2-M13"),
	upperCase("5.2.1/one-source", oneSource, "R5040-5.2.1-M11", "R5040-7.2-M12"),
	upperCase("5.2.1/read-of-nothing", onRig(readOfNothing), "R5040-5.2.1-M14", "R5040-5.2.1-M15"),
}

// readRequestsSent: eight Reads, one request each, in order.
func readRequestsSent(t *conformance.T, r *rig) {
	b := r.region(8*64, allRights)
	var list []verbs.Request
	for i := range 8 {
		n := []int{0, 1, 64}[i%3]
		list = append(list, verbs.Request{
			ID: uint64(i), Op: verbs.OpRead, Local: b.sge(64*(7-i), n),
			Remote: verbs.Remote{STag: theirs.STag + verbs.STag(i), TO: theirs.TO * uint64(i)},
		})
	}
	r.post(list[:3]...)
	r.post(list[3:]...)
	for i, l := range list {
		r.expect(aReadRequest(uint32(i+1), read{
			b.tag(), b.at(64 * (7 - i)), l.Local.Length, uint32(l.Remote.STag), l.Remote.TO,
		}))
	}
	r.settled() // and no other request
	r.incomplete()
	for i, l := range list {
		data := uppertester.Pattern(uint8(i), int(l.Local.Length))
		r.send(aReadResponse(b.tag(), b.at(64*(7-i)), data))
		copy(b.first[64*(7-i):], data)
		r.completions(verbs.Completion{ID: uint64(i), Op: verbs.OpRead})
	}
	b.unchanged()
}

// readsAnswered: the responder's program does nothing and is told nothing.
func readsAnswered(t *conformance.T) {
	const size = 200_000
	r := open(t, setup{})
	b := r.region(size, verbs.LocalRead|verbs.RemoteRead)
	receives := r.recv(1, 16)
	r.notify(r.RecvCQ, verbs.NotifyNext)
	for i := range 100 {
		off := t.Rand().IntN(size)
		n := t.Rand().IntN(min(size-off, 3000) + 1)
		if i%25 == 0 {
			off, n = 0, size
		}
		sink := read{t.Rand().Uint32(), t.Rand().Uint64() >> 1, uint32(n), b.tag(), b.at(off)}
		r.send(aReadRequest(r.nextRead(), sink))
		got := r.taggedMessage(opReadResponse, sink.sinkSTag, sink.sinkTO).payload
		same(t, b.first[off:off+n], got, "octets %d to %d", off, off+n)
	}
	r.incomplete()
	r.events()
	require.False(t, r.notified(r.RecvCQ), "a notification")
	receives[0].unchanged()
	b.unchanged()
	r.state(verbs.StateRTS)
}

// answersInOrder: eight requests in one write of TCP, of very different lengths.
func answersInOrder(t *conformance.T) {
	const size = 1 << 20
	r, b := openWith(t, setup{qp: uppertester.OpenArgs{IRD: 8}}, size)
	lengths := []int{size, 0, 1, 64 << 10, 0, 2, 100_000, 0}
	var requests [][]byte
	for i, n := range lengths {
		requests = append(requests, aReadRequest(r.nextRead(), read{nowhere + uint32(i), nowhereTO, uint32(n), b.tag(), b.at(0)}))
	}
	r.sendAtOnce(requests...)
	for i, n := range lengths {
		t.Part("response %d", i)
		got := r.taggedMessage(opReadResponse, nowhere+uint32(i), nowhereTO).payload
		same(t, b.first[:n], got, "the response")
	}
	r.settled()
}

// readRequestQueue: each request takes one place of IRD, of which there are as many
// as was agreed, until its response is sent; receives are something else.
func readRequestQueue(t *conformance.T) {
	const size = 8 << 20 // more than TCP takes for a peer that does not read
	for ird := range inTurn(t, "IRD %d", []int{1, 4}) {
		r, b := openWith(t, setup{qp: uppertester.OpenArgs{IRD: ird}, narrow: true}, size)
		r.recv(1, 16)
		// As many as there are places, again and again.
		for range 3 {
			var requests [][]byte
			for range ird {
				requests = append(requests, aReadRequest(r.nextRead(), read{nowhere, 0, 5, b.tag(), b.at(0)}))
			}
			r.sendAtOnce(requests...)
			for range ird {
				r.expect(aReadResponse(nowhere, 0, b.first[:5]))
			}
		}
		// Sends are numbered on their own, and take receives.
		r.delivers(1, "beside")
		// With the first response held back, there is no room for one more.
		for i := range ird {
			n := either(i == 0, size, 0)
			r.send(aReadRequest(r.nextRead(), read{nowhere + uint32(i), 0, uint32(n), b.tag(), b.at(0)}))
		}
		more := aReadRequest(r.nextRead(), read{nowhere, 0, 0, 0, 0})
		r.send(more)
		r.events(verbs.EventIRRQTooMany) // before anything is read
		before := r.eventuallyTerminated(0x1202, more, false)
		answers := 0
		for _, u := range before {
			require.Equal(t, byte(opReadResponse), u[1], "the control octet of % x", u[:14])
			answers += int(u[0] >> 6 & 1)
		}
		require.LessOrEqual(t, answers, ird, "responses")
		r.ended(verbs.StateError)
		r.events(verbs.EventIRRQTooMany)
	}
}

// sourceRefused names sources that a peer may not read.
func sourceRefused(t *conformance.T) {
	reads := func(stag uint32, to uint64, n uint32) []byte {
		return aReadRequest(1, read{nowhere, nowhereTO, n, stag, to})
	}
	of := func(a uppertester.RegisterArgs) func(v *faultRig) []byte {
		return func(v *faultRig) []byte {
			a.Len = 64
			b := v.register(a)
			return reads(b.tag(), b.at(0), 1)
		}
	}
	rejectsEach(t, setup{},
		segmentFault{"an unknown STag", noSTag.read, func(v *faultRig) []byte {
			gone := v.rig.region(64, allRights)
			gone.deregister()
			return reads(gone.tag(), gone.at(0), 1)
		}},
		segmentFault{"another key", noSTag.read, func(v *faultRig) []byte {
			return reads(v.region.tag()^0x80, v.region.at(0), 1)
		}},
		segmentFault{"STag zero", noSTag.read, func(v *faultRig) []byte { return reads(0, v.region.at(0), 1) }},
		segmentFault{"an Invalid region", noSTag.read, func(v *faultRig) []byte {
			var g uppertester.Region
			require.NoError(t, v.up.Allocate(uppertester.RegisterArgs{RemoteAccess: true}, &g))
			return reads(uint32(g.STag), 0, 1)
		}},
		segmentFault{"a region of another PD", noPD.read, of(uppertester.RegisterArgs{PD: 1, Access: allRights})},
		segmentFault{"a region of another queue pair", noPD.read, func(v *faultRig) []byte {
			return of(uppertester.RegisterArgs{Access: allRights, QP: openQP(t, v.up, uppertester.OpenArgs{}).QP})(v)
		}},
		segmentFault{"another queue pair's window", noPD.read, func(v *faultRig) []byte {
			w := v.beside(setup{}).window(v.region, verbs.RemoteRead)
			return reads(uint32(w), v.region.at(0), 1)
		}},
		segmentFault{"a region without the right", noRight.read, of(uppertester.RegisterArgs{
			Access: verbs.LocalRead | verbs.LocalWrite | verbs.RemoteWrite,
		})},
		segmentFault{"a TO and size that wrap", noWrap.read, func(v *faultRig) []byte {
			return reads(v.region.tag(), 0xFFFFFFFFFFFFFFF8, 16)
		}},
	)
	for _, x := range []struct{ off, n int }{{-1, 1}, {-1, 2}, {256, 1}, {255, 2}, {0, 257}, {100, 1000}, {1 << 30, 1}} {
		rejects(t, setup{}, fmt.Sprintf("%d octets from %d on, of 256", x.n, x.off), noBounds.read, func(v *faultRig) []byte {
			return reads(v.region.tag(), v.region.at(x.off), uint32(x.n))
		})
	}

	t.Part("the first, the last and all octets")
	r := open(t, setup{})
	b := r.region(256, verbs.LocalRead|verbs.RemoteRead)
	require.Equal(t, b.first[:1], r.fetch(b, 0, 1))
	require.Equal(t, b.first[255:], r.fetch(b, 255, 1))
	require.Equal(t, b.first, r.fetch(b, 0, 256))
}

// oneSource: a request does not run from one region into its neighbour, though
// their tagged offsets join.
func oneSource(t *conformance.T) {
	const va = 1 << 20
	r := open(t, setup{})
	left := r.register(uppertester.RegisterArgs{Len: 64, Access: allRights, VA: va})
	right := r.register(uppertester.RegisterArgs{Len: 64, Access: allRights, VA: va + 64})
	require.Equal(t, left.first, r.fetch(left, 0, 64))
	require.Equal(t, right.first, r.fetch(right, 0, 64))
	bad := aReadRequest(r.nextRead(), read{nowhere, nowhereTO, 128, left.tag(), va})
	r.refuses(0x0101, bad, true)
	r.events(verbs.EventIRRQBounds)
}

// readOfNothing: the source of an RDMA Read of no octets is not looked at, and there
// is a response.
func readOfNothing(t *conformance.T, r *rig) {
	b := r.region(64, allRights)
	closed := r.region(64, verbs.LocalRead)
	foreign := r.register(uppertester.RegisterArgs{PD: 1, Len: 64, Access: allRights})
	for i, source := range []struct {
		what string
		stag uint32
		to   uint64
	}{
		{"a good one", b.tag(), b.at(0)},
		{"its end", b.tag(), b.at(64)},
		{"an unknown STag", 0xDEADBEEF, 0},
		{"STag zero", 0, 0},
		{"another PD's", foreign.tag(), foreign.at(0)},
		{"one without the right", closed.tag(), closed.at(0)},
		{"far beyond", b.tag(), 0xFFFFFFFFFFFFFFFF},
	} {
		t.Part("the source is %s", source.what)
		sink, to := nowhere+uint32(i), uint64(nowhereTO)<<(i%4)
		r.send(aReadRequest(r.nextRead(), read{sink, to, 0, source.stag, source.to}))
		want := []byte{0xC1, 0x42}
		want = binary.BigEndian.AppendUint32(want, sink)
		want = binary.BigEndian.AppendUint64(want, to)
		r.expect(want)
	}
	r.unharmed()
}

// r5040_5_2_2 is RDMA Read Responses that come in: RFC 5040 5.2.2.
var r5040_5_2_2 = []conformance.Case{
	upperCase("5.2.2/response-placed", onRig(responsePlaced), "R5040-5.2.2-M1", "R5040-5.2.2-M4", "R5040-5.5-M11"),
	upperCase("5.2.2/response-elsewhere", responseElsewhere, "R5040-5.2.2-M6", "R5040-7.2-M1", "R5040-7.2-M2"),
}

// responsePlaced: a response fills the sink and completes its Read, and takes no
// receive. Nothing else has to come.
func responsePlaced(t *conformance.T, r *rig) {
	receives := r.recv(1, 16)
	b := r.region(64, verbs.LocalWrite|verbs.LocalRead|verbs.RemoteWrite)
	r.post(
		verbs.Request{ID: 1, Op: verbs.OpRead, Local: b.sge(8, 9), Remote: theirs},
		verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.sge(32, 6), Remote: theirs, Flags: verbs.Unsignaled},
		verbs.Request{ID: 3, Op: verbs.OpRead, Local: b.sge(40, 0), Remote: theirs},
	)
	for i := range 3 {
		require.Equal(t, uint32(i+1), binary.BigEndian.Uint32(r.next()[10:]), "MSN")
	}
	r.send(
		tagged(moreTagged, opReadResponse, b.tag(), b.at(8), []byte("resp")),
		tagged(lastTagged, opReadResponse, b.tag(), b.at(12), []byte("onse.")),
	)
	r.completions(verbs.Completion{ID: 1, Op: verbs.OpRead})
	b.holds(8, []byte("response."))
	r.send(aReadResponse(b.tag(), b.at(32), []byte("second")), aReadResponse(b.tag(), b.at(40), nil))
	r.completions(verbs.Completion{ID: 3, Op: verbs.OpRead})
	b.holds(32, []byte("second"))
	receives[0].unchanged()
	r.incomplete()
	r.state(verbs.StateRTS)
}

// responseElsewhere: a response goes where the Read said and nowhere else.
func responseElsewhere(t *conformance.T) {
	sink := func(off int, payload string) func(*faultRig) []byte {
		return func(v *faultRig) []byte { return aReadResponse(v.sink.tag(), v.sink.at(off), []byte(payload)) }
	}
	rejectsEach(t, setup{},
		segmentFault{"another region", noSTag.write, func(v *faultRig) []byte {
			return aReadResponse(v.region.tag(), v.region.at(0), []byte("response"))
		}},
		segmentFault{"beside the sink, in its region", noBounds.write, sink(8, "response")},
		segmentFault{"more than was asked for", noBounds.write, sink(0, "response!")},
		segmentFault{"less than was asked for", noBounds.write, sink(0, "")},
	)
	t.Part("two sinks")
	v := newFaultRig(t, setup{})
	v.send(tagged(moreTagged, opReadResponse, v.sink.tag(), v.sink.at(0), []byte("res")))
	copy(v.sink.first, "res")
	v.rejected(badOpcode, aReadResponse(v.region.tag(), v.region.at(0), []byte("ponse")))

	t.Part("nobody asked")
	r, b := openWith(t, setup{}, 64)
	u := aReadResponse(b.tag(), b.at(0), []byte("x"))
	r.refuses(0x0206, u, false)
	r.events(verbs.EventUnexpectedOpcode)
	b.unchanged()
}
