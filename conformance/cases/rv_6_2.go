package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_2 is the state diagram and the Idle state: verbs draft 6.2 and 6.2.1.
var rv6_2 = []conformance.Case{
	apiCase("6.2/five-states", onIdleLink(fiveStates), "RV-6.2-M1", "RV-6.2-M2", "PV-6.2-M1"),
	apiCase("6.2.1/entered", onHost(idleEntered), "RV-6.2.1-M1", "RV-6.2.1-M4"),
	apiCase("6.2.1/nothing-processed", onHost(idleProcessesNothing), "RV-6.2.1-M2", "RV-6.2.1-M3"),
	apiCase("6.2.1/not-to-the-end", onIdleLink(idleNotToTheEnd), "RV-6.2.1-M5"),
	apiCase("6.2.1.1/idle-to-idle", idleToIdle, "RV-6.2.1.1-M1"),
	apiCase("6.2.1.3/idle-to-error", onIdleLink(idleToError), "RV-6.2.1.3-M1"),
}

// step is something that happens to a link: a verb, or the peer's doing. next is the
// state that follows (figures 7 to 11), once the stream is gone if that is over.
type step struct {
	name string
	verb bool        // that asks for a state:
	to   verbs.State // this one
	do   func(*link) error
	next map[verbs.State]verbs.State // absent: it cannot happen there
}

// walk are the steps: verbs that ask for each state, and what peers do. Where a verb is
// refused the state stays.
func walk() []step {
	to := func(s verbs.State) step {
		st := step{name: "Modify QP to " + s.String(), verb: true, to: s, next: map[verbs.State]verbs.State{}}
		st.do = func(l *link) error {
			if s == verbs.StateRTS && l.qp.State() == verbs.StateIdle {
				l.join()
				return nil
			}
			return l.qp.Modify(verbs.ModifyQP{Next: s})
		}
		for _, from := range states {
			st.next[from] = from
			if legal[[2]verbs.State{from, s}] {
				st.next[from] = s
			}
		}
		return st
	}
	peer := func(name string, do func(*link) error, rts, closing, terminate verbs.State) step {
		return step{name: name, do: do, next: map[verbs.State]verbs.State{
			verbs.StateRTS: rts, verbs.StateClosing: closing, verbs.StateTerminate: terminate,
		}}
	}
	steps := []step{
		peer("the peer closes", func(l *link) error { return l.peer.CloseWrite() }, verbs.StateIdle, verbs.StateIdle, verbs.StateError),
		peer("the peer resets", func(l *link) error { return l.peer.Reset() }, verbs.StateError, verbs.StateError, verbs.StateError),
		peer("a Terminate Message", func(l *link) error { return l.peer.Send(aTerminate(0x1202, nil, false)) },
			verbs.StateTerminate, verbs.StateError, verbs.StateTerminate),
		peer("a bad segment", func(l *link) error { return l.peer.Send(aWrite(0x00F00000, 0, []byte{1})) },
			verbs.StateTerminate, verbs.StateError, verbs.StateTerminate),
	}
	for _, s := range states {
		steps = append(steps, to(s))
	}
	return steps
}

// fiveStates walks until everything has happened in each state where it can, that which
// has happened least first, and compares the state with the figures after each step.
func fiveStates(t *conformance.T, l *link) {
	type cell struct {
		from verbs.State
		name string
	}
	seen, cells := map[cell]int{}, 0
	steps := walk()
	for _, s := range steps {
		cells += len(s.next)
	}
	for round := 0; len(seen) < cells; round++ {
		require.Less(t, round, 1000, "what has happened is %v", seen)
		from := l.qp.State()
		require.Contains(t, states, from)
		t.Rand().Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		var s *step
		for i := range steps {
			if _, can := steps[i].next[from]; can && (s == nil || seen[cell{from, steps[i].name}] < seen[cell{from, s.name}]) {
				s = &steps[i]
			}
		}
		t.Part("%v, %s", from, s.name)
		seen[cell{from, s.name}]++
		s.taken(l, from)
	}
}

// taken does the step, and looks at what has become of it.
func (s *step) taken(l *link, from verbs.State) {
	t, next := l.t, s.next[from]
	before := attributes(t, l.qp)
	err := s.do(l)
	switch {
	case s.verb && !legal[[2]verbs.State{from, s.to}]:
		require.ErrorIs(t, err, verbs.ErrInvalidState)
		require.Equal(t, before, attributes(t, l.qp))
	case s.verb || next == verbs.StateTerminate || next == verbs.StateClosing:
		require.NoError(t, err)
		reaches(t, l.qp, next)
	default:
		require.NoError(t, err)
		ends(t, l.qp, next)
	}
	require.Equal(t, next, l.qp.State())
}

