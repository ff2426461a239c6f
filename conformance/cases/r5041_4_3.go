package cases

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_4_3 is untagged segments: RFC 5041 4.3.
var r5041_4_3 = []conformance.Case{
	upperCase("4.3/untagged-layout", onRig(untaggedLayout), "R5041-4.3-M1", "R5041-4.3-M2", "R5041-4.3-M7"),
	upperCase("4.3/rsvdulp-told", untaggedTold, "R5041-4.3-M3", "R5041-5.4-M3"),
	upperCase("4.3/rsvdulp-not-compared", onRig(rsvdNotCompared), "R5041-4.3-M5"),
	upperCase("4.3/change-within-message", untaggedChange, "R5041-4.3-M6", "R5041-4.3-M12"),
	upperCase("4.3/msn-counts", msnCounts, "R5041-4.3-M9"),
	upperCase("4.3/msn-begins-at-one", msnBegins, "R5041-4.3-M10"),
	upperCase("4.3/mo", moCounts, "R5041-4.3-M14", "R5041-5.2-M6"),
}

// untaggedLayout writes figure 5 down, octet by octet, for each queue.
func untaggedLayout(t *conformance.T, r *rig) {
	receives := r.recv(2, 16)
	b := r.region(64, allRights)
	r.post(
		verbs.Request{ID: 1, Op: verbs.OpSendSEInvalidate, SGL: b.sgl(0, 3), Invalidate: 0xA1B2C3D4},
		verbs.Request{ID: 2, SGL: b.sgl(3, 2)},
		verbs.Request{ID: 3, Op: verbs.OpRead, Local: b.sge(8, 1), Remote: theirs},
	)
	require.Equal(t, append([]byte{
		0x41, 0x46, 0xA1, 0xB2, 0xC3, 0xD4, // L, version 1; RsvdULP: the operation and what to invalidate
		0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, // QN, MSN, MO
	}, b.first[:3]...), r.next(), "a Send")
	require.Equal(t, append([]byte{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0}, b.first[3:5]...), r.next(), "another Send")
	require.Equal(t, []byte{0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}, r.next()[:18], "an RDMA Read Request")
	r.send(append([]byte{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, "first"...))
	r.send(append([]byte{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0}, "second"...))
	r.send(aReadResponse(b.tag(), b.at(8), []byte{8}))
	got := r.poll(r.SendCQ, 5, r.patience())
	require.ElementsMatch(t, []verbs.Completion{
		{ID: 1, QP: r.ID, Op: verbs.OpSendSEInvalidate}, {ID: 2, QP: r.ID}, {ID: 3, QP: r.ID, Op: verbs.OpRead},
		{ID: 1, QP: r.ID, Op: verbs.OpRecv, Bytes: 5}, {ID: 2, QP: r.ID, Op: verbs.OpRecv, Bytes: 6},
	}, got)
	receives[0].holds(0, []byte("first"))
	receives[1].holds(0, []byte("second"))
	r.send([]byte{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 0})
	require.Equal(t, []byte{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0}, r.next()[:18], "a Terminate Message")
}

// untaggedTold: by the control octet and the STag that came, the receiving side knows
// what to do: whether to wake its program, and what to invalidate.
func untaggedTold(t *conformance.T) {
	for _, s := range sendTypes {
		t.Part("%v", s.op)
		r := open(t, setup{qp: uppertester.OpenArgs{SendCQ: 1, RecvCQ: 2}})
		receives := r.recv(1, 16)
		b := r.region(64, allRights)
		r.notify(r.RecvCQ, verbs.NotifySolicited)
		want := verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 7}
		if s.invalid != 0 {
			want.Invalidated, want.HasInvalidated = b.STag, true
		}
		r.send(untagged(lastUntagged, s.control, b.tag(), 0, 1, 0, []byte("message")))
		r.completionsOf(r.RecvCQ, want)
		require.Equal(t, s.solicited, r.notified(r.RecvCQ), "a notification")
		require.Equal(t, s.invalid == 0, b.query().Valid, "the region")
		receives[0].holds(0, []byte("message"))
	}
}

// rsvdNotCompared: the segments of a Send with Invalidate name different STags. The
// receiver takes one of them, and says which.
func rsvdNotCompared(t *conformance.T, r *rig) {
	r.recv(1, 16)
	var regions [3]*buffer
	for i := range regions {
		regions[i] = r.region(64, allRights)
	}
	r.send(
		untagged(moreUntagged, opSendInv, regions[0].tag(), 0, 1, 0, []byte("one ")),
		untagged(lastUntagged, opSendInv, regions[1].tag(), 0, 1, 4, []byte("two")),
	)
	got := r.poll(r.RecvCQ, 1, r.patience())
	require.Len(t, got, 1)
	require.Equal(t, verbs.StatusSuccess, got[0].Status)
	require.EqualValues(t, 7, got[0].Bytes)
	require.True(t, got[0].HasInvalidated)
	require.Contains(t, []verbs.STag{regions[0].STag, regions[1].STag}, got[0].Invalidated)
	for i, b := range regions {
		require.Equal(t, b.STag != got[0].Invalidated, b.query().Valid, "region %d", i)
	}
	r.state(verbs.StateRTS)
}

// untaggedChange: the second segment of a Send has another queue or another number.
func untaggedChange(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what    string
		qn, msn uint32
		peerFault
	}{
		{"queue 1", 1, 1, badQN},
		{"queue 2", 2, 1, badQN},
		{"queue 0x80000000", 0x80000000, 1, badQN},
		{"MSN 2", 0, 2, badMSN},
		{"MSN 0", 0, 0, badMSN},
	}) {
		v := newFaultRig(t, setup{})
		v.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, []byte("begun")))
		v.settled()
		v.receive.gets(0, []byte("begun"))
		v.rejected(x.peerFault, untagged(lastUntagged, opSend, 0, x.qn, x.msn, 5, []byte("other")))
	}
}

