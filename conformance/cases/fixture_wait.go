package cases

import (
	"context"
	"runtime"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// Lost wake-ups: each way to wait goes through each moment at which that which is waited for can happen. A
// way is an entry of a table (waits_*.go), a moment a row of the one below.

// told is to whom a happening is told.
type told uint8

const (
	// toOne: each happening is for one waiter, whenever it comes: a completion, a request.
	toOne told = iota
	// merged: the same, but several that nobody has looked for may be one: a token.
	merged
	// toAll: those who wait are all told; who comes later is told if nobody was: Notify of NetworkDirect.
	toAll
	// lasting: once it has happened it is so, for everybody: the end of a stream.
	lasting
)

// way is a way to wait.
type way struct {
	name string
	told told
	// unstoppable has no context, or one whose end is more than the end of the wait.
	unstoppable bool
	// alone is for one waiter at a time, as its documentation says.
	alone bool
	// final is what giving up ends, for all who wait: the close of a connection, which is reset then.
	final bool
	open  func(*conformance.T) *scene
	keys  []string
}

// scene is something to wait for.
type scene struct {
	t *conformance.T
	// wait returns nil with what has happened, which it takes, or an error.
	wait func(ctx context.Context) error
	// happen has it happen so many times, at once if that can be. A lasting one ignores the number.
	happen func(n int)
	// inLine has a second waiter wait for the first one, at a lock.
	inLine bool
	// end, if set, destroys the object at which the program waits, with which all waits end in endsAs.
	end    func() error
	endsAs error
	// round is how often the moment has come before, at a scene of its own each, and outcome what there is to see
	// when it is over, of a final way.
	round   int
	outcome func(gaveUp bool)
}

// waitCase is a case of a way, through all moments.
func waitCase(section string, w way) conformance.Case {
	return apiCase(section+"/wait-"+w.name, func(t *conformance.T) {
		for m := range inTurn(t, "it happens %s", moments) {
			if !m.fits(&w) {
				continue
			}
			for i := range either(m.final, giveUps, 1) {
				s := w.open(t)
				s.t, s.round = t, i
				m.run(s, w.told)
			}
		}
	}, w.keys...)
}

// moment is when it happens.
type moment struct {
	name string
	run  func(*scene, told)
	// stops has waiters give up, final at what that ends, and several has more than one.
	stops, final, several bool
}

func (m *moment) fits(w *way) bool {
	return !(m.stops && (w.unstoppable || w.final)) && !(m.final && !w.final) && !(m.several && w.alone)
}

var moments = []moment{
	{name: "before the wait", run: (*scene).before},
	{name: "while one sleeps", run: (*scene).during},
	{name: "twice", run: (*scene).twice},
	{name: "for two who sleep", run: (*scene).forTwo, several: true},
	{name: "for two, one after the other", run: (*scene).inTurn, several: true},
	{name: "after one has given up", run: (*scene).afterGivingUp, stops: true},
	{name: "as one gives up", run: (*scene).asOneGivesUp, stops: true},
	{name: "as one of two gives up", run: (*scene).asOneOfTwo, stops: true, several: true},
	{name: "after one has given up for all", run: (*scene).afterTheLast, final: true},
	{name: "as one gives up for all", run: (*scene).asTheLastGivesUp, final: true},
	{name: "as one of two gives up for both", run: (*scene).asOneForBoth, final: true, several: true},
	{name: "no more", run: (*scene).ends},
}

func (s *scene) before(k told) {
	s.happen(1)
	s.gets()
	s.nothingMore(k)
}

func (s *scene) during(k told) {
	for range 3 { // where it slept, and how, may be another each time
		a := s.sleeps()
		s.happen(1)
		a.wakes()
		if s.nothingMore(k); k == lasting {
			return
		}
	}
}

func (s *scene) twice(k told) {
	a := s.sleeps()
	s.happen(2)
	a.wakes()
	if k == toOne || k == lasting {
		s.gets()
		s.nothingMore(k)
		return
	}
	s.happen(1) // and one that comes now is not taken for the other
	s.gets()
}

func (s *scene) forTwo(k told) {
	a, b := s.sleeps(), s.sleeps()
	if k == merged {
		s.happen(1)
		b = eitherWakes(a, b)
		s.happen(1)
		b.wakes()
	} else {
		s.happen(2)
		a.wakes()
		b.wakes()
	}
	if k != toAll { // the second may have come after both
		s.nothingMore(k)
	}
}

// inTurn has one of two waiters go, and the other be served all the same.
func (s *scene) inTurn(k told) {
	a, b := s.sleeps(), s.sleeps()
	s.happen(1)
	if k == toAll || k == lasting {
		a.wakes()
		b.wakes()
		s.nothingMore(k)
		return
	}
	rest := eitherWakes(a, b)
	rest.stillSleeps()
	s.happen(1)
	rest.wakes()
	s.nothingMore(k)
}

func (s *scene) afterGivingUp(k told) {
	a := s.sleeps()
	a.stop()
	require.ErrorIs(s.t, a.ends("it goes on though its context has ended"), context.Canceled)
	s.happen(1)
	s.gets()
	s.nothingMore(k)
	if k == lasting {
		return
	}
	a, b := s.sleeps(), s.sleeps() // of whom nobody is left
	b.stop()                       // the second may sleep elsewhere
	b.gaveUp()
	a.stillSleeps()
	a.stop()
	a.gaveUp()
	s.happen(1)
	s.gets()
	s.nothingMore(k)
}

// asOneGivesUp ends the context beside the happening: one of the two is told, and nothing is lost.
func (s *scene) asOneGivesUp(k told) {
	for i := range either(k == lasting, 1, giveUps) {
		a := s.sleeps()
		s.atOnce(i, a.stop, func() { s.happen(1) })
		if a.gaveUpOrNot() || k == lasting {
			s.gets()
		}
		s.nothingMore(k)
	}
}

// asOneOfTwo is asOneGivesUp beside another who does not.
func (s *scene) asOneOfTwo(k told) {
	for i := range either(k == lasting, 1, giveUps) {
		a, b := s.sleeps(), s.sleeps()
		if i%4 >= 2 {
			a, b = b, a
		}
		s.atOnce(i, a.stop, func() { s.happen(1) })
		if gaveUp := a.gaveUpOrNot(); !gaveUp && (k == toOne || k == merged) {
			s.happen(1)
		}
		b.wakes()
		s.nothingMore(k)
	}
}

// afterTheLast has somebody who comes behind the one that has given up find that it is over.
func (s *scene) afterTheLast(told) {
	a := s.sleeps()
	a.stop()
	a.gaveUp()
	s.over(true)
}

// asTheLastGivesUp is asOneGivesUp where that is the end.
func (s *scene) asTheLastGivesUp(told) {
	a := s.sleeps()
	s.atOnce(s.round, a.stop, func() { s.happen(1) })
	s.over(a.gaveUpOrNot())
}

// asOneForBoth is asTheLastGivesUp beside another who does not: that one does not wait for ever either.
func (s *scene) asOneForBoth(told) {
	a, b := s.sleeps(), s.sleeps()
	if s.round%4 >= 2 {
		a, b = b, a
	}
	s.atOnce(s.round, a.stop, func() { s.happen(1) })
	gaveUp := a.gaveUpOrNot()
	b.gaveUpOrNot()
	s.over(gaveUp)
}

// over says that nobody waits any more, and looks at the outcome.
func (s *scene) over(gaveUp bool) {
	s.waits().gaveUpOrNot()
	s.outcome(gaveUp)
}

// giveUps is how often a waiter gives up just then.
const giveUps = 8

// atOnce does two things as nearly at once as two goroutines can, or one right after the other.
func (s *scene) atOnce(i int, stop, happen func()) {
	if i%2 == 0 {
		stop()
		happen()
		return
	}
	start, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		<-start
		stop()
	}()
	close(start)
	happen()
	<-done
}

