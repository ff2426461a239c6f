package cases

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_1_3_3 is the addresses of RDMA operations: verbs draft 8.1.3.3.
var rv8_1_3_3 = []conformance.Case{
	apiCase("8.1.3.3/local-address-of-reads", onLink(localAddressOfReads), "RV-8.1.3.3-M1"),
	apiCase("8.1.3.3/one-local-address", onHost(oneLocalAddress), "RV-8.1.3.3-M2"),
	apiCase("8.1.3.3/lists-of-writes", onHostPair(listsOfWrites), "RV-8.1.3.3-M3"),
	upperCase("8.1.3.3/remote-address", onRig(remoteAddress), "RV-8.1.3.3-M4"),
	upperCase("8.1.3.3/one-remote-address", oneRemoteAddress, "RV-8.1.3.3-M5"),
}

// localAddressOfReads reads into regions of both addressing types and into a window.
// The request names what the program did, and the answer lands there.
func localAddressOfReads(t *conformance.T, l *link) {
	mem := make([]byte, 5000)
	over := func(c verbs.RegionConfig) verbs.TaggedBuffer {
		c.Memory, c.Access = mem, allRights|verbs.BindWindow
		return l.region(l.pd, c).Buffer()
	}
	mr := l.region(l.pd, verbs.RegionConfig{Memory: mem, Access: allRights | verbs.BindWindow})
	bind := l.newMW().BindRequest(mr, 0, len(mem), verbs.RemoteWrite, 4)
	run(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpBind, Bind: bind}, verbs.StatusSuccess)
	msn := uint32(0)
	for what, b := range map[string]verbs.TaggedBuffer{
		"VA-based": over(verbs.RegionConfig{VA: 1<<40 + 8}), "zero-based": over(verbs.RegionConfig{ZeroBased: true}), "a window": verbs.BindBuffer(bind),
	} {
		for _, at := range [][2]int{{0, 1}, {17, 300}, {1000, 4000}, {4999, 1}} {
			for _, op := range []verbs.Op{verbs.OpRead, verbs.OpReadInvalidate} {
				if op == verbs.OpReadInvalidate && at[0] != 4999 {
					continue // it takes the STag away
				}
				t.Part("%s, %v of %d octets from %d", what, op, at[1], at[0])
				want := slices.Clone(fill(mem, at[0]))
				msn++
				post(t, l.qp, verbs.Request{ID: 2, Op: op, Local: b.SGE(at[0], at[1]), Remote: theirs})
				to := b.Base + uint64(at[0])
				l.expect(aReadRequest(msn, read{uint32(b.STag), to, uint32(at[1]), uint32(theirs.STag), theirs.TO}))
				sent := fill(make([]byte, at[1]), at[1])
				copy(want[at[0]:], sent)
				l.send(aReadResponse(uint32(b.STag), to, sent))
				completes(t, l.sq, l.sentAs(2, op, verbs.StatusSuccess))
				same(t, want, mem, "the memory")
			}
		}
	}
	t.Part("")
	l.quiet()
}

// oneLocalAddress gives a Read a list too, which does not go with it.
func oneLocalAddress(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	other := n.register(64, allRights)
	was := bytes.Clone(fill(other.Bytes(), 8))
	for i, sgl := range [][]verbs.SGE{
		{other.SGE(0, 8), other.SGE(16, 8), other.SGE(32, 8)}, other.SGL(0, 8), slices.Repeat(other.SGL(0, 8), 100), {{STag: 0x00F00000, Length: 9}},
	} {
		t.Part("a list of %d elements", len(sgl))
		r := l.aRead(1)
		r.SGL = sgl
		post(t, l.qp, r)
		l.expect(l.asks(uint32(i + 1)))
		clear(l.mr.Bytes())
		l.send(l.answer())
		completes(t, l.sq, l.sentAs(1, verbs.OpRead, verbs.StatusSuccess))
		l.settled() // there is no other request
		require.Equal(t, "response", string(l.mr.Bytes()[4096:4104]))
		require.Equal(t, was, other.Bytes())
	}
	t.Part("")
	empty(t, l.sq)
	n.quiet()
}

