package cases

import (
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_2_3 is the Terminate state: verbs draft 6.2.3.
var rv6_2_3 = []conformance.Case{
	apiCase("6.2.3/left-for-error", terminateLeft, "RV-6.2.3-M1", "RV-6.2.3-M2", "RV-6.2.3-M6", "RV-6.2.3-M16"),
	upperCase("6.2.3/stops-everything", terminateStops, "RV-6.2.3-M3", "RV-6.2.3-M5"),
	apiCase("6.2.3/llp-error", terminateLLPError, "RV-6.2.3-M2", "RV-6.2.3-M7", "RV-6.2.3-M8", "RV-6.2.3-M9"),
	apiCase("6.2.3/refuses-verbs", terminateRefuses, "RV-6.2.3-M10", "RV-6.2.3-M18"),
	apiCase("6.2.3/none-lost", terminateLosesNone, "RV-6.2.3-M11"),
	upperCase("6.2.3/verb-without-event", terminateVerbEvents, "RV-6.2.3-M12", "RV-6.2.3-M13"),
	upperCase("6.2.3/completion-without-event", terminateCompletionEvents, "RV-6.2.3-M14", "RV-6.2.3-M15"),
	apiCase("6.2.3/a-new-stream", terminateNewStream, "RV-6.2.3-M8", "RV-6.2.3-M17", "PV-6.2.1.2-M1"),
}

// wayIn is how a queue pair comes to the Terminate state, and what the peer is sent
// then.
type wayIn struct {
	name string
	do   func(*link)
	sent []byte // the Terminate Message; nil for none
}

// waysIn are by verb, by a request that cannot be done, by a segment that may not be
// placed, and by the peer's Terminate Message.
func waysIn() []wayIn {
	return []wayIn{
		{"Modify QP", func(l *link) { l.modify(verbs.StateTerminate) }, aTerminate(0x0000, nil, false)},
		{"a fault of the Send Queue", func(l *link) {
			post(l.t, l.qp, verbs.Request{ID: 90, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}})
		}, aTerminate(0x0000, nil, false)},
		{"a fault of a segment", func(l *link) { l.send(badSTag) }, aTerminate(0x1100, badSTag, false)},
		{"a Terminate Message", func(l *link) { l.send(aTerminate(0x1202, nil, false)) }, nil},
	}
}

// enter takes a link to Terminate, and has the peer read what it is sent.
func (w *wayIn) enter(l *link) {
	w.do(l)
	if w.sent != nil {
		l.expect(w.sent)
	}
	l.finished()
	require.Equal(l.t, verbs.StateTerminate, l.qp.State(), "the peer's half is open")
}

// terminateLeft: the peer closes, and the queue pair goes on by itself.
func terminateLeft(t *conformance.T) {
	for w := range inTurn(t, "after %s", waysIn()) {
		l := newHost(t, hostConfig{}).hiddenLink(verbs.QPConfig{})
		conn := l.stream().Conn
		w.enter(l)
		require.NotNil(t, l.stream(), "in Terminate")
		l.closesTo(verbs.StateError)
		require.Nil(t, l.stream(), "in Error")
		released(t, conn)
		// The close is one in order: the peer reads no reset behind the end.
		end, _, err := l.peer.End()
		require.NoError(t, err)
		require.Equal(t, endFIN, end)
	}
}

// terminateStops has the peer go on: with a good Write, an RDMA Read, a Send and the
// answer that a Read of this side waits for.
func terminateStops(t *conformance.T) {
	for w := range inTurn(t, "after %s", []struct {
		name string
		do   func(*rig)
		sent []byte
	}{
		{"Modify QP", func(r *rig) { require.NoError(t, r.modify(uppertester.ModifyArgs{Next: verbs.StateTerminate})) }, aTerminate(0x0000, nil, false)},
		{"a fault", func(r *rig) { r.send(badSTag) }, aTerminate(0x1100, badSTag, false)},
		{"a Terminate Message", func(r *rig) { r.send(aTerminate(0x1202, nil, false)) }, nil},
	}) {
		r := open(t, twoCQs())
		bufs := r.recv(1, 16)
		g := r.region(64, allRights)
		sink := r.outstandingRead(9)
		w.do(r)
		r.send(
			aWrite(g.tag(), g.at(0), []byte("write")), aReadRequest(1, read{nowhere, nowhereTO, 5, g.tag(), g.at(0)}),
			aSend(1, []byte("send")), aReadResponse(sink.tag(), sink.at(0), []byte("response")),
		)
		if w.sent != nil {
			r.expect(w.sent)
		}
		r.finished() // before the peer closes; and there is no answer before it
		r.ended(verbs.StateError)
		g.unchanged()
		sink.unchanged()
		bufs[0].unchanged()
		r.completionsOf(r.SendCQ, verbs.Completion{ID: 9, Op: verbs.OpRead, Status: verbs.StatusFlushed})
		r.completionsOf(r.RecvCQ, flushedRecvs(1)...)
	}
}

// terminateLLPError: the peer does not close, or does not even read, or resets. The
// connection is reset then, and free for another.
func terminateLLPError(t *conformance.T) {
	for what, c := range named(t, "%s", map[string]struct {
		before, do func(*link)
	}{
		"the peer never closes": {func(*link) {}, func(l *link) { l.terminated(0x0000, nil, false) }},
		"the peer never reads":  {(*link).stuff, func(*link) {}},
		"the peer resets": {func(*link) {}, func(l *link) {
			l.terminated(0x0000, nil, false)
			l.reset()
		}},
	}) {
		l := newIdleLink(t, verbs.QPConfig{CloseTimeout: shortly})
		s, peer := aStream(t)
		conn := &timeless{capture: capture{TCPConn: s.Conn.(*net.TCPConn)}}
		s.Conn = conn
		begin(t, l.qp, *s)
		l.peer = peer
		c.before(l)
		l.modify(verbs.StateTerminate)
		c.do(l)
		conn.pass()
		ends(t, l.qp, verbs.StateError)
		require.Nil(t, l.stream())
		require.True(t, conn.reset.Load(), "it is reset")
		released(t, conn)
		if what == "the peer never reads" {
			require.ErrorIs(t, l.rest().end, syscall.ECONNRESET)
		}
		l.again()
		l.settled()
	}
}