// idleEntered comes to Idle in the four ways there are.
func idleEntered(t *conformance.T, n *host) {
	for _, come := range named(t, "%s", map[string]func(*link){
		"created":      func(*link) {},
		"Idle to Idle": func(l *link) { l.modify(verbs.StateIdle) },
		"Error to Idle": func(l *link) {
			l.join()
			l.modify(verbs.StateError)
			l.modify(verbs.StateIdle)
		},
		"Closing to Idle": func(l *link) {
			l.join()
			l.modify(verbs.StateClosing)
			l.closesTo(verbs.StateIdle)
		},
	}) {
		l := n.idleLink(verbs.QPConfig{})
		come(l)
		require.Equal(t, verbs.StateIdle, l.qp.State())
		require.Nil(t, l.stream())
		s, peer := aStream(t)
		refuses(t, "a stream", verbs.ErrInvalidModifier, func() error {
			return l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle, Stream: s})
		}, l.shown)
		// The stream is not the queue pair's: whose it was can use it.
		require.NoError(t, peer.Send([]byte("x")))
		require.NoError(t, second(s.Conn.Read(make([]byte, 1))))
	}
}

// idleProcessesNothing posts requests of all kinds in Idle, good ones and one that
// will fail.
func idleProcessesNothing(t *conformance.T, n *host) {
	for what, leave := range named(t, "to %s", map[string]func(*link){
		"RTS": func(l *link) {
			l.join()
			l.expect(aSend(1, l.mr.Bytes()[:4]))
			completes(t, l.sq, l.sentAs(1, verbs.OpBind, verbs.StatusSuccess), l.sentAs(2, verbs.OpSend, verbs.StatusSuccess),
				l.sentAs(3, verbs.OpSend, verbs.StatusInvalidSTag), l.sentAs(4, verbs.OpSend, verbs.StatusFlushed))
			l.terminated(0x0000, nil, false)
		},
		"Error": func(l *link) {
			l.modify(verbs.StateError)
			completes(t, l.sq, l.sentAs(1, verbs.OpBind, verbs.StatusFlushed), l.sentAs(2, verbs.OpSend, verbs.StatusFlushed),
				l.sentAs(3, verbs.OpSend, verbs.StatusFlushed), l.sentAs(4, verbs.OpSend, verbs.StatusFlushed))
		},
	}) {
		l, w := n.idleLink(verbs.QPConfig{}), n.newMW()
		require.NoError(t, l.sq.Notify(verbs.NotifyNext))
		require.NoError(t, l.rq.Notify(verbs.NotifyNext))
		b := binds(w.BindRequest(n.mr, 0, 64, remoteRights, 1))
		b.ID = 1
		post(t, l.qp, b, l.aSend(2), verbs.Request{ID: 3, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}}, l.aSend(4))
		l.recv(5)
		l.modify(verbs.StateIdle)
		n.quiet() // a moment in which others work
		require.False(t, queried[verbs.WindowAttributes](t, w).Valid, "the window")
		l.noCompletions()
		select {
		case <-l.sq.Events():
			t.Fatalf("a notification of the send CQ")
		case <-l.rq.Events():
			t.Fatalf("a notification of the receive CQ")
		default:
		}
		leave(l)
		completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 5)...)
		require.Equal(t, what == "RTS", queried[verbs.WindowAttributes](t, w).Valid, "the window")
		require.NoError(t, w.Deallocate())
	}
}

func idleNotToTheEnd(t *conformance.T, l *link) {
	l.recv(1)
	post(t, l.qp, l.aSend(2))
	for _, next := range []verbs.State{verbs.StateTerminate, verbs.StateClosing} {
		refuses(t, next.String(), verbs.ErrInvalidState, func() error { return l.qp.Modify(verbs.ModifyQP{Next: next}) }, l.shown)
		require.Equal(t, verbs.StateIdle, l.qp.State())
	}
	l.join()
	l.expect(aSend(1, l.mr.Bytes()[:4]))
	l.delivers(1, "abc")
}

func idleToIdle(t *conformance.T) {
	l := newIdleLink(t, verbs.QPConfig{SendDepth: 4, RecvDepth: 4, ORD: 4})
	l.modify(verbs.StateIdle)
	require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle, ORD: ptr(2), SendDepth: ptr(50), RecvDepth: ptr(60)}))
	a := attributes(t, l.qp)
	require.Equal(t, verbs.StateIdle, a.State)
	require.Equal(t, 2, a.ORD)
	require.GreaterOrEqual(t, a.SendDepth, 50)
	require.GreaterOrEqual(t, a.RecvDepth, 60)
	l.join()
	post(t, l.qp, l.aRead(1), l.aRead(2), l.aRead(3))
	l.expect(l.asks(1), l.asks(2))
	l.settled() // the third waits
}

