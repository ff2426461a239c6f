package cases

import (
	"reflect"
	"runtime"
	"slices"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_3_life is how Shared Receive Queues end, and that a queue pair has its own for
// life: verbs draft 6.3.3 and 6.3.4.
var rv6_3_life = []conformance.Case{
	apiCase("6.3.3/in-use", onNode(srqInUse), "RV-6.3.3-M1", "RV-6.3.3-M2"),
	apiCase("6.3.3/gives-back", srqGivesBack, "RV-6.3.3-M3"),
	apiCase("6.3.3/lets-go-of-buffers", onNode(srqLetsGo), "RV-6.3.3-M4"),
	apiCase("6.3.4/for-life", onNode(srqForLife), "RV-6.3.4-M1"),
	apiCase("6.3.4/no-depth-of-its-own", srqNoDepth, "RV-6.3.4-M2", "RV-6.3.7-M1"),
}

func srqInUse(t *conformance.T, n *node) {
	for state := range inTurn(t, "in %v", states) {
		s := n.newSRQ(verbs.SRQConfig{Depth: 10})
		a, b := n.into(state, verbs.QPConfig{SRQ: s}), n.into(state, verbs.QPConfig{SRQ: s})
		n.receives(s, upTo(1, 10)...)
		for _, l := range []*line{a, b} {
			refuses(t, "Destroy S-RQ", verbs.ErrSRQInUse, s.Destroy, queries(s.Query))
			require.NoError(t, l.qp.Destroy())
		}
		require.NoError(t, s.Destroy(), "with ten receives")
		require.ErrorIs(t, second(s.PostRecv(n.receive(1))), verbs.ErrInvalidSRQ)
		require.ErrorIs(t, second(s.Query()), verbs.ErrInvalidSRQ)
		require.ErrorIs(t, s.Destroy(), verbs.ErrInvalidSRQ)
	}
}

// srqGivesBack makes and destroys filled S-RQs where there can be one at a time. What
// was one is garbage then.
func srqGivesBack(t *conformance.T) {
	const depth = 512
	n := newNode(t, nodeConfig{RNIC: verbs.Config{Limits: verbs.Limits{SRQs: 1}}})
	reqs := make([]verbs.Recv, depth)
	var old []weak.Pointer[verbs.SRQ]
	for range 20 {
		s := n.newSRQ(verbs.SRQConfig{Depth: depth, SGE: 32})
		postRecv(t, s, reqs...)
		l := n.line(verbs.QPConfig{SRQ: s})
		l.say(nil)
		completes(t, l.rq, l.got(0, 0))
		succeed(t, l.qp.Destroy, s.Destroy)
		old = append(old, weak.Make(s))
	}
	eventually(t, func() bool {
		runtime.GC()
		return !slices.ContainsFunc(old, func(p weak.Pointer[verbs.SRQ]) bool { return p.Value() != nil })
	}, "nothing refers to a destroyed S-RQ")
}

// srqLetsGo destroys an S-RQ with receives: their buffers are the program's again.
func srqLetsGo(t *conformance.T, n *node) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 8})
	mr := n.register(4096, allRights)
	l := n.line(verbs.QPConfig{SRQ: s})
	for i := range uint64(8) {
		postRecv(t, s, verbs.Recv{ID: i, SGL: mr.SGL(int(512*i), 512)})
	}
	l.tell(untagged(moreUntagged, opSend, 0, 0, l.nextSend(), 0, make([]byte, 100))) // one is in use
	l.settle()
	succeed(t, l.qp.Destroy, s.Destroy)
	kept := append([]byte(nil), fill(mr.Bytes(), 3)...)
	require.NoError(t, mr.Deregister(), "nothing holds it")
	other := n.newSRQ(verbs.SRQConfig{Depth: 8})
	u := n.line(verbs.QPConfig{SRQ: other})
	n.receives(other, 1)
	u.says(1)
	u.unheard()
	require.Equal(t, kept, mr.Bytes())
}

func srqForLife(t *conformance.T, n *node) {
	s := n.newSRQ(verbs.SRQConfig{})
	with, without := n.loose(verbs.QPConfig{SRQ: s}), n.loose(verbs.QPConfig{})
	for range 2 {
		n.receives(s, 1)
		without.recv(2)
		for _, l := range []*line{with, without} {
			l.join()
		}
		require.Same(t, s, attributes(t, with.qp).SRQ)
		require.Nil(t, attributes(t, without.qp).SRQ)
		with.says(1)
		without.says(2)
		for _, l := range []*line{with, without} {
			l.modify(verbs.StateError)
			l.modify(verbs.StateIdle)
		}
		require.Same(t, s, attributes(t, with.qp).SRQ)
		require.Nil(t, attributes(t, without.qp).SRQ)
	}
	m := reflect.TypeOf(verbs.ModifyQP{})
	for i := range m.NumField() {
		f := m.Field(i).Type
		require.NotContains(t, []reflect.Type{reflect.TypeOf(s), reflect.TypeOf(verbs.SRQID(0))}, f, "Modify QP changes an S-RQ: %s", m.Field(i).Name)
	}
}

func srqNoDepth(t *conformance.T) {
	n := newNode(t, nodeConfig{RNIC: verbs.Config{Limits: verbs.Limits{WR: 64, SRQWR: 100}}})
	for _, depth := range []int{0, 1, -1, 65, 1 << 30} {
		s := n.newSRQ(verbs.SRQConfig{Depth: 100})
		l := n.line(verbs.QPConfig{SRQ: s, RecvDepth: depth})
		n.receives(s, upTo(1, 100)...)
		for range 100 {
			l.say(nil)
		}
		require.Len(t, await(t, l.rq, 100), 100)
		l.unheard()
	}
}