// listsOfWrites has lists of each length up to what the queue pair was given. A local
// address beside the list does not count.
func listsOfWrites(t *conformance.T, w *hostPair) {
	a, _ := w.connectMore(verbs.QPConfig{WriteSGE: 7}, verbs.QPConfig{})
	most := attributes(t, a).WriteSGE
	require.GreaterOrEqual(t, most, 7)
	fill(w.a.mr.Bytes(), 5)
	other := w.a.register(64, allRights)
	for k := range counted(t, "%d elements", most+1) {
		for local := range inTurn(t, "local address %+v", []verbs.SGE{{}, other.SGE(0, 40), {STag: 0x00F00000, TO: 3, Length: 1 << 31}}) {
			sgl, want := shuffled(w.a.mr, k, 13)
			sink := make([]byte, 400)
			mr := w.b.region(w.b.pd, verbs.RegionConfig{Memory: sink, Access: allRights})
			run(t, a, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: sgl, Local: local, Remote: mr.Remote(10)}, verbs.StatusSuccess)
			run(t, a, verbs.Request{ID: 2, Op: verbs.OpRead}, verbs.StatusSuccess)
			require.Equal(t, slices.Concat(make([]byte, 10), want, make([]byte, 390-len(want))), sink)
			require.NoError(t, mr.Deregister())
		}
	}
}

// remotes are far addresses whose octets all differ, and those at the ends.
var remotes = []verbs.Remote{
	theirs, {STag: 1}, {STag: 0xFFFFFFFF}, {STag: 0x80000000, TO: 1}, {STag: 0x12345678, TO: 1 << 32}, {STag: 0x9ABCDEF0, TO: 0xFEDCBA9876543210},
}

func remoteAddress(t *conformance.T, r *rig) {
	b := r.region(64, allRights)
	for i, far := range remotes {
		t.Part("%v", far)
		r.post(verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: b.sgl(3, 9), Remote: far})
		r.expect(aWrite(uint32(far.STag), far.TO, b.first[3:12]))
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpWrite})
		r.post(verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.sge(32, 8), Remote: far})
		r.expect(aReadRequest(uint32(i+1), read{b.tag(), b.at(32), 8, uint32(far.STag), far.TO}))
		sent := uppertester.Pattern(uint8(i), 8)
		r.send(aReadResponse(b.tag(), b.at(32), sent))
		r.completions(verbs.Completion{ID: 2, Op: verbs.OpRead})
		b.holds(32, sent)
	}
	t.Part("")
	r.events()
}

// oneRemoteAddress has Writes of many segments from many elements, and Reads of as
// much: one buffer at the peer, octet after octet.
func oneRemoteAddress(t *conformance.T) {
	const size = 50_000
	r, b := openWith(t, setup{qp: uppertester.OpenArgs{WriteSGE: 8}}, 2*size)
	reads := uint32(0)
	for _, far := range []verbs.Remote{theirs, {STag: 0x77, TO: 1<<32 - 1000}, {STag: 0x78}} {
		for _, cuts := range [][]int{{size}, {1, 70_000, 2, 999}, {9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000}} {
			t.Part("a Write of %v octets to %v", cuts, far)
			var sgl []verbs.SGE
			var want []byte
			for i, k := range cuts {
				sgl = append(sgl, b.sge(7*i, k))
				want = append(want, b.first[7*i:7*i+k]...)
			}
			r.post(verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: sgl, Remote: far})
			m := r.taggedMessage(opWrite, uint32(far.STag), far.TO)
			require.Greater(t, len(m.segments), 1)
			same(t, want, m.payload, "what was written")
			r.completions(verbs.Completion{ID: 1, Op: verbs.OpWrite})

			t.Part("a Read of %d octets from %v", size, far)
			r.post(verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.sge(0, size), Remote: far})
			reads++
			r.expect(aReadRequest(reads, read{b.tag(), b.at(0), size, uint32(far.STag), far.TO}))
			sent := uppertester.Pattern(uint8(reads), size)
			r.send(
				tagged(moreTagged, opReadResponse, b.tag(), b.at(0), sent[:size/2]),
				tagged(lastTagged, opReadResponse, b.tag(), b.at(size/2), sent[size/2:]))
			r.completions(verbs.Completion{ID: 2, Op: verbs.OpRead})
			b.holds(0, sent)
			r.settled() // there was no other request
		}
	}
}

// rv8_1_2_3 is the operations on memory that a Send Queue takes: verbs draft 8.1.2.3.
var rv8_1_2_3 = []conformance.Case{
	apiCase("8.1.2.3/are-posted", memoryOpsArePosted, "RV-8.1.2.3.1-M1", "RV-8.1.2.3.2-M1", "RV-8.1.2.3.3-M2"),
	apiCase("8.1.2.3/send-nothing", onHost(memoryOpsSendNothing), "RV-8.1.2.3.1-M2", "RV-8.1.2.3.3-M3"),
	apiCase("8.1.2.3.3/targets", onQuietHost(targetsOfInvalidate), "RV-8.1.2.3.3-M1"),
	apiCase("8.1.2.3.3/not-of-shared", onQuietHost(sharedIsNoTarget), "RV-8.1.2.3.3-M1"),
}

