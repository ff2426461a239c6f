package cases

import (
	"errors"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// notifyNoneMissed adds a completion before, between and behind the three steps of a
// consumer that goes to sleep then: it sees it, or is called.
func notifyNoneMissed(t *conformance.T, n *node) {
	b := n.bell()
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
			b.once(cq)
		} else {
			b.silent()
		}
		if seen == 0 {
			completes(t, cq, l.sentAs(uint64(when), verbs.OpSend, verbs.StatusSuccess))
		}
		notify(t, cq, verbs.NotifyNext)
		l.adds(99)
		b.once(cq)
		await(t, cq, 1)
	}
}

// notifySleeper has one goroutine post as fast as it can, and one that sleeps until the
// handler is called whenever it has found the CQ empty twice. It sees all.
func notifySleeper(t *conformance.T) {
	const pairs = 5000
	n := newNode(t, nodeConfig{})
	b := n.bell()
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
