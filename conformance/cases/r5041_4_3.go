package cases

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/internal/verbsinternal"
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

// r5041_4_3_wrap is streams that have carried so much that their counters wrap: RFC 5041
// 4.3, RFC 5044 4.3.
var r5041_4_3_wrap = []conformance.Case{
	apiCase("4.3/msn-wraps", msnWraps, "R5041-4.3-M9", "R5041-4.3-M11"),
	apiCase("4.3/msn-refused-across-the-wrap", msnRefusedAcross, "R5041-4.3-M9", "R5041-4.3-M11", "R5041-7.1-M1"),
	apiCase("4.3/markers-beyond-2-32-octets", markersBeyond, "R5044-4.3-M2", "R5044-4.3-M4"),
}

// wrapping are the MSNs from where the streams of a case begin on.
var wrapping = []uint32{0xFFFFFFFE, 0xFFFFFFFF, 0, 1, 2}

// late is a queue pair whose stream has carried something, and a raw peer.
type late struct {
	*host
	*peer
}

// newLate begins a stream behind what c counts.
func newLate(t *conformance.T, qp verbs.QPConfig, c verbsinternal.Counts, s verbs.StreamConfig) *late {
	n := &host{t: t, nic: openRNIC(t, verbs.Config{})}
	verbsinternal.Begin(n.nic, c)
	n.events, n.pd, n.cq = logEvents(t, n.nic), n.newPD(), n.newCQ(512)
	if qp.RQLimit < 0 { // receives from an S-RQ
		qp.RQLimit, qp.SRQ = 0, n.newSRQ(verbs.SRQConfig{})
	}
	n.qp, n.mr = n.newQP(qp), n.register(hostMemory, allRights)
	fill(n.mr.Bytes(), 1)
	far, near := tcpPair(t)
	s.Conn, s.Role = near, asInitiator
	p := peerOver(t, n.qp, far, s)
	p.closes = true
	return &late{n, p}
}

// beforeTheWrap has both queues' next MSN be the first of wrapping.
var beforeTheWrap = verbsinternal.Counts{Sends: wrapping[0] - 1, Reads: wrapping[0] - 1}

// msnWraps sends and takes messages of no octet, of one segment and of two on both
// queues, until their numbers have wrapped: 0 follows 0xFFFFFFFF.
func msnWraps(t *conformance.T) {
	for i, qp := range []verbs.QPConfig{{}, {RQLimit: -1}} {
		for _, n := range []int{0, 5, 40_000} {
			t.Part("messages of %d octets, %s", n, []string{"a Receive Queue", "an S-RQ"}[i])
			l := newLate(t, qp, beforeTheWrap, verbs.StreamConfig{})
			for k, msn := range wrapping {
				l.exchange(msn, n, byte(k))
			}
			l.quiet()
		}
	}
	t.Part("")
}

// exchange has each side send a message of n octets and read one octet, with this MSN.
func (l *late) exchange(msn uint32, n int, octet byte) {
	t, b := l.host.t, l.mr
	const at = hostMemory - 1 // what is read
	data := slices.Clone(b.Bytes()[:n])
	post(t, l.qp, verbs.Request{ID: 1, SGL: b.SGL(0, n)}, verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.SGE(at, 1), Remote: theirs})
	var got []byte
	for first := byte(moreUntagged); first == moreUntagged; {
		u := l.next()
		first = u[0]
		require.Equal(t, untagged(first, opSend, 0, 0, msn, uint32(len(got)), nil), u[:18], "the header of a Send")
		got = append(got, u[18:]...)
	}
	same(t, data, got, "what is sent")
	l.expect(aReadRequest(msn, read{uint32(b.STag()), b.Base() + at, 1, uint32(theirs.STag), theirs.TO}))
	l.send(aReadResponse(uint32(b.STag()), b.Base()+at, []byte{octet}))
	completes(t, l.cq, verbs.Completion{ID: 1, QP: l.qp.ID()}, verbs.Completion{ID: 2, QP: l.qp.ID(), Op: verbs.OpRead})
	require.Equal(t, octet, b.Bytes()[at], "what is read")

	fill(data, int(octet)+7)
	l.receive(verbs.Recv{ID: 3, SGL: b.SGL(0, n)})
	if n > 5 {
		l.send(cutUp(opSend, 0, msn, data, n/2, n-n/2)...)
	} else {
		l.send(aSend(msn, data))
	}
	completes(t, l.cq, verbs.Completion{ID: 3, QP: l.qp.ID(), Op: verbs.OpRecv, Bytes: uint32(n)})
	same(t, data, b.Bytes()[:n], "what has come")
	l.send(aReadRequest(msn, read{nowhere, nowhereTO, 1, uint32(b.STag()), b.Base() + at}))
	l.expect(aReadResponse(nowhere, nowhereTO, []byte{octet}))
}