// msnCounts: Sends and RDMA Reads are numbered each on their own; one that is left out
// or comes again is refused.
func msnCounts(t *conformance.T) {
	const count = 60
	r, b := openWith(t, setup{qp: uppertester.OpenArgs{ORD: count, SendDepth: count}}, 64)
	for i := range count {
		l := verbs.Request{ID: uint64(i), Op: sendTypes[t.Rand().IntN(4)].op, Invalidate: 0x700, SGL: b.sgl(0, i)}
		switch i % 3 {
		case 1:
			l = verbs.Request{ID: uint64(i), Op: verbs.OpRead, Local: b.sge(0, 1), Remote: theirs}
		case 2:
			l = verbs.Request{ID: uint64(i), Op: verbs.OpWrite, SGL: b.sgl(0, i), Remote: theirs}
		}
		r.post(l)
	}
	numbers := counter{}
	for range count {
		numbers.counts(t, r.message())
	}
	require.Equal(t, counter{0: count / 3, 1: count / 3}, numbers)

	for x := range inTurn(t, "a Send %s", []struct {
		what  string
		msn   uint32
		event verbs.EventID
	}{
		{"left out", 5, verbs.EventRQMSNGap}, {"again", 3, verbs.EventRQMSNRange}, {"the first again", 1, verbs.EventRQMSNRange},
		{"far ahead", 0x80000004, verbs.EventRQMSNRange}, {"with its octets swapped", 0x04000000, verbs.EventRQMSNRange},
	}) {
		r := open(t, setup{})
		bufs := r.recv(8, 16)
		var want []verbs.Completion
		for i := range 8 {
			c := verbs.Completion{ID: uint64(i + 1), Op: verbs.OpRecv, Status: verbs.StatusFlushed}
			if i < 3 {
				r.sendMessage([]byte("good"))
				bufs[i].gets(0, []byte("good"))
				c.Status, c.Bytes = verbs.StatusSuccess, 4
			}
			want = append(want, c)
		}
		bad := aSend(x.msn, []byte("bad"))
		r.refuses(0x1203, bad, false)
		r.events(x.event)
		r.completions(want...)
		allUnchanged(bufs)
	}
}

// msnBegins: the first of each queue is 1, on the first stream of a queue pair and on
// its next ones, both ways.
func msnBegins(t *conformance.T) {
	for _, msn := range []uint32{0, 2} {
		rejects(t, setup{}, fmt.Sprintf("a first Send %d", msn), badMSN, always(aSend(msn, []byte("x"))))
		f := either(msn == 0, readMSN, readMSNGap)
		rejects(t, setup{}, fmt.Sprintf("a first RDMA Read Request %d", msn), f, func(v *faultRig) []byte {
			return aReadRequest(msn, read{nowhere, nowhereTO, 1, v.region.tag(), v.region.at(0)})
		})
	}

	s := setup{}
	r, b := openWith(t, s, 64)
	for stream := range counted(t, "stream %d of a queue pair", 3) {
		r.recv(2, 16)
		r.sendMessage([]byte("one"))
		r.sendMessage([]byte("two"))
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 3}, verbs.Completion{ID: 2, Op: verbs.OpRecv, Bytes: 3})
		r.settled()
		r.post(verbs.Request{ID: 1, SGL: b.sgl(0, 1)}, verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.sge(0, 1), Remote: theirs})
		r.expect(aSend(1, b.first[:1]), aReadRequest(1, read{b.tag(), b.at(0), 1, uint32(theirs.STag), theirs.TO}))
		r.send(aReadResponse(b.tag(), b.at(0), b.first[:1]))
		r.completions(verbs.Completion{ID: 1}, verbs.Completion{ID: 2, Op: verbs.OpRead})
		if stream == 2 {
			break
		}
		r.close()
		r.finishedIn(verbs.StateIdle)
		r.connect(s)
		r.start(s)
	}
	bad := aWrite(0x77, 0, []byte("x"))
	r.send(bad)
	r.terminated(0x1100, bad, false) // its MSN is 1, too
}

// moCounts: the MO is 0 first, and then the number of octets before, in what is sent,
// see message, and in what is taken.
func moCounts(t *conformance.T) {
	const long = 200_000
	r, b := openWith(t, setup{}, long)
	for _, s := range sendTypes {
		r.post(verbs.Request{ID: 1, Op: s.op, SGL: b.sgl(0, long), Invalidate: verbs.STag(s.invalid)})
		p := r.message()
		require.Greater(t, len(p.segments), 1)
		same(t, b.first, p.payload, "%v", s.op)
		r.completions(verbs.Completion{ID: 1, Op: s.op})
	}
	for _, mo := range []uint32{1, 0x01000000, 0xFFFFFFFF} {
		rejects(t, setup{}, "a first segment with an MO", badMO, always(untagged(lastUntagged, opSend, 0, 0, 1, mo, []byte("x"))))
	}
	for mo := range inTurn(t, "MO %d behind 5 octets", []uint32{0, 4, 6, 0x10005}) {
		v := newFaultRig(t, setup{})
		v.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, []byte("five.")))
		v.receive.gets(0, []byte("five."))
		v.rejected(badMO, untagged(lastUntagged, opSend, 0, 0, 1, mo, []byte("x")))
	}
}
