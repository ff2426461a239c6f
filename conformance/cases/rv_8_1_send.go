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
	apiCase("8.1.2.1/gathered-here", onProbe(verbs.QPConfig{}, gatheredHere), "RV-8.1.2.1-M8"),
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

func gatheredHere(n *host, s *probe) {
	t := n.t
	x, y, sgl := twoRegions(n, verbs.LocalRead)
	want := slices.Concat(y.Bytes()[100:130], x.Bytes()[200:205], y.Bytes()[:1], x.Bytes()[17:61])
	foreign := foreignSTag(t)
	for _, c := range sendTypes {
		require.Equal(t, want, s.gather(c.op, sgl, verbs.StatusSuccess), "what %v sent", c.op)
		s.gather(c.op, []verbs.SGE{foreign}, verbs.StatusInvalidSTag)
		s.gather(c.op, []verbs.SGE{sgl[0], sgl[1], foreign}, verbs.StatusInvalidSTag)
		s.connect()
	}
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

// rv8_1_2_2 is where RDMA takes its data from and brings it to: verbs draft 8.1.2.2.
var rv8_1_2_2 = []conformance.Case{
	apiCase("8.1.2.2/no-receive-used", onHostPair(noReceiveUsed), "RV-8.1.2.2-M1"),
	apiCase("8.1.2.2/write-from-here", onHostPair(writeFromHere), "RV-8.1.2.2-M2"),
	apiCase("8.1.2.2/read-to-here", onProbe(verbs.QPConfig{}, readToHere), "RV-8.1.2.2-M3"),
	apiCase("8.1.2.2/sinks-of-reads", onQuietHost(sinksOfReads), "RV-8.1.2.2-M4"),
	apiCase("8.1.2.2/addresses-are-the-peers", onHost(addressesArePeers), "RV-8.1.2.2-M5"),
	apiCase("8.1.2.2/whole-range-there", onQuietHost(wholeRangeThere), "RV-8.1.2.2-M6"),
}

// noReceiveUsed runs the three operations while the peer has a receive posted, and
// while it has none.
func noReceiveUsed(t *conformance.T, w *hostPair) {
	a, b := w.a, w.b
	all := func() {
		for _, size := range []int{0, 40} {
			run(t, a.qp, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: a.mr.SGL(0, size), Remote: b.mr.Remote(0)}, verbs.StatusSuccess)
			run(t, a.qp, verbs.Request{ID: 2, Op: verbs.OpRead, Local: a.mr.SGE(100, size), Remote: b.mr.Remote(0)}, verbs.StatusSuccess)
			sink := a.register(64, allRights)
			run(t, a.qp, verbs.Request{ID: 3, Op: verbs.OpReadInvalidate, Local: sink.SGE(0, size), Remote: b.mr.Remote(0)}, verbs.StatusSuccess)
			require.False(t, queried(t, sink).Valid, "the sink of the Read with Invalidate")
		}
		empty(t, b.cq)
	}
	t.Part("none posted")
	all()
	t.Part("one posted")
	postRecv(t, b.qp, verbs.Recv{ID: 5, SGL: b.mr.SGL(0, 64)})
	all()
	run(t, a.qp, verbs.Request{ID: 6, SGL: a.mr.SGL(0, 7)}, verbs.StatusSuccess)
	completes(t, b.cq, verbs.Completion{ID: 5, QP: b.qp.ID(), Op: verbs.OpRecv, Bytes: 7})
	t.Part("")
	b.quiet()
}