// receive posts to where the queue pair takes its receives from.
func (l *late) receive(r verbs.Recv) {
	if srq := attributes(l.host.t, l.qp).SRQ; srq != nil {
		postRecv(l.host.t, srq, r)
		return
	}
	postRecv(l.host.t, l.qp, r)
}

// msnRefusedAcross has messages come out of order where the numbers wrap. Those between the
// one due and the last receive, or the last place of the IRRQ, are missing; all others are
// out of range. A Terminate Message that names the RDMA Read with MSN 0 is of that one.
func msnRefusedAcross(t *conformance.T) {
	const due = 0xFFFFFFFF
	at := verbsinternal.Counts{Sends: due - 1, Reads: due - 1}
	for _, x := range []struct {
		msn         uint32
		sends, read verbs.EventID
	}{
		{0, verbs.EventRQMSNGap, verbs.EventIRRQMSNGap},
		{1, verbs.EventRQMSNGap, verbs.EventIRRQMSNGap},
		{2, verbs.EventRQMSNRange, verbs.EventIRRQMSNRange},
		{due - 1, verbs.EventRQMSNRange, verbs.EventIRRQMSNRange},
		{due - 2, verbs.EventRQMSNRange, verbs.EventIRRQMSNRange},
		{due / 2, verbs.EventRQMSNRange, verbs.EventIRRQMSNRange},
	} {
		for event, u := range map[verbs.EventID][]byte{
			x.sends: aSend(x.msn, []byte("x")),
			x.read:  aReadRequest(x.msn, read{sinkSTag: nowhere}),
		} {
			t.Part("MSN %08x in place of %08x: %v", x.msn, uint32(due), event)
			l := newLate(t, verbs.QPConfig{IRD: 3}, at, verbs.StreamConfig{})
			for id := range uint64(3) {
				l.receive(verbs.Recv{ID: id, SGL: l.mr.SGL(int(id), 1)})
			}
			was := slices.Clone(l.mr.Bytes())
			l.send(u)
			l.terminated(0x1203, u, false)
			ends(t, l.qp, verbs.StateError)
			l.host.events.are(verbs.Event{ID: event, QP: l.qp.ID()})
			require.Equal(t, was, l.mr.Bytes())
		}
	}
	t.Part("a Terminate Message for MSN 0")
	l := newLate(t, verbs.QPConfig{}, at, verbs.StreamConfig{})
	var requests [][]byte
	for id := range uint64(3) {
		post(t, l.qp, verbs.Request{ID: id, Op: verbs.OpRead, Local: l.mr.SGE(int(id), 1), Remote: theirs})
		requests = append(requests, l.next())
	}
	require.EqualValues(t, 0, binary.BigEndian.Uint32(requests[1][10:]), "its MSN")
	l.send(aTerminate(0x0100, requests[1], true))
	l.silent("the end of the stream")
	l.drop()
	ends(t, l.qp, verbs.StateError)
	done := func(id uint64, s verbs.Status) verbs.Completion {
		return verbs.Completion{ID: id, QP: l.qp.ID(), Op: verbs.OpRead, Status: s}
	}
	completes(t, l.cq, done(0, verbs.StatusFlushed), done(1, verbs.StatusRemoteTermination), done(2, verbs.StatusFlushed))
	t.Part("")
}

// markersBeyond has streams pass octet 2^32, and the last that a counter of TCP has before it
// begins again: the markers go on to come every 512 octets, and point where they have to.
func markersBeyond(t *conformance.T) {
	for octets := range inTurn(t, "from octet %#x on", []uint64{1<<31 - 1024, 1<<32 - 512, 1<<32 - 4096, 1<<33 + 512}) {
		for crc := range inTurn(t, "CRC %v", []bool{true, false}) {
			l := newLate(t, verbs.QPConfig{}, verbsinternal.Counts{Octets: octets}, verbs.StreamConfig{CRC: crc, MarkersIn: true, MarkersOut: true})
			for k, n := range []int{0, 5, 40_000, 5, 0} { // the lanes look at each marker
				l.exchange(uint32(k+1), n, byte(k))
			}
			l.shut()
			l.silent("the end of the stream")
			ends(t, l.qp, verbs.StateIdle)
		}
	}
}
