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