// timeless is a connection whose time does not pass before the case has seen what comes
// first.
type timeless struct {
	capture
	mu     sync.Mutex
	by     time.Time // the last deadline of both halves
	passes bool
}

func (c *timeless) SetDeadline(by time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = by
	if !c.passes {
		by = time.Time{}
	}
	return c.TCPConn.SetDeadline(by)
}

// pass lets time pass from here on.
func (c *timeless) pass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passes = true
	if !c.by.IsZero() {
		_ = c.TCPConn.SetDeadline(c.by)
	}
}

// terminateRefuses asks for everything in Terminate.
func terminateRefuses(t *conformance.T) {
	for w := range inTurn(t, "after %s", waysIn()) {
		l := newLink(t, verbs.QPConfig{SendDepth: 5})
		w.enter(l)
		l.refusesVerbs(verbs.StateTerminate)
	}
}

// terminateLosesNone has programs post while the peer's bad segment comes.
func terminateLosesNone(t *conformance.T) {
	for range counted(t, "round %d", 10) {
		l := newLink(t, verbs.QPConfig{SendDepth: 512, RecvDepth: 512})
		accepted := l.posting(t.Rand().IntN(50), func() {
			assert.NoError(t, l.peer.Send(badSTag))
			for {
				if _, err := l.peer.Next(); err != nil {
					break
				}
			}
			assert.NoError(t, l.peer.CloseWrite())
			<-l.qp.Done()
		})
		l.remains(verbs.StateError, verbs.EventProtSTag)
		l.accounted(accepted)
	}
}

// terminateVerbEvents: a good end says nothing, a bad one that it was bad.
func terminateVerbEvents(t *conformance.T) {
	for what, c := range named(t, "%s", map[string]struct {
		do     func(*rig)
		events []verbs.EventID
	}{
		"the peer closes":       {(*rig).finished, nil},
		"the peer resets":       {func(r *rig) { require.NoError(t, r.peer.Reset()) }, []verbs.EventID{verbs.EventBadClose}},
		"the peer never closes": {func(*rig) {}, []verbs.EventID{verbs.EventBadClose}},
	}) {
		s := twoCQs()
		if what == "the peer never closes" {
			s.qp.CloseTimeout = shortly
		}
		r := open(t, s)
		r.settled() // a Responder may send
		require.NoError(t, r.modify(uppertester.ModifyArgs{Next: verbs.StateTerminate}))
		r.expect(aTerminate(0x0000, nil, false))
		c.do(r)
		r.ended(verbs.StateError)
		r.events(c.events...)
	}
}

// terminateCompletionEvents: the completion says what was wrong. That the end was a
// bad one too it cannot say.
func terminateCompletionEvents(t *conformance.T) {
	for what, c := range named(t, "%s", map[string]struct {
		fault func(*rig) []verbs.Completion // and what completes at the Send Queue
		sent  []byte
	}{
		"the Send Queue": {func(r *rig) []verbs.Completion {
			r.post(verbs.Request{ID: 5, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}})
			return []verbs.Completion{{ID: 5, Status: verbs.StatusInvalidSTag}}
		}, aTerminate(0x0000, nil, false)},
		"the Receive Queue": {func(r *rig) []verbs.Completion {
			r.send(aSend(1, make([]byte, 17)))
			return []verbs.Completion{{ID: 1, Op: verbs.OpRecv, Status: verbs.StatusBaseBounds}}
		}, aTerminate(0x1205, aSend(1, make([]byte, 17)), false)},
	}) {
		for reset := range inTurn(t, "the peer resets: %v", []bool{false, true}) {
			s := twoCQs()
			s.qp.RecvCQ = 1
			r := open(t, s)
			if what != "the Send Queue" {
				r.recv(1, 16)
			}
			done := c.fault(r)
			r.expect(c.sent)
			if reset {
				require.NoError(t, r.peer.Reset())
			} else {
				r.finished()
			}
			r.ended(verbs.StateError)
			r.completionsOf(r.SendCQ, done...)
			if reset {
				r.events(verbs.EventBadClose)
			} else {
				r.events()
			}
		}
	}
}

// terminateNewStream: nothing of the old stream is left, in either direction.
func terminateNewStream(t *conformance.T) {
	l := newLink(t, verbs.QPConfig{ORD: 1})
	for w := range inTurn(t, "after %s", waysIn()) {
		l.recv(1)
		l.sendMessage([]byte("abc")) // MSN 1
		completes(t, l.rq, l.got(1, 3))
		l.recv(2)
		run(t, l.qp, l.aSend(2), verbs.StatusSuccess)
		l.expect(aSend(1, l.mr.Bytes()[:4]))
		l.settled()
		l.send(untagged(moreUntagged, opSend, 0, 0, 2, 0, nil)) // and half of a message
		l.settled()
		w.enter(l)
		l.closesTo(verbs.StateError)
		l.sq.Poll(make([]verbs.Completion, 8))
		completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 2)...)
		l.again()
	}
	l.settled()
}
