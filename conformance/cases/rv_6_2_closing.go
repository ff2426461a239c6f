package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_2_5 is the Closing state: verbs draft 6.2.5.
var rv6_2_5 = []conformance.Case{
	apiCase("6.2.5/good-close", closingGood, "RV-6.2.5-M1", "RV-6.2.5-M10", "RV-6.2.5-M11", "RV-6.2.5-M20", "RV-6.2.5-M22"),
	apiCase("6.2.5/close-complete", closingComplete, "RV-6.2.5-M21"),
	apiCase("6.2.5/refuses-verbs", onHost(closingRefuses), "RV-6.2.5-M2", "RV-6.2.5-M5"),
	upperCase("6.2.5/sends-nothing", closingSendsNothing, "RV-6.2.5-M3"),
	upperCase("6.2.5/takes-nothing", closingTakesNothing, "RV-6.2.5-M4", "PV-6.2.5-M3"),
	upperCase("6.2.5/flushes-receives", onTwoCQs(closingFlushes), "RV-6.2.5-M7", "RV-6.2.5-M8"),
	apiCase("6.2.5/none-lost", closingLosesNone, "RV-6.2.5-M6", "RV-6.2.5-M9"),
	apiCase("6.2.5/a-new-stream", onLink(closingNewStream), "RV-6.2.5-M23"),
}

// closers are the two ways into the Closing state, each up to the good end of the
// stream on this side.
func closers() map[string]func(*link) {
	return map[string]func(*link){
		"by verb": func(l *link) {
			l.modify(verbs.StateClosing)
			l.finished()
			l.shut()
		},
		"by the peer": func(l *link) {
			l.shut()
			l.finished()
		},
	}
}

func closingGood(t *conformance.T) {
	for _, closes := range named(t, "%s", closers()) {
		l := newHost(t, hostConfig{}).hiddenLink(verbs.QPConfig{})
		conn := l.stream().Conn
		run(t, l.qp, l.aSend(1), verbs.StatusSuccess)
		l.expect(aSend(1, l.mr.Bytes()[:4]))
		closes(l)
		l.raised(verbs.EventLLPCloseComplete)
		a := attributes(t, l.qp)
		require.Equal(t, verbs.StateIdle, a.State, "at the event")
		require.Nil(t, a.Stream)
		released(t, conn)
		end, _, err := l.peer.End()
		require.NoError(t, err)
		require.Equal(t, endFIN, end, "and no reset behind it")
		l.join()
		run(t, l.qp, l.aSend(2), verbs.StatusSuccess)
		l.expect(aSend(1, l.mr.Bytes()[:4]))
	}
}

// closingComplete looks at what is there when the handler is told.
func closingComplete(t *conformance.T) {
	for _, closes := range named(t, "%s", closers()) {
		n := newHost(t, hostConfig{})
		l := n.link(verbs.QPConfig{})
		type seen struct {
			event   verbs.Event
			flushed int
			state   verbs.State
		}
		at := make(chan seen, 8)
		require.NoError(t, n.nic.SetEventHandler(func(e verbs.Event) {
			at <- seen{e, l.rq.Poll(make([]verbs.Completion, 8)), l.qp.State()}
		}))
		l.recv(1, 2, 3)
		closes(l)
		ends(t, l.qp, verbs.StateIdle)
		s := receive(t, at, "there is no event")
		require.Equal(t, seen{verbs.Event{ID: verbs.EventLLPCloseComplete, QP: l.id}, 3, verbs.StateIdle}, s)
		// One more event tells that there was no other before.
		fault.Provoke(l.qp)
		require.Equal(t, verbs.EventLocalQPCatastrophic, (<-at).event.ID)
	}
}

func closingRefuses(t *conformance.T, n *host) {
	l := n.into(verbs.StateClosing, verbs.QPConfig{SendDepth: 5})
	l.finished()
	l.refusesVerbs(verbs.StateClosing)
	l.closesWith(verbs.StateIdle, verbs.EventLLPCloseComplete)
	l.noCompletions()
}

