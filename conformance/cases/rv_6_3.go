package cases

import (
	"reflect"
	"runtime"
	"slices"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_3 is what Shared Receive Queues are: verbs draft 6.3.
var rv6_3 = []conformance.Case{
	apiCase("6.3/query-rnic", srqQueryRNIC, "RV-6.3-M1", "RV-6.3-M3", "RV-6.3-M4", "RV-6.3-M5", "RV-6.3-M6"),
	apiCase("6.3/completes-at-the-qp", onHost(srqCompletesAtQP), "RV-6.3-M2"),
	apiCase("6.3/protection-domain", onHost(srqPD), "RV-6.3-M7", "RV-6.3-M8", "RV-6.3.1-M1", "RV-6.3.5-M10"),
	apiCase("6.3/send-queue-as-ever", srqSendQueue, "RV-6.3-M9"),
	apiCase("6.3/posts", onHost(srqPosts), "RV-6.3-M10", "RV-6.3-M11", "RV-6.3.5-M1", "RV-6.3.5-M2", "RV-6.3.5-M3"),
	apiCase("6.3/all-of-it", onHost(srqAllOfIt), "RV-6.3-M12"),
}

func srqQueryRNIC(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{SRQs: 3, SRQWR: 40}}})
	a := must(n.nic.Query())(t)
	require.Equal(t, []any{true, 3, 40}, []any{a.Features.Has(verbs.FeatureSRQ), a.Limits.SRQs, a.Limits.SRQWR})
	require.ErrorIs(t, second(n.nic.CreateSRQ(verbs.SRQConfig{PD: n.pd, Depth: 41})), verbs.ErrTooManyWR)
	for range 3 {
		s := n.newSRQ(verbs.SRQConfig{Depth: 40})
		n.receives(s, upTo(1, 40)...)
	}
	require.ErrorIs(t, second(n.nic.CreateSRQ(verbs.SRQConfig{PD: n.pd})), verbs.ErrInsufficientResources)

	n = newHost(t, hostConfig{RNIC: verbs.Config{Without: verbs.FeatureSRQ}})
	a = must(n.nic.Query())(t)
	require.Equal(t, []any{false, 0, 0}, []any{a.Features.Has(verbs.FeatureSRQ), a.Limits.SRQs, a.Limits.SRQWR})
	require.ErrorIs(t, second(n.nic.CreateSRQ(verbs.SRQConfig{PD: n.pd})), verbs.ErrInsufficientResources)
}

func srqCompletesAtQP(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{})
	a, b := n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s})
	n.receives(s, 1, 2, 3, 4)
	for i, l := range []*link{a, b, b, a} {
		fill(n.mr.Bytes(), i)
		l.sendMessage([]byte("octets"))
		completes(t, l.rq, l.got(uint64(i+1), 6))
		require.Equal(t, "octets", string(n.mr.Bytes()[64*(i+1):][:6]))
	}
	for _, cq := range []*verbs.CQ{a.sq, a.rq, b.sq, b.rq, n.cq} {
		empty(t, cq)
	}
}

func srqPD(t *conformance.T, n *host) {
	create := func(c verbs.SRQConfig) error { return second(n.nic.CreateSRQ(c)) }
	gone := n.deadPD()
	require.ErrorIs(t, create(verbs.SRQConfig{}), verbs.ErrInvalidPD, "no PD")
	require.ErrorIs(t, create(verbs.SRQConfig{PD: gone}), verbs.ErrInvalidPD, "a deallocated PD")
	require.ErrorIs(t, create(verbs.SRQConfig{PD: n.pd, Depth: -1}), verbs.ErrInvalidModifier, "a negative depth")
	pd := n.newPD()
	mr := n.region(pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights})
	var all []*verbs.SRQ
	for i := range 3 {
		s := n.newSRQ(verbs.SRQConfig{PD: pd, Depth: 5 + i})
		all = append(all, s)
		a := queried[verbs.SRQAttributes](t, s)
		require.Equal(t, pd.ID(), a.PD)
		require.Same(t, pd, s.PD())
		require.GreaterOrEqual(t, a.Depth, 5+i)
		for j := range a.Depth {
			postRecv(t, s, verbs.Recv{ID: uint64(j + 1), SGL: mr.SGL(0, 8)})
		}
		require.ErrorIs(t, second(s.PostRecv(verbs.Recv{})), verbs.ErrQueueFull)
		l := n.link(verbs.QPConfig{SRQ: s})
		l.says(1)
		require.NoError(t, l.qp.Destroy())
	}
	for _, s := range all {
		require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse)
		require.NoError(t, s.Destroy())
	}
	succeed(t, mr.Deregister, pd.Deallocate)
}

