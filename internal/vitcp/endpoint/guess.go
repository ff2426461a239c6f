package endpoint

import "time"

// At Unreliable a wrong memory handle ends nothing (VI Architecture 2.5.1), so a peer could
// try one after the other. Handles have 24 random bits (package stag). What a connection
// does about the rest:
//
//	freeGuesses-1 wrong handles cost nothing: a program makes mistakes
//	from then on each is followed by a pause, before anything else of the peer is
//	taken: leastPause, and twice the one before, up to mostPause
//	EventGuessing tells when that begins, and each time the number has doubled
//
// A handle that was the wrong one just now is not another guess: a peer that has yet to
// learn that its memory is gone writes there many times. The pause is one of the
// connection's own reader; nobody else waits, and the end ends it.
const (
	freeGuesses = 16
	leastPause  = time.Millisecond
	mostPause   = time.Second
)

// guesses are the wrong handles that a peer has named. The reader's.
type guesses struct {
	last  uint32 // the last one
	count uint64
}

// add counts a wrong handle. It returns the pause that it costs, and whether to tell.
func (g *guesses) add(handle uint32) (pause time.Duration, tell bool) {
	if g.count > 0 && handle == g.last {
		return 0, false
	}
	g.last = handle
	g.count++
	if g.count < freeGuesses {
		return 0, false
	}
	doubled := min(g.count-freeGuesses, 10)
	return min(leastPause<<doubled, mostPause), g.count&(g.count-1) == 0
}

// guessed is for an RDMA Write whose memory is not there for it. It reports false at the
// end. The reader may have to wait before it takes anything else.
func (e *Endpoint) guessed(handle uint32) bool {
	pause, tell := e.rx.guesses.add(handle)
	if pause == 0 {
		return true
	}
	e.mu.Lock()
	if tell {
		e.raise(EventGuessing)
	}
	e.held = waitPause
	e.rx.waits = true
	e.mu.Unlock()
	e.deliver()
	time.AfterFunc(pause, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.goOn(waitPause)
	})
	return true
}
