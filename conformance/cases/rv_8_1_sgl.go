package cases

import (
	"bytes"
	"math"
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_1_3_2 is how many elements a scatter/gather list has and how many octets: verbs
// draft 8.1.3.2.
var rv8_1_3_2 = []conformance.Case{
	apiCase("8.1.3.2/one-element-or-more", onHostPair(oneElementOrMore), "RV-8.1.3.2-M1"),
	apiCase("8.1.3.2/longest-message", mostOctets, "RV-8.1.3.2-M5"),
	apiCase("8.1.3.2/sum-of-lengths", sumOfLengths, "RV-8.1.3.2-M7"),
	apiCase("8.1.3.2/no-octets", onHost(messagesOfNothing), "RV-8.1.3.2-M8"),
	apiCase("8.1.3.2/limits-told", sgeLimitsTold, "RV-8.1.3.2-M9"),
	apiCase("8.1.3.2/above-the-limits", aboveSGELimits, "RV-8.1.3.2-M10"),
	apiCase("8.1.3.2/four-at-least", fourElements, "RV-8.1.3.2-M11"),
}

// shuffled is k elements of size octets each from the end of a region to its
// beginning, and what they hold together.
func shuffled(mr *verbs.MR, k, size int) (sgl []verbs.SGE, octets []byte) {
	for i := range k {
		off := (k - 1 - i) * (size + 1)
		sgl = append(sgl, mr.SGE(off, size))
		octets = append(octets, mr.Bytes()[off:off+size]...)
	}
	return sgl, octets
}

// carries sends and writes gather elements and has them scattered into scatter
// elements; the write goes into one region.
func (w *hostPair) carries(a, b *verbs.QP, send, recv, write int) {
	t, m := w.t, w.b.mr.Bytes()
	const size = 11
	total := size * send
	fill(w.a.mr.Bytes(), send+write)
	clear(m)
	sgl, want := shuffled(w.a.mr, send, size)
	into, _ := shuffled(w.b.mr, recv, (total+recv-1)/recv)
	postRecv(t, b, verbs.Recv{ID: 1, SGL: into})
	run(t, a, verbs.Request{ID: 2, SGL: sgl}, verbs.StatusSuccess)
	completes(t, w.b.cq, verbs.Completion{ID: 1, QP: b.ID(), Op: verbs.OpRecv, Bytes: uint32(total)})
	_, got := shuffled(w.b.mr, recv, (total+recv-1)/recv)
	require.Equal(t, want, got[:total], "a Send of %d elements into %d", send, recv)

	sgl, want = shuffled(w.a.mr, write, size)
	clear(m)
	run(t, a, verbs.Request{ID: 3, Op: verbs.OpWrite, SGL: sgl, Remote: w.b.mr.Remote(100)}, verbs.StatusSuccess)
	run(t, a, verbs.Request{ID: 4, Op: verbs.OpRead}, verbs.StatusSuccess)
	require.Equal(t, want, m[100:100+len(want)], "a Write of %d elements", write)
	require.Equal(t, make([]byte, 100), m[:100])
	require.Equal(t, make([]byte, 100), m[100+len(want):200+len(want)])
}

// oneElementOrMore uses lists of one, of two, and of as many elements as the queue pair
// was given.
func oneElementOrMore(t *conformance.T, w *hostPair) {
	for _, c := range []verbs.QPConfig{{}, {SendSGE: 1, WriteSGE: 1, RecvSGE: 1}, {SendSGE: 5, WriteSGE: 6, RecvSGE: 7}, {SendSGE: 32, WriteSGE: 32, RecvSGE: 32}} {
		a, b := w.connectMore(c, c)
		most := attributes(t, a)
		for _, k := range []int{1, 2, 1000} {
			t.Part("up to %d of %d, %d and %d elements", k, most.SendSGE, most.RecvSGE, most.WriteSGE)
			w.carries(a, b, min(k, most.SendSGE), min(k, most.RecvSGE), min(k, most.WriteSGE))
		}
	}
}

// mostOctets has lists of 255 elements, each of which is all right. 255 times
// 0x01010101 octets is 2^32-1.
func mostOctets(t *conformance.T) {
	const elements, size = 255, 0x01010101
	limits := verbs.Limits{SGE: elements, WriteSGE: elements}
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: limits}})
	mr := n.register(size+1, verbs.LocalRead|verbs.LocalWrite)
	list := slices.Repeat(mr.SGL(0, size), elements)
	longer := slices.Clone(list)
	longer[100].Length++
	many := verbs.QPConfig{SendDepth: 2, RecvDepth: 2, SendSGE: elements, WriteSGE: elements, RecvSGE: elements}
	for op := range inTurn(t, "%v", []verbs.Op{verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite}) {
		l := n.link(many)
		post(t, l.qp, verbs.Request{ID: 1, Op: op, SGL: longer, Remote: theirs})
		l.terminated(0x0000, nil, false)
		l.shut()
		completes(t, l.sq, l.sentAs(1, op, verbs.StatusInvalidLength))
		l.remains(verbs.StateError)
	}
	for op := range inTurn(t, "%v of just as much", []verbs.Op{verbs.OpSend, verbs.OpWrite}) {
		l := n.link(many)
		post(t, l.qp, verbs.Request{ID: 1, Op: op, SGL: list, Remote: theirs})
		want := either(op == verbs.OpWrite, moreTagged, byte(moreUntagged))
		require.Equal(t, want, l.next()[0], "its first segment") // the rest is for another day
		require.NoError(t, l.qp.Destroy())
	}
	t.Part("a receive")
	l := n.link(many)
	postRecv(t, l.qp, verbs.Recv{ID: 1, SGL: longer})
	l.delivers(1, "short")
	require.Equal(t, "short\x00", string(mr.Bytes()[:6]))
}

