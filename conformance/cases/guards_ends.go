package cases

import (
	"fmt"

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
	apiCase("2.2.2.2.2/vi-ends-while-it-tells", viEndsWhileItTells, "VT-2.2.2.2.2-M1"),
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
