package cases

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/wr"
)

// guardsCQ are the same of a CQ, with made-up places to wait.
var guardsCQ = []conformance.Case{
	apiCase("8.2.3/places-that-a-cq-polls", placesThatACQPolls, "RV-8.2.3-M1"),
	apiCase("8.2.3/two-places-to-sleep", twoPlacesToSleep, "RV-8.2.3-M1"),
	apiCase("8.2.5/what-a-cq-is-waited-for", whatACQIsWaitedFor, "RV-8.2.5-M9"),
}

// wakes is a Waiter of which a channel tells.
type wakes chan struct{}

func (w wakes) Wake()  { w <- struct{}{} }
func (w wakes) Holds() {}

// place is where queue pairs receive, for a CQ.
type place struct {
	cq.Driver // says who is served there
	name      string
	log       *strings.Builder
	claims    chan struct{} // if set, Claim takes one
	roused    chan struct{}
}

func (p *place) did(what string) { fmt.Fprintf(p.log, "%s %s ", p.name, what) }

func (p *place) Drive() bool { p.did("drives"); return false }
func (p *place) Yield()      { p.did("yields") }
func (p *place) Leave()      { p.did("left") }

func (p *place) Claim() bool {
	if p.claims != nil {
		<-p.claims
	}
	return true
}

func (p *place) Sleep() bool {
	<-p.roused
	return true
}

func (p *place) Rouse() {
	select {
	case p.roused <- struct{}{}:
	default:
	}
}

func (p *place) Watch(fds []int) ([]int, bool) {
	p.did("watches")
	return append(fds, len(p.name)), p.name == "busy"
}

// cqWithPlaces is a CQ, and made-up places of which it polls none yet.
func cqWithPlaces(t *conformance.T, names ...string) (*cq.Queue, *strings.Builder, []*place) {
	q, log := cq.New(cq.Config{ID: 1, Entries: 4}), new(strings.Builder)
	t.Cleanup(q.Close)
	var list []*place
	for i, name := range names {
		other := cq.New(cq.Config{ID: wr.CQID(2 + i), Entries: 1})
		t.Cleanup(other.Close)
		p := &place{Driver: other.Group(), name: name, log: log, roused: make(chan struct{}, 1)}
		t.Cleanup(func() { q.Detach(p) })
		list = append(list, p)
	}
	return q, log, list
}

// did says what has been done at the places since it was said last.
func did(t *conformance.T, log *strings.Builder, want string) {
	require.Equal(t, want, strings.TrimSpace(log.String()))
	log.Reset()
}

// placesThatACQPolls has a CQ poll each place at which queue pairs receive that complete there, as long as there is one,
// and tell each that nobody polls any more.
func placesThatACQPolls(t *conformance.T) {
	q, log, at := cqWithPlaces(t, "a", "b", "c")
	a, b, c := at[0], at[1], at[2]
	polled := func() int { return t.Held()["cq CQ: group"] }
	poll := func(want string) {
		require.ErrorIs(t, second(q.PollOne()), wr.ErrCQEmpty)
		did(t, log, want)
	}
	poll("")
	q.Attach(a)
	q.Attach(a) // the other queue of the same queue pair
	q.Attach(b)
	require.Equal(t, 2, polled(), "places")
	poll("b drives a drives")
	q.Detach(a)
	poll("b drives a drives")
	require.True(t, q.Push(cq.Entry{}))
	require.NoError(t, second(q.PollOne()))
	did(t, log, "") // there was one
	require.NoError(t, q.Request(wr.NotifyNext))
	did(t, log, "a yields b yields")
	poll("") // armed: nobody but those serves
	q.Attach(c)
	q.Detach(a)
	require.Equal(t, 2, polled(), "places")
	require.True(t, q.Push(cq.Entry{}))
	<-q.Events()
	require.NoError(t, second(q.PollOne()))
	poll("b drives c drives")
	q.Detach(b)
	poll("c drives")
	q.Detach(c)
	poll("")
	require.Zero(t, polled(), "places")
}

// twoPlacesToSleep has one who waits at a CQ come to sleep where its queue pairs receive when another, who came later, is
// asleep at the place that has taken the place of that: both are told of what completes.
func twoPlacesToSleep(t *conformance.T) {
	q, _, at := cqWithPlaces(t, "before", "now")
	before, now := at[0], at[1]
	before.claims = make(chan struct{})
	q.Attach(before)
	s := &scene{t: t, wait: func(ctx context.Context) error { return second(q.Wait(ctx, make([]wr.Completion, 1))) }}
	late := s.waits()
	eventually(t, func() bool { return stateOf(late.id) == "chan receive" }, "it is about to sleep")
	q.Detach(before)
	q.Attach(now)
	early := s.sleeps()
	before.claims <- struct{}{}
	eventually(t, q.Waiting, "it sleeps elsewhere")
	require.True(t, q.Push(cq.Entry{}))
	rest := eitherWakes(early, late)
	rest.stillSleeps()
	require.True(t, q.Push(cq.Entry{}))
	rest.wakes()
}

// whatACQIsWaitedFor says when somebody waits for what a CQ gets, or is about to look: so places know whom to serve.
func whatACQIsWaitedFor(t *conformance.T) {
	q, log, at := cqWithPlaces(t, "one", "busy", "another")
	is := func(awaited, waiting bool, when string) {
		require.Equal(t, []bool{awaited, waiting}, []bool{q.Awaited(), q.Waiting()}, "awaited, and about to look, %s", when)
	}
	is(false, false, "of a new one")
	for arm := range inTurn(t, "%v", []wr.NotifyType{wr.NotifyNext, wr.NotifySolicited}) {
		require.NoError(t, q.Request(arm))
		is(true, false, "when a notification is armed")
		require.True(t, q.Push(cq.Entry{Solicited: true}))
		is(false, true, "when it has come")
		require.Len(t, q.Events(), 1)
		<-q.Events()
		require.Equal(t, 1, q.Len())
		require.NoError(t, second(q.PollOne()))
		is(false, false, "when there was a poll")
	}
	for _, p := range at { // of several nobody sleeps at one
		q.Attach(p)
	}
	s := &scene{t: t, wait: func(ctx context.Context) error { return second(q.Wait(ctx, make([]wr.Completion, 1))) }}
	a, b := s.sleeps(), s.sleeps()
	is(true, true, "while two wait")
	require.True(t, q.Push(cq.Entry{}))
	rest := eitherWakes(a, b)
	is(true, true, "while one waits")
	rest.stop()
	rest.gaveUp()
	is(false, false, "when they have gone")
	log.Reset()

	armed, err := q.Arm(wr.NotifyNext) // its program goes on to WaitEvent
	require.NoError(t, err)
	require.True(t, armed)
	require.NoError(t, q.RequestWatched(wr.NotifyNext)) // and its to Watch
	did(t, log, "")
	is(true, false, "of one who watches")
	fds, got := q.Watch(nil)
	require.True(t, got, "something has come at one of them")
	require.NotEmpty(t, fds)
	require.Regexp(t, "^(one watches |another watches )*busy watches $", log.String(), "none behind that")
	q.Detach(at[1])
	fds, got = q.Watch([]int{0})
	require.False(t, got)
	require.ElementsMatch(t, []int{0, len("one"), len("another")}, fds, "where to wait")
	require.NotContains(t, log.String(), "drives")
}