// sumOfLengths is that of elements with one octet, none, a few and many.
func sumOfLengths(t *conformance.T) {
	const total = 1 + 0 + 513 + 70_000
	w := newHostPair(t, hostPairConfig{})
	from, to := w.a.register(80_000, verbs.LocalRead), w.b.register(80_000, allRights)
	m := fill(from.Bytes(), 1)
	sgl := []verbs.SGE{from.SGE(9, 1), from.SGE(0, 0), from.SGE(79_000, 513), from.SGE(3, 70_000)}
	want := slices.Concat(m[9:10], m[79_000:79_513], m[3:70_003])
	require.Len(t, want, total)

	s := w.a.probe(verbs.QPConfig{})
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite} {
		same(t, want, s.gather(op, sgl, verbs.StatusSuccess), "%v", op)
	}
	s.disconnect()

	postRecv(t, w.b.qp, verbs.Recv{ID: 1, SGL: to.SGL(0, 80_000)})
	run(t, w.a.qp, verbs.Request{ID: 2, SGL: sgl}, verbs.StatusSuccess)
	completes(t, w.b.cq, verbs.Completion{ID: 1, QP: w.b.qp.ID(), Op: verbs.OpRecv, Bytes: total})
	same(t, append(slices.Clone(want), make([]byte, 80_000-total)...), to.Bytes(), "what the Send brought")
	clear(to.Bytes())
	run(t, w.a.qp, verbs.Request{ID: 3, Op: verbs.OpWrite, SGL: sgl, Remote: to.Remote(0)}, verbs.StatusSuccess)
	run(t, w.a.qp, verbs.Request{ID: 4, Op: verbs.OpRead}, verbs.StatusSuccess)
	same(t, append(want, make([]byte, 80_000-total)...), to.Bytes(), "what the Write brought")
}

