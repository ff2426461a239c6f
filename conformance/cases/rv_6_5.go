package cases

import (
	"math/rand/v2"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_5 is RDMA Read resources: verbs draft 6, 6.5.
var rv6_5 = []conformance.Case{
	apiCase("6/irrq", onHost(irrq), "RV-6-M1", "RV-6-M2"),
	apiCase("6.5/of-each-qp", readsOfEachQP, "RV-6.5-M1", "RV-6.5-M2"),
	apiCase("6.5/shared", readsShared, "RV-6.5-M1", "RV-6.5-M2"),
	apiCase("6.5/refused", readsRefused, "RV-6.5-M3", "RV-6.5-M13"),
	apiCase("6.5/initial", onHost(readsInitial), "RV-6.5-M7"),
	upperCase("6.5/never-above-ord", readsNeverAboveORD, "RV-6.5-M4"),
	apiCase("6.5/posted-beyond-ord", readsBeyondORD, "RV-6.5-M5", "RV-6.5-M6"),
	apiCase("6.5/ord-lowered", ordLowered, "RV-6.5-M9"),
	apiCase("6.5/ord-raised", onHost(ordRaised), "RV-6.2.2.1-M1", "RV-6.5-M6"),
	apiCase("6.5/ord-changed-meanwhile", onHost(ordChanged), "R5040-5.5-M2", "R5040-5.5-M6"),
	apiCase("6.5/change-harms-no-other", readsChanged, "RV-6.5-M8"),
	apiCase("6.5/one-for-each", readsOneForEach, "RV-6.5-M10", "RV-6.5-M11", "RV-6.5-M12"),
}

// irrq has a peer ask as often as IRD allows, all at once, of a queue pair created with
// that and of one modified to it; and once more, of one that cannot answer meanwhile.
func irrq(t *conformance.T, n *host) {
	src := n.register(vast, allRights)
	ask := func(msn, octets uint32) []byte {
		return aReadRequest(msn, read{nowhere, nowhereTO, octets, uint32(src.STag()), src.Base()})
	}
	for _, make := range named(t, "%s", map[string]func() *link{
		"created": func() *link { return n.link(verbs.QPConfig{IRD: 4}) },
		"modified": func() *link {
			l := n.idleLink(verbs.QPConfig{NoReads: true})
			require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle, IRD: ptr(4)}))
			l.join()
			return l
		},
	}) {
		l := make()
		require.Equal(t, 4, attributes(t, l.qp).IRD)
		var b []byte
		for msn := range uint32(4) {
			b = append(b, l.peer.Frame(ask(msn+1, 3))...)
		}
		require.NoError(t, l.peer.Raw(b))
		for range 4 {
			l.expect(aReadResponse(nowhere, nowhereTO, src.Bytes()[:3]))
		}
		// None of these is answered: the peer does not read.
		for msn := range uint32(4) {
			l.send(ask(msn+5, vast))
		}
		l.full()
		require.Equal(t, verbs.StateRTS, l.qp.State(), "all of them wait")
		u := ask(9, 1)
		l.send(u)
		l.raised(verbs.EventIRRQTooMany)
		r := l.rest()
		require.Equal(t, aTerminate(0x1202, u, false), r.terminate)
		require.Zero(t, r.messages)
		require.NoError(t, l.qp.Destroy())
	}
	l := n.link(verbs.QPConfig{NoReads: true})
	u := ask(1, 0)
	l.send(u)
	l.terminated(0x1202, u, false)
}

func readsOfEachQP(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{IRD: 30, ORD: 20}}})
	a := queried[verbs.RNICAttributes](t, n.nic)
	require.Equal(t, []int{30, 20, 0, 0}, []int{a.Limits.IRD, a.Limits.ORD, a.Limits.SharedIRD, a.Limits.SharedORD})
	for range 50 { // nobody takes anything from another
		q := attributes(t, n.newQP(verbs.QPConfig{IRD: 30, ORD: 20}))
		require.Equal(t, []int{30, 20}, []int{q.IRD, q.ORD})
	}
}

