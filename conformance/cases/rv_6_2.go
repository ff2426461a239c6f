//go:build conformance

package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_2 is the state diagram, the Idle state and what is done in RTS: verbs draft 6.2,
// 6.2.1, 6.2.2.
var rv6_2 = []conformance.Case{
	{Name: "6.2/five-states", Keys: []string{"RV-6.2-M1", "RV-6.2-M2"}, Need: conformance.NeedAPI, Run: fiveStates},
	{Name: "6.2.1/entered", Keys: []string{"RV-6.2.1-M1", "RV-6.2.1-M4"}, Need: conformance.NeedAPI, Run: idleEntered},
	{Name: "6.2.1/nothing-processed", Keys: []string{"RV-6.2.1-M2", "RV-6.2.1-M3"}, Need: conformance.NeedAPI, Run: idleProcessesNothing},
	{Name: "6.2.1/not-to-the-end", Keys: []string{"RV-6.2.1-M5"}, Need: conformance.NeedAPI, Run: idleNotToTheEnd},
	{Name: "6.2.1.1/idle-to-idle", Keys: []string{"RV-6.2.1.1-M1"}, Need: conformance.NeedAPI, Run: idleToIdle},
	{Name: "6.2.1.3/idle-to-error", Keys: []string{"RV-6.2.1.3-M1"}, Need: conformance.NeedAPI, Run: idleToError},
	{Name: "6.2.2/messages-in-rts-only", Keys: []string{"RV-6.2.2-M1"}, Need: conformance.NeedAPI, Run: messagesInRTSOnly},
	{Name: "6.2.2/posted-in-order", Keys: []string{"RV-6.2.2-M3"}, Need: conformance.NeedAPI, Run: postedInOrder},
	{Name: "6.2.2/inbound-processed", Keys: []string{"RV-6.2.2-M4"}, Need: conformance.NeedUpper, Run: inboundProcessed},
	{Name: "6.2.2/not-to-idle", Keys: []string{"RV-6.2.2-M5"}, Need: conformance.NeedAPI, Run: rtsNotToIdle},
	{Name: "6.2.2.1/rts-to-rts", Keys: []string{"RV-6.2.2.1-M1"}, Need: conformance.NeedAPI, Run: rtsToRTS},
}

// step is something that happens to a line: a verb, or the peer's doing. next is the
// state that follows (figures 7 to 11), once the stream is gone if that is over.
type step struct {
	name string
	verb bool        // that asks for a state:
	to   verbs.State // this one
	do   func(*line) error
	next map[verbs.State]verbs.State // absent: it cannot happen there
}