// memoryOpsArePosted: binding, Fast-Register and Invalidate Local STag are requests
// among others, and no method of a window, region or anything else does the same.
func memoryOpsArePosted(t *conformance.T) {
	assert.ElementsMatch(t, sendPosts, takers[verbs.BindRequest](), "who takes a Bind")
	assert.ElementsMatch(t, sendPosts, takers[verbs.FastRegisterRequest](), "who takes a Fast-Register")
	for _, v := range obtainable() {
		for i := range v.NumMethod() {
			name := v.Method(i).Name
			for _, word := range []string{"Invalidate", "FastRegister"} {
				if v.String() != "wr.Op" { // which says what kind an operation is
					assert.False(t, strings.Contains(name, word), "%v.%s", v, name)
				}
			}
		}
	}

	n := newHost(t, hostConfig{})
	l := n.link(privileged)
	mw, mr, p := n.newMW(), n.allocated(), n.pages(1, 4096)
	bind := mw.BindRequest(n.mr, 0, 64, remoteRights, 1)
	for i, c := range []struct {
		req   verbs.Request
		valid func() bool // what it changes, from what it says to the opposite
		want  bool
	}{
		{verbs.Request{Op: verbs.OpBind, Bind: bind}, func() bool { return queried(t, mw).Valid }, true},
		{verbs.Request{Op: verbs.OpInvalidate, Invalidate: bind.Window}, func() bool { return queried(t, mw).Valid }, false},
		{fastRegister(mr.WithKey(1), p.List(0, 64), 4096, allRights), func() bool { return queried(t, mr).Valid }, true},
		{verbs.Request{Op: verbs.OpInvalidate, Invalidate: mr.WithKey(1)}, func() bool { return queried(t, mr).Valid }, false},
	} {
		t.Part("%v", c.req.Op)
		require.Equal(t, !c.want, c.valid(), "before")
		c.req.ID = 2
		post(t, l.qp, l.aRead(1), c.req, l.aSend(3))
		l.expect(l.asks(uint32(i + 1)))
		l.expect(aSend(uint32(i+1), n.mr.Bytes()[:4]))
		empty(t, l.sq) // completions come in order: the Read has not been answered
		l.send(l.answer())
		completes(t, l.sq, l.sentAs(1, verbs.OpRead, 0), l.sentAs(2, c.req.Op, 0), l.sentAs(3, verbs.OpSend, 0))
		require.Equal(t, c.want, c.valid(), "after")
		empty(t, l.rq)
	}
	t.Part("in no other queue")
	idle := n.newQP(privileged)
	for _, r := range []verbs.Request{{Op: verbs.OpBind, Bind: bind}, fastRegister(mr.WithKey(1), p.List(0, 64), 4096, allRights)} {
		post(t, idle, r) // in Idle it waits as others do
	}
	require.False(t, queried(t, mw).Valid)
	require.False(t, queried(t, mr).Valid)
	stream, _ := aStream(t)
	begin(t, idle, *stream)
	completes(t, n.cq, verbs.Completion{QP: idle.ID(), Op: verbs.OpBind, ID: 0}, verbs.Completion{QP: idle.ID(), Op: verbs.OpFastRegister, ID: 0x7A07})
	require.True(t, queried(t, mw).Valid)
	require.True(t, queried(t, mr).Valid)
}

