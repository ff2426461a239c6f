package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_3_8 is limits of Shared Receive Queues and of queue pairs on them: verbs draft
// 6.3.8.
var rv6_3_8 = []conformance.Case{
	apiCase("6.3.8/srq-limit", onHost(srqLimit), "RV-6.3.8-M1", "RV-6.3.8-M5"),
	apiCase("6.3.8/srq-limit-set", onHost(srqLimitSet), "RV-6.3.8-M2"),
	apiCase("6.3.8/srq-limit-armed-at-creation", onHost(srqLimitArmed), "RV-6.3.8-M3", "RV-6.3.8-M7"),
	apiCase("6.3.8/srq-limit-disturbs-nothing", onHost(srqLimitDisturbs), "RV-6.3.8-M4"),
	apiCase("6.3.8/srq-limit-once", onHost(srqLimitOnce), "RV-6.3.8-M6", "RV-6.3.8-M8", "PV-6.3.8-M1"),
	apiCase("6.3.8/srq-limit-and-depth", onHost(srqLimitAndDepth), "RV-6.3.8-M9"),
	apiCase("6.3.8/srq-limit-range", srqLimitRange, "RV-6.3.8-M17"),
	apiCase("6.3.8/arm-twice", onHost(limitsArmedTwice), "RV-6.3.8-M8", "RV-6.3.8-M16"),
	apiCase("6.3.8/qp-limit", onHost(qpLimit), "RV-6.3.8-M10", "RV-6.3.8-M13"),
	apiCase("6.3.8/qp-limit-armed-at-creation", onHost(qpLimitArmed), "RV-6.3.8-M11", "RV-6.3.8-M15"),
	apiCase("6.3.8/qp-limit-disturbs-nothing", onHost(qpLimitDisturbs), "RV-6.3.8-M12"),
	apiCase("6.3.8/qp-limit-once", onHost(qpLimitOnce), "RV-6.3.8-M14", "PV-6.3.8-M2"),
}

// reached waits for the S-RQ's limit event.
func (n *host) reached(s *verbs.SRQ) { n.events.are(verbs.Event{ID: verbs.EventSRQLimit, SRQ: s.ID()}) }

func srqLimit(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 8, Limit: 3})
	l := n.link(verbs.QPConfig{SRQ: s})
	n.receives(s, 1, 2, 3, 4, 5)
	l.says(1)
	l.says(2)
	n.quiet() // three are unused
	l.says(3)
	n.reached(s) // two are
	l.says(4)
	l.says(5)
	n.quiet()
	require.False(t, queried[verbs.SRQAttributes](t, s).Armed)
}

func srqLimitSet(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 8, Limit: 5})
	l := n.link(verbs.QPConfig{SRQ: s})
	require.Equal(t, 5, queried[verbs.SRQAttributes](t, s).Limit)
	n.receives(s, upTo(1, 8)...)
	require.NoError(t, s.Modify(verbs.ModifySRQ{Limit: ptr(2)}))
	require.Equal(t, 2, queried[verbs.SRQAttributes](t, s).Limit)
	for id := range uint64(6) {
		l.says(id + 1)
	}
	n.quiet() // not at five, but at two
	l.says(7)
	n.reached(s)
	require.NoError(t, s.Modify(verbs.ModifySRQ{Limit: ptr(4), Rearm: true}))
	n.receives(s, upTo(9, 12)...) // five are there
	l.says(8)
	n.quiet()
	l.says(9)
	n.reached(s)
}

func srqLimitArmed(t *conformance.T, n *host) {
	for limit := range 3 {
		s := n.newSRQ(verbs.SRQConfig{Depth: 4, Limit: limit})
		require.Equal(t, limit > 0, queried[verbs.SRQAttributes](t, s).Armed, "limit %d", limit)
		l := n.link(verbs.QPConfig{SRQ: s})
		n.receives(s, 1, 2, 3)
		for left := 2; left >= 0; left-- {
			l.says(uint64(3 - left))
			if left == limit-1 {
				n.reached(s)
			} else {
				n.quiet()
			}
		}
	}
}