func readsShared(t *conformance.T) {
	const ird, ord = 24, 17
	n := newHost(t, hostConfig{
		RNIC: verbs.Config{Limits: verbs.Limits{QPs: 12, SharedIRD: ird, SharedORD: ord, IRD: 9, ORD: 9}}, QP: verbs.QPConfig{NoReads: true},
	})
	a := queried[verbs.RNICAttributes](t, n.nic)
	require.Equal(t, []int{9, 9, ird, ord}, []int{a.Limits.IRD, a.Limits.ORD, a.Limits.SharedIRD, a.Limits.SharedORD})
	var all []*verbs.QP
	for range 400 {
		switch do := t.Rand().IntN(9); {
		case len(all) > 0 && do < 3:
			i := t.Rand().IntN(len(all))
			require.NoError(t, all[i].Destroy())
			all = append(all[:i], all[i+1:]...)
		case len(all) > 0 && do < 5:
			err := all[t.Rand().IntN(len(all))].Modify(verbs.ModifyQP{IRD: ptr(1 + t.Rand().IntN(9)), ORD: ptr(1 + t.Rand().IntN(9))})
			if err != nil {
				require.ErrorIs(t, err, verbs.ErrInsufficientResources)
			}
		default:
			qp, err := n.nic.CreateQP(n.withDefaults(verbs.QPConfig{IRD: 1 + t.Rand().IntN(9), ORD: 1 + t.Rand().IntN(9)}))
			if err != nil {
				require.ErrorIs(t, err, verbs.ErrInsufficientResources)
			} else {
				all = append(all, qp)
			}
		}
		sumI, sumO := 0, 0
		for _, qp := range all {
			q := attributes(t, qp)
			require.Positive(t, min(q.IRD, q.ORD), "asked for, and there is some")
			sumI, sumO = sumI+q.IRD, sumO+q.ORD
		}
		require.LessOrEqual(t, sumI, ird)
		require.LessOrEqual(t, sumO, ord)
	}
	for _, qp := range all {
		require.NoError(t, qp.Destroy())
	}
	sumI, sumO := 0, 0
	for range 3 { // nothing was lost on the way
		q := attributes(t, n.newQP(verbs.QPConfig{IRD: 9, ORD: 6}))
		sumI, sumO = sumI+q.IRD, sumO+q.ORD
	}
	require.Equal(t, []int{ird, ord}, []int{sumI, sumO})
}

func readsRefused(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{QPs: 3, SharedIRD: 4, SharedORD: 4, IRD: 8, ORD: 8}}, QP: verbs.QPConfig{NoReads: true}})
	create := func(ird, ord int) error {
		return second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{IRD: ird, ORD: ord})))
	}
	require.ErrorIs(t, create(9, 1), verbs.ErrIRDExceeded)
	require.ErrorIs(t, create(1, 9), verbs.ErrORDExceeded)
	shown := func() any { return attributes(t, n.qp) }
	refuses(t, "IRD", verbs.ErrIRDExceeded, func() error { return n.qp.Modify(verbs.ModifyQP{IRD: ptr(9), ORD: ptr(1)}) }, shown)
	refuses(t, "ORD", verbs.ErrORDExceeded, func() error { return n.qp.Modify(verbs.ModifyQP{IRD: ptr(1), ORD: ptr(9)}) }, shown)

	for _, c := range named(t, "%s", map[string]verbs.QPConfig{"no IRD is left": {IRD: 4, ORD: 1}, "no ORD is left": {IRD: 1, ORD: 4}}) {
		all := n.newQP(c)
		require.ErrorIs(t, create(1, 1), verbs.ErrInsufficientResources)
		refuses(t, "both", verbs.ErrInsufficientResources, func() error { return n.qp.Modify(verbs.ModifyQP{IRD: ptr(1), ORD: ptr(1)}) }, shown)
		m := either(c.ORD == 4, verbs.ModifyQP{ORD: ptr(1)}, verbs.ModifyQP{IRD: ptr(1)})
		refuses(t, "the one", verbs.ErrInsufficientResources, func() error { return n.qp.Modify(m) }, shown)
		require.NoError(t, all.Destroy())
		require.NoError(t, n.qp.Modify(verbs.ModifyQP{IRD: ptr(1), ORD: ptr(1)}))
		q := attributes(t, n.qp)
		require.Equal(t, []int{1, 1}, []int{q.IRD, q.ORD})
		more := n.newQP(verbs.QPConfig{IRD: 3, ORD: 3})
		q = attributes(t, more)
		require.Equal(t, []int{3, 3}, []int{q.IRD, q.ORD}, "what was refused took nothing")
		require.NoError(t, more.Destroy())
		require.NoError(t, n.qp.Modify(verbs.ModifyQP{IRD: ptr(0), ORD: ptr(0)}))
	}
}