// closingSendsNothing closes with work of both kinds half done: nothing more of it goes
// out.
func closingSendsNothing(t *conformance.T) {
	s := twoCQs()
	s.qp.ORD = 1
	r := open(t, s)
	b := r.outstandingRead(1)
	r.post(verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.sge(0, 8), Remote: theirs}, verbs.Request{ID: 3, SGL: b.sgl(0, 8)})
	r.settled()
	r.close()
	r.endsAs(endReset, "FPDUs behind Modify QP")
	r.ended(verbs.StateError)

	t.Part("nothing to do")
	r = open(t, twoCQs())
	r.settled()
	r.close()
	r.endsAs(endFIN, "FPDUs behind Modify QP")
}

// closingTakesNothing has the peer send what would be good in RTS.
func closingTakesNothing(t *conformance.T) {
	for what := range inTurn(t, "%s", []string{"an RDMA Write", "a Send", "an RDMA Read Request", "a Terminate Message"}) {
		r := open(t, twoCQs())
		bufs := r.recv(1, 16)
		g := r.region(64, allRights)
		r.settled()
		r.close()
		require.Equal(t, endFIN, r.gone())
		r.send(map[string][]byte{
			"an RDMA Write": aWrite(g.tag(), g.at(0), []byte("write")), "a Send": aSend(1, []byte("send")),
			"an RDMA Read Request": aReadRequest(2, read{nowhere, nowhereTO, 5, g.tag(), g.at(0)}),
			"a Terminate Message":  aTerminate(0x1202, nil, false),
		}[what])
		r.ended(verbs.StateError)
		g.unchanged()
		bufs[0].unchanged()
		r.completionsOf(r.RecvCQ, flushedRecvs(1)...)
		r.incomplete()
	}
}

func closingFlushes(t *conformance.T, r *rig) {
	r.recv(10, 16)
	r.settled()
	r.close()
	r.completionsOf(r.RecvCQ, flushedRecvs(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)...)
	r.incomplete()
	r.state(verbs.StateClosing)
	r.shut()
	r.ended(verbs.StateIdle)
	r.incomplete()
}

// closingLosesNone posts receives, and Sends too every other time, while the queue pair
// closes and the peer waits.
func closingLosesNone(t *conformance.T) {
	for round := range counted(t, "round %d", 10) {
		l := newLink(t, verbs.QPConfig{SendDepth: 512, RecvDepth: 512})
		accepted := map[uint64]bool{}
		var ends bool
		if ends = round%2 == 0; ends {
			go func() { _, _, _ = l.peer.End() }()
			accepted = l.posting(t.Rand().IntN(50), func() {
				assert.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateClosing}))
				_ = l.peer.CloseWrite()
				<-l.qp.Done()
			})
			if s := l.qp.State(); s == verbs.StateIdle {
				l.raised(verbs.EventLLPCloseComplete)
				l.modify(verbs.StateError)
			} else {
				l.raised(verbs.EventBadClose)
			}
		} else {
			lead, posted := t.Rand().IntN(100), make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := range 400 {
					if i == lead {
						close(posted)
					}
					if _, err := l.qp.PostRecv(verbs.Recv{ID: uint64(i)<<1 | 1}); err != nil {
						assert.ErrorIs(t, err, verbs.ErrInvalidState)
						return
					}
					accepted[uint64(i)<<1|1] = true
				}
			}()
			<-posted
			l.modify(verbs.StateClosing)
			<-done
			l.finished()
			require.Equal(t, verbs.StateClosing, l.qp.State(), "the peer has not closed")
		}
		l.quiet()
		l.accounted(accepted)
	}
}

// closingNewStream closes in the middle of the numbering of both queues: the next
// stream begins anew.
func closingNewStream(t *conformance.T, l *link) {
	for range 3 {
		for _, closes := range named(t, "%s", closers()) {
			l.recv(1, 2, 3)
			l.sendMessage([]byte("abc"))
			l.sendMessage([]byte("de"))
			completes(t, l.rq, l.got(1, 3), l.got(2, 2))
			post(t, l.qp, l.aSend(4), l.aRead(5))
			l.expect(aSend(1, l.mr.Bytes()[:4]), l.asks(1))
			l.settled()
			l.send(l.answer())
			completes(t, l.sq, l.sentAs(4, verbs.OpSend, verbs.StatusSuccess), l.sentAs(5, verbs.OpRead, verbs.StatusSuccess))
			closes(l)
			ends(t, l.qp, verbs.StateIdle)
			completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 3)...)
			l.join()
		}
	}
}