// messagesOfNothing: messages of length zero, by an empty list and by empty elements. Each is
// one segment without payload.
func messagesOfNothing(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	msn, reads := uint32(0), uint32(0)
	for _, sgl := range [][]verbs.SGE{nil, {}, n.mr.SGL(0, 0), {n.mr.SGE(8, 0), n.mr.SGE(0, 0), {}, n.mr.SGE(9, 0)}} {
		for _, s := range sendTypes {
			t.Part("%v of %d elements", s.op, len(sgl))
			msn++
			post(t, l.qp, verbs.Request{ID: 1, Op: s.op, SGL: sgl, Invalidate: verbs.STag(s.invalid)})
			l.expect(untagged(lastUntagged, s.control, s.invalid, 0, msn, 0, nil))
			completes(t, l.sq, l.sentAs(1, s.op, verbs.StatusSuccess))
		}
		t.Part("a Write of %d elements", len(sgl))
		post(t, l.qp, verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: sgl, Remote: theirs})
		l.expect(aWrite(uint32(theirs.STag), theirs.TO, nil))
		completes(t, l.sq, l.sentAs(2, verbs.OpWrite, verbs.StatusSuccess))

		t.Part("a receive of %d elements", len(sgl))
		postRecv(t, l.qp, verbs.Recv{ID: 3, SGL: sgl})
		l.sendMessage(nil)
		completes(t, l.rq, l.got(3, 0))
	}
	for op := range inTurn(t, "%v", []verbs.Op{verbs.OpRead, verbs.OpReadInvalidate}) {
		mr := n.register(8, allRights)
		reads++
		post(t, l.qp, verbs.Request{ID: 4, Op: op, Local: mr.SGE(3, 0), Remote: theirs})
		l.expect(aReadRequest(reads, read{uint32(mr.STag()), mr.Base() + 3, 0, uint32(theirs.STag), theirs.TO}))
		l.send(aReadResponse(uint32(mr.STag()), mr.Base()+3, nil))
		completes(t, l.sq, l.sentAs(4, op, verbs.StatusSuccess))
	}
	l.settled()
	n.quiet()
}

// sgeLimitsTold: one limit for Sends and receives and one for Writes, which may be the
// larger or the smaller; lists may be as long, and no longer.
func sgeLimitsTold(t *conformance.T) {
	for _, l := range []verbs.Limits{{SGE: 9, WriteSGE: 5}, {SGE: 4, WriteSGE: 12}, {SGE: 4, WriteSGE: 1}, {SGE: 40}} {
		write := l.WriteSGE
		if write == 0 {
			write = l.SGE // that of Sends
		}
		t.Part("limits %d and %d", l.SGE, write)
		c := hostConfig{RNIC: verbs.Config{Limits: l}, QP: verbs.QPConfig{SendSGE: l.SGE, RecvSGE: l.SGE, WriteSGE: write}}
		w := newHostPair(t, hostPairConfig{A: c, B: c})
		a := queried(t, w.a.nic)
		require.Equal(t, l.SGE, a.Limits.SGE, "Query RNIC, of Sends and receives")
		require.Equal(t, write, a.Limits.WriteSGE, "Query RNIC, of Writes")
		w.carries(w.a.qp, w.b.qp, l.SGE, l.SGE, write)
		srq := w.a.newSRQ(verbs.SRQConfig{SGE: l.SGE})
		list := func(k int) []verbs.SGE { return slices.Repeat(w.a.mr.SGL(0, 1), k) }
		for what, longer := range map[string]func() (int, error){
			"Send":    func() (int, error) { return w.a.qp.PostSend(verbs.Request{SGL: list(l.SGE + 1)}) },
			"Write":   func() (int, error) { return w.a.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: list(write + 1)}) },
			"receive": func() (int, error) { return w.a.qp.PostRecv(verbs.Recv{SGL: list(l.SGE + 1)}) },
			"receive of an S-RQ": func() (int, error) {
				postRecv(t, srq, verbs.Recv{SGL: list(l.SGE)})
				return srq.PostRecv(verbs.Recv{SGL: list(l.SGE + 1)})
			},
		} {
			k, err := longer()
			assert.ErrorIs(t, err, verbs.ErrInvalidSGLLength, what)
			assert.Zero(t, k, what)
		}
		w.carries(w.a.qp, w.b.qp, l.SGE, l.SGE, write)
	}
}

