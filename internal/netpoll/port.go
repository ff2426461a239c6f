package netpoll

import (
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/lockorder"
)

// Shape is what a Port does to the streams that go through it. The zero value is nothing.
type Shape struct {
	// Down lets nothing through, in either direction. What comes for a TCP connection on Linux is dropped before TCP sees it, so that
	// the peer hears nothing either: its TCP sends it again, and nothing is lost.
	Down bool
	// Rate bounds all streams together, each way, in octets a second; 0: it does not.
	Rate int64
	// Delay is how long what has come waits, at most, before it is received: the first of what comes together waits so long.
	Delay time.Duration
	// Loss is which part of the packets that arrive is lost, 0 to 1: of TCP on Linux, which sends them again.
	Loss float64
}

// Port is what the streams of an adapter go through: it can be down, or slow. The zero value lets everything through, for the price of
// a look at a pointer. Its methods may be called from any goroutine.
type Port struct {
	shape atomic.Pointer[shape] // nil: nothing is done to anything

	mu    lockorder.Mutex[lockorder.Port]
	conns map[*Conn]struct{} // that go through; guarded by mu
}

// shape is a Shape at work.
type shape struct {
	Shape
	begun time.Time
	lanes [2]lane // of what comes, and of what goes
}

// lane is one direction of a wire: until when it is busy, in ns from shape.begun on.
type lane struct{ busy atomic.Int64 }

// shaped is what a Conn knows of its wait in a Port: of one direction each, with that side.
type shaped struct {
	in, out *time.Timer
	due     time.Time // when what has come may be received; zero: nothing waits
	left    int       // of what was due, octets that have not been received
}

// now is what is to be done, or nil.
func (p *Port) now() *shape {
	if p == nil {
		return nil
	}
	return p.shape.Load()
}

// Shape is what Set has said last.
func (p *Port) Shape() Shape {
	if s := p.now(); s != nil {
		return s.Shape
	}
	return Shape{}
}

// Set does that to all streams, from now on. It reports how many there are.
func (p *Port) Set(to Shape) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.Shape()
	if to == (Shape{}) {
		p.shape.Store(nil)
	} else {
		p.shape.Store(&shape{Shape: to, begun: time.Now()})
	}
	for c := range p.conns {
		if to.loss() != was.loss() {
			lose(c, to.loss())
		}
		c.mute(to.Down)
		if to.Down {
			c.sock.stop(In | Out)
		} else {
			c.sock.let(In | Out) // who still has to wait finds out
		}
	}
	return len(p.conns)
}

func (p *Port) add(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		p.conns = map[*Conn]struct{}{}
	}
	p.conns[c] = struct{}{}
	s := p.Shape()
	if s.loss() > 0 {
		lose(c, s.loss())
	}
	c.mute(s.Down)
	if s.Down {
		c.sock.stop(In | Out)
	}
}

// loss is which part of the packets TCP does not see.
func (s Shape) loss() float64 {
	if s.Down {
		return 1
	}
	return s.Loss
}

func (p *Port) remove(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	if p.Shape().Down {
		lose(c, 0) // its close goes through
		c.mute(false)
	}
}

// let lets c go on in a direction, unless the port is down by now, or c has left.
func (p *Port) let(c *Conn, what Ready) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, there := p.conns[c]; there && !p.Shape().Down {
		c.sock.let(what)
	}
}

// pause stops a direction of c for d; the side of c is the caller's.
func (c *Conn) pause(t **time.Timer, what Ready, d time.Duration) {
	c.sock.stop(what)
	if *t == nil {
		*t = time.AfterFunc(d, func() { c.port.let(c, what) })
	} else {
		(*t).Reset(d)
	}
}

// readShaped is a read through a port that does something to it.
func (c *Conn) readShaped(s *shape, read func() (int, error)) (int, error) {
	h := &c.shaped
	if s.Down {
		return 0, ErrAgain
	}
	if wait := s.wait(0); wait > 0 {
		c.pause(&h.in, In, wait)
		return 0, ErrAgain
	}
	if s.Delay > 0 && h.left == 0 {
		if wait := h.late(s.Delay, c.link.pending()); wait > 0 {
			c.pause(&h.in, In, wait)
			return 0, ErrAgain
		}
	}
	n, err := read()
	h.left = max(0, h.left-n)
	s.charge(0, n)
	return n, err
}

// late is how long what has come waits still, of which n octets are there. None wait: an end does not.
func (h *shaped) late(delay time.Duration, n int) time.Duration {
	now := time.Now()
	switch {
	case n == 0:
		h.due = time.Time{}
		return 0
	case h.due.IsZero():
		h.due = now.Add(delay)
	}
	wait := min(h.due.Sub(now), delay) // the delay may be a shorter one by now
	if wait <= 0 {
		h.due, h.left = time.Time{}, n
	}
	return wait
}

// writeShaped is the same of a write.
func (c *Conn) writeShaped(s *shape, pieces [][]byte, limit int) (int, error) {
	if s.Down {
		return 0, ErrAgain
	}
	if wait := s.wait(1); wait > 0 {
		c.pause(&c.shaped.out, Out, wait)
		return 0, ErrAgain
	}
	if s.Rate > 0 {
		limit = min(limit, max(leastBurst, int(s.Rate/burstsPerSecond)))
	}
	n, err := c.link.tryWrite(pieces, limit)
	s.charge(1, n)
	return n, err
}

// What goes out at once at a bounded rate.
const (
	leastBurst      = 1500
	burstsPerSecond = 500
)

// wait is how long the wire is busy in a direction.
func (s *shape) wait(dir int) time.Duration {
	if s.Rate == 0 {
		return 0
	}
	return time.Duration(s.lanes[dir].busy.Load()) - time.Since(s.begun)
}

// charge has the wire be busy with n octets more.
func (s *shape) charge(dir, n int) {
	if s.Rate == 0 || n == 0 {
		return
	}
	busy := &s.lanes[dir].busy
	took := int64(float64(n) / float64(s.Rate) * float64(time.Second))
	for {
		until := busy.Load()
		if busy.CompareAndSwap(until, max(until, int64(time.Since(s.begun)))+took) {
			return
		}
	}
}