// rv6_2_closing_errors is how a close goes wrong: verbs draft 6.2.5.
var rv6_2_closing_errors = []conformance.Case{
	upperCase("6.2.5/errors", closingErrors, "RV-6.2.5-M12", "RV-6.2.5-M18", "RV-6.2.5-M19", "PV-6.2.5-M1", "PV-6.2.5-M2", "PV-6.2.5-M3"),
	apiCase("6.2.5/error-resets", onHost(closingErrorResets), "RV-6.2.5-M15", "RV-6.2.5-M16", "RV-6.2.5-M17", "PV-6.2.5-M3"),
	upperCase("6.2.5/timeout", closingTimeout, "RV-6.2.5-M13", "RV-6.2.5-M14", "PV-6.2.5-M1"),
}

// closingErrors has all that can go wrong in a close. RV-6.2.5-M12: a lost LLP is LLP
// Connection Lost, and figure 11 has Bad Close for the rest.
func closingErrors(t *conformance.T) {
	for what, c := range named(t, "%s", map[string]struct {
		before func(*rig)
		do     func(*rig)
		event  verbs.EventID
	}{
		"a segment":                {nil, func(r *rig) { r.send(aWrite(0, 0, nil)) }, verbs.EventBadClose},
		"a part of a segment":      {nil, func(r *rig) { require.NoError(t, r.peer.Raw([]byte{0, 14})) }, verbs.EventBadClose},
		"an RDMA Read, unanswered": {func(r *rig) { r.outstandingRead(9) }, nil, verbs.EventBadClose},
		"an RDMA Read of the peer's": {func(r *rig) {
			b := r.register(uppertester.RegisterArgs{Len: 16 << 20, Access: allRights})
			r.send(aReadRequest(1, read{nowhere, nowhereTO, 16 << 20, b.tag(), b.at(0)}))
			r.next()
		}, nil, verbs.EventBadClose},
		"the peer resets": {
			nil, func(r *rig) { require.NoError(t, r.peer.Reset()) },
			verbs.EventLLPLost, // 6.2.5 and figure 11: a reset too
		},
	}) {
		r := open(t, twoCQs())
		r.recv(2, 16)
		if c.before != nil {
			c.before(r)
		} else {
			r.settled()
		}
		r.close()
		if c.do != nil {
			require.Equal(t, endFIN, r.gone())
			c.do(r)
		}
		q := r.ended(verbs.StateError)
		require.False(t, q.Stream)
		r.events(c.event)
		r.completionsOf(r.RecvCQ, flushedRecvs(1, 2)...)
		if what == "an RDMA Read, unanswered" {
			r.completionsOf(r.SendCQ, verbs.Completion{ID: 9, Op: verbs.OpRead, Status: verbs.StatusFlushed})
		}
	}
}

// closingErrorResets looks at what is there when the handler is told of a bad close:
// the reset has gone out, there is no stream, and the state is Error (6.2.5: in order).
func closingErrorResets(t *conformance.T, n *host) {
	l := n.hiddenLink(verbs.QPConfig{})
	conn := l.stream().Conn
	type seen struct {
		state    verbs.State
		released bool
		err      error
	}
	at := make(chan seen, 8)
	require.NoError(t, n.nic.SetEventHandler(func(e verbs.Event) {
		assert.Equal(t, verbs.Event{ID: verbs.EventBadClose, QP: l.id}, bare(e))
		a, err := l.qp.Query()
		assert.NoError(t, err)
		_, err = l.peer.Conn.Read(make([]byte, 1))
		at <- seen{a.State, a.Stream == nil, err}
	}))
	l.modify(verbs.StateClosing)
	l.finished()
	l.send(aSend(1, nil))
	s := receive(t, at, "there is no event")
	require.Equal(t, verbs.StateError, s.state)
	require.True(t, s.released, "Query QP has no stream")
	require.Error(t, s.err, "the peer's socket")
	released(t, conn)
	require.Error(t, l.peer.Send(aSend(2, nil)), "the stream was reset")
	require.NoError(t, n.nic.SetEventHandler(nil))
	l.again()
	l.settled()
}

func closingTimeout(t *conformance.T) {
	s := twoCQs()
	s.qp.CloseTimeout = shortly
	r := open(t, s)
	r.recv(1, 16)
	r.settled()
	r.close()
	q := r.ended(verbs.StateError)
	require.False(t, q.Stream)
	r.events(verbs.EventLLPLost)
	r.completionsOf(r.RecvCQ, flushedRecvs(1)...)
}