// writeFromHere gathers a Write from two regions. Is one element no memory of this
// side, nothing is written at all.
func writeFromHere(t *conformance.T, w *hostPair) {
	x, y, sgl := twoRegions(w.a, verbs.LocalRead)
	want := make([]byte, 200)
	copy(want[60:], slices.Concat(y.Bytes()[100:130], x.Bytes()[200:205], y.Bytes()[:1], x.Bytes()[17:61]))
	sink := w.b.register(200, allRights)
	run(t, w.a.qp, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: sgl, Remote: sink.Remote(60)}, verbs.StatusSuccess)
	run(t, w.a.qp, verbs.Request{ID: 2, Op: verbs.OpRead}, verbs.StatusSuccess)
	require.Equal(t, want, sink.Bytes())

	for i := range counted(t, "element %d is the peer's", 3) {
		a, b := w.connectMore(verbs.QPConfig{}, verbs.QPConfig{})
		bad := slices.Clone(sgl[1:])
		bad[i] = sink.SGE(0, 8) // known there, and not here
		run(t, a, verbs.Request{ID: 3, Op: verbs.OpWrite, SGL: bad, Remote: sink.Remote(0)}, verbs.StatusInvalidSTag)
		ends(t, a, verbs.StateError)
		ends(t, b, verbs.StateError)
		m := attributes(t, b).Terminate
		require.NotNil(t, m)
		require.False(t, m.Sent)
		require.Equal(t, []byte{0, 0}, m.Raw[:2], "the Terminate Message that the peer got")
		require.Equal(t, want, sink.Bytes())
	}
}

// readToHere reads into the middle of a region, and into what is no region here.
func readToHere(n *host, s *probe) {
	mr := n.register(100, allRights)
	want := slices.Clone(fill(mr.Bytes(), 1))
	for _, at := range [][2]int{{0, 1}, {31, 9}, {40, 60}, {0, 100}} {
		b := fill(make([]byte, at[1]), at[0]+7)
		copy(want[at[0]:], b)
		s.sink(mr.SGE(at[0], at[1]), b, verbs.StatusSuccess, allowed)
		require.Equal(n.t, want, mr.Bytes(), "%d octets from %d", at[1], at[0])
	}
	s.sink(foreignSTag(n.t), nil, verbs.StatusInvalidSTag, allowed)
}

// sinksOfReads: a Read whose sink is not there sends no request.
func sinksOfReads(n *host) {
	t := n.t
	mr := n.register(100, allRights|verbs.BindWindow)
	for _, op := range []verbs.Op{verbs.OpRead, verbs.OpReadInvalidate} {
		refused := func(s *probe, what string, sink verbs.SGE, want verbs.Status) {
			t.Part("%v, %s", op, what)
			s.runs(verbs.Request{ID: 1, Op: op, Local: sink, Remote: theirs}, want)
		}
		s := n.probe(verbs.QPConfig{})
		refused(s, "one octet past the region", mr.SGE(90, 11), verbs.StatusBaseBounds)
		refused(s, "one octet before it", verbs.SGE{STag: mr.STag(), TO: mr.Base() - 1, Length: 4}, verbs.StatusBaseBounds)
		mw := n.newMW()
		refused(s, "a window that was never bound", verbs.SGE{STag: mw.STag(1), TO: mr.Base(), Length: 4}, verbs.StatusInvalidSTag)
		gone := n.register(100, allRights)
		s.connect()
		s.invalidate(invalidations[0], gone.STag(), invalidates)
		refused(s, "an Invalid region", gone.SGE(0, 4), verbs.StatusInvalidSTag)
		require.NoError(t, gone.Deregister())
		refused(s, "a region that is no more", gone.SGE(0, 4), verbs.StatusInvalidSTag)
		s.connect()
		s.disconnect()

		for what, at := range map[string][2]int{"past": {10, 41}, "before": {-1, 4}} {
			s, mw, b := n.bound(verbs.QPConfig{}, 20, 50, remoteRights)
			sink := b.SGE(0, at[1])
			sink.TO += uint64(at[0])
			refused(s, "one octet "+what+" the window", sink, verbs.StatusBaseBounds)
			require.NoError(t, mw.Deallocate())
		}
		s, mw, b := n.bound(verbs.QPConfig{}, 20, 50, remoteRights)
		s.invalidate(invalidations[0], b.STag, invalidates)
		refused(s, "an invalidated window", b.SGE(0, 4), verbs.StatusInvalidSTag)
		require.NoError(t, mw.Deallocate())
	}

	t.Part("what is there")
	s := n.probe(verbs.QPConfig{})
	s.sink(mr.SGE(90, 10), fill(make([]byte, 10), 1), verbs.StatusSuccess, allowed)
	require.Equal(t, fill(make([]byte, 10), 1), mr.Bytes()[90:])
	s.disconnect()
	s, mw, b := n.bound(verbs.QPConfig{}, 20, 50, remoteRights)
	sent := fill(make([]byte, 50), 2)
	s.sink(b.SGE(0, 50), sent, verbs.StatusSuccess, allowed)
	require.Equal(t, sent, n.mr.Bytes()[20:70], "through a window")
	require.NoError(t, mw.Deallocate())
	s.disconnect()
}

