package cases

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
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

// rv6_1_resize is changing how many requests a queue pair's queues take: verbs draft
// 6.1.3.
var rv6_1_resize = []conformance.Case{
	apiCase("6.1.3/resize-offered", resizeOffered, "RV-6.1.3-M6"),
	apiCase("6.1.3/resize-with-requests", onHost(resizeWithRequests), "RV-6.1.3-M7", "RV-6.1.3-M8"),
	apiCase("6.1.3/resize-disturbs-nothing", resizeDisturbsNothing, "RV-6.1.3-M9"),
	apiCase("6.1.3/shrink-refused", onHost(shrinkRefused), "RV-6.1.3-M10", "RV-6.1.3-M11"),
}

func resizeOffered(t *conformance.T) {
	for _, without := range []verbs.Features{0, verbs.FeatureResize} {
		n := newHost(t, hostConfig{RNIC: verbs.Config{Without: without}})
		a := must(n.nic.Query())(t)
		require.Equal(t, without == 0, a.Features.Has(verbs.FeatureResize), "what Query RNIC says")
		for _, s := range []verbs.State{verbs.StateIdle, verbs.StateRTS} {
			l := n.into(s, verbs.QPConfig{})
			for _, m := range []verbs.ModifyQP{{Next: s, SendDepth: ptr(100)}, {Next: s, RecvDepth: ptr(100)}} {
				if without == 0 {
					require.NoError(t, l.qp.Modify(m))
					continue
				}
				refuses(t, "a depth", verbs.ErrCannotChangeAttribute, func() error { return l.qp.Modify(m) }, l.shown)
			}
		}
	}
}

// resizeWithRequests changes both depths with requests on the queues, on queue pairs
// of all kinds.
func resizeWithRequests(t *conformance.T, n *host) {
	for k := range inTurn(t, "%s", []struct {
		what string
		cfg  verbs.QPConfig
		role side
	}{
		{"plain", verbs.QPConfig{}, asInitiator},
		{"Responder", verbs.QPConfig{}, asResponder},
		{"privileged", verbs.QPConfig{Privileged: true}, asInitiator},
		{"graceful", verbs.QPConfig{GracefulReceive: true}, asInitiator},
		{"without RDMA Reads", verbs.QPConfig{NoReads: true}, asInitiator},
		{"of an S-RQ", verbs.QPConfig{SRQ: n.newSRQ(verbs.SRQConfig{})}, asResponder},
	}) {
		for s := range inTurn(t, "in %v", []verbs.State{verbs.StateIdle, verbs.StateRTS}) {
			k.cfg.SendDepth, k.cfg.RecvDepth = 20, 20
			l := n.idleLink(k.cfg)
			rts := func() { l.peer = rawPeer(t, l.qp, k.role) }
			if s == verbs.StateRTS {
				rts()
			}
			l.fill(k.cfg.SRQ)
			for _, depth := range []int{40, 10, 300, 8} {
				m := verbs.ModifyQP{Next: s, SendDepth: ptr(depth), RecvDepth: ptr(depth)}
				if k.cfg.SRQ != nil {
					m.RecvDepth = nil
				}
				require.NoError(t, l.qp.Modify(m), "to %d", depth)
				a := attributes(t, l.qp)
				require.GreaterOrEqual(t, a.SendDepth, depth)
				if k.cfg.SRQ == nil {
					require.GreaterOrEqual(t, a.RecvDepth, depth)
				}
			}
			if s == verbs.StateIdle {
				rts()
			}
			l.drained()
			require.NoError(t, l.qp.Destroy())
		}
	}
}

// fill posts five Receives and five Sends, of which those of a Responder wait.
func (l *link) fill(srq *verbs.SRQ) {
	for i := range uint64(5) {
		fill(l.mr.Bytes()[i:i+1], int(i))
		post(l.t, l.qp, verbs.Request{ID: i, SGL: l.mr.SGL(int(i), 1)})
		r := verbs.Recv{ID: 10 + i, SGL: l.mr.SGL(1000+int(i), 1)}
		postRecv(l.t, receiver(l.qp, srq), r)
	}
}

// drained has the peer send five octets and get five.
func (l *link) drained() {
	for i := range 5 {
		l.sendMessage([]byte{byte(0xA0 + i)})
	}
	for i := range uint64(5) {
		l.expect(aSend(uint32(i+1), l.mr.Bytes()[i:i+1]))
		completes(l.t, l.sq, l.sentAs(i, verbs.OpSend, verbs.StatusSuccess))
		completes(l.t, l.rq, l.got(10+i, 1))
	}
	require.Equal(l.t, []byte{0xA0, 0xA1, 0xA2, 0xA3, 0xA4}, l.mr.Bytes()[1000:1005])
}

// resizeDisturbsNothing resizes all four queues of a connection at random while
// numbered messages go both ways.
func resizeDisturbsNothing(t *conformance.T) {
	const messages, least = 1000, 16
	c := hostConfig{QP: verbs.QPConfig{SendDepth: 64, RecvDepth: 64}}
	w := newHostPair(t, hostPairConfig{A: c, B: c, Idle: true})
	var sides []*talker
	for _, n := range []*host{w.a, w.b} {
		rng := rand.New(rand.NewPCG(t.Rand().Uint64(), 0))
		s := &talker{host: n, messages: messages, meanwhile: func() error {
			return n.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, SendDepth: ptr(least + rng.IntN(200)), RecvDepth: ptr(least + rng.IntN(200))})
		}}
		require.NoError(t, s.receive()) // before the peer may send
		sides = append(sides, s)
	}
	connect(t, w.a.qp, w.b.qp)
	var g errgroup.Group
	for _, s := range sides {
		g.Go(s.run)
	}
	require.NoError(t, g.Wait())
	require.Equal(t, []verbs.State{verbs.StateRTS, verbs.StateRTS}, []verbs.State{w.a.qp.State(), w.b.qp.State()})
	w.a.quiet()
	w.b.quiet()
}