// aboveSGELimits asks for one element too many. The RNIC has one queue pair to give,
// which is still there then, and nothing holds the domain.
func aboveSGELimits(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{QPs: 1, SRQs: 1, SGE: 6, WriteSGE: 9}})
	pd := must(nic.AllocatePD())(t)
	cq := must(nic.CreateCQ(verbs.CQConfig{}))(t)
	for name, c := range map[string]verbs.QPConfig{
		"SendSGE": {SendSGE: 7}, "RecvSGE": {RecvSGE: 7}, "WriteSGE": {WriteSGE: 10}, "SendSGE as of Writes": {SendSGE: 9}, "many": {RecvSGE: math.MaxInt},
	} {
		c.PD, c.SendCQ, c.RecvCQ = pd, cq, cq
		refuses(t, name, verbs.ErrTooManySGE, func() error {
			qp, err := nic.CreateQP(c)
			assert.Nil(t, qp, name)
			return err
		}, queries(nic.Query), queries(cq.Query))
	}
	require.NoError(t, cq.Destroy(), "no queue pair uses the CQ")
	require.NoError(t, pd.Deallocate(), "nor the domain")
	pd = must(nic.AllocatePD())(t)
	cq = must(nic.CreateCQ(verbs.CQConfig{}))(t)
	require.NoError(t, second(nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SendSGE: 6, RecvSGE: 6, WriteSGE: 9})), "the limits themselves")
	require.ErrorIs(t, second(nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})), verbs.ErrInsufficientResources)
}

// fourElements: no RNIC has fewer for Sends and receives, however it is opened.
func fourElements(t *conformance.T) {
	for _, sge := range []int{1, 2, 3} {
		nic, err := verbs.Open(verbs.Config{Limits: verbs.Limits{SGE: sge}})
		require.ErrorIs(t, err, verbs.ErrInvalidModifier, "a limit of %d", sge)
		require.Nil(t, nic)
	}
	for _, l := range []verbs.Limits{{}, {SGE: 4, WriteSGE: 1}} {
		four := verbs.QPConfig{SendSGE: 4, RecvSGE: 4, WriteSGE: 1}
		for _, c := range []hostConfig{{}, {QP: four}} {
			c.RNIC.Limits = l
			w := newHostPair(t, hostPairConfig{A: c, B: c})
			require.GreaterOrEqual(t, queried(t, w.a.nic).Limits.SGE, 4)
			w.carries(w.a.qp, w.b.qp, 4, 4, 1)
		}
	}
}

// rv8_1_sgl is the STags of scatter/gather elements, and that of zero: verbs draft
// 8.1.3.2 and 8.1.3.2.1.
var rv8_1_sgl = []conformance.Case{
	apiCase("8.1.3.2/registered", onQuietHost(elementsAreRegistered), "RV-8.1.3.2-M2"),
	apiCase("8.1.3.2/no-windows", onQuietHost(windowsAreNoElements), "RV-8.1.3.2-M4"),
	apiCase("8.1.3.2/empty-elements", onQuietHost(emptyElements), "RV-8.1.3.2-M6"),
	apiCase("8.1.3.2.1/not-for-users", onQuietHost(zeroNotForUsers), "RV-8.1.3.2.1-M1"),
	apiCase("8.1.3.2.1/not-in-rdma", onQuietHost(zeroNotInRDMA), "RV-8.1.3.2.1-M2"),
}

// gatherers are the operations that have a gather list.
var gatherers = []verbs.Op{verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite}

// elements has an element in a list by itself and behind a good one, for each
// operation that gathers and for a receive. Each time the completion has a status;
// what is refused moves nothing.
func (s *probe) elements(bad verbs.SGE, want verbs.Status) {
	t := s.t
	good := s.host.register(16, allRights)
	k := int(bad.Length)
	for _, op := range gatherers {
		s.gather(op, []verbs.SGE{bad}, want)
		s.gather(op, []verbs.SGE{good.SGE(0, 16), bad}, want)
	}
	s.scatter([]verbs.SGE{bad}, make([]byte, k), want)
	s.scatter([]verbs.SGE{good.SGE(0, 16), bad}, make([]byte, 16+k), want)
	if s.peer == nil {
		require.Equal(t, verbs.StateError, s.qp.State())
	}
}

