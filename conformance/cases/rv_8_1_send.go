package cases

import (
	"bytes"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_1_2_1 is Sends and the receives that they use up: verbs draft 8.1.2.1.
var rv8_1_2_1 = []conformance.Case{
	apiCase("8.1.2.1/one-receive-for-a-send", onHostPair(oneReceiveForASend), "RV-8.1.2.1-M1"),
	apiCase("8.1.2.1/exactly-enough", onQuietHost(exactlyEnough), "RV-8.1.2.1-M4"),
	apiCase("8.1.2.1/not-enough", onQuietHost(notEnough), "RV-8.1.2.1-M4", "RV-8.1.2.1-M5"),
	apiCase("8.1.2.1/length-told", lengthsTold, "RV-8.1.2.1-M6"),
	apiCase("8.1.2.1/gathered-here", onQuietHost(gatheredHere), "RV-8.1.2.1-M8"),
	apiCase("8.1.2.1/scattered-here", onQuietHost(scatteredHere), "RV-8.1.2.1-M9"),
}

// oneReceiveForASend posts two receives and sends twice, with each type of Send and
// also nothing; and once more with no receive posted.
func oneReceiveForASend(t *conformance.T, w *hostPair) {
	here, there := w.a.qp, w.b.qp
	for _, s := range sendTypes {
		for _, size := range []int{0, 30} {
			t.Part("%v of %d octets", s.op, size)
			postRecv(t, there, verbs.Recv{ID: 1, SGL: w.b.mr.SGL(0, 64)}, verbs.Recv{ID: 2, SGL: w.b.mr.SGL(64, 64)})
			for id := uint64(1); id <= 2; id++ {
				req := verbs.Request{ID: 10 + id, Op: s.op, SGL: w.a.mr.SGL(0, size)}
				want := verbs.Completion{ID: id, QP: there.ID(), Op: verbs.OpRecv, Bytes: uint32(size)}
				if s.invalid != 0 {
					req.Invalidate = w.b.register(8, allRights).STag()
					want.Invalidated, want.HasInvalidated = req.Invalidate, true
				}
				run(t, here, req, verbs.StatusSuccess)
				run(t, here, verbs.Request{ID: 20, Op: verbs.OpRead}, verbs.StatusSuccess) // it has arrived
				completes(t, w.b.cq, want)
				empty(t, w.b.cq)
			}
		}
	}
	t.Part("none is posted")
	run(t, here, verbs.Request{ID: 3}, verbs.StatusSuccess) // it completes once TCP has it
	ends(t, there, verbs.StateError)
	w.b.events.are(verbs.Event{ID: verbs.EventRQMSNRange, QP: there.ID()})
	m := attributes(t, there).Terminate
	require.NotNil(t, m, "the Terminate Message")
	require.True(t, m.Sent)
	require.Equal(t, []byte{0x12, 0x02}, m.Raw[:2], "its layer, type and code")
	ends(t, here, verbs.StateError)
	w.a.events.are(verbs.Event{ID: verbs.EventTerminateReceived, QP: here.ID()})
	empty(t, w.b.cq)
}

// rowOf is elements of these lengths in a region, with a gap of four octets before
// and behind each.
func rowOf(mr *verbs.MR, lengths ...int) (sgl []verbs.SGE) {
	off := 4
	for _, k := range lengths {
		sgl = append(sgl, mr.SGE(off, k))
		off += k + 4
	}
	return sgl
}

// row is the memory of rowOf, the gaps being gap and the elements filled from b as
// far as it goes.
func row(size int, gap byte, b []byte, lengths ...int) []byte {
	m := bytes.Repeat([]byte{gap}, size)
	off := 4
	for _, k := range lengths {
		b = b[copy(m[off:off+k], b):]
		off += k + 4
	}
	return m
}

func exactlyEnough(n *host) {
	const gap = 0xEE
	for _, c := range []verbs.QPConfig{{}, {SRQ: n.newSRQ(verbs.SRQConfig{})}} {
		s := n.probe(c)
		for _, lengths := range [][]int{{1}, {100}, {1, 1}, {7, 64, 9}, {30, 0, 30, 500}} {
			size := 0
			for _, k := range lengths {
				size += k
			}
			mr := n.register(1000, verbs.LocalWrite)
			copy(mr.Bytes(), bytes.Repeat([]byte{gap}, 1000))
			sent := fill(make([]byte, size), size)
			s.scatter(rowOf(mr, lengths...), sent, verbs.StatusSuccess)
			require.Equal(n.t, row(1000, gap, sent, lengths...), mr.Bytes(), "elements of %v", lengths)
		}
		s.disconnect()
	}
}

// notEnough sends one octet more than the receive has room for, in one segment, in
// two, and in two of which the second is too much by itself.
func notEnough(n *host) {
	const gap = 0xEE
	t := n.t
	srq := n.newSRQ(verbs.SRQConfig{})
	for _, c := range []verbs.QPConfig{{}, {SRQ: srq}} {
		for _, first := range []int{0, 1, 40, 64} {
			t.Part("S-RQ %v, a first segment of %d octets", c.SRQ != nil, first)
			l := n.link(c)
			mr := n.register(200, verbs.LocalWrite)
			copy(mr.Bytes(), bytes.Repeat([]byte{gap}, 200))
			r := verbs.Recv{ID: 5, SGL: rowOf(mr, 24, 40)}
			postRecv(t, receiver(l.qp, c.SRQ), r)
			sent := fill(make([]byte, 65), 5)
			if first > 0 {
				l.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, sent[:first]))
			}
			bad := untagged(lastUntagged, opSend, 0, 0, 1, uint32(first), sent[first:])
			l.send(bad)
			l.terminated(0x1205, bad, false)
			require.Equal(t, verbs.StateTerminate, l.qp.State())
			l.shut()
			got := await(t, l.rq, 1)[0]
			got.Bytes = 0 // says nothing in an error (RV-8.1.2.1-M7)
			require.Equal(t, l.recvAs(verbs.StatusBaseBounds, 5)[0], got)
			ends(t, l.qp, verbs.StateError)
			empty(t, l.rq)
			for _, at := range [][2]int{{0, 4}, {28, 32}, {72, 200}} {
				require.Equal(t, bytes.Repeat([]byte{gap}, at[1]-at[0]), mr.Bytes()[at[0]:at[1]], "octets %v", at)
			}
		}
	}
}