func srqLimitDisturbs(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 16, Limit: 8})
	lines := []*link{n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s})}
	n.receives(s, upTo(1, 16)...)
	for i := range uint64(16) {
		l := lines[i%2]
		fill(n.mr.Bytes()[64*(i+1):][:3], 0)
		l.says(i + 1)
		require.Equal(t, []byte{1, 2, 3}, n.mr.Bytes()[64*(i+1):][:3])
	}
	n.reached(s)
	n.quiet()
	for _, l := range lines {
		require.Equal(t, verbs.StateRTS, l.qp.State())
		l.settled()
	}
}

func srqLimitOnce(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 4, Limit: 2})
	l := n.link(verbs.QPConfig{SRQ: s})
	cross := func() {
		n.receives(s, 1, 2, 3)
		l.says(1)
		l.says(2)
		l.says(3)
	}
	cross()
	n.reached(s)
	for range 3 {
		cross()
		n.quiet()
		require.NoError(t, s.Modify(verbs.ModifySRQ{Rearm: true}))
		cross()
		n.reached(s)
		n.quiet()
	}
}

func srqLimitAndDepth(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 16, Limit: 8})
	refuses(t, "a depth below the limit", verbs.ErrInvalidModifier, func() error { return s.Modify(verbs.ModifySRQ{Depth: ptr(4)}) }, queries(s.Query))
	require.NoError(t, s.Modify(verbs.ModifySRQ{Depth: ptr(8)}), "one that is the limit")
	l := n.link(verbs.QPConfig{SRQ: s})
	n.receives(s, 1)
	l.says(1)
	n.reached(s)
	require.NoError(t, s.Modify(verbs.ModifySRQ{Depth: ptr(4)}), "the event has disarmed it")
	require.Equal(t, 4, queried[verbs.SRQAttributes](t, s).Depth)
	refuses(t, "armed again", verbs.ErrInvalidModifier, func() error { return s.Modify(verbs.ModifySRQ{Rearm: true}) }, queries(s.Query))
}

func srqLimitRange(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{SRQs: 1}}})
	require.ErrorIs(t, second(n.nic.CreateSRQ(verbs.SRQConfig{PD: n.pd, Depth: 8, Limit: 9})), verbs.ErrSRQLimitRange)
	require.ErrorIs(t, second(n.nic.CreateSRQ(verbs.SRQConfig{PD: n.pd, Depth: 8, Limit: -1})), verbs.ErrSRQLimitRange)
	s := n.newSRQ(verbs.SRQConfig{Depth: 8, Limit: 8})
	for _, m := range []verbs.ModifySRQ{{Limit: ptr(9)}, {Limit: ptr(-1)}, {Depth: ptr(20), Limit: ptr(21)}, {Limit: ptr(9), Rearm: true}} {
		refuses(t, "a limit", verbs.ErrSRQLimitRange, func() error { return s.Modify(m) }, queries(s.Query))
	}
	require.NoError(t, s.Modify(verbs.ModifySRQ{Depth: ptr(20), Limit: ptr(20)}))
}

func limitsArmedTwice(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 8, Limit: 2})
	l := n.idleLink(verbs.QPConfig{SRQ: s})
	for range 2 {
		require.NoError(t, s.Modify(verbs.ModifySRQ{Rearm: true}))
		require.True(t, queried[verbs.SRQAttributes](t, s).Armed)
		require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle, RQLimit: ptr(0), ArmRQLimit: true}))
		require.True(t, attributes(t, l.qp).RQLimitArmed)
	}
	n.receives(s, 1, 2, 3)
	l.join()
	l.says(1)
	l.raised(verbs.EventRQLimit)
	l.says(2)
	n.reached(s)
	l.says(3)
	n.quiet()
}

