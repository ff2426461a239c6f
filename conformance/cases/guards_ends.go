package cases

import (
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	viend "github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/verbs"
)

// guardsEnds are the same of ends: what comes while something ends, and what does not come behind it.
var guardsEnds = []conformance.Case{
	apiCase("9.4.1/calls-of-a-cleared-handler", onHost(callsOfAClearedHandler), "RV-9.4.1-M3"),
	apiCase("6.2.5/failure-while-closing", failureWhileClosing, "RV-6.2.5-M12", "RV-6.2.5-M15"),
	apiCase("6.2.5/closes-behind-what-was-sent", onHost(closesBehindSent), "RV-6.2.5-M12"),
	apiCase("6.2.2.4/reset-told-to-the-writer", onHost(resetToldToWriter), "RV-6.2.2.4-M4"),
	apiCase("8.2.2/posted-while-the-port-is-down", onHost(postedWhileDown), "RV-8.2.2-M1"),
	apiCase("2.2.2.2.2/vi-ends-while-it-tells", viEndsWhileItTells, "VT-2.2.2.2.2-M1"),
}

// postedWhileDown posts and is sent to while the port of the RNIC is down: all of it goes on once that is up again, in order,
// and nothing before.
func postedWhileDown(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	l.recv(9)
	require.NoError(t, fault.SetLink(n.nic, fault.Link{Down: true}))
	post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpSend}, verbs.Request{ID: 2, Op: verbs.OpSendSE})
	l.send(untagged(lastUntagged, opSend, 0, 0, l.nextSend(), 0, []byte("hello")))
	n.quiet() // others work
	empty(t, l.sq)
	empty(t, l.rq)
	require.NoError(t, fault.SetLink(n.nic, fault.Link{}))
	l.expect(untagged(lastUntagged, opSend, 0, 0, 1, 0, nil), untagged(lastUntagged, opSendSE, 0, 0, 2, 0, nil))
	completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess), l.sentAs(2, verbs.OpSendSE, verbs.StatusSuccess))
	completes(t, l.rq, l.got(9, 5))
}

// callsOfAClearedHandler clears a handler that is at work and has more calls ahead of it: they do not come.
func callsOfAClearedHandler(t *conformance.T, n *host) {
	type called struct {
		who string
		cq  *verbs.CQ
	}
	hold, release := held(t)
	calls := make(chan called, 8)
	handler := must(n.nic.AddCompletionHandler(func(cq *verbs.CQ) {
		calls <- called{thisGoroutine(), cq}
		<-hold
	}))(t)
	var cqs []*verbs.CQ
	for range 3 {
		cq := must(n.nic.CreateCQ(verbs.CQConfig{Entries: 8, Handler: handler}))(t)
		cqs = append(cqs, cq)
		notify(t, cq, verbs.NotifyNext)
		n.flush(cq, 1)
	}
	first := receive(t, calls, "the handler is not called")
	require.Same(t, cqs[0], first.cq, "the CQ that is named")
	require.NoError(t, n.nic.RemoveCompletionHandler(handler))
	release()
	eventually(t, func() bool { return stateOf(first.who) == "" }, "the goroutine that calls the handler ends")
	require.Empty(t, calls, "a call behind Set Completion Event Handler")
}

// failureWhileClosing has a queue pair, or all of its RNIC, fail while it closes and the peer does not: it does not wait
// for the peer.
func failureWhileClosing(t *conformance.T) {
	for what, f := range named(t, "%s fails", map[string]struct {
		fail func(*link)
		want func(*link) verbs.Event
	}{
		"the queue pair": {
			func(l *link) { fault.Provoke(l.qp) },
			func(l *link) verbs.Event { return verbs.Event{ID: verbs.EventLocalQPCatastrophic, QP: l.id} },
		},
		"the RNIC": {
			func(l *link) { fault.Provoke(l.nic) },
			func(*link) verbs.Event { return verbs.Event{ID: verbs.EventRNICCatastrophic} },
		},
	}) {
		for range 3 { // the close may not have come to sleep yet
			l := newHost(t, hostConfig{}).link(verbs.QPConfig{})
			l.settled()
			l.modify(verbs.StateClosing)
			l.finished()
			f.fail(l)
			ends(t, l.qp, verbs.StateError)
			l.events.are(f.want(l))
			require.Error(t, l.peer.Send(aSend(1, nil)), "%s has failed, and the stream was not reset", what)
		}
	}
}

// viTelling is the Handler of an endpoint that keeps who tells it of a Send.
type viTelling struct {
	viSent
	hold <-chan struct{}
}

func (h viTelling) SendDone(r *viend.Result) {
	h.viSent.SendDone(r)
	<-h.hold
}