// readsInitial looks at what Create QP was told, and at what holds on the wire.
func readsInitial(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{IRD: 3, ORD: 2})
	q := attributes(t, l.qp)
	require.Equal(t, []int{3, 2}, []int{q.IRD, q.ORD})
	post(t, l.qp, l.aRead(1), l.aRead(2), l.aRead(3))
	l.expect(l.asks(1), l.asks(2))
	l.settled()
	// IRD is what can wait: answers that do not get out make it full.
	l = n.link(verbs.QPConfig{IRD: 3})
	src := n.register(16<<20, allRights)
	for msn := range uint32(3) {
		l.send(aReadRequest(msn+1, read{nowhere, nowhereTO, 16 << 20, uint32(src.STag()), src.Base()}))
	}
	u := aReadRequest(4, read{nowhere, nowhereTO, 1, uint32(src.STag()), src.Base()})
	l.send(u)
	l.raised(verbs.EventIRRQTooMany)

	l = n.link(verbs.QPConfig{NoReads: true})
	q = attributes(t, l.qp)
	require.Equal(t, []int{0, 0}, []int{q.IRD, q.ORD})
	u = aReadRequest(1, read{nowhere, nowhereTO, 0, 0, 0})
	l.send(u)
	l.terminated(0x1202, u, false)
	l.raised(verbs.EventIRRQTooMany)
	l = n.link(verbs.QPConfig{NoReads: true})
	run(t, l.qp, l.aRead(1), verbs.StatusZeroReadResources)
	l.terminated(0x0000, nil, false)
}

func readsNeverAboveORD(t *conformance.T) {
	s := setup{}
	s.qp.ORD = 2
	s.qp.SendDepth = 16
	r, b := openWith(t, s, 64)
	ask := func(msn uint32) []byte {
		return aReadRequest(msn, read{b.tag(), b.at(int(msn)), 1, uint32(theirs.STag), theirs.TO})
	}
	for i := range 6 {
		r.post(verbs.Request{ID: uint64(i + 1), Op: verbs.OpRead, Local: b.sge(i+1, 1), Remote: theirs})
	}
	r.expect(ask(1), ask(2))
	r.settled()
	for msn := uint32(1); msn <= 6; msn++ {
		r.send(aReadResponse(b.tag(), b.at(int(msn)), []byte{byte(0xA0 + msn)}))
		if msn+2 <= 6 {
			r.expect(ask(msn + 2))
		}
		r.settled()
		r.completions(verbs.Completion{ID: uint64(msn), Op: verbs.OpRead})
	}
	b.holds(1, []byte{0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6})
}

func readsBeyondORD(t *conformance.T) {
	l := newLink(t, verbs.QPConfig{ORD: 1, SendDepth: 32})
	for i := range uint64(31) {
		post(t, l.qp, l.aRead(i))
	}
	post(t, l.qp, l.aSend(31)) // behind them, though it needs no RDMA Read resource
	for i := range uint32(31) {
		l.expect(l.asks(i + 1))
		if i == 30 { // the last is outstanding, and the Send goes past it
			break
		}
		l.settled()
		empty(t, l.sq)
		l.send(l.answer())
		completes(t, l.sq, l.sentAs(uint64(i), verbs.OpRead, verbs.StatusSuccess))
	}
	l.expect(aSend(1, l.mr.Bytes()[:4]))
	l.send(l.answer())
	completes(t, l.sq, l.sentAs(30, verbs.OpRead, verbs.StatusSuccess), l.sentAs(31, verbs.OpSend, verbs.StatusSuccess))
}

