package srq

import (
	"sync"
	"sync/atomic"
	"time"
)

// The watchdog of a queue. A message takes a receive with its first segment and keeps it
// until its last: a peer that begins one and does not go on keeps a receive from the
// other streams, and many such peers keep all of them. A message that makes no progress
// for long ends its stream.
//
// The watchdog is one timer for the queue. It runs while a receive is filled in part and
// several streams take from the queue; with one stream nobody is kept from anything.
// Looks are counted, not time: a process that was stopped for long has not looked.

// DefaultStallTimeout is how long a message may make no progress.
const DefaultStallTimeout = 10 * time.Second

// stallLooks is how often the watchdog looks in a StallTimeout.
const stallLooks = 4

// Filler is a stream that takes receives from the queue.
type Filler interface {
	// Filling is 0 while no receive of the queue is filled in part, else a number that
	// changes with every octet placed and every message. It does not block.
	Filling() uint64
	// Stalled ends the stream: its message has made no progress for the StallTimeout. It
	// does not block.
	Stalled()
}

// watch is the watchdog. Its zero value watches nothing.
type watch struct {
	every time.Duration // between two looks; 0: never

	// idle says that the timer does not run, and who fills a receive in part has to see to
	// it that it does. Written with mu held.
	idle atomic.Bool

	mu      sync.Mutex
	fillers map[Filler]*filling // guarded by mu, as all below
	timer   *time.Timer
	running bool
}

// filling is what the watchdog knows of a stream.
type filling struct {
	seen  uint64 // by the last look
	still int    // looks in a row that have seen the same
}

func (w *watch) init(timeout time.Duration) {
	if timeout < 0 {
		return
	}
	if timeout == 0 {
		timeout = DefaultStallTimeout
	}
	w.every = max(timeout/stallLooks, 1)
	w.fillers = make(map[Filler]*filling)
}

// Join makes f known to the watchdog, until Leave.
func (q *Queue) Join(f Filler) {
	w := &q.watch
	if w.every == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fillers[f] = &filling{}
	if len(w.fillers) > 1 { // the other may fill one already
		w.start()
	}
}

// Leave undoes Join.
func (q *Queue) Leave(f Filler) {
	w := &q.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.fillers, f)
}

// Fills says that a receive is filled in part: a stream says so, if it goes on being, each
// time it has received. It costs a look at a word.
func (q *Queue) Fills() {
	w := &q.watch
	if w.idle.Load() {
		w.mu.Lock()
		w.start()
		w.mu.Unlock()
	}
}

// start makes the timer run. mu is held.
func (w *watch) start() {
	w.idle.Store(false)
	switch {
	case w.running:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.every, w.look)
	default:
		w.timer.Reset(w.every)
	}
	w.running = true
}

// look looks at all streams once.
func (w *watch) look() {
	for _, f := range w.stalled() {
		f.Stalled()
	}
}

// stalled are those whose message has just been found to stand still. It sees to the next
// look.
func (w *watch) stalled() (list []Filler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
	if len(w.fillers) < 2 {
		return nil
	}
	w.idle.Store(true) // first: who begins behind this look sees it
	part := false
	for f, p := range w.fillers {
		now := f.Filling()
		part = part || now != 0
		if now == 0 || now != p.seen {
			p.seen, p.still = now, 0
		} else if p.still++; p.still == stallLooks {
			list = append(list, f)
		}
	}
	if part {
		w.start()
	}
	return list
}