func elementsAreRegistered(n *host) {
	t := n.t
	gone, invalid, empty := n.register(16, allRights), n.register(16, allRights), n.allocated()
	s := n.probe(verbs.QPConfig{})
	s.invalidate(invalidations[0], invalid.STag(), invalidates)
	require.NoError(t, gone.Deregister())
	was := bytes.Clone(invalid.Bytes())
	for _, e := range named(t, "%s", map[string]verbs.SGE{
		"never registered":      {STag: 0x00F00000, TO: n.mr.Base(), Length: 8},
		"by another key":        {STag: n.mr.STag() ^ 0x80, TO: n.mr.Base(), Length: 8},
		"deallocated":           gone.SGE(0, 8),
		"invalidated":           invalid.SGE(0, 8),
		"allocated":             {STag: empty.STag(), Length: 8},
		"zero, no privileges":   {TO: n.pages(1, 4096).Address(0), Length: 8},
		"registered afterwards": {STag: gone.STag(), TO: gone.Base(), Length: 8},
	}) {
		s.elements(e, verbs.StatusInvalidSTag)
	}
	require.Equal(t, was, invalid.Bytes())
	t.Part("registered")
	s.elements(n.mr.SGE(0, 8), verbs.StatusSuccess)
	s.disconnect()
	t.Part("the STag of zero, with privileges")
	s = n.probe(privileged)
	s.zeroWorks(n.pages(2, 4096), 4000)
	s.disconnect()
}

// windowsAreNoElements binds a window for each use, with all rights it can have, on
// the queue pair that uses it.
func windowsAreNoElements(n *host) {
	t := n.t
	const off, size = 100, 40
	for _, first := range [][]verbs.SGE{nil, n.mr.SGL(0, 8)} {
		for _, op := range gatherers {
			t.Part("%v behind %d elements", op, len(first))
			s, mw, b := n.bound(verbs.QPConfig{}, off, size, remoteRights)
			s.checksPeer(b, 0, n.mr.Bytes()[off:off+size], remoteRights, accessFault{})
			s.gather(op, append(slices.Clone(first), b.SGE(0, 8)), verbs.StatusInvalidSTag)
			require.NoError(t, mw.Deallocate())
		}
		t.Part("a receive behind %d elements", len(first))
		for _, c := range []verbs.QPConfig{{}, {SRQ: n.newSRQ(verbs.SRQConfig{})}} {
			s, mw, b := n.bound(c, off, size, remoteRights)
			s.checksPeer(b, 0, n.mr.Bytes()[off:off+size], remoteRights, accessFault{})
			was := bytes.Clone(n.mr.Bytes()[off : off+size])
			s.scatter(append(slices.Clone(first), b.SGE(0, 8)), bytes.Repeat([]byte{0x5A}, 8+8*len(first)), verbs.StatusInvalidSTag)
			require.Equal(t, was, n.mr.Bytes()[off:off+size])
			require.NoError(t, mw.Deallocate())
		}
	}
}

// emptyElements: nobody looks at the STag of an element without octets.
func emptyElements(n *host) {
	t := n.t
	gone, foreign := n.register(16, allRights), n.region(n.newPD(), verbs.RegionConfig{Memory: make([]byte, 16), Access: allRights})
	require.NoError(t, gone.Deregister())
	closed := n.register(16, verbs.LocalWrite)
	shut := n.register(16, verbs.LocalRead)
	x := n.register(64, allRights)
	for what, e := range map[string]verbs.SGE{
		"zero": {}, "zero, an address": {TO: 1 << 40}, "unknown": {STag: 0x00F00000, TO: 7}, "deallocated": gone.SGE(0, 0),
		"of another PD": foreign.SGE(0, 0), "out of bounds": x.SGE(65, 0), "beyond all": {STag: x.STag(), TO: ^uint64(0)},
		"without Local Read": closed.SGE(0, 0), "without Local Write": shut.SGE(0, 0), "never bound": {STag: n.newMW().STag(1)},
	} {
		for _, srq := range []*verbs.SRQ{nil, n.newSRQ(verbs.SRQConfig{})} {
			t.Part("%s, S-RQ %v", what, srq != nil)
			s := n.probe(verbs.QPConfig{SRQ: srq})
			m := fill(x.Bytes(), 3)
			want := slices.Concat(m[20:30], m[:5])
			among := []verbs.SGE{e, x.SGE(20, 10), e, x.SGE(0, 5)}
			for _, op := range gatherers {
				require.Empty(t, s.gather(op, []verbs.SGE{e}, verbs.StatusSuccess), "%v, alone", op)
				require.Equal(t, want, s.gather(op, among, verbs.StatusSuccess), "%v, among others", op)
			}
			s.scatter([]verbs.SGE{e}, nil, verbs.StatusSuccess)
			sent := fill(make([]byte, 15), 4)
			after := bytes.Clone(m)
			copy(after[20:], sent[:10])
			copy(after, sent[10:])
			s.scatter(among, sent, verbs.StatusSuccess)
			require.Equal(t, after, m, "a receive")
			if srq == nil {
				s.sink(e, nil, verbs.StatusSuccess, allowed)
			}
			s.disconnect()
		}
	}
}

