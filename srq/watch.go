package srq

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/lockorder"
)

// The watchdog of a queue. A message takes a receive with its first segment and keeps it
// until its last: a peer that begins one and does not go on keeps a receive from the
// other streams, and many such peers keep all of them. A message that makes no progress
// for long ends its stream.
//
// While they do, a stream that finds no receive has reason to wait for one: HeldByOthers.
//
// The watchdog is one timer for the queue. It runs while a receive is filled in part and
// several streams take from the queue; with one stream nobody is kept from anything. It
// runs on for a grace period in which a stream that waits may yet get one. Looks are counted, not time: a process that
// was stopped for long has not looked.

// DefaultStallTimeout is how long a message may make no progress.
const DefaultStallTimeout = 10 * time.Second

// stallLooks is how often the watchdog looks in a StallTimeout.
const stallLooks = 4

// graceLooks is how many looks the grace period lasts behind the last receive that was filled in part:
// a StallTimeout at least, in which the program can post again what comes back.
const graceLooks = stallLooks + 1

// leastProgress is how many octets of a message make progress while a stream waits for a
// receive. So a peer that drips keeps one for as many StallTimeouts as it has times that.
const leastProgress = 4 << 10

// Stream is a stream that takes receives from the queue.
type Stream interface {
	// PartialReceive is 0 while no receive of the queue is filled in part, else how many octets
	// are placed and 1, and in the upper half another number for each message. It does not
	// block.
	PartialReceive() uint64
	// Stalled ends the stream: its message has made no progress for the StallTimeout. It
	// does not block.
	Stalled()
}

// watch is the watchdog. Its zero value watches nothing.
type watch struct {
	every time.Duration // between two looks; 0: never
	look  func()

	// idle says that the timer does not run, and who fills a receive in part has to see to
	// it that it does. Written with mu held.
	idle atomic.Bool

	mu      lockorder.Mutex[lockorder.SRQWatch]
	streams map[Stream]*seenStream // guarded by mu, as all below
	timer   *time.Timer
	running bool
	over    bool // the queue is closed: no look comes any more
	grace   int  // looks left in which a stream that finds no receive may wait: see HeldByOthers
}

// seenStream is what the watchdog knows of a stream.
type seenStream struct {
	seen  uint64 // by the last look that has seen progress
	still int    // looks in a row since then
}

func (w *watch) init(timeout time.Duration, look func()) {
	if timeout < 0 {
		return
	}
	timeout = cmp.Or(timeout, DefaultStallTimeout)
	w.every, w.look = max(timeout/stallLooks, 1), look
	w.streams = make(map[Stream]*seenStream)
}

// Join makes f known to the watchdog, until Leave.
func (q *Queue) Join(f Stream) {
	w := &q.watch
	if w.every == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams[f] = &seenStream{}
	if len(w.streams) > 1 { // the other may fill one already
		w.start()
	}
}

// Leave undoes Join.
func (q *Queue) Leave(f Stream) {
	w := &q.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams[f] == nil {
		return
	}
	if delete(w.streams, f); f.PartialReceive() != 0 { // what it holds is the program's again soon
		w.grace = graceLooks
		w.start()
	}
}

// HeldByOthers reports whether f, which has found no receive, may wait for one: messages of
// other streams hold some in part, or did until a StallTimeout ago, so the program may post
// again. A stream that waits is woken when that grace period is over. Without a StallTimeout
// nobody sees to it that receives come back, and it is false.
func (q *Queue) HeldByOthers(f Stream) bool {
	w := &q.watch
	if w.every == 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.grace == 0 {
		for other := range w.streams {
			if other != f && other.PartialReceive() != 0 {
				w.grace = graceLooks
				w.start()
				break
			}
		}
	}
	return w.grace > 0
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
	case w.over:
		return
	case w.running:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.every, w.look)
	default:
		w.timer.Reset(w.every)
	}
	w.running = true
}

// end has no look come any more.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over, w.running = true, false
	if w.timer != nil {
		w.timer.Stop()
	}
}

// look looks at all streams once.
func (q *Queue) look() {
	stalled, graceOver := q.watch.stalled(q.waiting())
	for _, f := range stalled {
		f.Stalled()
	}
	if graceOver {
		q.mu.Lock()
		q.starved.wakeAll()
		q.mu.Unlock()
	}
}

// waiting reports whether a stream waits for a receive.
func (q *Queue) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.starved.first != nil
}

// stalled are those whose message has just been found to stand still. It sees to the next
// look. graceOver says that a stream need not wait for a receive any more. waiting says that one does.
func (w *watch) stalled(waiting bool) (list []Stream, graceOver bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
	part := false
	if len(w.streams) > 1 {
		w.idle.Store(true) // first: who begins behind this look sees it
		for f, p := range w.streams {
			now := f.PartialReceive()
			part = part || now != 0
			if now == 0 || p.progress(now, waiting) {
				p.seen, p.still = now, 0
			} else if p.still++; p.still == stallLooks {
				list = append(list, f)
			}
		}
	}
	switch {
	case w.grace == 0:
	case part:
		w.grace = graceLooks
	default:
		w.grace--
		graceOver = w.grace == 0
	}
	if part || w.grace > 0 {
		w.start()
	}
	return list, graceOver
}

// progress reports whether a stream that is at now has moved since it was last seen to. waiting says that another
// waits for a receive.
func (p *seenStream) progress(now uint64, waiting bool) bool {
	const message = 32
	if waiting && now>>message == p.seen>>message {
		return now-p.seen >= leastProgress
	}
	return now != p.seen
}