// ends destroys the object while two sleep there, or one.
func (s *scene) ends(told) {
	if s.end == nil {
		return
	}
	a, b := s.sleeps(), s.sleeps()
	require.NoError(s.t, s.end(), "the end of the object")
	for _, w := range []*sleeper{a, b, s.waits()} {
		require.ErrorIs(s.t, w.ends("it sleeps at an object that is gone"), s.endsAs)
	}
}

// gets says that a wait has something without more ado.
func (s *scene) gets() { s.waits().wakes() }

// nothingMore says that nothing is left to be told; what is lasting is there each time.
func (s *scene) nothingMore(k told) {
	if k == lasting {
		s.gets()
		return
	}
	over, stop := context.WithCancel(s.t.Context())
	stop()
	require.Error(s.t, s.wait(over), "told once more of what it was told of")
}

// sleeper is a goroutine in a wait.
type sleeper struct {
	t      *conformance.T
	id     string // of the goroutine
	inLine bool
	stop   context.CancelFunc
	end    chan error
}

// waits begins a wait.
func (s *scene) waits() *sleeper {
	ctx, stop := context.WithCancel(s.t.Context())
	w := &sleeper{t: s.t, inLine: s.inLine, stop: stop, end: make(chan error, 1)}
	s.t.Cleanup(stop)
	id := make(chan string, 1)
	go func() {
		id <- thisGoroutine()
		w.end <- s.wait(ctx)
	}()
	w.id = <-id
	return w
}