// zeroNotForUsers: a queue pair of which a Non-Privileged Consumer can get a handle
// has no use of the STag of zero, by that handle or the RNIC's owner.
func zeroNotForUsers(n *host) {
	t, p := n.t, n.pages(1, 4096)
	was := bytes.Clone(fill(p.Bytes(), 6))
	zero := []verbs.SGE{physical(p, 0, 8)}
	require.ErrorIs(t, second(n.newQP(privileged).User()), verbs.ErrInvalidModifier, "a handle of a Privileged queue pair")
	type poster interface {
		PostSend(...verbs.Request) (int, error)
		PostRecv(...verbs.Recv) (int, error)
	}
	for _, handle := range []bool{true, false} {
		seated := func() (*probe, poster) {
			s := n.probe(verbs.QPConfig{})
			u := must(s.qp.User())(t)
			if handle {
				return s, u
			}
			return s, s.qp
		}
		for _, op := range gatherers {
			t.Part("%v, by a user's handle %v", op, handle)
			s, q := seated()
			post(t, q, verbs.Request{ID: 1, Op: op, SGL: zero, Remote: theirs})
			completes(t, n.cq, verbs.Completion{ID: 1, QP: s.qp.ID(), Op: op, Status: verbs.StatusInvalidSTag})
			s.fails(0x0000)
		}
		t.Part("a receive, by a user's handle %v", handle)
		s, q := seated()
		postRecv(t, q, verbs.Recv{ID: 2, SGL: zero})
		s.send(aSend(1, []byte("untaken.")))
		completes(t, n.cq, verbs.Completion{ID: 2, QP: s.qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusInvalidSTag})
		s.fails(0x0000)
		require.Equal(t, was, p.Bytes())
	}
}

// zeroNotInRDMA: neither end of an RDMA operation can be the STag of zero.
func zeroNotInRDMA(n *host) {
	t, p := n.t, n.pages(1, 4096)
	was := bytes.Clone(fill(p.Bytes(), 7))
	zero, good := physical(p, 0, 8), n.mr.SGE(0, 8)
	far := verbs.Remote{TO: p.Address(0)}
	for _, c := range []verbs.QPConfig{{}, privileged} {
		for what, r := range map[string]verbs.Request{
			"Write to it":                 {Op: verbs.OpWrite, SGL: []verbs.SGE{good}, Remote: far},
			"Read from it":                {Op: verbs.OpRead, Local: good, Remote: far},
			"Read to it":                  {Op: verbs.OpRead, Local: zero, Remote: theirs},
			"Read from it to it":          {Op: verbs.OpRead, Local: zero, Remote: far},
			"Read with Invalidate from":   {Op: verbs.OpReadInvalidate, Local: good, Remote: far},
			"Read with Invalidate to it":  {Op: verbs.OpReadInvalidate, Local: zero, Remote: theirs},
			"unsignaled":                  {Op: verbs.OpRead, Local: zero, Remote: theirs, Flags: verbs.Unsignaled},
			"Write to it, from it, first": {Op: verbs.OpWrite, SGL: []verbs.SGE{good, good}, Remote: verbs.Remote{}},
		} {
			t.Part("%s, privileged %v", what, c.Privileged)
			s := n.probe(c)
			r.ID = 9
			s.runs(r, verbs.StatusInvalidSTag) // and the peer hears nothing of it
			require.Equal(t, was, p.Bytes())
		}
	}
	require.True(t, queried(t, n.mr).Valid, "the sink of a refused Read with Invalidate")
}