// qpLimit has a message begin and not end: one is in progress.
func qpLimit(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{})
	begin := func(l *link) {
		l.send(untagged(moreUntagged, opSend, 0, 0, l.nextSend(), 0, []byte("two ")))
		l.settled()
	}
	end := func(l *link, id uint64) {
		l.send(untagged(lastUntagged, opSend, 0, 0, l.sends, 4, []byte("segments")))
		completes(t, l.rq, l.got(id, 12))
	}
	n.receives(s, 1, 2, 3)
	l := n.armed(s, 0)
	begin(l)
	l.raised(verbs.EventRQLimit) // more than none is
	empty(t, l.rq)
	end(l, 1)
	n.quiet()
	l = n.armed(s, 1)
	begin(l)
	end(l, 2)
	n.quiet() // never more than one is
	l = n.link(verbs.QPConfig{SRQ: s})
	begin(l)
	end(l, 3)
	n.quiet() // it is not armed
}

func qpLimitArmed(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 16})
	for _, limit := range []int{0, 1, 2, 16} {
		a := attributes(t, n.newQP(verbs.QPConfig{SRQ: s, RQLimit: limit}))
		require.Equal(t, []any{limit, limit > 0}, []any{a.RQLimit, a.RQLimitArmed})
	}
}

func qpLimitDisturbs(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{})
	l := n.armed(s, 0)
	n.receives(s, upTo(1, 10)...)
	for id := range uint64(10) {
		l.says(id + 1)
		require.Equal(t, []byte{1, 2, 3}, n.mr.Bytes()[64*(id+1):][:3])
		run(t, l.qp, l.aSend(50), verbs.StatusSuccess)
	}
	l.raised(verbs.EventRQLimit)
	n.quiet()
	require.Equal(t, verbs.StateRTS, l.qp.State())
}

func qpLimitOnce(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{})
	l := n.armed(s, 0)
	for round := range 3 {
		n.receives(s, 1, 2)
		l.says(1)
		l.raised(verbs.EventRQLimit)
		require.False(t, attributes(t, l.qp).RQLimitArmed)
		l.says(2)
		n.quiet()
		l.modify(verbs.StateError)
		l.modify(verbs.StateIdle)
		if round%2 == 0 {
			require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle, ArmRQLimit: true}))
			require.True(t, attributes(t, l.qp).RQLimitArmed)
			l.join()
			continue
		}
		st, peer := aStream(t)
		require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: st, ArmRQLimit: true}))
		l.peer = peer
	}
}

// rv6_3_6 is what goes wrong with S-RQs and on them: verbs draft 6.3.6.
var rv6_3_6 = []conformance.Case{
	apiCase("6.3.6/completion-errors", onHost(srqCompletionErrors), "RV-6.3.6-M1"),
	apiCase("6.3.6/catastrophe", onHost(srqCatastrophe), "RV-6.3.6-M2", "RV-6.3.6-M5", "RV-6.3.6-M6", "PV-8.3.3-M5"),
	apiCase("6.3.6/errors-of-a-qp", srqErrorsOfQP, "RV-6.3.6-M3", "RV-6.3.6-M4", "RV-6.3.6-M7"),
}

func srqCompletionErrors(t *conformance.T, n *host) {
	other := n.region(n.newPD(), verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights})
	s := n.newSRQ(verbs.SRQConfig{})
	for _, c := range []struct {
		sge  verbs.SGE
		want verbs.Status
	}{
		{verbs.SGE{STag: 0x00F00000, Length: 8}, verbs.StatusInvalidSTag},
		{n.mr.SGE(hostMemory-1, 8), verbs.StatusBaseBounds},
		{n.register(64, verbs.LocalRead).SGE(0, 8), verbs.StatusAccess},
		{other.SGE(0, 8), verbs.StatusInvalidPD},
		{verbs.SGE{STag: n.mr.STag(), Length: 8, TO: ^uint64(0) - 2}, verbs.StatusWrap},
	} {
		l := n.link(verbs.QPConfig{SRQ: s})
		postRecv(t, s, verbs.Recv{ID: 1, SGL: []verbs.SGE{c.sge}})
		l.sendMessage([]byte("12345"))
		completes(t, l.rq, l.recvAs(c.want, 1)...)
		l.terminated(0x0000, nil, false)
		l.closesWith(verbs.StateError)
	}
}

