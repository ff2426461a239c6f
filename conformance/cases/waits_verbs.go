package cases

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wr"
)

// waitsVerbs are the ways to wait of the verbs. Where a CQ is one that only a program's own waits and a handing over
// serve, and not the look of the RNIC after a while, its Slack is an hour.
var waitsVerbs = []conformance.Case{
	waitCase("8.2.3", way{name: "cq", open: waitArrival(arriving{}), keys: []string{"RV-8.2.5-M9"}}),
	waitCase("8.2.3", way{
		name: "cq-stream", open: waitArrival(arriving{hidden: true}),
		keys: []string{"RV-8.2.5-M9"},
	}),
	waitCase("8.2.3", way{
		name: "cq-two-groups", open: waitArrival(arriving{groups: true}),
		keys: []string{"RV-8.2.5-M9"},
	}),
	waitCase("8.2.3", way{
		name: "cq-polled", open: waitArrival(arriving{groups: true, polled: true}),
		keys: []string{"RV-8.2.5-M9"},
	}),
	waitCase("8.2.3", way{name: "cq-one", open: waitLocal, keys: []string{"RV-8.2.5-M9"}}),
	waitCase("8.2.5", way{
		name: "token", told: merged, open: waitToken,
		keys: []string{"RV-8.2.5-M1", "RV-8.2.5-M9"},
	}),
	waitCase("8.2.5", way{
		name: "event", told: merged, open: waitEvent,
		keys: []string{"RV-8.2.5-M1", "RV-8.2.5-M9"},
	}),
	waitCase("8.2.5", way{name: "armed", alone: true, open: waitArmed, keys: []string{"RV-8.2.5-M9"}}),
	waitCase("8.2.5", way{name: "handler", open: waitHandler, keys: []string{"RV-8.2.5-M1", "RV-8.2.5-M2"}}),
	waitCase("8.3.3", way{name: "event-handler", open: waitAsyncEvent, keys: []string{"RV-8.3.3-M3"}}),
	waitCase("6.2.2.2", way{name: "drain", told: lasting, open: waitDrain, keys: []string{"RV-6.2.2.2-M5"}}),
	waitCase("6.2.2.2", way{
		name: "done", told: lasting, open: waitDone,
		keys: []string{"RV-6.2.2.2-M2", "RV-6.2.5-M22"},
	}),
	waitCase("6.3", way{name: "graceful", open: waitGraceful(pausing{shared: true}), keys: []string{"RV-6.2.2-M4"}}),
	waitCase("6.2.2", way{name: "graceful", open: waitGraceful(pausing{}), keys: []string{"RV-6.2.2-M4"}}),
	waitCase("6.2.2", way{
		name: "graceful-stream", open: waitGraceful(pausing{hidden: true}),
		keys: []string{"RV-6.2.2-M4"},
	}),
	waitCase("6.2.2", way{
		name: "graceful-refused", open: waitGraceful(pausing{refused: true}),
		keys: []string{"RV-6.2.2-M4"},
	}),
	waitCase("6.3", way{
		name: "graceful-refused", open: waitGraceful(pausing{shared: true, refused: true}),
		keys: []string{"RV-6.2.2-M4"},
	}),
	apiCase("6.3/waiting-stream-ends", waitingStreamEnds, "RV-6.2.2-M4"),
	apiCase("6.3.6/waiting-streams-of-a-failed-queue", waitingStreamsFail, "RV-6.3.6-M6"),
	apiCase("8.2.2/delivered-before-answer", deliveredBeforeAnswer, "RV-8.2.2-M7"),
	apiCase("8.3.3/handler-busy", handlerBusy, "RV-8.3.3-M3"),
	apiCase("8.2.5/handler-busy", onHost(completionHandlerBusy), "RV-8.2.5-M1", "RV-8.2.5-M2"),
}

// patient is a CQ at which nobody but waiters, pollers and those that they hand over to serves.
func (n *host) patient() *verbs.CQ {
	return must(n.nic.CreateCQ(verbs.CQConfig{Entries: 256, Slack: hour}))(n.t, "Create CQ")
}

// waitOne is a wait for one completion.
func waitOne(cq *verbs.CQ) func(context.Context) error {
	return func(ctx context.Context) error {
		done, err := cq.WaitOne(ctx)
		if err == nil && done.Status != verbs.StatusSuccess {
			return done.Err()
		}
		return err
	}
}

// gone has a scene end: with the CQ, if one is named, behind its queue pair, else with the RNIC.
func (l *link) gone(cq *verbs.CQ, s *scene) *scene {
	s.end, s.endsAs = l.nic.Close, verbs.ErrInvalidRNIC
	if cq != nil {
		s.end, s.endsAs = func() error { return errors.Join(l.qp.Destroy(), cq.Destroy()) }, verbs.ErrInvalidCQ
	}
	return s
}

