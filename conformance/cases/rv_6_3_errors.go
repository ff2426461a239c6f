package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_3_6 is what goes wrong with S-RQs and on them: verbs draft 6.3.6.
var rv6_3_6 = []conformance.Case{
	apiCase("6.3.6/completion-errors", onNode(srqCompletionErrors), "RV-6.3.6-M1"),
	apiCase("6.3.6/catastrophe", onNode(srqCatastrophe), "RV-6.3.6-M2", "RV-6.3.6-M5", "RV-6.3.6-M6", "PV-8.3.3-M5"),
	apiCase("6.3.6/errors-of-a-qp", srqErrorsOfQP, "RV-6.3.6-M3", "RV-6.3.6-M4", "RV-6.3.6-M7"),
}

func srqCompletionErrors(t *conformance.T, n *node) {
	other := n.region(n.newPD(), verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights})
	s := n.newSRQ(verbs.SRQConfig{})
	for _, c := range []struct {
		sge  verbs.SGE
		want verbs.Status
	}{
		{verbs.SGE{STag: 0x00F00000, Length: 8}, verbs.StatusInvalidSTag},
		{n.mr.SGE(nodeMemory-1, 8), verbs.StatusBaseBounds},
		{n.register(64, verbs.LocalRead).SGE(0, 8), verbs.StatusAccess},
		{other.SGE(0, 8), verbs.StatusInvalidPD},
		{verbs.SGE{STag: n.mr.STag(), Length: 8, TO: ^uint64(0) - 2}, verbs.StatusWrap},
	} {
		l := n.line(verbs.QPConfig{SRQ: s})
		postRecv(t, s, verbs.Recv{ID: 1, SGL: []verbs.SGE{c.sge}})
		l.say([]byte("12345"))
		completes(t, l.rq, l.recvAs(c.want, 1)...)
		l.terminated(0x0000, nil, false)
		l.shut()
		l.remains(verbs.StateError)
	}
}

// srqCatastrophe has an S-RQ fail that two queue pairs use: a queue pair ends when it
// needs a receive, and not before.
func srqCatastrophe(t *conformance.T, n *node) {
	s := n.newSRQ(verbs.SRQConfig{})
	a, b := n.line(verbs.QPConfig{SRQ: s}), n.line(verbs.QPConfig{SRQ: s})
	n.receives(s, 1, 2, 3)
	post(t, a.qp, a.aRead(4), a.aRead(5))
	a.hear(a.asks(1), a.asks(2))
	s.Fail()
	n.events.are(verbs.Event{ID: verbs.EventSRQCatastrophic, SRQ: s.ID()})
	a.settle()
	b.settle()
	n.quiet()
	a.say([]byte{1})
	a.terminated(0x0207, nil, false)
	require.Equal(t, verbs.StateTerminate, a.qp.State())
	a.shut()
	a.remains(verbs.StateError, verbs.EventSRQError)
	completes(t, a.sq, a.sentAs(4, verbs.OpRead, verbs.StatusFlushed), a.sentAs(5, verbs.OpRead, verbs.StatusFlushed))
	empty(t, a.rq)
	require.Equal(t, verbs.StateRTS, b.qp.State())
	run(t, b.qp, b.aSend(6), verbs.StatusSuccess)
	b.settleBehind(aSend(1, n.mr.Bytes()[:4]))
}

// srqErrorsOfQP ends queue pairs in all ways: at most the element in use is lost to the
// others.
func srqErrorsOfQP(t *conformance.T) {
	for _, c := range named(t, "%s", map[string]struct {
		do    func(*line)
		event []verbs.EventID
		end   verbs.State
	}{
		"a reset":             {(*line).drop, []verbs.EventID{verbs.EventLLPReset}, verbs.StateError},
		"Modify QP to Error":  {func(l *line) { l.modify(verbs.StateError) }, nil, verbs.StateError},
		"Terminate":           {func(l *line) { l.modify(verbs.StateTerminate); l.terminated(0, nil, false); l.shut() }, nil, verbs.StateError},
		"a fault":             {func(l *line) { l.tell(badSTag); l.terminated(0x1100, badSTag, false); l.shut() }, []verbs.EventID{verbs.EventProtSTag}, verbs.StateError},
		"a Terminate Message": {func(l *line) { l.tell(aTerminate(0x1202, nil, false)); l.finished(); l.shut() }, []verbs.EventID{verbs.EventTerminateReceived}, verbs.StateError},
		"a good close":        {func(l *line) { l.shut(); l.finished() }, []verbs.EventID{verbs.EventLLPCloseComplete}, verbs.StateIdle},
	}) {
		for within := range inTurn(t, "within a message: %v", []bool{false, true}) {
			if within && c.end == verbs.StateIdle {
				continue // the peer's last message is not over
			}
			n := newNode(t, nodeConfig{})
			s := n.newSRQ(verbs.SRQConfig{})
			l, a, b := n.line(verbs.QPConfig{SRQ: s}), n.line(verbs.QPConfig{SRQ: s}), n.line(verbs.QPConfig{SRQ: s})
			n.receives(s, upTo(1, 8)...)
			next := uint64(1)
			if within {
				l.tell(untagged(moreUntagged, opSend, 0, 0, l.nextSend(), 0, []byte{1}))
				l.settle()
				next = 2
			}
			c.do(l)
			l.remains(c.end, c.event...)
			if within {
				completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 1)...)
			}
			empty(t, l.rq)
			for id := next; id <= 8; id++ {
				[]*line{a, b}[id%2].says(id)
			}
			require.Equal(t, []verbs.State{verbs.StateRTS, verbs.StateRTS}, []verbs.State{a.qp.State(), b.qp.State()})
			a.settle()
			b.settle()
			n.quiet()
		}
	}
}