// lengthsTold sends messages of many lengths into a receive that is as long as the
// longest, from an RNIC and cut by hand.
func lengthsTold(t *conformance.T) {
	const most = 100_000
	w := newHostPair(t, hostPairConfig{})
	from, to := w.a.register(most, verbs.LocalRead), w.b.register(most, verbs.LocalWrite)
	for _, size := range []int{0, 1, 2, 255, 256, 1460, 32_000, 33_000, 65_536, most - 1, most} {
		postRecv(t, w.b.qp, verbs.Recv{ID: 1, SGL: to.SGL(0, most)})
		run(t, w.a.qp, verbs.Request{ID: 2, SGL: from.SGL(0, size)}, verbs.StatusSuccess)
		completes(t, w.b.cq, verbs.Completion{ID: 1, QP: w.b.qp.ID(), Op: verbs.OpRecv, Bytes: uint32(size)})
	}
	l := w.a.link(verbs.QPConfig{})
	for i, cuts := range [][]int{{0}, {0, 0}, {1, 0}, {0, 1}, {1, 1, 1}, {20, 0, 30}, {64}} {
		l.recv(1)
		mo := 0
		for k, size := range cuts {
			first := either(k == len(cuts)-1, lastUntagged, byte(moreUntagged))
			l.send(untagged(first, opSend, 0, 0, uint32(i+1), uint32(mo), make([]byte, size)))
			mo += size
		}
		completes(t, l.rq, l.got(1, mo))
	}
}

// twoRegions are filled, and elements of both that are not in order of address.
func twoRegions(n *host, a verbs.Access) (x, y *verbs.MR, sgl []verbs.SGE) {
	x, y = n.register(256, a), n.register(256, a)
	fill(x.Bytes(), 1)
	fill(y.Bytes(), 2)
	return x, y, []verbs.SGE{y.SGE(100, 30), x.SGE(200, 5), y.SGE(0, 1), x.SGE(17, 44)}
}

// foreignSTag is an STag that another RNIC knows.
func foreignSTag(t *conformance.T) verbs.SGE { return newHost(t, hostConfig{}).mr.SGE(0, 8) }

func gatheredHere(n *host) {
	t, s := n.t, n.probe(verbs.QPConfig{})
	x, y, sgl := twoRegions(n, verbs.LocalRead)
	want := slices.Concat(y.Bytes()[100:130], x.Bytes()[200:205], y.Bytes()[:1], x.Bytes()[17:61])
	foreign := foreignSTag(t)
	for _, c := range sendTypes {
		require.Equal(t, want, s.gather(c.op, sgl, verbs.StatusSuccess), "what %v sent", c.op)
		s.gather(c.op, []verbs.SGE{foreign}, verbs.StatusInvalidSTag)
		s.gather(c.op, []verbs.SGE{sgl[0], sgl[1], foreign}, verbs.StatusInvalidSTag)
		s.connect()
	}
	s.disconnect()
}

func scatteredHere(n *host) {
	t := n.t
	foreign := foreignSTag(t)
	for _, c := range []verbs.QPConfig{{}, {SRQ: n.newSRQ(verbs.SRQConfig{})}} {
		s := n.probe(c)
		x, y, sgl := twoRegions(n, verbs.LocalWrite)
		sent := fill(make([]byte, 80), 3)
		for _, k := range []int{29, 30, 31, 36, 37, 79, 80} { // on and beside the ends of elements
			wantX, wantY := slices.Clone(x.Bytes()), slices.Clone(y.Bytes())
			rest := sent[:k]
			for _, part := range [][]byte{wantY[100:130], wantX[200:205], wantY[:1], wantX[17:61]} {
				rest = rest[copy(part, rest):]
			}
			s.scatter(sgl, sent[:k], verbs.StatusSuccess)
			require.Equal(t, wantX, x.Bytes(), "%d octets, one region", k)
			require.Equal(t, wantY, y.Bytes(), "%d octets, the other", k)
			sent[0]++
		}
		s.scatter([]verbs.SGE{foreign}, sent[:8], verbs.StatusInvalidSTag)
		s.scatter([]verbs.SGE{sgl[0], foreign}, sent[:38], verbs.StatusInvalidSTag)
		s.disconnect()
	}
}