// arriving is how messages reach a CQ.
type arriving struct {
	hidden bool // the stream is no socket: a goroutine reads it
	groups bool // the CQ has two groups, so that nobody sleeps in one
	polled bool // the program has polled for long before it waits: the background poller has stepped aside
}

// manyPolls is how many polls in vain make the background poller step aside, and more.
const manyPolls = 160

// afterPolls has a program poll, and then wait if it has found nothing.
func afterPolls(cq *verbs.CQ, wait func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for range manyPolls {
			if _, err := cq.PollOne(); !errors.Is(err, verbs.ErrCQEmpty) {
				return err
			}
		}
		return wait(ctx)
	}
}

// arrivals makes a link with receives, at whose CQ messages arrive n at a time.
func (a arriving) arrivals(t *conformance.T, cq func(*host) *verbs.CQ) (l *link, happen func(int)) {
	n := newHost(t, hostConfig{})
	c := verbs.QPConfig{RecvCQ: cq(n)}
	if a.groups {
		n.link(verbs.QPConfig{SendCQ: c.RecvCQ, RecvCQ: n.patient()})
	}
	l = n.idleLink(c)
	l.hidden = a.hidden
	l.join()
	return l, func(k int) {
		postRecv(t, l.qp, make([]verbs.Recv, k)...)
		var ulpdus [][]byte
		for range k {
			ulpdus = append(ulpdus, l.peer.aSend(nil))
		}
		l.sendAtOnce(ulpdus...)
	}
}

// waitArrival waits for what a peer sends.
func waitArrival(a arriving) func(*conformance.T) *scene {
	return func(t *conformance.T) *scene {
		l, happen := a.arrivals(t, (*host).patient)
		wait := waitOne(l.rq)
		if a.polled {
			wait = afterPolls(l.rq, wait)
		}
		return l.gone(either(a.groups, nil, l.rq), &scene{wait: wait, happen: happen})
	}
}

// waitLocal waits for what the program itself posts, at a CQ whose waiters sleep where another CQ is served.
func waitLocal(t *conformance.T) *scene {
	n := newHost(t, hostConfig{})
	l := n.link(verbs.QPConfig{SendCQ: n.patient(), RecvCQ: n.patient()})
	n.link(verbs.QPConfig{RecvCQ: l.rq}) // it goes on without l
	return l.gone(l.sq, &scene{wait: waitOne(l.sq), happen: func(k int) {
		var list []verbs.Request
		for range k {
			list = append(list, l.aSend(0))
		}
		post(t, l.qp, list...)
	}})
}

// notifying has each of a number of messages arrive behind polls and a request for a notification.
func notifying(l *link, arrive func(int)) func(int) {
	return func(k int) {
		for range k {
			_ = afterPolls(l.rq, func(context.Context) error { return nil })(l.t.Context())
			notify(l.t, l.rq, verbs.NotifyNext)
			arrive(1)
		}
	}
}

// waitToken waits at the channel of the tokens.
func waitToken(t *conformance.T) *scene {
	l, arrive := arriving{}.arrivals(t, (*host).patient)
	return &scene{happen: notifying(l, arrive), wait: func(ctx context.Context) error {
		return from(ctx, l.rq.Events())
	}}
}

// waitEvent waits for a token where the data arrives.
func waitEvent(t *conformance.T) *scene {
	l, arrive := arriving{}.arrivals(t, (*host).patient)
	return l.gone(l.rq, &scene{wait: l.rq.WaitEvent, happen: notifying(l, arrive)})
}

// waitArmed is the program that polls when it need not wait.
func waitArmed(t *conformance.T) *scene {
	l, arrive := arriving{}.arrivals(t, (*host).patient)
	return l.gone(nil, &scene{happen: arrive, wait: func(ctx context.Context) error {
		for {
			armed, err := l.rq.Arm(verbs.NotifyNext)
			if err == nil && armed {
				err = l.rq.WaitEvent(ctx)
			}
			if err == nil {
				if _, err = l.rq.PollOne(); errors.Is(err, verbs.ErrCQEmpty) {
					continue // the token of an earlier one
				}
			}
			return err
		}
	}})
}

