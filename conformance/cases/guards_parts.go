package cases

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/wr"
)

// guardsParts are the same of the queues that queue pairs share, with made-up queue pairs: what depends on which of
// several comes first.
var guardsParts = []conformance.Case{
	apiCase("6.3.5/places-of-those-who-wait", placesOfThoseWhoWait, "RV-6.3.5-M9"),
	apiCase("6.3.6/those-who-wait-and-the-end", thoseWhoWaitAndTheEnd, "RV-6.3.6-M6"),
	apiCase("6.3.7/given-back-twice", givenBackTwice, "RV-6.3.7-M2"),
	apiCase("6.4.3.1/who-holds-and-who-waits", whoHoldsAndWhoWaits, "R5042-6.4.3.1-M1"),
}

// waitingQPs are queue pairs that take from an S-RQ, and who of them was woken.
type waitingQPs struct {
	t     *conformance.T
	q     *srq.Queue
	by    map[rune]*waitingQP
	woken strings.Builder
}

type waitingQP struct {
	name rune
	of   *waitingQPs
}

func (w *waitingQP) Wake()  { w.of.woken.WriteRune(w.name) }
func (w *waitingQP) Holds() {}

func newWaitingQPs(t *conformance.T) *waitingQPs {
	l := &waitingQPs{t: t, q: srq.New(srq.Config{ID: 1, PD: 1, Depth: 8, SGE: 1}), by: map[rune]*waitingQP{}}
	t.Cleanup(func() {
		l.leave("abcd")
		l.q.Close()
	})
	for _, name := range "abcd" {
		l.by[name] = &waitingQP{name, l}
	}
	return l
}

// each calls f for each of these.
func (l *waitingQPs) each(names string, f func(srq.Waiter)) {
	for _, name := range names {
		f(l.by[name])
	}
}

func (l *waitingQPs) wait(names string)  { l.each(names, l.q.Await) }
func (l *waitingQPs) leave(names string) { l.each(names, l.q.Forget) }

// post posts so many receives, for which these are woken, in this order.
func (l *waitingQPs) post(n int, want string) {
	require.Equal(l.t, n, must(l.q.Post(make([]wr.Recv, n)...))(l.t), "posted")
	l.wakes(want)
}

func (l *waitingQPs) wakes(want string) {
	require.Equal(l.t, want, l.woken.String(), "who is woken")
	l.woken.Reset()
}

// take has these take a receive each; there is none for the last misses of them.
func (l *waitingQPs) take(names string, misses int) {
	at := 0
	l.each(names, func(w srq.Waiter) {
		e, failed := l.q.TakeFor(w, false)
		require.False(l.t, failed)
		require.Equal(l.t, at < len(names)-misses, e != nil, "there is a receive for number %d of %s", at, names)
		at++
		if e != nil {
			e.Release(0)
		}
	})
}

// placesOfThoseWhoWait has streams wait for receives: each receive that is posted wakes the one that has waited longest,
// who keeps that place until it has one.
func placesOfThoseWhoWait(t *conformance.T) {
	for _, play := range named(t, "%s", map[string]func(*waitingQPs){
		"in their order": func(l *waitingQPs) {
			l.wait("abbca") // who waits, waits
			l.post(1, "a")
			l.take("a", 0)
			l.post(2, "bc")
			l.take("bc", 0)
			l.post(1, "")
			l.take("dd", 1)
		},
		"another is faster": func(l *waitingQPs) {
			l.wait("abc")
			l.post(1, "a")
			l.take("da", 1)
			l.wait("a")
			l.wakes("")
			l.post(3, "abc")
		},
		"another is faster than two": func(l *waitingQPs) {
			for order := range inTurn(l.t, "they look as %s", []string{"ab", "ba"}) {
				l.wait("abc")
				l.post(2, "ab")
				l.take("dd"+order, 2)
				l.wait(order)
				l.post(3, "abc")
				l.take("abc", 0)
			}
		},
		"who has taken waits anew": func(l *waitingQPs) {
			l.wait("abc")
			l.post(1, "a")
			l.take("a", 0)
			l.wait("a")
			l.post(3, "bca")
		},
		"one takes that sleeps": func(l *waitingQPs) {
			l.post(1, "")
			l.wait("a")
			l.wakes("a")
			l.wait("abc") // a receive is there, and it is the first that is woken
			l.wakes("abc")
			l.take("bac", 2)
			l.wait("acb")
			l.post(2, "ac")
			l.take("b", 0) // nobody has woken it
			l.post(1, "")
			l.wait("b")
			l.wakes("b")
		},
		"the first leaves": func(l *waitingQPs) {
			l.wait("abc")
			l.leave("a")
			l.post(2, "bc")
		},
		"the one between leaves": func(l *waitingQPs) {
			l.wait("abc")
			l.leave("b")
			l.wait("d")
			l.post(4, "acd")
		},
		"the last leaves": func(l *waitingQPs) {
			l.wait("abc")
			l.leave("c")
			l.wait("dc")
			l.post(4, "abdc")
		},
		"one leaves that was woken": func(l *waitingQPs) {
			l.wait("abc")
			l.post(1, "a")
			l.leave("a")
			l.wakes("b")
			l.take("b", 0)
			l.leave("b")
			l.wakes("")
			l.post(1, "c")
			l.take("d", 0)
			l.leave("c") // there is none that it could have taken
			l.wait("b")
			l.wakes("")
			l.post(1, "b")
		},
		"nobody is known that has left": func(l *waitingQPs) {
			l.wait("ab")
			l.leave("ab")
			l.post(2, "")
			l.take("dd", 0)
			l.wait("ba")
			l.post(2, "ba")
		},
	}) {
		play(newWaitingQPs(t))
	}
}

