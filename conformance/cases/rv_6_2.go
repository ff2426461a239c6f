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