// viEndsWhileItTells has the connection of a VI end while its program is being told of a Send, by either end: it waits
// for the program, and is over then.
func viEndsWhileItTells(t *conformance.T) {
	for _, end := range named(t, "ended by %s", map[string]func(e *viend.Endpoint, p *viPeer){
		"the program": func(e *viend.Endpoint, _ *viPeer) { go e.Close() },
		"the peer":    func(_ *viend.Endpoint, p *viPeer) { require.NoError(t, p.conn.Close()) },
	}) {
		near, far := loopbackPair(t)
		hold, release := held(t)
		h, table := viTelling{make(viSent, 1), hold}, stag.NewTable(stag.Config{})
		e := must(viend.New(near, viend.Config{
			Level: segment.ReliableDelivery, MTU: 8, SendDepth: 1, STags: table, User: stag.User{PD: 1}, Handler: h,
		}))(t, "an endpoint")
		t.Cleanup(func() {
			release()
			e.Close()
			table.Close()
		})
		e.Start()
		p := newVIPeer(t, far)
		posted := make(chan error, 1)
		go func() { posted <- e.PostSend(&viend.Request{Op: viend.OpSend}) }()
		receive(t, h.viSent, "the program is not told of the Send")
		p.get(viSend)
		end(e, p)
		waits := fmt.Sprintf("endpoint.(*Endpoint).drain(%p", e)
		eventually(t, func() bool { return stateWithin(waits) == "sync.Cond.Wait" }, "the end waits for the program")
		release()
		require.NoError(t, receive(t, posted, "the program has been told, and a post goes on"))
		receive(t, e.Done(), "the program has been told, and there is no end")
		_ = p.conn.Close()
	}
}

// gatedConn is a connection, no socket, that takes nothing before it may, and ends in an error then if it is given one.
type gatedConn struct {
	net.Conn
	writes chan struct{} // closed when somebody writes
	gate   chan error    // closed: go on
	once   sync.Once
}

func newGated(c net.Conn) *gatedConn {
	return &gatedConn{Conn: c, writes: make(chan struct{}), gate: make(chan error, 1)}
}

func (c *gatedConn) Write(b []byte) (int, error) {
	c.once.Do(func() { close(c.writes) })
	if err := <-c.gate; err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *gatedConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// closesBehindSent closes a queue pair when the connection, which is no socket, has not taken what was sent: the end comes
// behind that.
func closesBehindSent(t *conformance.T, n *host) {
	l := n.idleLink(verbs.QPConfig{})
	far, near := tcpPair(t)
	c := newGated(near)
	release := sync.OnceFunc(func() { close(c.gate) })
	t.Cleanup(release)
	l.joinOver(far, verbs.StreamConfig{Conn: c, CRC: true})
	post(t, l.qp, l.aSend(1))
	completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess))
	receive(t, c.writes, "nobody writes")
	l.modify(verbs.StateClosing)
	eventually(t, func() bool { return stateWithin("netpoll.(*pump).halfClose") == "sync.Cond.Wait" }, "the close waits for what was sent")
	release()
	l.expect(aSend(1, l.mr.Bytes()[:4]))
	l.finished()
	l.closesTo(verbs.StateIdle)
}

// endingConn is a gatedConn of which a read finds an end while a write is under way.
type endingConn struct{ *gatedConn }

func (c endingConn) Read([]byte) (int, error) {
	<-c.writes
	return 0, io.EOF
}

// resetToldToWriter has a system tell a write under way that a connection was reset, and the read beside it of an end: it
// was no close. Where the write is told nothing for a second, it was one. Of a round that has taken as long nothing
// is said.
func resetToldToWriter(t *conformance.T, n *host) {
	for reset := range inTurn(t, "reset: %v", []bool{true, false}) {
		l := n.idleLink(verbs.QPConfig{CloseTimeout: shortly})
		_, near := tcpPair(t)
		c := newGated(near)
		release := sync.OnceFunc(func() { close(c.gate) })
		t.Cleanup(release)
		begin(t, l.qp, verbs.StreamConfig{Conn: endingConn{c}, Role: asInitiator, CRC: true})
		at := time.Now()
		post(t, l.qp, l.aSend(1))
		receive(t, c.writes, "nobody writes")
		if !reset {
			eventually(t, func() bool { return l.qp.State() != verbs.StateRTS }, "a close of the peer's beside a write that goes on")
			release()
			receive(t, l.qp.Done(), "the stream goes on")
			continue
		}
		for time.Since(at) < shortly && l.qp.State() == verbs.StateRTS { // time enough to take it for a close
			time.Sleep(time.Millisecond)
		}
		c.gate <- syscall.ECONNRESET
		receive(t, l.qp.Done(), "the stream goes on")
		if e := l.events.next(); time.Since(at) < time.Second {
			require.Equal(t, verbs.Event{ID: verbs.EventLLPReset, QP: l.id}, bare(e))
			require.Equal(t, verbs.StateError, l.qp.State())
		}
	}
}