// ordLowered is on an RNIC without anything optional.
func ordLowered(t *conformance.T) {
	without := verbs.FeatureBlockMode | verbs.FeatureSRQ | verbs.FeatureResize | verbs.FeatureChangeIRD | verbs.FeatureRaiseORD
	for s := range inTurn(t, "in %v", []verbs.State{verbs.StateIdle, verbs.StateRTS}) {
		n := newHost(t, hostConfig{RNIC: verbs.Config{Without: without}})
		l := n.into(s, verbs.QPConfig{ORD: 5, IRD: 5})
		for _, ord := range []int{4, 2, 2} {
			require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: s, ORD: ptr(ord)}))
			require.Equal(t, ord, attributes(t, l.qp).ORD)
		}
		refuses(t, "raising it", verbs.ErrCannotChangeAttribute, func() error { return l.qp.Modify(verbs.ModifyQP{Next: s, ORD: ptr(3)}) }, l.shown)
		refuses(t, "IRD", verbs.ErrCannotChangeAttribute, func() error { return l.qp.Modify(verbs.ModifyQP{Next: s, IRD: ptr(3)}) }, l.shown)
		if s == verbs.StateIdle {
			l.join()
		}
		post(t, l.qp, l.aRead(1), l.aRead(2), l.aRead(3))
		l.expect(l.asks(1), l.asks(2))
		l.settled()
		for msn := range uint32(3) {
			l.send(l.answer())
			if msn == 0 {
				l.expect(l.asks(3))
			}
		}
		for id := range uint64(3) {
			completes(t, l.sq, l.sentAs(id+1, verbs.OpRead, verbs.StatusSuccess))
		}
		require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(0)}))
		run(t, l.qp, l.aRead(4), verbs.StatusZeroReadResources)
		l.terminated(0x0000, nil, false)
	}
}

// ordRaised raises ORD while Reads, and a Send behind them, wait for one that is not answered: they go out at once.
func ordRaised(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{ORD: 1})
	post(t, l.qp, l.aRead(1), l.aRead(2), l.aRead(3), l.aSend(4))
	l.expect(l.asks(1))
	l.settled()
	raise := func(ord int) {
		require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: &ord}))
	}
	raise(2)
	l.expect(l.asks(2))
	l.settled()
	raise(3)
	l.expect(l.asks(3), aSend(1, l.mr.Bytes()[:4]))
	empty(t, l.sq)
	l.send(l.answer(), l.answer(), l.answer())
	completes(t, l.sq, l.sentAs(1, verbs.OpRead, verbs.StatusSuccess), l.sentAs(2, verbs.OpRead, verbs.StatusSuccess),
		l.sentAs(3, verbs.OpRead, verbs.StatusSuccess), l.sentAs(4, verbs.OpSend, verbs.StatusSuccess))
}

// ordChanged changes ORD while two Reads are outstanding, behind none, one or two that are complete, and posts as many more as
// that allows, two at most. The draft leaves open what comes of them (6.5), RFC 5040 does not: each response is for the oldest.
func ordChanged(t *conformance.T, n *host) {
	const reads, ord, most = 6, 2, 2 // most are done before the change, and most are asked for behind it
	for to := range inTurn(t, "from 2 to %d", []int{1, 2, 3, 8}) {
		for done := range counted(t, "%d done", most+1) {
			all, more := done+ord, min(max(to-ord, 0), most)
			l := n.link(verbs.QPConfig{ORD: ord})
			var asks, answers [][]byte
			var completions []verbs.Completion
			for i := range reads {
				sink, text := l.mr.Remote(64*i), []byte{'r', 'e', 'a', 'd', byte('0' + i)}
				asks = append(asks, aReadRequest(uint32(i+1), read{uint32(sink.STag), sink.TO, 5, uint32(theirs.STag), theirs.TO}))
				answers = append(answers, aReadResponse(uint32(sink.STag), sink.TO, text))
				completions = append(completions, l.sentAs(uint64(i), verbs.OpRead, verbs.StatusSuccess))
				clear(l.mr.Bytes()[64*i:][:5])
			}
			read := func(i int) {
				post(t, l.qp, verbs.Request{ID: uint64(i), Op: verbs.OpRead, Local: l.mr.SGE(64*i, 5), Remote: theirs})
			}
			for i := range all {
				read(i)
			}
			l.expect(asks[:ord]...)
			for i := range done {
				l.send(answers[i])
				l.expect(asks[ord+i])
			}
			require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(to)}))
			for i := all; i < all+more; i++ {
				read(i)
				l.expect(asks[i])
			}
			all += more
			l.send(answers[done:all]...)
			completes(t, l.sq, completions[:all]...)
			for i := range all {
				require.Equal(t, answers[i][14:], l.mr.Bytes()[64*i:][:5], "Read %d", i)
			}
		}
	}
}