// walk are the steps: verbs that ask for each state, and what peers do. Where a verb is
// refused the state stays.
func walk() []step {
	to := func(s verbs.State) step {
		st := step{name: "Modify QP to " + s.String(), verb: true, to: s, next: map[verbs.State]verbs.State{}}
		st.do = func(l *line) error {
			if s == verbs.RTS && l.qp.State() == verbs.Idle {
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
	peer := func(name string, do func(*line) error, rts, closing, terminate verbs.State) step {
		return step{name: name, do: do, next: map[verbs.State]verbs.State{
			verbs.RTS: rts, verbs.Closing: closing, verbs.Terminate: terminate,
		}}
	}
	steps := []step{
		peer("the peer closes", func(l *line) error { return l.peer.CloseWrite() }, verbs.Idle, verbs.Idle, verbs.Error),
		peer("the peer resets", func(l *line) error { return l.peer.Reset() }, verbs.Error, verbs.Error, verbs.Error),
		peer("a Terminate Message", func(l *line) error { return l.peer.Send(aTerminate(0x1202, nil, false)) },
			verbs.Terminate, verbs.Error, verbs.Terminate),
		peer("a bad segment", func(l *line) error { return l.peer.Send(aWrite(0x00F00000, 0, []byte{1})) },
			verbs.Terminate, verbs.Error, verbs.Terminate),
	}
	for _, s := range states {
		steps = append(steps, to(s))
	}
	return steps
}

// fiveStates walks until everything has happened in each state where it can, that which
// has happened least first, and compares the state with the figures after each step.
func fiveStates(t *conformance.T) {
	n := newNode(t, nodeConfig{})
	l := n.loose(verbs.QPConfig{})
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
	t.Part("")
}

// taken does the step, and looks at what has become of it.
func (s *step) taken(l *line, from verbs.State) {
	t, next := l.t, s.next[from]
	before := attributes(t, l.qp)
	err := s.do(l)
	switch {
	case s.verb && !legal[[2]verbs.State{from, s.to}]:
		require.ErrorIs(t, err, verbs.ErrInvalidState)
		require.Equal(t, before, attributes(t, l.qp))
	case s.verb || next == verbs.Terminate || next == verbs.Closing:
		require.NoError(t, err)
		reaches(t, l.qp, next)
	default:
		require.NoError(t, err)
		ends(t, l.qp, next)
	}
	require.Equal(t, next, l.qp.State())
}

// idleEntered comes to Idle in the four ways there are.
func idleEntered(t *conformance.T) {
	n := newNode(t, nodeConfig{})
	for what, come := range map[string]func(*line){
		"created":      func(*line) {},
		"Idle to Idle": func(l *line) { l.modify(verbs.Idle) },
		"Error to Idle": func(l *line) {
			l.join()
			l.modify(verbs.Error)
			l.modify(verbs.Idle)
		},
		"Closing to Idle": func(l *line) {
			l.join()
			l.modify(verbs.Closing)
			l.shut()
			ends(t, l.qp, verbs.Idle)
		},
	} {
		t.Part("%s", what)
		l := n.loose(verbs.QPConfig{})
		come(l)
		require.Equal(t, verbs.Idle, l.qp.State())
		require.Nil(t, l.stream())
		s, peer := aStream(t)
		refuses(t, "a stream", verbs.ErrInvalidModifier, func() error {
			return l.qp.Modify(verbs.ModifyQP{Next: verbs.Idle, Stream: s})
		}, l.shown)
		// The stream is not the queue pair's: whose it was can use it.
		require.NoError(t, peer.Send([]byte("x")))
		_, err := s.Conn.Read(make([]byte, 1))
		require.NoError(t, err)
	}
	t.Part("")
}

// idleProcessesNothing posts requests of all kinds in Idle, good ones and one that
// will fail.
func idleProcessesNothing(t *conformance.T) {
	n := newNode(t, nodeConfig{})
	for what, leave := range map[string]func(*line){
		"RTS": func(l *line) {
			l.join()
			l.hear(aSend(1, l.mr.Bytes()[:4]))
			completes(t, l.sq, l.sentAs(1, verbs.OpBind, verbs.StatusSuccess), l.sentAs(2, verbs.OpSend, verbs.StatusSuccess),
				l.sentAs(3, verbs.OpSend, verbs.StatusInvalidSTag), l.sentAs(4, verbs.OpSend, verbs.StatusFlushed))
			l.terminated(0x0000, nil, false)
		},
		"Error": func(l *line) {
			l.modify(verbs.Error)
			completes(t, l.sq, l.sentAs(1, verbs.OpBind, verbs.StatusFlushed), l.sentAs(2, verbs.OpSend, verbs.StatusFlushed),
				l.sentAs(3, verbs.OpSend, verbs.StatusFlushed), l.sentAs(4, verbs.OpSend, verbs.StatusFlushed))
		},
	} {
		t.Part("to %s", what)
		l, w := n.loose(verbs.QPConfig{}), n.newMW()
		require.NoError(t, l.sq.Notify(verbs.NotifyNext))
		require.NoError(t, l.rq.Notify(verbs.NotifyNext))
		b := binds(w.Bind(n.mr, 0, 64, remoteRights, 1))
		b.ID = 1
		post(t, l.qp, b, l.aSend(2), verbs.Send{ID: 3, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}}, l.aSend(4))
		l.recv(5)
		l.modify(verbs.Idle)
		n.quiet() // a moment in which others work
		require.False(t, queried[verbs.WindowAttributes](t, w).Valid, "the window")
		empty(t, l.sq)
		empty(t, l.rq)
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
	t.Part("")
}

func idleNotToTheEnd(t *conformance.T) {
	n := newNode(t, nodeConfig{})
	l := n.loose(verbs.QPConfig{})
	l.recv(1)
	post(t, l.qp, l.aSend(2))
	for _, next := range []verbs.State{verbs.Terminate, verbs.Closing} {
		refuses(t, next.String(), verbs.ErrInvalidState, func() error { return l.qp.Modify(verbs.ModifyQP{Next: next}) }, l.shown)
		require.Equal(t, verbs.Idle, l.qp.State())
	}
	l.join()
	l.hear(aSend(1, l.mr.Bytes()[:4]))
	l.say([]byte("abc"))
	completes(t, l.rq, l.got(1, 3))
}

func idleToIdle(t *conformance.T) {
	n := newNode(t, nodeConfig{})
	l := n.loose(verbs.QPConfig{SendDepth: 4, RecvDepth: 4, ORD: 4})
	l.modify(verbs.Idle)
	require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.Idle, ORD: ptr(2), SendDepth: ptr(50), RecvDepth: ptr(60)}))
	a := attributes(t, l.qp)
	require.Equal(t, verbs.Idle, a.State)
	require.Equal(t, 2, a.ORD)
	require.GreaterOrEqual(t, a.SendDepth, 50)
	require.GreaterOrEqual(t, a.RecvDepth, 60)
	l.join()
	post(t, l.qp, l.aRead(1), l.aRead(2), l.aRead(3))
	l.hear(l.asks(1), l.asks(2))
	l.settle() // the third waits
}