func idleToError(t *conformance.T, l *link) {
	l.recv(1, 2)
	post(t, l.qp, l.aSend(3), l.aRead(4))
	l.modify(verbs.StateError)
	require.Equal(t, verbs.StateError, l.qp.State())
	completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 1, 2)...)
	completes(t, l.sq, l.sentAs(3, verbs.OpSend, verbs.StatusFlushed), l.sentAs(4, verbs.OpRead, verbs.StatusFlushed))
	l.quiet()
	l.again()
	l.settled() // of what was flushed nothing comes
}

// rv6_2_rts is what is done in RTS: verbs draft 6.2.2 and 6.2.2.1.
var rv6_2_rts = []conformance.Case{
	apiCase("6.2.2/messages-in-rts-only", onHost(messagesInRTSOnly), "RV-6.2.2-M1"),
	apiCase("6.2.2/posted-in-order", onHost(postedInOrder), "RV-6.2.2-M3"),
	upperCase("6.2.2/inbound-processed", onRig(inboundProcessed), "RV-6.2.2-M4"),
	apiCase("6.2.2/not-to-idle", onLink(rtsNotToIdle), "RV-6.2.2-M5"),
	apiCase("6.2.2.1/rts-to-rts", rtsToRTS, "RV-6.2.2.1-M1"),
}

// messagesInRTSOnly has work on the queues in the other states.
func messagesInRTSOnly(t *conformance.T, n *host) {
	for s, end := range map[verbs.State]func(*link){
		verbs.StateClosing: func(l *link) { l.endsAs(endReset, "FPDUs before it") }, // work while closing
		verbs.StateTerminate: func(l *link) {
			l.send(l.answer(), aSend(1, nil)) // a Read that completed would let others begin
			l.terminated(0x0000, nil, false)
		},
		verbs.StateError: func(l *link) { l.endsAs(endReset, "FPDUs before it") },
	} {
		t.Part("in %v", s)
		l := n.link(verbs.QPConfig{ORD: 1})
		l.recv(1)
		post(t, l.qp, l.aRead(2), l.aRead(3), l.aSend(4))
		l.expect(l.asks(1))
		l.modify(s)
		end(l)
		completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 1)...)
		completes(t, l.sq, l.sentAs(2, verbs.OpRead, verbs.StatusFlushed), l.sentAs(3, verbs.OpRead, verbs.StatusFlushed),
			l.sentAs(4, verbs.OpSend, verbs.StatusFlushed))
	}
	t.Part("in Idle")
	n = newHost(t, hostConfig{})
	l := n.idleLink(verbs.QPConfig{})
	post(t, l.qp, l.aSend(1))
	n.quiet()
	empty(t, l.sq)
	t.Part("in RTS")
	l.join()
	l.expect(aSend(1, l.mr.Bytes()[:4]))
	completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess))
}

func postedInOrder(t *conformance.T, n *host) {
	l := n.idleLink(verbs.QPConfig{SendDepth: 256})
	fill(n.mr.Bytes()[:256], 1)
	one := func(i int) { post(t, l.qp, verbs.Request{ID: uint64(i), SGL: n.mr.SGL(i, 1)}) }
	for i := range 100 {
		one(i)
	}
	l.join()
	for i := 100; i < 200; i++ {
		one(i)
	}
	for i := range 200 {
		l.expect(aSend(uint32(i+1), n.mr.Bytes()[i:i+1]))
	}
	for i := range 200 {
		completes(t, l.sq, l.sentAs(uint64(i), verbs.OpSend, verbs.StatusSuccess))
	}
	one(200) // to an empty queue
	l.expect(aSend(201, n.mr.Bytes()[200:201]))
}

// inboundProcessed has the peer send each kind of message.
func inboundProcessed(t *conformance.T, r *rig) {
	bufs := r.recv(4, 64)
	g := r.region(256, allRights)
	inv := r.region(64, allRights)
	r.post(verbs.Request{ID: 9, Op: verbs.OpRead, Local: g.sge(200, 8), Remote: theirs})
	r.expect(aReadRequest(1, read{g.tag(), g.at(200), 8, uint32(theirs.STag), theirs.TO}))
	r.send(
		aSend(1, []byte("send")),
		aWrite(g.tag(), g.at(16), []byte("write")),
		untagged(lastUntagged, opSendSE, 0, 0, 2, 0, []byte("solicited")),
		aReadResponse(g.tag(), g.at(200), []byte("response")),
		aSendInv(3, inv.tag(), []byte("invalidate")),
		untagged(moreUntagged, opSendSE, 0, 0, 4, 0, []byte("two ")),
		untagged(lastUntagged, opSendSE, 0, 0, 4, 4, []byte("segments")),
	)
	got := r.poll(r.SendCQ, 5, r.patience())
	require.Equal(t, []verbs.Completion{
		{ID: 1, QP: r.ID, Op: verbs.OpRecv, Bytes: 4}, {ID: 2, QP: r.ID, Op: verbs.OpRecv, Bytes: 9}, {ID: 9, QP: r.ID, Op: verbs.OpRead},
		{ID: 3, QP: r.ID, Op: verbs.OpRecv, Bytes: 10, Invalidated: inv.STag, HasInvalidated: true},
		{ID: 4, QP: r.ID, Op: verbs.OpRecv, Bytes: 12},
	}, got)
	for i, s := range []string{"send", "solicited", "invalidate", "two segments"} {
		bufs[i].holds(0, []byte(s))
	}
	copy(g.first[200:], "response")
	g.holds(16, []byte("write"))
	require.Equal(t, "write", string(r.fetch(g, 16, 5)))
	r.unharmed()
}