// waitHandler waits for calls of a completion handler.
func waitHandler(t *conformance.T) *scene {
	var calls chan *verbs.CQ
	l, arrive := arriving{}.arrivals(t, func(n *host) *verbs.CQ {
		calls = make(chan *verbs.CQ, 256)
		id := must(n.nic.AddCompletionHandler(func(c *verbs.CQ) { calls <- c }))(t, "Set Completion Event Handler")
		return must(n.nic.CreateCQ(verbs.CQConfig{Entries: 256, Handler: id, Slack: hour}))(t, "Create CQ")
	})
	return &scene{wait: func(ctx context.Context) error { return from(ctx, calls) }, happen: func(k int) {
		for range k {
			notify(t, l.rq, verbs.NotifyNext)
			for range 2 { // the second one is of no notification
				arrive(1)
				l.settled()
			}
		}
	}}
}

// waitAsyncEvent waits for calls of the asynchronous event handler.
func waitAsyncEvent(t *conformance.T) *scene {
	n := newHost(t, hostConfig{})
	return &scene{wait: func(ctx context.Context) error { return from(ctx, n.events.events) }, happen: func(k int) {
		for range k {
			fault.Provoke(n.newQP(verbs.QPConfig{}))
		}
	}}
}

// waitDrain waits for the answer to an RDMA Read.
func waitDrain(t *conformance.T) *scene {
	n := newHost(t, hostConfig{})
	l := n.link(verbs.QPConfig{SendCQ: n.patient(), RecvCQ: n.patient()})
	post(t, l.qp, l.aRead(1))
	l.expect(l.asks(1))
	return &scene{wait: l.qp.Drain, happen: func(int) { l.send(l.answer()) }}
}

// waitDone waits for the end of a stream, which the peer closes.
func waitDone(t *conformance.T) *scene {
	n := newHost(t, hostConfig{})
	l := n.link(verbs.QPConfig{SendCQ: n.patient(), RecvCQ: n.patient()})
	return &scene{
		wait:   func(ctx context.Context) error { return from(ctx, l.qp.LLPStream().Done()) },
		happen: func(int) { l.shut() },
	}
}

// pausing is how streams wait for receives.
type pausing struct {
	shared  bool // two streams, for those of an S-RQ
	refused bool // of the receives that are posted together the last is refused
	hidden  bool // the stream is no socket: a goroutine reads it
}

// waitGraceful has streams wait for receives, with messages enough, and the program for what becomes of those that it
// posts.
func waitGraceful(p pausing) func(*conformance.T) *scene {
	return func(t *conformance.T) *scene {
		n := newHost(t, hostConfig{})
		c := verbs.QPConfig{RecvCQ: n.patient(), GracefulReceive: true}
		if p.shared {
			c.SRQ = n.newSRQ(verbs.SRQConfig{Depth: 256})
			n.paused(c, p.hidden)
		}
		l := n.paused(c, p.hidden)
		to := receiver(l.qp, c.SRQ)
		return &scene{wait: waitOne(c.RecvCQ), happen: func(k int) {
			list := make([]verbs.Recv, k)
			if !p.refused {
				postRecv(t, to, list...)
				return
			}
			n, err := to.PostRecv(append(list, verbs.Recv{SGL: make([]verbs.SGE, 1<<10)})...)
			require.ErrorIs(t, err, verbs.ErrInvalidSGLLength, "a list with too many elements")
			require.Equal(t, k, n, "posted before it")
		}}
	}
}

// paused makes a link whose stream waits for a receive, with messages for many behind it.
func (n *host) paused(c verbs.QPConfig, hidden bool) *link {
	l := n.idleLink(c)
	l.hidden = hidden
	l.join()
	for range 64 {
		l.sendMessage(nil)
	}
	none := make([]verbs.Completion, 1)
	eventually(n.t, func() bool {
		require.Zero(n.t, l.rq.Poll(none), "a completion without a receive")
		return l.qp.Stats().ReceiveWaits > 0
	}, "it waits for a receive")
	return l
}

// waitingStreamEnds ends a stream that has been woken for a receive: if it has not taken it, the next one does.
func waitingStreamEnds(t *conformance.T) {
	n := newHost(t, hostConfig{})
	for range counted(t, "round %d", 8) {
		c := verbs.QPConfig{RecvCQ: n.patient(), SRQ: n.newSRQ(verbs.SRQConfig{Depth: 256}), GracefulReceive: true}
		l, other := n.paused(c, false), n.paused(c, false)
		postRecv(t, c.SRQ, verbs.Recv{ID: 7})
		l.modify(verbs.StateError)
		ctx, stop := context.WithTimeout(t.Context(), patience(t))
		done, err := c.RecvCQ.WaitOne(ctx)
		stop()
		require.NoError(t, err, "a receive is there, and a stream that waits for one sleeps on")
		require.Equal(t, uint64(7), done.ID)
		empty(t, c.RecvCQ)
		require.NoError(t, other.qp.Destroy())
	}
}

