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
//   - of a burst, when transmitLoop runs, which the first request held back makes
//     runnable: as soon as the poster sleeps, wherever that is, or another processor is
//     free,
//   - of a program that streams, and stops without a look, a little later. Waking
//     transmitLoop for each batch of a stream takes the processor from the peer: it
//     costs two fifths of the messages a second on two of them.
//
// A program streams if much has come together in a burst, or enough to fill a batch, or if
// it has looked while something was held back: its queue is full, say. Who is seen to have left something
// behind is not believed for a while, so that few of many bursts wait for the timer.
//
// With one processor nothing is held back, or a poster that computes would delay it.

const (
	// corkEach is what a message counts beside its octets.
	corkEach = 512
	// pause ends a series, if nothing is posted or sent for so long. A loop that posts
	// takes less from one request to the next; whatever sleeps or calls the system,
	// more.
	pause = 2 * time.Microsecond
	// idle ends a stream.
	idle = time.Millisecond
	// streamEach is what a batch that tells of a stream comes to, and doubts how many
	// batches are those of bursts after one that was left behind.
	streamEach = 16 * corkEach
	doubts     = 64
	// linger is when transmitLoop looks for what a stream, or pollers, have left. The
	// runtime may round it up to a millisecond.
	linger = 100 * time.Microsecond
)

// cork holds posted requests back. Posters, pollers and transmitLoop share it.
type cork struct {
	eager int32
	// pause and linger are constants, but for tests.
	pause, linger time.Duration
	free          atomic.Int32     // posts that go out at once
	stream        atomic.Bool      // the program streams
	doubt         atomic.Int32     // for how many batches that is not believed
	octets        atomic.Int64     // how much is held back, as Tuning.Hold counts
	last          atomic.Int64     // when requests were sent last, as clock says
	hold          func(burst bool) // the group's: Flush is called when the program looks, or soon
	looks         atomic.Uint64    // at the program's last look for completions, as the group counts
	left          *time.Timer      // a stream may have left something
}

func (c *cork) init(eager int, leftovers func()) {
	c.eager = int32(eager)
	c.pause, c.linger = pause, linger
	c.free.Store(c.eager)
	c.left = time.AfterFunc(time.Hour, leftovers)
	c.left.Stop()
}

// begin starts a new series behind a pause, or behind a look of the program: it had nothing
// to post for then. If the program streams it has paused because its queue is full, say: one
// request goes out at once, so that the peer has something to do.
func (c *cork) begin(looks uint64) {
	if c.looks.Load() != looks {
		c.looks.Store(looks)
		if free := c.free.Load(); free < c.eager && !(free > 0 && c.stream.Load()) {
			c.stream.Store(false)
			c.free.Store(c.eager)
		}
	}
	switch gap := clock() - c.last.Load(); {
	case gap < int64(c.pause):
	case gap < int64(idle) && c.stream.Load():
		c.free.Store(min(c.eager, 1))
	default:
		c.stream.Store(false)
		c.free.Store(c.eager)
	}
}

// streams reports whether the batch that begins is a stream's, or a burst.
func (c *cork) streams() bool {
	if c.doubt.Load() > 0 {
		c.doubt.Add(-1)
		return false
	}
	return c.stream.Load()
}

// holdsBack takes n requests of so many octets into account, and reports whether they
// are to be held back for now.
func (t *transmitter) holdsBack(n int, octets uint64) bool {
	c := &t.cork
	if c.eager < 0 || t.s.rx.single || !t.llp.direct {
		return false
	}
	if c.octets.Load() == 0 {
		c.begin(t.s.sock.Looks())
		if c.free.Load() > 0 {
			c.free.Add(-1)
			return false
		}
	}
	weight := int64(n*corkEach) + int64(octets)
	corked := c.octets.Add(weight)
	if corked == weight { // the first
		stream := c.streams()
		if stream {
			c.left.Reset(c.linger)
		}
		c.hold(!stream)
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
		c.stream.Store(true)
	}
	t.kick()
	c.last.Store(clock())
}

// looked sends what is held back because the program looks for completions. It looks
// because its queue is full, say: what it posts next is a stream too.
func (t *transmitter) looked() {
	c := &t.cork
	if c.octets.Load() > 0 {
		c.stream.Store(true)
		c.free.Store(min(c.eager, 1))
		c.looks.Store(t.s.sock.Looks())
	}
	t.uncork()
}

// uncork sends what is held back, and says how much that was.
func (t *transmitter) uncork() (octets int64) {
	c := &t.cork
	if c.octets.Load() > 0 {
		octets = c.octets.Swap(0)
	}
	if octets > 0 {
		t.kick()
		c.last.Store(clock())
	}
	return octets
}

// burst sends what has come together by now, and tells by that whether the program
// streams.
func (t *transmitter) burst() {
	if t.uncork() >= streamEach {
		t.cork.stream.Store(true)
	}
}

// leftovers sends what a stream has left.
func (t *transmitter) leftovers() {
	if t.uncork() > 0 {
		t.cork.stream.Store(false)
		t.cork.doubt.Store(doubts)
	}
}

// clock is a time in nanoseconds.
func clock() int64 { return int64(time.Since(epoch)) }

var epoch = time.Now()
