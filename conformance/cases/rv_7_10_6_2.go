package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_10_6_2 is using windows: verbs draft 7.10.2 and 7.10.6.2.
var rv7_10_6_2 = []conformance.Case{
	apiCase("7.10.6.2/each-check", onQuietHost(windowAccess), "RV-7.10.6.2-M1", "RV-7.10.6.2-M9", "RV-7.10.6.2-M10", "PV-7.10.6.2-M1"),
	apiCase("7.10.6.2/state", onProbe(verbs.QPConfig{}, windowState), "RV-7.10.6.2-M2"),
	apiCase("7.10.6.2/other-qp", onQuietHost(windowOtherQP), "RV-7.10.2-M7", "RV-7.10.2-M22", "RV-7.10.6.2-M3"),
	apiCase("7.10.6.2/bounds", onQuietHost(windowBounds), "RV-7.10.2-M23", "RV-7.10.2-M24", "RV-7.10.6.2-M4", "RV-7.10.6.2-M5"),
	apiCase("7.10.6.2/region-rights", onQuietHost(windowRegionRights), "RV-7.10.6.2-M7", "PV-7.10.2-M2"),
	apiCase("7.10.6.2/qp-rights", onQuietHost(windowQPRights), "RV-7.10.6.2-M8", "PV-7.10.6.2-M1", "PV-7.10.6.2-M2"),
	apiCase("7.10.6.2/no-octets", onQuietHost(windowNoOctets), "RV-7.10.6.2-M11"),
}

// taggedAccess is what a peer does to a window.
type taggedAccess struct {
	name     string
	read     bool
	answered bool // it answers an RDMA Read into the window
}

var taggedAccesses = []taggedAccess{{name: "RDMA Write"}, {name: "RDMA Read Request", read: true}, {name: "RDMA Read Response", answered: true}}

// spoiled is what becomes of a window before an access: requests on its queue
// pair, and when they are executed; then whatever else.
type spoiled struct {
	requests []verbs.Request
	executed func() bool
	then     func()
}

// into has the peer do that on a probe's stream, and says how it is refused. An
// answer is checked when it comes: the Read has gone out before the window is
// spoiled. Completions come in order, so those of the requests behind the Read
// have to wait for its own.
func (a taggedAccess) into(s *probe, at verbs.Remote, k int, by spoiled, want accessFault) {
	t := s.t
	if a.answered {
		post(t, s.qp, verbs.Request{
			ID: 9, Op: verbs.OpRead, Local: verbs.SGE{STag: at.STag, TO: at.TO, Length: uint32(k)}, Remote: verbs.Remote{STag: 0x00FACE01},
		})
		s.segment(opReadRequest)
	}
	if len(by.requests) > 0 {
		post(t, s.qp, by.requests...)
		eventually(t, by.executed, "the window is spoiled")
	}
	if by.then != nil {
		by.then()
	}
	octets := bytes.Repeat([]byte{0xEE}, k)
	switch {
	case a.answered:
		s.send(aReadResponse(uint32(at.STag), at.TO, octets))
		s.fails(want.write.code) // and no event: the request tells
		got := await(t, s.host.cq, 1+len(by.requests))
		require.Equal(t, verbs.Completion{ID: 9, QP: s.qp.ID(), Op: verbs.OpRead, Status: want.local}, got[0])
		return
	case a.read:
		s.read(at, k, want.read)
	default:
		s.write(at, octets, want.write)
	}
	for _, c := range await(t, s.host.cq, len(by.requests)) {
		require.Equal(t, verbs.StatusSuccess, c.Status)
	}
}

// windowAccess breaks one condition of a good access at a time.
func windowAccess(n *host) {
	t, mem := n.t, n.mr.Bytes()
	for _, a := range taggedAccesses {
		for i, name := range []string{"Invalid", "another queue pair's", "elsewhere", "without the right"} {
			t.Logf("%s, window %s", a.name, name)
			s, mw, b := n.bound(verbs.QPConfig{}, 100, 32, remoteRights)
			right := either(a.read, verbs.RemoteWrite, verbs.RemoteRead)
			away := verbs.Request{ID: 1, Op: verbs.OpInvalidate, Invalidate: b.STag}
			invalid := func() bool { return !queried(t, mw).Valid }
			by := []spoiled{
				{[]verbs.Request{away}, invalid, nil},
				{[]verbs.Request{away}, invalid, func() {
					x := n.probe(verbs.QPConfig{SendCQ: n.newCQ(8)}) // the host's may have the one above
					x.runs(binds(mw.BindRequest(n.mr, 100, 32, remoteRights, 0x61)), verbs.StatusSuccess)
				}},
				{
					[]verbs.Request{away, binds(mw.BindRequest(n.mr, 101, 32, remoteRights, 0x61))},
					func() bool { return queried(t, mw).Base == n.mr.Base()+101 }, nil,
				},
				{
					[]verbs.Request{away, binds(mw.BindRequest(n.mr, 100, 32, right, 0x61))},
					func() bool { return queried(t, mw).Access == right }, nil,
				},
			}[i]
			was := bytes.Clone(fill(mem[:200], 3))
			a.into(s, b.Remote(0), 32, by, []accessFault{noSTag, noPD, noBounds, noRight}[i])
			require.Equal(t, was, mem[:200], "the region")
			require.NoError(t, mw.Deallocate())
		}
	}
	// And beyond the last TO.
	for _, a := range taggedAccesses[:2] {
		s, mw, b := n.bound(verbs.QPConfig{}, 100, 32, remoteRights)
		b.Base = 1<<64 - 4
		a.into(s, b.Remote(0), 8, spoiled{}, noWrap)
		require.NoError(t, mw.Deallocate())
	}
}

