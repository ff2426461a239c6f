package cases

import (
	"errors"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_2_5 is notification of completions: verbs draft 8.2.5.
var rv8_2_5 = []conformance.Case{
	apiCase("8.2.5/one-shot", onHost(notifyOneShot), "RV-8.2.5-M1", "RV-8.2.5-M8"),
	apiCase("8.2.5/looks-forward", onHost(notifyLooksForward), "RV-8.2.5-M3", "PV-8.2.5-M2"),
	apiCase("8.2.5/next-or-solicited", onHost(notifyNextOrSolicited), "RV-8.2.5-M4"),
	apiCase("8.2.5/next-wins", onHost(notifyNextWins), "RV-8.2.5-M7"),
	apiCase("8.2.5/solicited", onHost(notifySolicited), "RV-8.2.5-M5", "PV-8.2.5-M3"),
	apiCase("8.2.5/next", notifyNext, "RV-8.2.5-M6"),
	apiCase("8.2.5/handlers-of-cqs", onHost(notifyHandlers), "RV-8.2.5-M2", "RV-8.2.5-M10"),
	apiCase("8.2.5/takes-nothing", onHost(notifyTakesNothing), "RV-8.2.5-M11"),
	apiCase("8.2.5/none-missed", onHost(notifyNoneMissed), "RV-8.2.5-M9"),
	apiCase("8.2.5/sleeper", notifySleeper, "RV-8.2.5-M9"),
}

// called waits for the next call, which has to be about that CQ.
func (b *cqHandler) called(cq *verbs.CQ) {
	got := receive(b.n.t, b.calls, "the handler is not called")
	require.Same(b.n.t, cq, got, "the CQ that the handler is told")
}

func notifyOneShot(t *conformance.T, n *host) {
	b := n.cqHandler()
	l, cq := n.notified(b)
	l.adds(0)
	b.notCalled() // it was not armed
	for range 3 {
		notify(t, cq, verbs.NotifyNext)
		for id := range uint64(10) {
			l.adds(id)
		}
		b.calledOnce(cq)
		require.Len(t, cq.Events(), 1, "the same by channel")
		<-cq.Events()
	}
	for kinds := range inTurn(t, "armed with %v", [][]verbs.NotifyType{
		{verbs.NotifyNext, verbs.NotifyNext, verbs.NotifyNext, verbs.NotifyNext, verbs.NotifyNext},
		{verbs.NotifySolicited, verbs.NotifyNext, verbs.NotifySolicited, verbs.NotifyNext, verbs.NotifySolicited},
		{verbs.NotifySolicited, verbs.NotifySolicited, verbs.NotifySolicited},
	}) {
		for _, k := range kinds {
			notify(t, cq, k)
		}
		l.gets(opSendSE)
		l.gets(opSendSE)
		b.calledOnce(cq)
	}
}

func notifyLooksForward(t *conformance.T, n *host) {
	b := n.cqHandler()
	l, cq := n.notified(b)
	for _, k := range []verbs.NotifyType{verbs.NotifyNext, verbs.NotifySolicited} {
		for range 3 {
			l.gets(opSendSE)
		}
		notify(t, cq, k)
		b.notCalled()
		require.Empty(t, cq.Events())
		l.gets(opSendSE)
		b.calledOnce(cq)
		<-cq.Events()
	}
	await(t, cq, 8)
	empty(t, cq)
}

func notifyNextOrSolicited(t *conformance.T, n *host) {
	b := n.cqHandler()
	l, cq := n.notified(b)
	notify(t, cq, verbs.NotifyNext)
	l.gets(opSend)
	b.calledOnce(cq)
	notify(t, cq, verbs.NotifySolicited)
	l.gets(opSend)
	b.notCalled()
	l.gets(opSendSE)
	b.calledOnce(cq)
}

func notifyNextWins(t *conformance.T, n *host) {
	b := n.cqHandler()
	l, cq := n.notified(b)
	for kinds := range inTurn(t, "armed with %v", [][]verbs.NotifyType{
		{verbs.NotifyNext, verbs.NotifySolicited}, {verbs.NotifySolicited, verbs.NotifyNext},
		{verbs.NotifySolicited, verbs.NotifyNext, verbs.NotifySolicited},
	}) {
		for _, k := range kinds {
			notify(t, cq, k)
		}
		l.gets(opSend)
		b.calledOnce(cq)
		l.gets(opSendSE) // and nothing is left of the other arming
		b.notCalled()
	}
}

func notifySolicited(t *conformance.T, n *host) {
	b := n.cqHandler()
	l, cq := n.notified(b)
	notify(t, cq, verbs.NotifySolicited)
	l.gets(opSend)
	l.gets(opSendInv)
	l.adds(1)
	post(t, l.qp, verbs.Request{ID: 2, Op: verbs.OpSendSE}) // for the peer to be told
	l.next()
	require.NoError(t, l.qp.Drain(t.Context()))
	b.notCalled()
	for control := range inTurn(t, "control %#x", []byte{opSendSE, opSendSEInv}) {
		notify(t, cq, verbs.NotifySolicited)
		l.gets(control)
		b.calledOnce(cq)
	}
	t.Part("a receive in error")
	notify(t, cq, verbs.NotifySolicited)
	l.recv(3)
	l.modify(verbs.StateError)
	b.calledOnce(cq)
	t.Part("a request in error")
	l, cq = n.notified(b)
	notify(t, cq, verbs.NotifySolicited)
	post(t, l.qp, verbs.Request{ID: 4, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}, Flags: verbs.Unsignaled})
	b.calledOnce(cq)
	completes(t, cq, l.sentAs(4, verbs.OpSend, verbs.StatusInvalidSTag))
}