// waitingStreamsFail has the S-RQ fail for whose receives two streams wait: either needs one, so it ends.
func waitingStreamsFail(t *conformance.T) {
	n := newHost(t, hostConfig{})
	c := verbs.QPConfig{RecvCQ: n.patient(), SRQ: n.newSRQ(verbs.SRQConfig{Depth: 4}), GracefulReceive: true}
	links := []*link{n.paused(c, false), n.paused(c, false)}
	verbsinternal.FailSRQ(c.SRQ)
	for _, l := range links {
		l.gets1(opTerminate)
		l.drop()
		ends(t, l.qp, verbs.StateError)
	}
}

// deliveredBeforeAnswer has a Read Request behind a Send answered while the RNIC is still at what came with both:
// who sees the answer finds the completion of the receive.
func deliveredBeforeAnswer(t *conformance.T) {
	at, goOn := make(chan struct{}), make(chan struct{})
	n := newHost(t, hostConfig{RNIC: verbs.Config{Trace: func(r verbs.Record) {
		if r.Kind == wr.RecordReceived && r.Name == "Write" {
			close(at)
			<-goOn
		}
	}}})
	l := n.link(verbs.QPConfig{})
	defer close(goOn)
	l.recv(1)
	to := l.mr.Remote(0)
	l.sendAtOnce(l.peer.aSend([]byte("text")), l.readOf(0, 0, 0), aWrite(uint32(to.STag), to.TO, []byte("text")))
	receive(t, at, "the RDMA Write does not come")
	post(t, l.qp, l.aSend(2))
	for {
		if u := l.next(); u[1]&0x0F == opReadResponse&0x0F {
			break
		}
	}
	var got [1]verbs.Completion
	require.Equal(t, 1, verbsinternal.PollQueued(l.rq, got[:]), "the Send before what the peer has the answer to")
	require.Equal(t, l.got(1, 4), got[0])
}

// from receives from a channel, what is there first.
func from[V any](ctx context.Context, c <-chan V) error {
	select {
	case <-c:
		return nil
	default:
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// give lets a handler return.
func give(t *conformance.T, goOn chan<- struct{}) {
	select {
	case goOn <- struct{}{}:
	case <-t.Context().Done():
		t.Fatalf("no handler is running")
	}
}

// handlerBusy has events come while the handler deals with an earlier one: each is told, in order, whether
// the goroutine that calls it goes on with them or has to be started anew.
func handlerBusy(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{})
	calls, goOn := make(chan verbs.QPID), make(chan struct{})
	require.NoError(t, nic.SetEventHandler(func(e verbs.Event) {
		select {
		case calls <- e.QP:
		case <-t.Context().Done():
		}
		select {
		case <-goOn:
		case <-t.Context().Done():
		}
	}))
	pd, cq := must(nic.AllocatePD())(t), must(nic.CreateCQ(verbs.CQConfig{}))(t)
	var qps []*verbs.QP
	for range 3 {
		for range 4 {
			qp := must(nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq}))(t)
			fault.Provoke(qp)
			if qps = append(qps, qp); len(qps)%4 == 1 { // the handler has the first one
				require.Equal(t, qp.ID(), receive(t, calls, "the handler is not called"))
			}
		}
		for _, qp := range qps[len(qps)-3:] {
			give(t, goOn)
			require.Equal(t, qp.ID(), receive(t, calls, "an event that came in the meantime is lost"))
		}
		give(t, goOn)
	}
}

// completionHandlerBusy is the same of completion handlers, of which one call may not keep that for another CQ back.
func completionHandlerBusy(t *conformance.T, n *host) {
	calls, goOn := make(chan *verbs.CQ), make(chan struct{})
	id := must(n.nic.AddCompletionHandler(func(c *verbs.CQ) {
		select {
		case calls <- c:
		case <-t.Context().Done():
		}
		select {
		case <-goOn:
		case <-t.Context().Done():
		}
	}))(t)
	var cqs []*verbs.CQ
	for range 4 {
		cqs = append(cqs, must(n.nic.CreateCQ(verbs.CQConfig{Entries: 8, Handler: id}))(t))
	}
	for range 3 {
		for i, cq := range cqs {
			notify(t, cq, verbs.NotifyNext)
			require.NoError(t, n.flush(cq, 1).Destroy())
			if i == 0 {
				require.Same(t, cq, receive(t, calls, "the handler is not called"))
			}
		}
		for _, cq := range cqs[1:] {
			give(t, goOn)
			require.Same(t, cq, receive(t, calls, "a notification that came in the meantime is lost"))
		}
		give(t, goOn)
		for _, cq := range cqs {
			cq.Poll(make([]verbs.Completion, 8))
		}
	}
}
