package cases

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_1_2_2 is where RDMA takes its data from and brings it to: verbs draft 8.1.2.2.
var rv8_1_2_2 = []conformance.Case{
	apiCase("8.1.2.2/no-receive-used", onHostPair(noReceiveUsed), "RV-8.1.2.2-M1"),
	apiCase("8.1.2.2/write-from-here", onHostPair(writeFromHere), "RV-8.1.2.2-M2"),
	apiCase("8.1.2.2/read-to-here", onQuietHost(readToHere), "RV-8.1.2.2-M3"),
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
func readToHere(n *host) {
	s := n.probe(verbs.QPConfig{})
	mr := n.register(100, allRights)
	want := slices.Clone(fill(mr.Bytes(), 1))
	for _, at := range [][2]int{{0, 1}, {31, 9}, {40, 60}, {0, 100}} {
		b := fill(make([]byte, at[1]), at[0]+7)
		copy(want[at[0]:], b)
		s.sink(mr.SGE(at[0], at[1]), b, verbs.StatusSuccess, allowed)
		require.Equal(n.t, want, mr.Bytes(), "%d octets from %d", at[1], at[0])
	}
	s.sink(foreignSTag(n.t), nil, verbs.StatusInvalidSTag, allowed)
	s.disconnect()
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
