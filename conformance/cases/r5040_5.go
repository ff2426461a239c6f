package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_5 is RDMA Writes and Sends: RFC 5040 5.1 and 5.3.
var r5040_5 = []conformance.Case{
	upperCase("5.1/write-placed", onRig(writePlaced), "R5040-5.1-M1", "R5040-5.1-M3"),
	upperCase("5.1/writes-sent", writesSent, "R5040-5.1-M2", "R5040-5.1-M4", "R5040-5.1-M5", "R5040-4.1-M4"),
	upperCase("5.3/sends-sent", sendsSent, "R5040-5.3-M2", "R5040-5.3-M5", "R5040-5.3-M6", "R5040-5.3-M8", "R5040-5.3-M9"),
	upperCase("5.3/sends-received", sendsReceived, "R5040-5.3-M1", "R5040-5.3-M3", "R5040-5.3-M4", "R5040-5.3-M7"),
	upperCase("5.3/send-without-receive", sendWithoutReceive, "R5040-5.3-M3", "R5040-5.3-M7"),
	upperCase("5.3/invalidated", invalidated, "R5040-4.1-M3", "R5040-5.3-M10"),
	upperCase("5.3/invalidation-refused", invalidationRefused, "R5040-5.3-M10", "R5040-7.2-M4", "R5040-7.2-M5", "R5040-8.1.1-M8"),
}

// writePlaced: nobody at the sink is told of an RDMA Write.
func writePlaced(t *conformance.T, r *rig) {
	b := r.region(300, allRights)
	receives := r.recv(1, 16)
	r.notify(r.RecvCQ, verbs.NotifyNext)
	r.send(
		aWrite(b.tag(), b.at(7), []byte("whole")),
		tagged(moreTagged, opWrite, b.tag(), b.at(100), []byte("first ")),
		tagged(lastTagged, opWrite, b.tag(), b.at(106), []byte("last")),
		aWrite(b.tag(), b.at(0), nil),
	)
	r.settled()
	b.gets(7, []byte("whole"))
	b.holds(100, []byte("first last"))
	r.incomplete()
	require.False(t, r.notified(r.RecvCQ), "a notification")
	r.events()
	receives[0].unchanged()
	r.delivers(1, "now")
	require.True(t, r.notified(r.RecvCQ), "a notification of the Send")
	b.unchanged()
	r.state(verbs.StateRTS)
}

// writesSent compares the headers of all segments of many RDMA Writes, and their
// order.
func writesSent(t *conformance.T) {
	const long = 150_000 // octets: more than one segment on any path
	r, b := openWith(t, setup{}, long+64)
	var list []verbs.Request
	for i := range 10 {
		to := theirs
		to.TO += uint64(1000 * (9 - i))
		list = append(list,
			verbs.Request{ID: uint64(2*i + 1), Op: verbs.OpWrite, Flags: verbs.Unsignaled, SGL: b.sgl(i, i+1), Remote: to},
			verbs.Request{ID: uint64(2*i + 2), Flags: verbs.Unsignaled, SGL: b.sgl(i, 2)},
		)
	}
	r.post(list...)
	for i := range 10 {
		r.expect(
			aWrite(uint32(theirs.STag), theirs.TO+uint64(1000*(9-i)), b.first[i:2*i+1]),
			aSend(uint32(i+1), b.first[i:i+2]),
		)
	}
	// A gather list of several elements goes to one buffer.
	r.post(verbs.Request{ID: 99, Op: verbs.OpWrite, Remote: theirs, SGL: []verbs.SGE{
		b.sge(0, 10), b.sge(20, long), {}, b.sge(5, 1),
	}})
	m := r.taggedMessage(opWrite, uint32(theirs.STag), theirs.TO)
	require.Greater(t, len(m.segments), 1)
	want := append(append(append([]byte(nil), b.first[:10]...), b.first[20:20+long]...), b.first[5])
	same(t, want, m.payload, "what the gather list names")
	r.completions(verbs.Completion{ID: 99, Op: verbs.OpWrite})

	// Nor is a message taken that goes to two.
	t.Part("an RDMA Write that changes its STag")
	v := newFaultRig(t, setup{})
	other := v.rig.region(64, allRights)
	v.send(tagged(moreTagged, opWrite, other.tag(), other.at(0), []byte("one")))
	v.rejected(badOpcode, aWrite(v.region.tag(), v.region.at(3), []byte("two")))
	other.holds(0, []byte("one")) // placed before: 5041 lets it
}