// readsChanged changes IRD and ORD of two queue pairs at random while Reads are under
// way on them, and on two others.
func readsChanged(t *conformance.T) {
	const rounds = 200
	w := newHostPair(t, hostPairConfig{A: hostConfig{QP: verbs.QPConfig{IRD: 8, ORD: 8}}, B: hostConfig{QP: verbs.QPConfig{IRD: 8, ORD: 8}}})
	cq := w.a.newCQ(64)
	qa, qb := w.connectMore(verbs.QPConfig{IRD: 8, ORD: 8, SendCQ: cq}, verbs.QPConfig{IRD: 8, ORD: 8})
	var g sync.WaitGroup
	for _, n := range []*host{w.a, w.b} {
		rng := rand.New(rand.NewPCG(t.Rand().Uint64(), 1))
		g.Go(func() {
			for range rounds {
				// What comes of these Reads is not said (6.5).
				_, _ = n.qp.PostSend(verbs.Request{Op: verbs.OpRead, Local: n.mr.SGE(0, 64), Remote: w.b.mr.Remote(0), Flags: verbs.Unsignaled})
				_ = n.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, IRD: ptr(1 + rng.IntN(16)), ORD: ptr(1 + rng.IntN(16))})
			}
		})
	}
	fill(w.b.mr.Bytes()[8192:12288], 3)
	for i := range rounds {
		at := 16384 + i%8*4096
		clear(w.a.mr.Bytes()[at:][:4096])
		post(t, qa, verbs.Request{ID: uint64(i), Op: verbs.OpRead, Local: w.a.mr.SGE(at, 4096), Remote: w.b.mr.Remote(8192)})
		completes(t, cq, verbs.Completion{ID: uint64(i), QP: qa.ID(), Op: verbs.OpRead})
		require.Equal(t, w.b.mr.Bytes()[8192:12288], w.a.mr.Bytes()[at:][:4096])
	}
	g.Wait()
	require.Equal(t, []verbs.State{verbs.StateRTS, verbs.StateRTS}, []verbs.State{qa.State(), qb.State()})
	for _, n := range []*host{w.a, w.b} {
		for len(n.events.events) > 0 {
			assert.Equal(t, n.qp.ID(), n.events.next().QP, "an event of another queue pair")
		}
	}
}

// readsOneForEach: there are as many resources as queue pairs, at the least.
func readsOneForEach(t *conformance.T) {
	const qps = 20
	for _, l := range []verbs.Limits{{QPs: qps, SharedIRD: qps - 1}, {QPs: qps, SharedORD: qps - 1}, {QPs: qps, SharedIRD: 1, SharedORD: 1}, {IRD: -1}, {ORD: -1}} {
		require.ErrorIs(t, second(verbs.Open(verbs.Config{Limits: l})), verbs.ErrInvalidModifier, "%+v", l)
	}
	for _, l := range named(t, "%s", map[string]verbs.Limits{
		"pools": {QPs: qps, SharedIRD: qps, SharedORD: qps}, "none": {QPs: qps, IRD: 1, ORD: 1},
	}) {
		c := hostConfig{RNIC: verbs.Config{Limits: l}, QP: verbs.QPConfig{IRD: 1, ORD: 1}}
		w := newHostPair(t, hostPairConfig{A: c, B: c})
		var a, b *verbs.QP
		for i := range qps - 1 {
			if i == qps-2 {
				a, b = w.connectMore(c.QP, c.QP)
				break
			}
			for _, n := range []*host{w.a, w.b} {
				q := attributes(t, n.newQP(c.QP))
				require.Equal(t, []int{1, 1}, []int{q.IRD, q.ORD})
			}
		}
		reads(t, endpoint{a, w.a.mr}, w.b.mr.Remote(0), w.b.mr.Bytes()[:100])
		reads(t, endpoint{b, w.b.mr}, w.a.mr.Remote(0), w.a.mr.Bytes()[:100])
	}
}
