package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rvScope is regions that are tied to one queue pair: RFC 5041 8.2, RFC 5040 8.1.1. What
// the draft has done to a region does not lift the tie.
var rvScope = []conformance.Case{
	apiCase("8.1.1/scope-of-registrations", onQuietHost(scopeOfRegistrations), "R5040-8.1.1-M3", "R5041-8.2-M2", "R5041-8.2-M3"),
	apiCase("7.3.2.5/scope-stays", onQuietHost(scopeOfFastRegister), "R5040-8.1.1-M3", "R5041-8.2-M2", "R5041-8.2-M3", "RV-7.3.2.5-M3"),
	apiCase("7.10.2/scope-of-the-region", onQuietHost(scopeOfBind), "R5040-8.1.1-M3", "R5041-8.2-M2", "RV-7.10.2-M7"),
	apiCase("7.3.2.4/scope-of-each", onQuietHost(scopeOfShared), "R5040-8.1.1-M3", "R5041-8.2-M2", "RV-7.3.2.4-M8", "RV-7.3.2.4-M10"),
}

// scopes are two queue pairs of a host, in one PD, with a peer each.
type scopes struct {
	*host
	mine, other *probe
}

func newScopes(n *host) *scopes { return &scopes{n, n.probe(privileged), n.probe(privileged)} }

// tied says that a buffer, whose first octets are mem, serves the peer of one queue pair
// and of no other, before and after that has tried.
func (s *scopes) tied(b verbs.TaggedBuffer, mem []byte) {
	s.mine.checksPeer(b, 0, mem, remoteRights, accessFault{})
	s.other.checksPeer(b, 0, mem, 0, noPD)
	s.other.invalidate(invalidations[2], b.STag, isForeign)
	s.mine.checksPeer(b, 0, mem, remoteRights, accessFault{})
}

// free says that it serves both.
func (s *scopes) free(b verbs.TaggedBuffer, mem []byte) {
	s.mine.checksPeer(b, 0, mem, remoteRights, accessFault{})
	s.other.checksPeer(b, 0, mem, remoteRights, accessFault{})
}

// turned is the same two the other way round.
func (s *scopes) turned() *scopes { return &scopes{s.host, s.other, s.mine} }

// of is the queue pair of a region, by its Query.
func (s *scopes) of(mr *verbs.MR) verbs.QPID { return queried(s.t, mr).QP }

func (s *scopes) leave() {
	s.mine.connect()
	s.mine.disconnect()
	s.other.connect()
	s.other.disconnect()
}

// regionOf is the configuration of a region of 64 octets tied to a queue pair.
func regionOf(qp *verbs.QP) verbs.RegionConfig {
	return verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow, QP: qp}
}

func scopeOfRegistrations(n *host) {
	s := newScopes(n)
	mr := n.region(n.pd, regionOf(s.mine.qp))
	s.tied(mr.Buffer(), mr.Bytes())
	require.Equal(n.t, s.mine.qp.ID(), s.of(mr))

	n.t.Part("Reregister with the same")
	require.NoError(n.t, mr.Reregister(nil, regionOf(s.mine.qp)))
	s.tied(mr.Buffer(), mr.Bytes())
	n.t.Part("Reregister with none")
	require.NoError(n.t, mr.Reregister(nil, regionOf(nil)))
	s.free(mr.Buffer(), mr.Bytes())
	require.Zero(n.t, s.of(mr))
	n.t.Part("Reregister with the other")
	s.other.connect()
	require.NoError(n.t, mr.Reregister(nil, regionOf(s.other.qp)))
	require.Equal(n.t, s.other.qp.ID(), s.of(mr))
	was := s.mine.qp
	s.turned().tied(mr.Buffer(), mr.Bytes())

	n.t.Part("the other's peer and its program invalidate it")
	s.mine.connect()
	require.NotEqual(n.t, was, s.mine.qp)
	s.other.invalidate(invalidations[2], mr.STag(), invalidates)
	again := n.region(n.pd, regionOf(s.other.qp))
	s.mine.invalidate(invalidations[0], again.STag(), invalidates) // local: any queue pair of the PD
	require.False(n.t, queried(n.t, again).Valid)
	s.leave()
}

// scopeOfFastRegister registers, from each source and on either queue pair, again and
// again.
func scopeOfFastRegister(n *host) {
	s, p := newScopes(n), n.pages(2, 4096)
	mem := p.Bytes()[8:40]
	allocated := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true, QP: s.mine.qp, RemoteInvalidate: true}))(n.t)
	registered := n.region(n.pd, regionOf(s.mine.qp))
	again := n.region(n.pd, regionOf(nil))
	require.NoError(n.t, again.Reregister(nil, regionOf(s.mine.qp)))
	for _, mr := range []*verbs.MR{registered, again} {
		s.mine.invalidate(invalidations[0], mr.STag(), invalidates)
	}
	loose := n.allocated()
	key := uint8(10)
	for _, on := range []*probe{s.mine, s.other} {
		for i, mr := range []*verbs.MR{allocated, registered, again, loose} {
			n.t.Part("%s", []string{"Allocate", "Register", "Reregister", "Allocate without a queue pair"}[i])
			key++
			r := fastRegister(mr.WithKey(key), p.List(8, 64), 4096+8, allRights|verbs.BindWindow)
			on.runs(r, verbs.StatusSuccess)
			if b := verbs.FastRegisterBuffer(r.FastRegister); mr == loose {
				s.free(b, mem)
				require.Zero(n.t, s.of(mr))
			} else {
				s.tied(b, mem)
				require.Equal(n.t, s.mine.qp.ID(), s.of(mr))
			}
			s.mine.invalidate(invalidations[2], r.FastRegister.STag, invalidates)
		}
	}
	s.leave()
}