// srqSendQueue runs one script on a queue pair with an S-RQ and on one without.
func srqSendQueue(t *conformance.T) {
	type outcome struct {
		heard [][]byte
		done  []verbs.Completion
	}
	var both []outcome
	for _, shared := range []bool{false, true} {
		n := newHost(t, hostConfig{})
		c := verbs.QPConfig{ORD: 1, SendDepth: 16}
		if shared {
			c.SRQ = n.newSRQ(verbs.SRQConfig{})
		}
		l, w := n.link(c), n.newMW()
		fill(n.mr.Bytes(), 8)
		at := n.mr.Remote(0)
		at.TO = 0x1000
		bind := binds(w.BindRequest(n.mr, 0, 64, remoteRights, 1))
		for i, r := range []verbs.Request{
			l.aSend(0), {Op: verbs.OpWrite, SGL: n.mr.SGL(3, 5), Remote: theirs}, l.aRead(0), bind,
			{Op: verbs.OpSendSE, SGL: n.mr.SGL(9, 9), Flags: verbs.ReadFence}, l.aRead(0),
			{Op: verbs.OpInvalidate, Invalidate: w.STag(1), Flags: verbs.LocalFence},
			{SGL: n.mr.SGL(0, 1), Flags: verbs.Unsignaled}, {SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}}, l.aSend(0),
		} {
			r.ID = uint64(i)
			post(t, l.qp, r)
		}
		var o outcome
		for {
			u := append([]byte(nil), l.next()...)
			if u[1]&0x0F == 1 { // the sink has another STag and address each time
				l.send(l.answer())
				copy(u[18:], make([]byte, 12))
			}
			o.heard = append(o.heard, u)
			if u[1] == opTerminate {
				break
			}
		}
		l.finished()
		l.closesTo(verbs.StateError)
		o.done = await(t, l.sq, 9)
		empty(t, l.sq)
		for i := range o.done {
			o.done[i].QP = 0
		}
		both = append(both, o)
	}
	require.Equal(t, both[0], both[1], "without an S-RQ, and with one")
	require.Len(t, both[0].heard, 7)
	require.Equal(t, verbs.StatusInvalidSTag, both[0].done[7].Status)
}

func srqPosts(t *conformance.T, n *host) {
	for state := range inTurn(t, "in %v", states) {
		s := n.newSRQ(verbs.SRQConfig{Depth: 3})
		l := n.into(state, verbs.QPConfig{SRQ: s})
		k, err := l.qp.PostRecv(n.aReceive(9), n.aReceive(9))
		if state == verbs.StateIdle || state == verbs.StateRTS {
			require.ErrorIs(t, err, verbs.ErrRQUsesSRQ)
		} else {
			require.Error(t, err)
		}
		require.Zero(t, k)
		k, err = s.PostRecv(n.aReceive(1), n.aReceive(2), n.aReceive(3), n.aReceive(4))
		require.ErrorIs(t, err, verbs.ErrQueueFull, "nothing else is on it")
		require.Equal(t, 3, k)
		user := n.link(verbs.QPConfig{SRQ: s})
		if state == verbs.StateIdle {
			l.join()
		}
		if state == verbs.StateIdle || state == verbs.StateRTS {
			l.says(1)
		} else {
			user.says(1)
		}
		user.says(2)
		user.says(3)
		user.sendsTooMuch()
	}
}

// srqAllOfIt uses each verb that has to do with S-RQs, and sees the three events.
func srqAllOfIt(t *conformance.T, n *host) {
	s := must(n.nic.CreateSRQ(verbs.SRQConfig{PD: n.pd, Depth: 4, Limit: 1}))(t)
	require.NotZero(t, s.ID())
	require.Equal(t, 4, queried[verbs.SRQAttributes](t, s).Depth)
	require.NoError(t, s.Modify(verbs.ModifySRQ{Depth: ptr(6), Limit: ptr(2), Rearm: true}))
	require.Equal(t, 6, queried[verbs.SRQAttributes](t, s).Depth)
	l := n.idleLink(verbs.QPConfig{SRQ: s})
	require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle, RQLimit: ptr(0), ArmRQLimit: true}))
	l.join()
	require.Same(t, s, attributes(t, l.qp).SRQ)
	require.Equal(t, 2, must(s.PostRecv(n.aReceive(1), n.aReceive(2)))(t))
	l.says(1)
	got := []verbs.Event{n.events.next(), n.events.next()}
	require.ElementsMatch(t, []verbs.Event{{ID: verbs.EventSRQLimit, SRQ: s.ID()}, {ID: verbs.EventRQLimit, QP: l.id}}, got)
	require.Same(t, s, n.nic.SRQ(s.ID()), "what the event names")
	fault.Provoke(s)
	n.events.are(verbs.Event{ID: verbs.EventSRQCatastrophic, SRQ: s.ID()})
	succeed(t, l.qp.Destroy, s.Destroy)
	require.Nil(t, n.nic.SRQ(s.ID()))
}