// sendsSent compares the headers of all segments of Sends of each type and length.
func sendsSent(t *conformance.T) {
	const long = 100_000
	r, b := openWith(t, setup{}, long)
	msn, lengths := uint32(0), []int{0, 1, 1000, long}
	for _, n := range lengths {
		var list []verbs.Request
		for i, s := range sendTypes {
			list = append(list, verbs.Request{ID: uint64(i), Op: s.op, SGL: b.sgl(0, n), Invalidate: verbs.STag(s.invalid)})
		}
		r.post(list[0])
		r.post(list[1:]...)
		for i, s := range sendTypes {
			msn++
			m := r.untaggedMessage(s.control, s.invalid, msn)
			same(t, b.first[:n], m.payload, "%v of %d octets", s.op, n)
			require.Equal(t, n == long, len(m.segments) > 1, "%v of %d octets has %d segments", s.op, n, len(m.segments))
			r.completions(verbs.Completion{ID: uint64(i), Op: s.op})
		}
	}
	r.settled()
}

// sendsReceived: many Sends of every type and length, each for one receive, in
// order.
func sendsReceived(t *conformance.T) {
	const count, room, batch = 200, 700, 25
	r := open(t, setup{qp: uppertester.OpenArgs{RecvDepth: 256}})
	b := r.region(count*room, verbs.LocalWrite|verbs.LocalRead)
	for i := range count {
		r.postRecv(verbs.Recv{ID: uint64(i), SGL: b.sgl(i*room, room)})
	}
	data := uppertester.Pattern(3, room)
	var want []verbs.Completion
	for i := range count {
		n := t.Rand().IntN(room + 1)
		if i%10 == 0 {
			n = 0
		}
		control := []byte{opSend, opSendSE}[i%2]
		cut := t.Rand().IntN(n + 1)
		msn := r.nextSend()
		if i%3 == 0 {
			r.send(
				untagged(moreUntagged, control, 0, 0, msn, 0, data[:cut]),
				untagged(lastUntagged, control, 0, 0, msn, uint32(cut), data[cut:n]),
			)
		} else {
			r.send(untagged(lastUntagged, control, 0, 0, msn, 0, data[:n]))
		}
		copy(b.first[i*room:], data[:n])
		want = append(want, verbs.Completion{ID: uint64(i), Op: verbs.OpRecv, Bytes: uint32(n)})
		if len(want) == batch {
			r.completions(want...)
			want = nil
		}
	}
	b.unchanged()
	r.incomplete()
	r.state(verbs.StateRTS)
}

// sendWithoutReceive: an empty Send needs a receive as any other does.
func sendWithoutReceive(t *conformance.T) {
	for n := range inTurn(t, "a Send of %d octets", []int{0, 1, 100}) {
		r := open(t, setup{})
		b := r.recv(2, 100)
		r.sendMessage(nil)
		r.send(
			untagged(moreUntagged, opSend, 0, 0, 2, 0, []byte("a")),
			untagged(lastUntagged, opSend, 0, 0, 2, 1, []byte("b")),
		)
		r.completions(
			verbs.Completion{ID: 1, Op: verbs.OpRecv},
			verbs.Completion{ID: 2, Op: verbs.OpRecv, Bytes: 2},
		)
		b[0].unchanged()
		b[1].holds(0, []byte("ab"))
		u := aSend(3, make([]byte, n))
		r.refuses(0x1202, u, false)
		r.events(verbs.EventRQMSNRange)
		r.incomplete()
	}
}