// scopeOfBind: a window may not be bound through another queue pair's region, or it would
// lift the tie.
func scopeOfBind(n *host) {
	s, p := newScopes(n), n.pages(1, 4096)
	mr := n.region(n.pd, regionOf(s.mine.qp))
	fast := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true, QP: s.mine.qp, RemoteInvalidate: true}))(n.t)
	r := fastRegister(fast.WithKey(1), p.List(0, 64), 4096, allRights|verbs.BindWindow)
	s.mine.runs(r, verbs.StatusSuccess)
	below := n.region(n.pd, regionOf(nil))
	shared := must(below.RegisterShared(nil, verbs.SharedConfig{Access: allRights | verbs.BindWindow, QP: s.mine.qp}))(n.t)
	for i, x := range []struct {
		b   verbs.TaggedBuffer
		mem []byte
	}{{mr.Buffer(), mr.Bytes()}, {verbs.FastRegisterBuffer(r.FastRegister), p.Bytes()}, {shared.Buffer(), below.Bytes()}} {
		n.t.Part("%s", []string{"a registered region", "a fast-registered one", "a shared one"}[i])
		mw := n.newMW()
		bind := &verbs.BindRequest{Window: mw.STag(3), Region: x.b.STag, VA: x.b.Base + 8, Length: 16, Access: remoteRights}
		s.other.runs(binds(bind), verbs.StatusInvalidPD)
		require.False(n.t, queried(n.t, mw).Valid)
		s.mine.runs(binds(bind), verbs.StatusSuccess)
		require.Equal(n.t, s.mine.qp.ID(), queried(n.t, mw).QP)
		s.tied(verbs.BindBuffer(bind), x.mem[8:24])
		require.NoError(n.t, mw.Deallocate())
	}
	n.t.Part("a region of the PD")
	for _, on := range []*scopes{s, s.turned()} {
		mw := n.newMW()
		on.mine.connect()
		bind := on.mine.binds(mw.BindRequest(below, 8, 16, remoteRights, 3))
		require.Equal(n.t, on.mine.qp.ID(), queried(n.t, mw).QP)
		on.tied(verbs.BindBuffer(bind), below.Bytes()[8:24])
		require.NoError(n.t, mw.Deallocate())
	}
	s.leave()
}

// scopeOfShared: a shared region has the tie that it was given, whatever that of the
// original is, which keeps its own.
func scopeOfShared(n *host) {
	s := newScopes(n)
	share := func(of *verbs.MR, qp *verbs.QP) *verbs.MR {
		return must(of.RegisterShared(nil, verbs.SharedConfig{Access: allRights, QP: qp}))(n.t)
	}
	shuts := func(b verbs.TaggedBuffer, mem []byte) { // a shared region cannot be invalidated at all
		s.mine.checksPeer(b, 0, mem, remoteRights, accessFault{})
		s.other.checksPeer(b, 0, mem, 0, noPD)
		s.mine.checksPeer(b, 0, mem, remoteRights, accessFault{})
	}
	n.t.Part("the original is tied")
	mr := n.region(n.pd, regionOf(s.mine.qp))
	mem := mr.Bytes()
	open, same := share(mr, nil), share(mr, s.mine.qp)
	s.free(open.Buffer(), mem)
	require.Zero(n.t, s.of(open))
	shuts(same.Buffer(), mem)
	shuts(mr.Buffer(), mem)
	for _, x := range []*verbs.MR{mr, same} {
		require.Equal(n.t, s.mine.qp.ID(), s.of(x))
	}
	n.t.Part("shared with the other")
	s.other.connect()
	theirs := share(mr, s.other.qp)
	require.Equal(n.t, s.other.qp.ID(), s.of(theirs))
	require.Equal(n.t, s.mine.qp.ID(), s.of(mr))
	s.other.checksPeer(theirs.Buffer(), 0, mem, remoteRights, accessFault{})
	shuts(mr.Buffer(), mem)

	n.t.Part("the original is not tied")
	loose := n.region(n.pd, regionOf(nil))
	tied := share(loose, s.mine.qp)
	shuts(tied.Buffer(), loose.Bytes())
	s.free(loose.Buffer(), loose.Bytes())
	require.Zero(n.t, s.of(loose))
	s.leave()
}