// thoseWhoWaitAndTheEnd has an S-RQ fail, or go, while streams wait, and when they come to wait: all are told.
func thoseWhoWaitAndTheEnd(t *conformance.T) {
	for what, end := range named(t, "it %s", map[string]func(*srq.Queue){"fails": (*srq.Queue).Fail, "is closed": (*srq.Queue).Close}) {
		l := newWaitingQPs(t)
		l.wait("abc")
		l.leave("b")
		end(l.q)
		l.wakes("ac")
		l.wait("bd")
		l.wakes("bd")
		e, failed := l.q.TakeFor(l.by['a'], false)
		require.Nil(t, e)
		require.True(t, failed, "a receive of one that %s", what)
		require.ErrorIs(t, second(l.q.Post(wr.Recv{})), wr.ErrInvalidSRQ)
	}
}

// givenBackTwice gives receives of an S-RQ back once and once more, of which the second says nothing.
func givenBackTwice(t *conformance.T) {
	l := newWaitingQPs(t)
	l.post(8, "")
	for range counted(t, "receive %d", 3) {
		e, _ := l.q.Take()
		e.Release(0)
		e.Release(0)
		l.post(1, "")
		require.ErrorIs(t, second(l.q.Post(wr.Recv{})), wr.ErrQueueFull, "no more than its depth")
	}
	for _, depth := range []int{9, 10} {
		require.NoError(t, l.q.Modify(srq.Modify{Depth: &depth}))
		l.post(1, "")
		var why *wr.Reason
		require.ErrorAs(t, second(l.q.Post(wr.Recv{})), &why)
		require.Contains(t, why.What, fmt.Sprintf("%d are outstanding", depth))
	}
	kept, _ := l.q.Take()
	l.q.Close()
	kept.Release(0)
	require.Zero(t, l.q.Stats().Queue.Now, "receives in use when all have gone")
}

// holder is a stream that takes from an S-RQ, and how far its message is at each look at it.
type holder struct {
	partial          func(look int) uint64
	looks, stallings atomic.Int32
}

func (h *holder) PartialReceive() uint64 { return h.partial(int(h.looks.Add(1))) }
func (h *holder) Stalled()               { h.stallings.Add(1) }

// looked waits until the watchdog has looked at a stream so often.
func (h *holder) looked(t *conformance.T, times int32) {
	till := h.looks.Load() + times
	eventually(t, func() bool { return h.looks.Load() >= till }, "the watchdog looks %d times", times)
}

// whoHoldsAndWhoWaits has the watchdog of an S-RQ see one stream hold a receive that another waits for: for as long as
// it goes on, and for a while after it has gone.
func whoHoldsAndWhoWaits(t *conformance.T) {
	const looks = 4 // in a StallTimeout
	const nothing, message = 0, 1 << 32
	open := func(hs ...*holder) *srq.Queue {
		q := srq.New(srq.Config{ID: 1, PD: 1, Depth: 1, SGE: 1, StallTimeout: looks * 2 * time.Millisecond})
		t.Cleanup(q.Close)
		for _, h := range hs {
			q.Join(h)
			t.Cleanup(func() { q.Leave(h) })
		}
		return q
	}
	none := &holder{partial: func(int) uint64 { return nothing }}

	t.Part("each time just before it is late")
	goesOn := &holder{partial: func(look int) uint64 { return message + uint64(look/3) }}
	open(goesOn, none).Fills()
	goesOn.looked(t, 8*looks)
	require.Zero(t, goesOn.stallings.Load(), "stalled")

	t.Part("no more")
	stands := &holder{partial: func(int) uint64 { return message + 7 }}
	open(stands, none).Fills()
	eventually(t, func() bool { return stands.stallings.Load() > 0 }, "it is stalled")
	stands.looked(t, 2*looks)
	require.EqualValues(t, 1, stands.stallings.Load(), "stalled")

	t.Part("while another waits")
	var holds atomic.Bool
	holds.Store(true)
	grows := &holder{partial: func(look int) uint64 { return either(holds.Load(), message+uint64(look)*4096, uint64(nothing)) }}
	q := open(grows, none)
	require.False(t, q.HeldByOthers(grows), "held by itself")
	woken := make(chan struct{}, 1)
	w := wakes(woken)
	defer q.Forget(w)
	require.True(t, q.HeldByOthers(none), "another holds one")
	q.Await(w)
	grows.looked(t, 4*looks)
	require.Empty(t, woken, "woken while another goes on")
	require.True(t, q.HeldByOthers(none))
	holds.Store(false)
	receive(t, woken, "nobody holds a receive any more, and a stream that waits is not told")
	require.False(t, q.HeldByOthers(none), "nobody holds one")

	t.Part("the holder goes")
	holds.Store(true)
	q.Leave(grows)
	require.True(t, q.HeldByOthers(none), "it has just gone")
	q.Await(w)
	receive(t, woken, "the holder has long gone, and a stream that waits is not told")
	require.False(t, q.HeldByOthers(none), "it has long gone")
}
