package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_1_3 is modifying queue pairs: verbs draft 6.1.3.
var rv6_1_3 = []conformance.Case{
	apiCase("6.1.3/stream-required", streamRequired, "RV-6.1.3-M1", "RV-6.1.3-M2"),
	apiCase("6.1.3/attributes-of-figure-4", onHost(attributesOfFigure4), "RV-6.1.3-M3"),
	apiCase("6.1.3/all-or-nothing", modifyAllOrNothing, "RV-6.1.3-M4", "RV-6.1.3-M5"),
	apiCase("6.1.3/done-or-refused", onHost(modifyDoneOrRefused), "RV-6.1.3-M12", "RV-6.1.3-M13", "RV-6.1.3-M14"),
	apiCase("6.1.3/against-the-peer", modifyAgainstPeer, "RV-6.1.3-M12", "RV-6.1.3-M13"),
}

func streamRequired(t *conformance.T) {
	l := newIdleLink(t, verbs.QPConfig{SendDepth: 10, ORD: 5})
	for what, s := range map[string]*verbs.StreamConfig{"no stream": nil, "a stream of no connection": {}} {
		refuses(t, what, verbs.ErrInvalidLLPStream, func() error {
			return l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: s, ORD: ptr(3), SendDepth: ptr(20)})
		}, l.shown)
	}
	l.join()
	run(t, l.qp, l.aSend(1), verbs.StatusSuccess)
}

// legal are the transitions of figure 4.
var legal = map[[2]verbs.State]bool{
	{verbs.StateIdle, verbs.StateIdle}: true, {verbs.StateIdle, verbs.StateRTS}: true, {verbs.StateIdle, verbs.StateError}: true,
	{verbs.StateRTS, verbs.StateRTS}: true, {verbs.StateRTS, verbs.StateClosing}: true, {verbs.StateRTS, verbs.StateTerminate}: true,
	{verbs.StateRTS, verbs.StateError}: true, {verbs.StateError, verbs.StateIdle}: true,
}

// attributesOfFigure4 supplies ORD and a last message with each transition there is.
func attributesOfFigure4(t *conformance.T, n *host) {
	withORD := map[[2]verbs.State]bool{
		{verbs.StateIdle, verbs.StateIdle}: true, {verbs.StateIdle, verbs.StateRTS}: true, {verbs.StateRTS, verbs.StateRTS}: true,
	}
	for tr := range legal {
		for _, message := range []bool{false, true} {
			t.Part("%v to %v, message %v", tr[0], tr[1], message)
			l := n.into(tr[0], verbs.QPConfig{ORD: 5})
			m := verbs.ModifyQP{Next: tr[1]}
			var peer *peer
			if tr == [2]verbs.State{verbs.StateIdle, verbs.StateRTS} {
				m.Stream, peer = aStream(t)
			}
			allowed := withORD[tr]
			if message {
				m.LastMessage = []byte("last words")
				allowed = peer != nil
			} else {
				m.ORD = ptr(3)
			}
			if !allowed {
				refuses(t, "the attribute", verbs.ErrInvalidModifier, func() error { return l.qp.Modify(m) }, l.shown)
				continue
			}
			require.NoError(t, l.qp.Modify(m))
			a := attributes(t, l.qp)
			require.Equal(t, tr[1], a.State)
			if message {
				peer.text("last words")
			} else {
				require.Equal(t, 3, a.ORD)
			}
			require.NoError(t, l.qp.Destroy())
		}
	}
}