// rv6_3_life is how Shared Receive Queues end, and that a queue pair has its own for
// life: verbs draft 6.3.3 and 6.3.4.
var rv6_3_life = []conformance.Case{
	apiCase("6.3.3/in-use", onHost(srqInUse), "RV-6.3.3-M1", "RV-6.3.3-M2"),
	apiCase("6.3.3/gives-back", srqGivesBack, "RV-6.3.3-M3"),
	apiCase("6.3.3/lets-go-of-buffers", onHost(srqLetsGo), "RV-6.3.3-M4"),
	apiCase("6.3.4/for-life", onHost(srqForLife), "RV-6.3.4-M1"),
	apiCase("6.3.4/no-depth-of-its-own", srqNoDepth, "RV-6.3.4-M2", "RV-6.3.7-M1"),
}

func srqInUse(t *conformance.T, n *host) {
	for state := range inTurn(t, "in %v", states) {
		s := n.newSRQ(verbs.SRQConfig{Depth: 10})
		a, b := n.into(state, verbs.QPConfig{SRQ: s}), n.into(state, verbs.QPConfig{SRQ: s})
		n.receives(s, upTo(1, 10)...)
		for _, l := range []*link{a, b} {
			refuses(t, "Destroy S-RQ", verbs.ErrSRQInUse, s.Destroy, queries(s.Query))
			require.NoError(t, l.qp.Destroy())
		}
		require.NoError(t, s.Destroy(), "with ten receives")
		require.ErrorIs(t, second(s.PostRecv(n.aReceive(1))), verbs.ErrInvalidSRQ)
		require.ErrorIs(t, second(s.Query()), verbs.ErrInvalidSRQ)
		require.ErrorIs(t, s.Destroy(), verbs.ErrInvalidSRQ)
	}
}

// srqGivesBack makes and destroys filled S-RQs where there can be one at a time. What
// was one is garbage then.
func srqGivesBack(t *conformance.T) {
	const depth = 512
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{SRQs: 1}}})
	reqs := make([]verbs.Recv, depth)
	var old []weak.Pointer[verbs.SRQ]
	for range 20 {
		s := n.newSRQ(verbs.SRQConfig{Depth: depth, SGE: 32})
		postRecv(t, s, reqs...)
		l := n.link(verbs.QPConfig{SRQ: s})
		l.sendMessage(nil)
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
func srqLetsGo(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 8})
	mr := n.register(4096, allRights)
	l := n.link(verbs.QPConfig{SRQ: s})
	for i := range uint64(8) {
		postRecv(t, s, verbs.Recv{ID: i, SGL: mr.SGL(int(512*i), 512)})
	}
	l.send(untagged(moreUntagged, opSend, 0, 0, l.nextSend(), 0, make([]byte, 100))) // one is in use
	l.settled()
	succeed(t, l.qp.Destroy, s.Destroy)
	kept := append([]byte(nil), fill(mr.Bytes(), 3)...)
	require.NoError(t, mr.Deregister(), "nothing holds it")
	other := n.newSRQ(verbs.SRQConfig{Depth: 8})
	u := n.link(verbs.QPConfig{SRQ: other})
	n.receives(other, 1)
	u.says(1)
	u.sendsTooMuch()
	require.Equal(t, kept, mr.Bytes())
}

func srqForLife(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{})
	with, without := n.idleLink(verbs.QPConfig{SRQ: s}), n.idleLink(verbs.QPConfig{})
	for range 2 {
		n.receives(s, 1)
		without.recv(2)
		for _, l := range []*link{with, without} {
			l.join()
		}
		require.Same(t, s, attributes(t, with.qp).SRQ)
		require.Nil(t, attributes(t, without.qp).SRQ)
		with.says(1)
		without.says(2)
		for _, l := range []*link{with, without} {
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
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{WR: 64, SRQWR: 100}}})
	for _, depth := range []int{0, 1, -1, 65, 1 << 30} {
		s := n.newSRQ(verbs.SRQConfig{Depth: 100})
		l := n.link(verbs.QPConfig{SRQ: s, RecvDepth: depth, RecvSGE: depth})
		n.receives(s, upTo(1, 100)...)
		for range 100 {
			l.sendMessage(nil)
		}
		require.Len(t, await(t, l.rq, 100), 100)
		l.sendsTooMuch()
	}
}