// srqCatastrophe has an S-RQ fail that two queue pairs use: a queue pair ends when it
// needs a receive, and not before.
func srqCatastrophe(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{})
	a, b := n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s})
	n.receives(s, 1, 2, 3)
	post(t, a.qp, a.aRead(4), a.aRead(5))
	a.expect(a.asks(1), a.asks(2))
	fault.Provoke(s)
	n.events.are(verbs.Event{ID: verbs.EventSRQCatastrophic, SRQ: s.ID()})
	a.settled()
	b.settled()
	n.quiet()
	a.sendMessage([]byte{1})
	a.terminated(0x0207, nil, false)
	require.Equal(t, verbs.StateTerminate, a.qp.State())
	a.closesWith(verbs.StateError, verbs.EventSRQError)
	completes(t, a.sq, a.sentAs(4, verbs.OpRead, verbs.StatusFlushed), a.sentAs(5, verbs.OpRead, verbs.StatusFlushed))
	empty(t, a.rq)
	require.Equal(t, verbs.StateRTS, b.qp.State())
	run(t, b.qp, b.aSend(6), verbs.StatusSuccess)
	b.expect(aSend(1, n.mr.Bytes()[:4]))
	b.settled()
}

// srqErrorsOfQP ends queue pairs in all ways: at most the element in use is lost to the
// others.
func srqErrorsOfQP(t *conformance.T) {
	for _, c := range named(t, "%s", map[string]struct {
		do    func(*link)
		event []verbs.EventID
		end   verbs.State
	}{
		"a reset":             {(*link).reset, []verbs.EventID{verbs.EventLLPReset}, verbs.StateError},
		"Modify QP to Error":  {func(l *link) { l.modify(verbs.StateError) }, nil, verbs.StateError},
		"Terminate":           {func(l *link) { l.modify(verbs.StateTerminate); l.terminated(0, nil, false); l.shut() }, nil, verbs.StateError},
		"a fault":             {func(l *link) { l.send(badSTag); l.terminated(0x1100, badSTag, false); l.shut() }, []verbs.EventID{verbs.EventProtSTag}, verbs.StateError},
		"a Terminate Message": {func(l *link) { l.send(aTerminate(0x1202, nil, false)); l.finished(); l.shut() }, []verbs.EventID{verbs.EventTerminateReceived}, verbs.StateError},
		"a good close":        {func(l *link) { l.shut(); l.finished() }, []verbs.EventID{verbs.EventLLPCloseComplete}, verbs.StateIdle},
	}) {
		for within := range inTurn(t, "within a message: %v", []bool{false, true}) {
			if within && c.end == verbs.StateIdle {
				continue // the peer's last message is not over
			}
			n := newHost(t, hostConfig{})
			s := n.newSRQ(verbs.SRQConfig{})
			l, a, b := n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s})
			n.receives(s, upTo(1, 8)...)
			next := uint64(1)
			if within {
				l.send(untagged(moreUntagged, opSend, 0, 0, l.nextSend(), 0, []byte{1}))
				l.settled()
				next = 2
			}
			c.do(l)
			l.remains(c.end, c.event...)
			if within {
				completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 1)...)
			}
			empty(t, l.rq)
			for id := next; id <= 8; id++ {
				[]*link{a, b}[id%2].says(id)
			}
			require.Equal(t, []verbs.State{verbs.StateRTS, verbs.StateRTS}, []verbs.State{a.qp.State(), b.qp.State()})
			a.settled()
			b.settled()
			n.quiet()
		}
	}
}