// talker is a side that sends as many numbered messages as it receives, with at most
// ten Receives and five Sends outstanding, and does something else again and again.
// Every completion has to be Success, and in order.
type talker struct {
	*host
	messages  uint64
	meanwhile func() error

	posted, received uint64 // Receives
	sent, done       uint64 // Sends
}

// run is all of it. If it fails, the queue pair is taken away, which ends the peer's
// side too.
func (s *talker) run() (err error) {
	defer func() {
		if err != nil {
			fault.Provoke(s.qp)
		}
	}()
	c := make([]verbs.Completion, 8)
	for {
		if err := errors.Join(s.receive(), s.send()); err != nil {
			return err
		}
		if s.received == s.messages && s.done == s.messages {
			return nil
		}
		k, err := s.cq.Wait(s.t.Context(), c)
		if err != nil {
			return err
		}
		for _, x := range c[:k] {
			if err := s.take(x); err != nil {
				return err
			}
		}
		if err := s.meanwhile(); err != nil {
			return err
		}
	}
}

// receive posts Receives, send Sends. The peer has posted as many Receives as this
// side has got messages, and ten more when it began: five leave room for what it is
// slower.
func (s *talker) receive() error {
	for ; s.posted < s.messages && s.posted < s.received+10; s.posted++ {
		if _, err := s.qp.PostRecv(verbs.Recv{ID: s.posted, SGL: s.mr.SGL(int(s.posted%10)*8, 8)}); err != nil {
			return fmt.Errorf("post receive %d: %w", s.posted, err)
		}
	}
	return nil
}

func (s *talker) send() error {
	for ; s.sent < s.messages && s.sent < s.done+5 && s.sent < s.received+5; s.sent++ {
		at := 4096 + int(s.sent%5)*8
		binary.LittleEndian.PutUint64(s.mr.Bytes()[at:], s.sent)
		if _, err := s.qp.PostSend(verbs.Request{ID: s.sent, SGL: s.mr.SGL(at, 8)}); err != nil {
			return fmt.Errorf("post send %d: %w", s.sent, err)
		}
	}
	return nil
}

// take is a completion, which has to be that of the oldest of its kind.
func (s *talker) take(x verbs.Completion) error {
	want := verbs.Completion{ID: s.done, QP: s.qp.ID()}
	number := s.received
	if x.Op == verbs.OpRecv {
		want.ID, want.Op, want.Bytes = s.received, verbs.OpRecv, 8
		number = binary.LittleEndian.Uint64(s.mr.Bytes()[s.received%10*8:])
		s.received++
	} else {
		s.done++
	}
	if x != want || x.Op == verbs.OpRecv && number != want.ID {
		return fmt.Errorf("completion %+v, want %+v; the message in the buffer is number %d", x, want, number)
	}
	return nil
}

func shrinkRefused(t *conformance.T, n *host) {
	for _, s := range []verbs.State{verbs.StateIdle, verbs.StateRTS} {
		l := n.idleLink(verbs.QPConfig{SendDepth: 8, RecvDepth: 8})
		role := asResponder // it sends nothing before the peer does
		if s == verbs.StateRTS {
			l.peer = rawPeer(t, l.qp, role)
		}
		l.fill(nil)
		for what, m := range map[string]verbs.ModifyQP{
			"the SQ": {Next: s, SendDepth: ptr(4)}, "the RQ": {Next: s, RecvDepth: ptr(4)},
			"the SQ, and the RQ grows": {Next: s, SendDepth: ptr(4), RecvDepth: ptr(99), ORD: ptr(1)},
			"the RQ, and the SQ grows": {Next: s, RecvDepth: ptr(4), SendDepth: ptr(99), IRD: ptr(1)},
		} {
			refuses(t, what, verbs.ErrShrinkFailed, func() error { return l.qp.Modify(m) }, l.shown)
		}
		require.Equal(t, s, l.qp.State())
		a := attributes(t, l.qp)
		for range a.SendDepth - 5 {
			post(t, l.qp, verbs.Request{ID: 99})
		}
		for range a.RecvDepth - 5 {
			postRecv(t, l.qp, verbs.Recv{ID: 99})
		}
		require.ErrorIs(t, second(l.qp.PostSend(verbs.Request{})), verbs.ErrQueueFull)
		require.ErrorIs(t, second(l.qp.PostRecv(verbs.Recv{})), verbs.ErrQueueFull)
		if s == verbs.StateIdle {
			l.peer = rawPeer(t, l.qp, role)
		}
		l.drained()
		for range a.SendDepth - 5 {
			completes(t, l.sq, l.sentAs(99, verbs.OpSend, verbs.StatusSuccess))
		}
		for range a.RecvDepth - 5 {
			l.sendMessage(nil)
			completes(t, l.rq, l.got(99, 0))
		}
		require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, SendDepth: ptr(4), RecvDepth: ptr(4)}), "when they are reaped")
		require.Equal(t, []int{4, 4}, []int{attributes(t, l.qp).SendDepth, attributes(t, l.qp).RecvDepth})
	}
}