// invalidated: a Send with Invalidate makes its STag Invalid and says so.
func invalidated(t *conformance.T) {
	for _, what := range []string{"a region", "a region that any queue pair may use, by a long Send", "a region of this queue pair", "a window"} {
		for _, control := range []byte{opSendInv, opSendSEInv} {
			t.Part("%s", what)
			r := open(t, setup{})
			r.recv(1, 16)
			a := uppertester.RegisterArgs{Len: 64, Access: allRights | verbs.BindWindow}
			if what == "a region of this queue pair" {
				a.QP = r.QP
			}
			b := r.register(a)
			stag := b.STag
			if what == "a window" {
				stag = r.window(b, verbs.RemoteWrite)
			}
			r.send(aWrite(uint32(stag), b.at(0), []byte("before")))
			if what == "a region that any queue pair may use, by a long Send" {
				r.send(untagged(moreUntagged, control, uint32(stag), 0, 1, 0, []byte("xy")))
				r.settled()
				require.True(t, b.query().Valid, "before the last segment")
				r.send(untagged(lastUntagged, control, uint32(stag), 0, 1, 2, []byte("z")))
			} else {
				r.send(untagged(lastUntagged, control, uint32(stag), 0, 1, 0, []byte("xyz")))
			}
			r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 3, Invalidated: stag, HasInvalidated: true})
			require.Equal(t, what == "a window", b.query().Valid, "the region")
			b.holds(0, []byte("before"))
			bad := aWrite(uint32(stag), b.at(0), []byte("after"))
			r.send(bad)
			r.terminated(0x1100, bad, false)
			b.unchanged()
		}
	}
}

// invalidationRefused names STags that a peer may not invalidate. The receive
// completes in error, and the STag stays as it was.
func invalidationRefused(t *conformance.T) {
	type kind struct {
		what   string
		code   uint16
		status verbs.Status
		stag   func(r *rig) (verbs.STag, *buffer) // and the region that it is of
	}
	region := func(a uppertester.RegisterArgs) func(*rig) (verbs.STag, *buffer) {
		return func(r *rig) (verbs.STag, *buffer) {
			a.Len = 64
			b := r.register(a)
			return b.STag, b
		}
	}
	kinds := []kind{
		{"a region of another PD", 0x0109, verbs.StatusInvalidateSTag, region(uppertester.RegisterArgs{PD: 1, Access: allRights})},
		{"a region without remote rights", 0x0109, verbs.StatusInvalidateSTag, region(uppertester.RegisterArgs{Access: verbs.LocalRead | verbs.LocalWrite})},
		{"a region that peers may not invalidate", 0x0109, verbs.StatusInvalidateSTag, region(uppertester.RegisterArgs{Access: allRights, NoRemoteInvalidate: true})},
		{"a region of another queue pair", 0x0109, verbs.StatusInvalidateSTag, func(r *rig) (verbs.STag, *buffer) {
			b := r.register(uppertester.RegisterArgs{Len: 64, Access: allRights, QP: openQP(t, r.up, uppertester.OpenArgs{}).QP})
			return b.STag, b
		}},
		{"a window of another queue pair", 0x0109, verbs.StatusInvalidateSTag, func(r *rig) (verbs.STag, *buffer) {
			b := r.region(64, allRights|verbs.BindWindow)
			return r.beside(setup{}).window(b, verbs.RemoteWrite), b
		}},
		{"a shared region", 0x0109, verbs.StatusInvalidSTag, func(r *rig) (verbs.STag, *buffer) {
			b := r.region(64, allRights)
			var s uppertester.Region
			require.NoError(t, r.up.Share(uppertester.ShareArgs{Region: b.Region.Region, Access: allRights}, &s))
			return b.STag, b
		}},
		{"another key", 0x0109, verbs.StatusInvalidSTag, func(r *rig) (verbs.STag, *buffer) {
			b := r.region(64, allRights)
			return b.STag ^ 1, b
		}},
		{"zero", 0x0109, verbs.StatusInvalidSTag, func(r *rig) (verbs.STag, *buffer) { return 0, r.region(64, allRights) }},
		{"a region that is no more", 0x0209, verbs.StatusInvalidSTag, func(r *rig) (verbs.STag, *buffer) {
			gone := r.region(64, allRights)
			gone.deregister()
			return gone.STag, r.region(64, allRights)
		}},
	}
	for k := range inTurn(t, "%s", kinds) {
		r := open(t, setup{})
		r.recv(1, 16)
		stag, b := k.stag(r)
		u := aSendInv(1, uint32(stag), []byte("abc"))
		r.refuses(k.code, u, false)
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Status: k.status})
		r.events()
		require.True(t, b.query().Valid, "the region afterwards")
		b.unchanged()
	}
}