func windowState(n *host, s *probe) {
	t, mem := n.t, n.mr.Bytes()[:16]
	mw := n.newMW()
	b := mw.BindRequest(n.mr, 0, 16, remoteRights, 1)
	at := verbs.BindBuffer(b)
	s.checksPeer(at, 0, mem, 0, noSTag) // never bound
	s.connect()
	s.runs(binds(b), verbs.StatusSuccess)
	s.checksPeer(at, 0, mem, remoteRights, accessFault{})
	s.invalidate(invalidations[0], b.Window, invalidates)
	s.checksPeer(at, 0, mem, 0, noSTag) // invalidated
	s.connect()
	s.runs(binds(b), verbs.StatusSuccess)
	s.checksPeer(at, 0, mem, remoteRights, accessFault{})
	require.NoError(t, mw.Deallocate())
	s.checksPeer(at, 0, mem, 0, noSTag) // deallocated
}

func windowOtherQP(n *host) {
	t, mem := n.t, n.mr.Bytes()[50:80]
	s, mw, b := n.bound(verbs.QPConfig{}, 50, 30, remoteRights)
	x := n.probe(verbs.QPConfig{}) // of the same PD
	s.checksPeer(b, 0, mem, remoteRights, accessFault{})
	s.sink(b.SGE(0, 30), fill(make([]byte, 30), 4), verbs.StatusSuccess, allowed)
	x.checksPeer(b, 0, mem, 0, noPD)
	was := bytes.Clone(mem)
	x.sink(b.SGE(0, 30), nil, verbs.StatusInvalidPD, allowed)
	s.checksPeer(b, 0, mem, remoteRights, accessFault{})
	require.True(t, queried(t, mw).Valid)

	// An answer that comes on a stream that is no more the window's.
	x.connect()
	s.invalidate(invalidations[0], b.STag, invalidates)
	x.runs(binds(mw.BindRequest(n.mr, 50, 30, remoteRights, 0x61)), verbs.StatusSuccess)
	copy(was, fill(mem, 5))
	taggedAccesses[2].into(x, b.Remote(0), 30, spoiled{
		[]verbs.Request{{ID: 1, Op: verbs.OpInvalidate, Invalidate: b.STag}},
		func() bool { return !queried(t, mw).Valid },
		func() { s.runs(binds(mw.BindRequest(n.mr, 50, 30, remoteRights, 0x61)), verbs.StatusSuccess) },
	}, noPD)
	require.Equal(t, was, mem, "the region")
	s.checksPeer(b, 0, mem, remoteRights, accessFault{})
	require.NoError(t, mw.Deallocate())
	s.disconnect()
}

func windowBounds(n *host) {
	t, mem := n.t, n.mr.Bytes()[:400]
	const off, k = 101, 17 // an odd place
	for _, a := range []verbs.Addressing{verbs.VABased, verbs.ZeroBased} {
		bind := func() (*probe, *verbs.MW, verbs.TaggedBuffer) {
			s, mw := n.probe(verbs.QPConfig{}), n.newMW()
			b := mw.BindRequest(n.mr, off, k, remoteRights, 1)
			b.Addressing = a
			s.runs(binds(b), verbs.StatusSuccess)
			return s, mw, verbs.BindBuffer(b)
		}
		s, mw, b := bind()
		for _, in := range [][2]int{{0, 1}, {16, 1}, {0, 17}, {3, 9}} {
			s.checksPeer(b, in[0], mem[off+in[0]:][:in[1]], remoteRights, accessFault{})
			was := bytes.Clone(fill(mem, 7))
			s.write(b.Remote(in[0]), bytes.Repeat([]byte{0xEE}, in[1]), allowed)
			copy(was[off+in[0]:], bytes.Repeat([]byte{0xEE}, in[1]))
			require.Equal(t, was, mem, "around %d octets from %d", in[1], in[0])
		}
		require.NoError(t, mw.Deallocate())
		s.disconnect()
		for _, out := range [][2]int{{-1, 1}, {17, 1}, {16, 2}, {-1, 2}, {0, 18}, {-1, 19}, {-50, 20}, {40, 20}} {
			if a == verbs.ZeroBased && out[0] == -1 && out[1] > 1 {
				continue // that wraps
			}
			for _, x := range taggedAccesses[:2] {
				t.Logf("%s of %d octets from %d of %d, %v", x.name, out[1], out[0], k, a)
				s, mw, b = bind()
				was := bytes.Clone(fill(mem, 7))
				x.into(s, b.Remote(out[0]), out[1], spoiled{}, noBounds)
				require.Equal(t, was, mem)
				require.NoError(t, mw.Deallocate())
			}
		}
	}
}