// modifyAllOrNothing has one thing wrong in each call, among good ones.
func modifyAllOrNothing(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{WR: 64, IRD: 8, ORD: 8}}})
	srq := n.newSRQ(verbs.SRQConfig{Depth: 8})
	for _, from := range []verbs.State{verbs.StateIdle, verbs.StateRTS} {
		good := func() verbs.ModifyQP {
			return verbs.ModifyQP{Next: from, ORD: ptr(2), IRD: ptr(3), SendDepth: ptr(9), RecvDepth: ptr(9)}
		}
		for _, c := range []struct {
			what  string
			want  error
			spoil func(*verbs.ModifyQP)
		}{
			{"ORD above the limit", verbs.ErrORDExceeded, func(m *verbs.ModifyQP) { m.ORD = ptr(9) }},
			{"IRD above the limit", verbs.ErrIRDExceeded, func(m *verbs.ModifyQP) { m.IRD = ptr(9) }},
			{"negative ORD", verbs.ErrInvalidModifier, func(m *verbs.ModifyQP) { m.ORD = ptr(-1) }},
			{"negative IRD", verbs.ErrInvalidModifier, func(m *verbs.ModifyQP) { m.IRD = ptr(-1) }},
			{"SQ depth above the limit", verbs.ErrTooManyWR, func(m *verbs.ModifyQP) { m.SendDepth = ptr(65) }},
			{"RQ depth above the limit", verbs.ErrTooManyWR, func(m *verbs.ModifyQP) { m.RecvDepth = ptr(65) }},
			{"SQ depth 0", verbs.ErrInvalidModifier, func(m *verbs.ModifyQP) { m.SendDepth = ptr(0) }},
			{"RQ depth 0", verbs.ErrInvalidModifier, func(m *verbs.ModifyQP) { m.RecvDepth = ptr(0) }},
			{"an RQ limit without an S-RQ", verbs.ErrInvalidModifier, func(m *verbs.ModifyQP) { m.RQLimit = ptr(1) }},
			{"a transition to nowhere", verbs.ErrInvalidState, func(m *verbs.ModifyQP) { m.Next = 5 }},
			{"a state that cannot follow", verbs.ErrInvalidState, func(m *verbs.ModifyQP) {
				m.Next = map[verbs.State]verbs.State{verbs.StateIdle: verbs.StateClosing, verbs.StateRTS: verbs.StateIdle}[from]
			}},
		} {
			t.Part("%s in %v", c.what, from)
			l := n.into(from, verbs.QPConfig{SendDepth: 5, RecvDepth: 5, IRD: 4, ORD: 4})
			m := good()
			c.spoil(&m)
			refuses(t, c.what, c.want, func() error { return l.qp.Modify(m) }, l.shown)
			require.NoError(t, l.qp.Modify(good()), "without it")
			a := attributes(t, l.qp)
			require.Equal(t, []int{2, 3}, []int{a.ORD, a.IRD})
			require.GreaterOrEqual(t, min(a.SendDepth, a.RecvDepth), 9)
			require.NoError(t, l.qp.Destroy())
		}
	}
	t.Part("with an S-RQ")
	q := n.idleLink(verbs.QPConfig{SRQ: srq, SendDepth: 5})
	refuses(t, "an RQ limit above its depth", verbs.ErrRQLimitRange, func() error {
		return q.qp.Modify(verbs.ModifyQP{SendDepth: ptr(9), ORD: ptr(1), RQLimit: ptr(9)})
	}, q.shown)
	refuses(t, "an RQ depth", verbs.ErrInvalidModifier, func() error {
		return q.qp.Modify(verbs.ModifyQP{SendDepth: ptr(9), ORD: ptr(1), RecvDepth: ptr(9)})
	}, q.shown)
	t.Part("to RTS")
	o := n.idleLink(verbs.QPConfig{SendDepth: 5})
	s, _ := aStream(t)
	refuses(t, "ORD above the limit", verbs.ErrORDExceeded, func() error {
		return o.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: s, SendDepth: ptr(9), ORD: ptr(9)})
	}, o.shown)
}

// modifyDoneOrRefused asks for each state in each: it is taken when the verb returns,
// or nothing has changed.
func modifyDoneOrRefused(t *conformance.T, n *host) {
	for _, from := range states {
		for _, next := range states {
			t.Part("%v to %v", from, next)
			l := n.into(from, verbs.QPConfig{SendDepth: 5, ORD: 4})
			m := verbs.ModifyQP{Next: next}
			if next == verbs.StateRTS && from == verbs.StateIdle {
				m.Stream, _ = aStream(t)
			}
			if legal[[2]verbs.State{from, next}] {
				require.NoError(t, l.qp.Modify(m))
				require.Equal(t, next, l.qp.State(), "when the verb has returned")
				continue
			}
			refuses(t, "the transition", verbs.ErrInvalidState, func() error { return l.qp.Modify(m) }, l.shown)
			m.ORD, m.SendDepth = ptr(1), ptr(50)
			refuses(t, "with attributes", verbs.ErrInvalidState, func() error { return l.qp.Modify(m) }, l.shown)
			if from == verbs.StateRTS {
				run(t, l.qp, l.aSend(1), verbs.StatusSuccess)
				l.expect(aSend(1, l.mr.Bytes()[:4]))
				l.settled()
			}
		}
	}
}

// modifyAgainstPeer asks for a state while the peer's Terminate Message comes: either
// the queue pair goes where it was told to, and meets the message there, or it says
// that it could not.
func modifyAgainstPeer(t *conformance.T) {
	n := newHost(t, hostConfig{})
	for i := range 30 {
		next := []verbs.State{verbs.StateClosing, verbs.StateTerminate, verbs.StateError}[i%3]
		t.Part("round %d, to %v", i, next)
		l := n.link(verbs.QPConfig{})
		done := make(chan error, 1)
		go func() { done <- l.peer.Send(aTerminate(0x1202, nil, false)) }()
		for range t.Rand().IntN(2000) {
			_ = l.qp.State()
		}
		err := l.qp.Modify(verbs.ModifyQP{Next: next})
		sent := <-done
		switch {
		case err != nil:
			require.ErrorIs(t, err, verbs.ErrInvalidState)
			require.Equal(t, verbs.StateTerminate, l.qp.State(), "the peer was first")
			require.False(t, attributes(t, l.qp).Terminate.Sent)
			l.shut()
			l.remains(verbs.StateError, verbs.EventTerminateReceived)
		case next == verbs.StateClosing: // what comes behind the verb makes it a bad end
			require.NoError(t, sent, "the peer sends")
			l.remains(verbs.StateError, verbs.EventBadClose)
		case next == verbs.StateTerminate: // the two have crossed
			require.NoError(t, sent, "the peer sends")
			require.Equal(t, verbs.StateTerminate, l.qp.State())
			require.True(t, attributes(t, l.qp).Terminate.Sent)
			l.shut()
			l.remains(verbs.StateError)
		default: // whether the peer could send is a matter of luck
			l.remains(verbs.StateError)
		}
		require.NoError(t, l.qp.Destroy())
	}
}
