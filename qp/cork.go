package qp

import (
	"sync/atomic"
	"time"
)

// A program that posts one request after the other, without a pause, has more to
// come: what it posts is held back, so that many messages share a system call. A
// request behind a pause goes out at once, and so do the first few of a series.
// What is held back goes out
//
//   - when enough has come together,
//   - when the program looks: it polls an empty CQ, or waits, or asks to be
//     notified,
//   - when something else has to be sent, or the stream is to end,
//   - when transmitLoop runs, which the first request held back makes runnable: as
//     soon as the poster sleeps, wherever that is, or another processor is free.
//
// No timer of the runtime is part of that: it would round 100 µs up to a millisecond.
// With one processor nothing is held back, or a poster that computes would delay it.

const (
	// corkEach is what a message counts beside its octets.
	corkEach = 512
	// pause ends a series, if nothing is posted or sent for so long. A loop that posts
	// takes less from one request to the next; whatever sleeps or calls the system,
	// more.
	pause = 2 * time.Microsecond
	// nap is how long transmitLoop leaves a program alone that polls: longer than 256
	// KiB of short messages take to come together, and each nap takes the processor from
	// somebody when it ends.
	nap = 250 * time.Microsecond
	// longNap is what naps grow to while pollers send what the LLP did not take.
	longNap = 16 * nap
)

// cork holds posted requests back. Posters, pollers and transmitLoop share it.
type cork struct {
	eager int32
	pause time.Duration // what ends a series; a constant, but for tests
	free  atomic.Int32  // posts of this series that go out at once
	// stream says that something of this series was held back.
	stream  atomic.Bool
	octets  atomic.Int64  // how much is held back, as Tuning.Hold counts
	last    atomic.Int64  // when requests were sent last, as clock says
	company chan struct{} // a token for transmitLoop: something is held back
}

func (c *cork) init(eager int) {
	c.eager = int32(eager)
	c.pause = pause
	c.free.Store(c.eager)
	c.company = make(chan struct{}, 1)
}

// begin starts a new series behind a pause. If something was held back in the one
// before, the program streams, and has paused because its queue is full, say: one
// request goes out at once, so that the peer has something to do.
func (c *cork) begin() {
	switch {
	case clock()-c.last.Load() < int64(c.pause):
	case c.stream.Load():
		c.stream.Store(false)
		c.free.Store(min(c.eager, 1))
	case c.free.Load() != c.eager:
		c.free.Store(c.eager)
	}
}

// holdsBack takes n requests of so many octets into account, and reports whether they
// are to be held back for now.
func (t *transmitter) holdsBack(n int, octets uint64) bool {
	c := &t.cork
	if c.eager < 0 || t.s.rx.single || !t.llp.direct() {
		return false
	}
	if c.octets.Load() == 0 {
		c.begin()
		if c.free.Load() > 0 {
			c.free.Add(-1)
			return false
		}
	}
	weight := int64(n*corkEach) + int64(octets)
	corked := c.octets.Add(weight)
	if corked == weight { // the first
		c.stream.Store(true)
		signal(c.company)
	}
	return corked < int64(t.tuning.Hold)
}

// posted sends what was posted, now or soon.
func (t *transmitter) posted(n int, octets uint64) {
	if t.holdsBack(n, octets) {
		return
	}
	c := &t.cork
	if c.octets.Load() > 0 { // see tryOwn
		c.octets.Store(0)
	}
	t.kick()
	c.last.Store(clock())
}

// uncork sends what is held back.
func (t *transmitter) uncork() {
	c := &t.cork
	if c.octets.Load() > 0 && c.octets.Swap(0) > 0 {
		t.kick()
		c.last.Store(clock())
	}
}

// accompany sends what is held back. While the program polls it only sees to it that
// nothing stays behind when the program stops: pollers look again and again, and a
// second thread that sends would take the processor from them, or from the peer.
//
// What the LLP has not taken is the pollers' as well (handOver), as long as they poll.
func (t *transmitter) accompany() {
	sq, rx, length := t.sq, &t.s.rx, nap
	for rx.polled.Load() && !t.s.stopping.Load() {
		tail, polls, stalled := sq.tail.Load(), rx.polls.Load(), t.stalled.Load()
		napThread(length)
		if sq.framed.Load() < tail {
			t.uncork()
		}
		if sq.tail.Load() != tail {
			length = nap
			continue
		}
		if !stalled && !t.stalled.Load() {
			break
		}
		if rx.polls.Load() == polls { // nobody else sends what is left
			rx.unpolled()
			break
		}
		length = min(2*length, longNap)
	}
	t.uncork()
}

// clock is a time in nanoseconds.
func clock() int64 { return int64(time.Since(epoch)) }

var epoch = time.Now()