func idleToError(t *conformance.T) {
	n := newNode(t, nodeConfig{})
	l := n.loose(verbs.QPConfig{})
	l.recv(1, 2)
	post(t, l.qp, l.aSend(3), l.aRead(4))
	l.modify(verbs.Error)
	require.Equal(t, verbs.Error, l.qp.State())
	completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 1, 2)...)
	completes(t, l.sq, l.sentAs(3, verbs.OpSend, verbs.StatusFlushed), l.sentAs(4, verbs.OpRead, verbs.StatusFlushed))
	n.quiet()
	l.again()
	l.settle() // of what was flushed nothing comes
}

// messagesInRTSOnly has work on the queues in the other states.
func messagesInRTSOnly(t *conformance.T) {
	n := newNode(t, nodeConfig{})
	for s, end := range map[verbs.State]func(*line){
		verbs.Closing: func(l *line) { l.cut() }, // work while closing
		verbs.Terminate: func(l *line) {
			l.tell(l.answer(), aSend(1, nil)) // a Read that completed would let others begin
			l.terminated(0x0000, nil, false)
		},
		verbs.Error: func(l *line) { l.cut() },
	} {
		t.Part("in %v", s)
		l := n.line(verbs.QPConfig{ORD: 1})
		l.recv(1)
		post(t, l.qp, l.aRead(2), l.aRead(3), l.aSend(4))
		l.hear(l.asks(1))
		l.modify(s)
		end(l)
		completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 1)...)
		completes(t, l.sq, l.sentAs(2, verbs.OpRead, verbs.StatusFlushed), l.sentAs(3, verbs.OpRead, verbs.StatusFlushed),
			l.sentAs(4, verbs.OpSend, verbs.StatusFlushed))
	}
	t.Part("in Idle")
	n = newNode(t, nodeConfig{})
	l := n.loose(verbs.QPConfig{})
	post(t, l.qp, l.aSend(1))
	n.quiet()
	empty(t, l.sq)
	t.Part("in RTS")
	l.join()
	l.hear(aSend(1, l.mr.Bytes()[:4]))
	completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess))
	t.Part("")
}

func postedInOrder(t *conformance.T) {
	n := newNode(t, nodeConfig{})
	l := n.loose(verbs.QPConfig{SendDepth: 256})
	fill(n.mr.Bytes()[:256], 1)
	one := func(i int) { post(t, l.qp, verbs.Send{ID: uint64(i), SGL: n.mr.SGL(i, 1)}) }
	for i := range 100 {
		one(i)
	}
	l.join()
	for i := 100; i < 200; i++ {
		one(i)
	}
	for i := range 200 {
		l.hear(aSend(uint32(i+1), n.mr.Bytes()[i:i+1]))
	}
	for i := range 200 {
		completes(t, l.sq, l.sentAs(uint64(i), verbs.OpSend, verbs.StatusSuccess))
	}
	one(200) // to an empty queue
	l.hear(aSend(201, n.mr.Bytes()[200:201]))
}

// inboundProcessed has the peer send each kind of message.
func inboundProcessed(t *conformance.T) {
	r := open(t, setup{})
	bufs := r.recv(4, 64)
	g := r.region(256, allRights)
	inv := r.region(64, allRights)
	r.post(verbs.Send{ID: 9, Op: verbs.OpRead, Local: g.sge(200, 8), Remote: theirs})
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
	r.state(verbs.RTS)
	r.events()
}

func rtsNotToIdle(t *conformance.T) {
	n := newNode(t, nodeConfig{})
	l := n.line(verbs.QPConfig{})
	for i := range 3 {
		refuses(t, "Idle", verbs.ErrInvalidState, func() error { return l.qp.Modify(verbs.ModifyQP{Next: verbs.Idle}) }, l.shown)
		run(t, l.qp, l.aSend(1), verbs.StatusSuccess)
		l.hear(aSend(uint32(i+1), l.mr.Bytes()[:4]))
	}
}

func rtsToRTS(t *conformance.T) {
	n := newNode(t, nodeConfig{})
	l := n.line(verbs.QPConfig{SendDepth: 4, RecvDepth: 4, IRD: 8, ORD: 8})
	l.modify(verbs.RTS)
	require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.RTS, ORD: ptr(1), SendDepth: ptr(50), RecvDepth: ptr(60)}))
	a := attributes(t, l.qp)
	require.Equal(t, verbs.RTS, a.State)
	require.Equal(t, 1, a.ORD)
	require.GreaterOrEqual(t, a.SendDepth, 50)
	require.GreaterOrEqual(t, a.RecvDepth, 60)
	l.recv(1)
	l.say([]byte("abc"))
	completes(t, l.rq, l.got(1, 3))
	post(t, l.qp, l.aRead(2), l.aRead(3))
	l.hear(l.asks(1))
	l.settle() // the second waits
	l.tell(l.answer())
	l.hear(l.asks(2))
	l.tell(l.answer())
	completes(t, l.sq, l.sentAs(2, verbs.OpRead, verbs.StatusSuccess), l.sentAs(3, verbs.OpRead, verbs.StatusSuccess))
	require.Equal(t, "response", string(l.mr.Bytes()[4096:4104]), "what was read")
}