func windowRegionRights(n *host) {
	t := n.t
	mr := n.register(64, verbs.LocalRead|verbs.LocalWrite|verbs.BindWindow)
	s, mw := n.probe(verbs.QPConfig{}), n.newMW()
	b := s.binds(mw.BindRequest(mr, 8, 32, remoteRights, 1))
	s.checksPeer(verbs.BindBuffer(b), 0, mr.Bytes()[8:40], remoteRights, accessFault{})
	x := n.probe(verbs.QPConfig{})
	x.checksPeer(mr.Buffer(), 8, mr.Bytes()[8:40], 0, noRight) // itself it is closed
	x.disconnect()
	s.checksPeer(verbs.BindBuffer(b), 0, mr.Bytes()[8:40], remoteRights, accessFault{})
	require.NoError(t, mw.Deallocate())
	s.disconnect()
}

func windowQPRights(n *host) {
	t, mem := n.t, n.mr.Bytes()[:32]
	was := bytes.Clone(fill(mem, 1))
	noWrite, noRead := verbs.QPConfig{NoInboundWrite: true}, verbs.QPConfig{NoInboundRead: true}

	s, mw, b := n.bound(noWrite, 0, 32, remoteRights)
	require.Equal(t, was, s.read(b.Remote(0), 32, allowed), "the right that the queue pair has")
	s.write(b.Remote(0), []byte("unwanted"), noWriteRight)
	require.NoError(t, mw.Deallocate())
	s, mw, b = n.bound(noWrite, 0, 32, remoteRights)
	s.sink(b.SGE(0, 8), []byte("unwanted"), verbs.StatusSuccess, noWriteRight)
	require.NoError(t, mw.Deallocate())
	require.Equal(t, was, mem)

	s, mw, b = n.bound(noRead, 0, 32, remoteRights)
	s.writeUnanswered(b.Remote(0), []byte("welcome!"))
	require.Equal(t, "welcome!", string(mem[:8]), "the right that the queue pair has")
	s.read(b.Remote(0), 8, noReadRight)
	require.NoError(t, mw.Deallocate())

	// And the window's besides the queue pair's.
	s, mw, b = n.bound(noWrite, 0, 32, verbs.RemoteWrite)
	s.read(b.Remote(0), 8, noRight.read)
	require.NoError(t, mw.Deallocate())
}

func windowNoOctets(n *host) {
	t := n.t
	s, mw, b := n.bound(verbs.QPConfig{}, 0, 32, verbs.RemoteRead)
	w, only, write := n.bound(verbs.QPConfig{}, 0, 32, verbs.RemoteWrite) // another queue pair's
	fresh, gone := n.newMW(), n.newMW()
	require.NoError(t, gone.Deallocate())
	qp, other := s.qp, w.qp
	for _, x := range []verbs.TaggedBuffer{
		b, write, {STag: fresh.STag(1)}, {STag: gone.STag(1)}, {STag: b.STag ^ 1, Base: b.Base},
		{STag: b.STag, Base: b.Base - 1}, {STag: b.STag, Base: b.Base + 33}, {STag: b.STag, Base: 1<<64 - 1},
	} {
		for _, on := range []*probe{s, w} {
			on.write(x.Remote(0), nil, allowed)
			on.read(x.Remote(0), 0, allowed)
			on.sink(x.SGE(0, 0), nil, verbs.StatusSuccess, allowed)
		}
	}
	require.Same(t, qp, s.qp, "the stream goes on")
	require.Same(t, other, w.qp, "the stream goes on")
	s.checksPeer(b, 0, n.mr.Bytes()[:32], verbs.RemoteRead, noRight)
	succeed(t, mw.Deallocate, only.Deallocate)
	w.disconnect()
}
