package rsocket

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// waiter is the reader, or the writer, of a connection. It is guarded by Conn.mu.
type waiter struct {
	asleep bool          // while the other one waits for completions
	told   chan struct{} // one token
	passed bool          // the deadline has
	timer  *time.Timer
}

// SetDeadline sets both deadlines, as net.Conn has them.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, &c.reader, &c.writer) }

// SetReadDeadline sets that of Read, WriteTo.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.reader) }

// SetWriteDeadline sets that of Write, ReadFrom, WriteAt and Map.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.writer) }

func (c *Conn) setDeadlines(t time.Time, waiters ...*waiter) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return opError("set", c, net.ErrClosed)
	}
	for _, w := range waiters {
		c.setDeadline(w, t)
	}
	return nil
}

func (c *Conn) setDeadline(w *waiter, t time.Time) {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.passed = false
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		w.passed = true
		c.wake(w)
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if w.timer == timer {
			w.passed = true
			c.wake(w)
		}
	})
	w.timer = timer
}

// interrupt is the context of the goroutine that waits for completions: it ends when that goroutine has to look at something else, and CQ.Wake has it look. It has no Done,
// because to tell by that costs a registration each time.
type interrupt struct{ now atomic.Bool }

func (i *interrupt) Deadline() (time.Time, bool) { return time.Time{}, false }
func (i *interrupt) Done() <-chan struct{}       { return nil }
func (i *interrupt) Value(any) any               { return nil }

func (i *interrupt) Err() error {
	if i.now.Load() {
		return context.Canceled
	}
	return nil
}