// memoryOpsSendNothing has them alone and between Sends: the peer gets the Sends. What
// was invalidated keeps its octets.
func memoryOpsSendNothing(t *conformance.T, n *host) {
	l := n.link(privileged)
	mw, mr, fast, p := n.newMW(), n.register(64, allRights), n.allocated(), n.pages(1, 4096)
	fill(p.Bytes(), 2)
	was, pages := bytes.Clone(fill(mr.Bytes(), 1)), bytes.Clone(p.Bytes())
	bind := mw.BindRequest(n.mr, 0, 64, remoteRights, 1)
	sends := uint32(0)
	for _, r := range []verbs.Request{
		{Op: verbs.OpBind, Bind: bind}, {Op: verbs.OpInvalidate, Invalidate: bind.Window},
		fastRegister(fast.WithKey(1), p.List(0, 64), 4096, allRights), {Op: verbs.OpInvalidate, Invalidate: fast.WithKey(1)},
		{Op: verbs.OpInvalidate, Invalidate: mr.STag()},
	} {
		t.Part("%v alone", r.Op)
		r.ID = 2
		post(t, l.qp, r)
		completes(t, l.sq, l.sentAs(2, r.Op, 0))
		l.settled() // hears of nothing but its own answer
	}
	require.Equal(t, was, mr.Bytes(), "what was invalidated")
	require.Equal(t, pages, p.Bytes(), "what was registered and invalidated")
	t.Part("between Sends")
	post(t, l.qp,
		l.aSend(1), verbs.Request{ID: 2, Op: verbs.OpBind, Bind: bind},
		l.aSend(3), fastRegister(fast.WithKey(1), p.List(0, 64), 4096, allRights),
		l.aSend(5), verbs.Request{ID: 6, Op: verbs.OpInvalidate, Invalidate: bind.Window},
		l.aSend(7), verbs.Request{ID: 8, Op: verbs.OpInvalidate, Invalidate: fast.WithKey(1)},
		l.aSend(9),
	)
	for range 5 {
		sends++
		l.expect(aSend(sends, n.mr.Bytes()[:4]))
	}
	completes(t, l.sq,
		l.sentAs(1, verbs.OpSend, 0), l.sentAs(2, verbs.OpBind, 0), l.sentAs(3, verbs.OpSend, 0), l.sentAs(0x7A07, verbs.OpFastRegister, 0),
		l.sentAs(5, verbs.OpSend, 0), l.sentAs(6, verbs.OpInvalidate, 0), l.sentAs(7, verbs.OpSend, 0), l.sentAs(8, verbs.OpInvalidate, 0), l.sentAs(9, verbs.OpSend, 0))
	l.settled()
	require.Equal(t, pages, p.Bytes())
	t.Part("")
	n.quiet()
}

// targetsOfInvalidate: each kind of STag that can be invalidated, by the two
// operations.
func targetsOfInvalidate(n *host) {
	t, p := n.t, n.pages(1, 4096)
	for _, w := range invalidations[:2] {
		s := n.probe(privileged)
		again := n.register(8, verbs.LocalRead)
		require.NoError(t, again.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights}))
		fast := n.allocated()
		s.runs(fastRegister(fast.WithKey(2), p.List(0, 64), 4096, allRights), verbs.StatusSuccess)
		for _, c := range []struct {
			name string
			mr   *verbs.MR
			st   verbs.STag
		}{
			{"Register", n.register(64, allRights), 0},
			{"Register, local rights", n.register(64, verbs.LocalRead), 0},
			{"Reregister", again, 0},
			{"Allocate and Fast-Register", fast, fast.WithKey(2)},
		} {
			t.Part("%s of %s", w.name, c.name)
			if c.st == 0 {
				c.st = c.mr.STag()
			}
			before := queried(t, c.mr)
			require.True(t, before.Valid)
			require.Equal(t, c.st, before.STag)
			s.invalidate(w, c.st, invalidates)
			after := queried(t, c.mr)
			require.False(t, after.Valid)
			require.Equal(t, c.st.Index(), after.STag.Index())
		}
		t.Part("%s of a window", w.name)
		mw := n.newMW()
		b := s.binds(mw.BindRequest(n.mr, 0, 64, remoteRights, 3))
		require.True(t, queried(t, mw).Valid)
		s.invalidate(w, b.Window, invalidates)
		require.False(t, queried(t, mw).Valid)
		s.disconnect()
	}
}

// sharedIsNoTarget: neither of two regions over one memory can be invalidated, which
// stays reachable through both.
func sharedIsNoTarget(n *host) {
	t := n.t
	mem := make([]byte, 64)
	original := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: allRights})
	shared := must(original.RegisterShared(nil, verbs.SharedConfig{Access: allRights}))(t)
	for _, mr := range []*verbs.MR{original, shared} {
		for _, w := range invalidations[:2] {
			t.Part("%s of %v", w.name, mr.STag())
			s := n.probe(verbs.QPConfig{})
			before, was := queried(t, mr), slices.Clone(mem)
			s.invalidate(w, mr.STag(), cannotBe)
			require.Equal(t, before, queried(t, mr))
			require.True(t, before.Valid)
			require.Equal(t, was, mem)
			s.connect()
			s.allAllowed(mr.Buffer(), 0, mem)
			s.disconnect()
		}
	}
}
