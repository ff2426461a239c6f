package cases

import (
	"bytes"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

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