func rtsNotToIdle(t *conformance.T, l *link) {
	for i := range 3 {
		refuses(t, "Idle", verbs.ErrInvalidState, func() error { return l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle}) }, l.shown)
		run(t, l.qp, l.aSend(1), verbs.StatusSuccess)
		l.expect(aSend(uint32(i+1), l.mr.Bytes()[:4]))
	}
}

func rtsToRTS(t *conformance.T) {
	l := newLink(t, verbs.QPConfig{SendDepth: 4, RecvDepth: 4, IRD: 8, ORD: 8})
	l.modify(verbs.StateRTS)
	require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(1), SendDepth: ptr(50), RecvDepth: ptr(60)}))
	a := attributes(t, l.qp)
	require.Equal(t, verbs.StateRTS, a.State)
	require.Equal(t, 1, a.ORD)
	require.GreaterOrEqual(t, a.SendDepth, 50)
	require.GreaterOrEqual(t, a.RecvDepth, 60)
	l.recv(1)
	l.delivers(1, "abc")
	post(t, l.qp, l.aRead(2), l.aRead(3))
	l.expect(l.asks(1))
	l.settled() // the second waits
	l.send(l.answer())
	l.expect(l.asks(2))
	l.send(l.answer())
	completes(t, l.sq, l.sentAs(2, verbs.OpRead, verbs.StatusSuccess), l.sentAs(3, verbs.OpRead, verbs.StatusSuccess))
	require.Equal(t, "response", string(l.mr.Bytes()[4096:4104]), "what was read")
}

// rv6_2_faults is what follows from faults: verbs draft 6.2.2.3, 6.2.3 and 6.4.
var rv6_2_faults = []conformance.Case{
	upperCase("6.2.2.3/by-itself", terminatedByItself, "RV-6.2.2.3-M2"),
	upperCase("6.2.2.3/faults-of-segments", faultsOfSegments,
		"RV-6.2.2.3-M3", "RV-6.2.3-M4", "RV-6.4-M2", "RV-6.4-M3", "RV-6.4-M17", "PR-5040-5.3-M1", "PV-9.5.3-M1",
		"PV-9.5.3-M2", "PV-9.5.3-M3", "PV-9.5.3-M4", "PV-9.5.3-M9", "PV-9.5.3-M10", "PV-9.5.3-M11", "PV-9.5.3-M14"),
	apiCase("6.2.2.3/faults-of-requests", figure23Of(requestFaults),
		"RV-6.2.2.3-M4", "RV-6.2.3-M4", "RV-6.2.3-M14", "RV-6.4-M2", "RV-6.4-M10", "RV-6.4-M11", "PR-5040-4.8-M1",
		"PV-6.4-M2"),
}

// terminatedByItself looks at the states that faults lead to, with no verb called.
func terminatedByItself(t *conformance.T) {
	for x := range inTurn(t, "%s", segmentFaults) {
		v := newFaultRig(t, twoCQs())
		v.send(x.ulpdu(v))
		require.Equal(t, byte(opTerminate), v.next()[1])
		v.state(verbs.StateTerminate)
		v.finishedIn(verbs.StateError)
	}
	for what, do := range named(t, "%s", map[string]func(*rig){
		"a request that cannot be done": func(r *rig) { r.post(verbs.Request{SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}}) },
		"the peer's close on work":      func(r *rig) { r.outstandingRead(1); r.shut() },
	}) {
		r := open(t, twoCQs())
		do(r)
		require.Equal(t, byte(opTerminate), r.next()[1])
		require.Error(t, second(r.peer.Next()))
		if what == "a request that cannot be done" {
			r.state(verbs.StateTerminate)
			r.shut()
		}
		r.ended(verbs.StateError)
	}
}

// faultsOfSegments: the message behind the last whole segment says what was wrong with
// which segment, the stream ends behind it, and there is one event, but for the fault
// that a completion tells of.
func faultsOfSegments(t *conformance.T) { rejectsEach(t, setup{}, segmentFaults...) }