// addressesArePeers: what the program says of the far buffer is on the wire, whether
// the STag means something here or nothing.
func addressesArePeers(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	gone, elsewhere := n.register(8, allRights), n.region(n.newPD(), verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead})
	require.NoError(t, gone.Deregister())
	was := slices.Clone(fill(n.mr.Bytes(), 4))
	m := n.mr.Bytes()
	for i, far := range []verbs.Remote{
		theirs, {STag: 1}, {STag: ^verbs.STag(0), TO: 1 << 63},
		n.mr.Remote(512), gone.Remote(0), elsewhere.Remote(4), {STag: n.mr.STag() ^ 1, TO: n.mr.Base()}, {STag: n.newMW().STag(3), TO: 9},
	} {
		t.Part("%v", far)
		post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: l.mr.SGL(0, 10), Remote: far})
		l.expect(aWrite(uint32(far.STag), far.TO, m[:10]))
		completes(t, l.sq, l.sentAs(1, verbs.OpWrite, verbs.StatusSuccess))
		sink := l.mr.Remote(4096)
		post(t, l.qp, verbs.Request{ID: 2, Op: verbs.OpRead, Local: l.mr.SGE(4096, 8), Remote: far})
		l.expect(aReadRequest(uint32(i+1), read{uint32(sink.STag), sink.TO, 8, uint32(far.STag), far.TO}))
		b := fill(make([]byte, 8), i+50)
		copy(was[4096:], b)
		l.send(aReadResponse(uint32(sink.STag), sink.TO, b))
		completes(t, l.sq, l.sentAs(2, verbs.OpRead, verbs.StatusSuccess))
		same(t, was, m, "the memory here")
	}
	t.Part("")
	n.quiet()
}

// wholeRangeThere: a peer gets at what is within a region or window, and if one octet
// is not, at nothing.
func wholeRangeThere(n *host) {
	t := n.t
	const off, size = 100, 50
	window := func() (*probe, verbs.TaggedBuffer, func()) {
		s, mw, b := n.bound(verbs.QPConfig{}, off, size, remoteRights)
		return s, b, func() { require.NoError(t, mw.Deallocate()) }
	}
	region := func() (*probe, verbs.TaggedBuffer, func()) {
		mr := n.region(n.pd, verbs.RegionConfig{Memory: n.mr.Bytes()[off : off+size], Access: allRights})
		return n.probe(verbs.QPConfig{}), mr.Buffer(), func() { require.NoError(t, mr.Deregister()) }
	}
	mem := n.mr.Bytes()[:off+size+100]
	for kind, get := range map[string]func() (*probe, verbs.TaggedBuffer, func()){"region": region, "window": window} {
		s, b, done := get()
		t.Part("%s, within", kind)
		s.checksPeer(b, 0, mem[off:off+size], remoteRights, accessFault{})
		s.write(b.Remote(size-1), []byte{0xAB}, allowed)
		require.Equal(t, byte(0xAB), mem[off+size-1])
		require.Len(t, s.read(b.Remote(size-1), 1, allowed), 1)
		done()
		s.disconnect()
		for _, at := range []struct {
			from uint64 // of the first octet, relative to that of the buffer
			size int
		}{{0, size + 1}, {size - 1, 2}, {size, 1}, {^uint64(0), 1}, {^uint64(0), size + 1}} {
			t.Part("%s, %d octets from %d", kind, at.size, int64(at.from))
			for _, op := range []byte{opWrite, opReadRequest} {
				s, b, done := get()
				was := slices.Clone(fill(mem, 6))
				far := b.Remote(0)
				far.TO += at.from
				if op == opWrite {
					s.write(far, make([]byte, at.size), noBounds.write)
				} else {
					s.read(far, at.size, noBounds.read)
				}
				require.Equal(t, was, mem)
				done()
			}
		}
	}
}