// sleeps begins a wait, and returns when its goroutine sleeps.
func (s *scene) sleeps() *sleeper {
	w := s.waits()
	eventually(s.t, w.asleep, "a waiter sleeps")
	return w
}

// asleep reports whether the goroutine has come to sleep for an event: not for a lock, which it has soon.
// A wait that has ended fails the case.
func (w *sleeper) asleep() bool {
	select {
	case err := <-w.end:
		w.t.Fatalf("a wait for nothing ends: %v", err)
	default:
	}
	state := stateOf(w.id)
	return state == "select" || state == "chan receive" || state == "IO wait" || w.inLine && state == "sync.Mutex.Lock"
}

// stillSleeps says that a wait has not ended.
func (w *sleeper) stillSleeps() { eventually(w.t, w.asleep, "the other one sleeps on") }

// ends is what the wait returns.
func (w *sleeper) ends(why string) error {
	late := time.NewTimer(patience(w.t))
	defer late.Stop()
	select {
	case err := <-w.end:
		w.stop()
		return err
	case <-late.C:
		w.t.Fatalf("%s", why)
		return nil
	}
}

// wakes says that the waiter gets what has happened.
func (w *sleeper) wakes() {
	require.NoError(w.t, w.ends("it happened, and a waiter sleeps on"), "it happened, and a waiter is told")
}

// gaveUp says that its context ended the wait, and gaveUpOrNot whether it did.
func (w *sleeper) gaveUp() { require.True(w.t, w.gaveUpOrNot(), "a wait for nothing ends") }

func (w *sleeper) gaveUpOrNot() bool {
	err := w.ends("it goes on though its context has ended")
	if err == nil {
		return false
	}
	require.ErrorIs(w.t, err, context.Canceled)
	return true
}

// eitherWakes says that one of two waiters wakes, and is the other.
func eitherWakes(a, b *sleeper) (rest *sleeper) {
	late := time.NewTimer(patience(a.t))
	defer late.Stop()
	select {
	case err := <-a.end:
		require.NoError(a.t, err)
		return b
	case err := <-b.end:
		require.NoError(a.t, err)
		return a
	case <-late.C:
		a.t.Fatalf("it happened, and two waiters sleep on")
		return nil
	}
}

// thisGoroutine is how the runtime names the caller's goroutine.
func thisGoroutine() string {
	var b [64]byte
	name, _, _ := strings.Cut(string(b[:runtime.Stack(b[:], false)]), " [")
	return name
}

// stacks are those of all goroutines.
func stacks() string {
	b := make([]byte, 1<<16)
	n := runtime.Stack(b, true)
	for ; n == len(b); n = runtime.Stack(b, true) {
		b = make([]byte, 2*len(b))
	}
	return string(b[:n])
}

// stateOf is what a goroutine waits for, in the words of the runtime.
func stateOf(id string) string {
	_, state, _ := strings.Cut(stacks(), id+" [")
	return stateIn(state)
}

// stateWithin is stateOf the goroutine that has this frame.
func stateWithin(frame string) string {
	for s := range strings.SplitSeq(stacks(), "\n\n") {
		if strings.Contains(s, frame) {
			_, state, _ := strings.Cut(s, " [")
			return stateIn(state)
		}
	}
	return ""
}

// stateIn is the state that comes first in what is behind a bracket.
func stateIn(s string) string {
	s, _, _ = strings.Cut(s, "]")
	s, _, _ = strings.Cut(s, ",") // for how long
	return s
}
