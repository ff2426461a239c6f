package cases

import (
	"encoding/binary"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/verbs"
)

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