// notifyNext arms anew for each of the fourteen completions that can be, one at a time.
func notifyNext(t *conformance.T) {
	w := newOpsMatrix(t, hostPairConfig{Idle: true})
	ba, bb := w.a.cqHandler(), w.b.cqHandler()
	ca, cb := ba.cq(64), bb.cq(64)
	w.a.qp = w.a.newQP(verbs.QPConfig{Privileged: true, SendCQ: ca, RecvCQ: ca})
	w.b.qp = w.b.newQP(verbs.QPConfig{SendCQ: cb, RecvCQ: cb})
	connect(t, w.a.qp, w.b.qp)
	for i, flags := range []verbs.Flags{0, verbs.Unsignaled} {
		sends, _ := w.requests(flags)
		for _, q := range sends {
			t.Part("%v, flags %d", q.Op, flags)
			notify(t, ca, verbs.NotifyNext)
			notify(t, cb, verbs.NotifyNext)
			if q.Op <= verbs.OpSendSEInvalidate {
				postRecv(t, w.b.qp, verbs.Recv{ID: q.ID, SGL: w.b.mr.SGL(0, 64)})
			}
			post(t, w.a.qp, q)
			if q.Op <= verbs.OpSendSEInvalidate {
				bb.called(cb)
				require.Equal(t, q.ID, await(t, cb, 1)[0].ID)
			}
			require.NoError(t, w.a.qp.Drain(t.Context()))
			if i == 0 {
				ba.called(ca)
				require.Equal(t, q.ID, await(t, ca, 1)[0].ID)
			}
		}
		ba.notCalled()
		bb.notCalled()
	}
}

// notifyHandlers has three CQs of one handler, one of another, one of none: a call is
// the handler's of the CQ that got something, and names it.
func notifyHandlers(t *conformance.T, n *host) {
	one, two := n.cqHandler(), n.cqHandler()
	cqs := []*verbs.CQ{one.cq(8), one.cq(8), one.cq(8), two.cq(8), n.newCQ(8)}
	add := func(cq *verbs.CQ) { require.NoError(t, n.flush(cq, 1).Destroy()) }
	for _, cq := range cqs {
		notify(t, cq, verbs.NotifyNext)
	}
	for i := range inTurn(t, "CQ %d", []int{2, 4, 0, 3, 1}) {
		add(cqs[i])
		if i < 3 {
			one.called(cqs[i])
		}
		if i == 3 {
			two.called(cqs[i])
		}
		assert.Len(t, cqs[i].Events(), 1)
	}
	one.notCalled()
	two.notCalled()
}

