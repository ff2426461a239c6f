package qp

import (
	"sync/atomic"
	"time"
)

// A program that posts one request after the other, and does not look at its CQ
// in between, has more to come: what it posts is held back a little, so that many
// messages share a system call. The first few requests after a look go out at
// once. What is held back goes out
//
//   - when enough has come together,
//   - when the program looks: it polls an empty CQ, or waits, or asks to be
//     notified,
//   - when something else has to be sent, or the stream is to end,
//   - a little later in any case, by transmitLoop (Tuning.HoldTime).

// corkEach is what a message counts beside its octets.
const corkEach = 512

// cork holds posted requests back. Posters, pollers and transmitLoop share it.
type cork struct {
	eager int32
	free  atomic.Int32 // posts that may go out at once
	// stream says that something was held back before the last look.
	stream atomic.Bool
	held   atomic.Int64 // how much is held back, as Tuning.Hold counts
	// timer runs while something is held back; transmitLoop waits for it.
	timer *time.Timer
}

func (c *cork) init(eager int) {
	c.eager = int32(eager)
	c.free.Store(c.eager)
	c.timer = time.NewTimer(time.Hour)
	c.timer.Stop()
}

// looked says that the program has nothing to post for now. If something was held
// back until then, it looks because its queue is full, say, and what it posts next is
// a stream too: one request goes out at once, so that the peer has something to do.
func (c *cork) looked() {
	free := c.free.Load()
	switch {
	case c.held.Load() > 0:
		c.stream.Store(true)
		c.free.Store(min(c.eager, 1))
	case free == c.eager, free > 0 && c.stream.Load():
	default:
		c.stream.Store(false)
		c.free.Store(c.eager)
	}
}

// holds takes n requests of so many octets into account, and reports whether they
// are to be held back for now.
func (s *session) holds(n int, octets uint64) bool {
	c := &s.tx.cork
	if c.eager < 0 || s.rx.single || !s.llp.direct() {
		return false
	}
	if c.free.Load() > 0 {
		c.free.Add(-1)
		return false
	}
	weight := int64(n*corkEach) + int64(octets)
	held := c.held.Add(weight)
	if held == weight { // the first
		c.timer.Reset(s.tuning.HoldTime)
	}
	return held < int64(s.tuning.Hold)
}

// posted sends what was posted, now or soon.
func (s *session) posted(n int, octets uint64) {
	if !s.holds(n, octets) {
		if c := &s.tx.cork; c.held.Load() > 0 { // see takeTransmit
			c.held.Store(0)
		}
		s.kick()
	}
}

// looked says that the program has nothing to post for now, and sends what is held
// back.
func (s *session) looked() {
	s.tx.cork.looked()
	s.uncork()
}

// uncork sends what is held back.
func (s *session) uncork() {
	c := &s.tx.cork
	if c.held.Load() > 0 && c.held.Swap(0) > 0 {
		s.kick()
	}
}