func notifyTakesNothing(t *conformance.T, n *host) {
	b := n.cqHandler()
	cq := b.cq(2)
	l := n.link(verbs.QPConfig{SendCQ: cq})
	e := uint64(roomOf(cq))
	notify(t, cq, verbs.NotifyNext)
	for id := range e {
		l.adds(id)
	}
	b.calledOnce(cq)
	// All entries are still in use: one more is too much.
	post(t, l.qp, l.aSend(e))
	n.events.are(verbs.Event{ID: verbs.EventCQOverflow, CQ: cq.ID()})
	for id := range e {
		completes(t, cq, l.sentAs(id, verbs.OpSend, verbs.StatusSuccess))
	}
	empty(t, cq)
}

// notifyNoneMissed adds a completion before, between and behind the three steps of a
// consumer that goes to sleep then: it sees it, or is called.
func notifyNoneMissed(t *conformance.T, n *host) {
	b := n.cqHandler()
	l, cq := n.notified(b)
	got := make([]verbs.Completion, 4)
	for when := range counted(t, "added at step %d", 4) {
		at := func(step int) {
			if step == when {
				l.adds(uint64(when))
			}
		}
		at(0)
		seen := cq.Poll(got)
		at(1)
		notify(t, cq, verbs.NotifyNext)
		at(2)
		seen += cq.Poll(got)
		at(3)
		require.Equal(t, when < 3, seen == 1, "it is seen")
		if when >= 2 { // it was added when the CQ was armed
			b.calledOnce(cq)
		} else {
			b.notCalled()
		}
		if seen == 0 {
			completes(t, cq, l.sentAs(uint64(when), verbs.OpSend, verbs.StatusSuccess))
		}
		notify(t, cq, verbs.NotifyNext)
		l.adds(99)
		b.calledOnce(cq)
		await(t, cq, 1)
	}
}

// notifySleeper has one goroutine post as fast as it can, and one that sleeps until the
// handler is called whenever it has found the CQ empty twice. It sees all.
func notifySleeper(t *conformance.T) {
	const pairs = 5000
	n := newHost(t, hostConfig{})
	b := n.cqHandler()
	l, cq := n.notified(b)
	mw := n.newMW()
	room := make(chan struct{}, 1)
	var g sync.WaitGroup
	g.Go(func() {
		for i := range uint64(pairs) {
			list := []verbs.Request{
				{ID: 2 * i, Op: verbs.OpBind, Bind: mw.BindRequest(n.mr, 0, 8, remoteRights, uint8(i))},
				{ID: 2*i + 1, Op: verbs.OpInvalidate, Invalidate: mw.STag(uint8(i))},
			}
			for len(list) > 0 {
				k, err := l.qp.PostSend(list...)
				if list = list[k:]; err == nil {
					continue
				}
				if !assert.True(t, errors.Is(err, verbs.ErrQueueFull), "%v", err) {
					return
				}
				select {
				case <-room:
				case <-t.Context().Done():
					return
				}
			}
		}
	})
	defer g.Wait()
	next := uint64(0)
	got := make([]verbs.Completion, 16)
	poll := func() (some bool) {
		for {
			k := cq.Poll(got)
			if k == 0 {
				return some
			}
			some = true
			for _, c := range got[:k] {
				require.Equal(t, verbs.StatusSuccess, c.Status)
				require.Equal(t, next, c.ID)
				next++
			}
			select {
			case room <- struct{}{}:
			default:
			}
		}
	}
	for next < 2*pairs {
		poll()
		notify(t, cq, verbs.NotifyNext)
		if poll() || next == 2*pairs {
			continue
		}
		receive(t, b.calls, "asleep with %d completions seen", next)
	}
}
