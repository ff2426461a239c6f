package interpose

import (
	"io"
	"os"
	"sync"
	"time"
)

// MaxHeld is how many octets are held back in a direction before its writer has to wait: less in small pieces.
const MaxHeld = 4 << 20

// half is one direction of a Conn with faults. Reads take pieces of the queue in when they are due, and read ahead
// meanwhile. Writes put pieces into the queue out, and deliver what is due themselves; what is late a goroutine
// delivers, which is there as long as there is something in the queue.
type half struct {
	c    *Conn
	dir  Direction
	busy sync.Mutex // held by the Read or Write

	mu       sync.Mutex // taken alone, or within Conn.mu
	q        queue
	until    time.Time // nothing moves before that
	deadline time.Time
	changed  chan struct{} // closed and made anew by what a sleeper has to look at
	err      error         // of the connection below, behind the queue
	ended    bool          // half-closed by a fault
	buf      []byte
}

// wake has sleepers look; mu is held.
func (h *half) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// sleep waits for d at most, 0 for ever, or until something changes or over is closed. changed was taken with mu held.
func sleep(d time.Duration, changed, over <-chan struct{}) {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-timer:
	case <-changed:
	case <-over:
	}
}

// expired is whether the deadline has passed; mu is held.
func (h *half) expired(now time.Time) bool { return !h.deadline.IsZero() && !now.Before(h.deadline) }

// bounded is wait, 0 for ever, or less if the deadline is nearer; mu is held.
func (h *half) bounded(wait time.Duration, now time.Time) time.Duration {
	if h.deadline.IsZero() {
		return wait
	}
	left := max(h.deadline.Sub(now), 1)
	if wait == 0 {
		return left
	}
	return min(wait, left)
}

// take puts octets that have come through the faults and into the queue.
func (h *half) take(b []byte) {
	if len(b) == 0 {
		return
	}
	now := time.Now()
	pieces := h.c.faults.Feed(h.dir, b)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range pieces {
		h.q.add(p, now)
	}
}

// flush puts what the faults have kept into the queue; mu is held.
func (h *half) flush() {
	if rest := h.c.faults.Rest(h.dir); len(rest) > 0 {
		h.q.add(Piece{Octets: rest}, time.Now())
	}
}

// due is the first piece, if its time has come. Else wait says when to look again: without a piece, since the direction
// stalls; 0 if there is none. mu is held.
func (h *half) due(now time.Time) (it *item, wait time.Duration) {
	for {
		if wait = h.until.Sub(now); wait > 0 {
			return nil, wait
		}
		if it, wait = h.q.next(now); it == nil || wait > 0 || it.Stall == 0 {
			return it, wait
		}
		h.until, it.Stall = now.Add(it.Stall), 0
	}
}

func (h *half) read(p []byte) (int, error) {
	h.busy.Lock()
	defer h.busy.Unlock()
	h.c.begin()
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if err := h.c.ended("read"); err != nil {
			return 0, err
		}
		if n, err := h.step(p); n > 0 || err != nil {
			return n, err
		}
	}
}

// step delivers what is due, or waits, or reads for more.
func (h *half) step(p []byte) (n int, err error) {
	h.mu.Lock()
	now, changed := time.Now(), h.changed
	it, wait := h.due(now)
	switch {
	case h.expired(now):
		err = os.ErrDeadlineExceeded
	case h.ended:
		err = io.EOF
	case it != nil && wait == 0:
		n = copy(p, it.Octets)
		end := it.End
		h.q.drop(n)
		h.mu.Unlock()
		if end != Open {
			h.c.End(In, end)
		}
		return n, nil
	case h.err != nil && len(h.q.items) == 0 && wait == 0:
		err = h.err
	case it == nil && wait > 0 || h.err != nil || h.q.ended || h.q.size >= MaxHeld: // nothing more is to be read
		wait = h.bounded(wait, now)
		h.mu.Unlock()
		sleep(wait, changed, h.c.over)
		return 0, nil
	default:
		h.more(it)
		return 0, nil
	}
	h.mu.Unlock()
	return 0, err
}

// more reads, until it is due; mu is held, and free afterwards.
func (h *half) more(it *item) {
	until := h.deadline
	if it != nil && (until.IsZero() || it.due.Before(until)) {
		until = it.due
	}
	_ = h.c.lower.SetReadDeadline(until)
	if h.buf == nil {
		h.buf = make([]byte, 64<<10)
	}
	h.mu.Unlock()
	n, err := h.c.lower.Read(h.buf)
	h.take(h.buf[:n])
	if err != nil && !os.IsTimeout(err) {
		h.mu.Lock()
		h.err = err
		h.flush()
		h.mu.Unlock()
	}
}

func (h *half) write(p []byte) (int, error) {
	h.busy.Lock()
	defer h.busy.Unlock()
	h.c.begin()
	if err := h.c.ended("write"); err != nil {
		return 0, err
	}
	h.mu.Lock()
	if !h.c.sending {
		_ = h.c.lower.SetWriteDeadline(h.deadline)
	}
	h.mu.Unlock()
	h.take(p)
	if err := h.send(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// finish is a half-close, behind what is held back.
func (h *half) finish() error {
	h.busy.Lock()
	defer h.busy.Unlock()
	if err := h.c.ended("write"); err != nil {
		return err
	}
	h.mu.Lock()
	ended := h.ended
	h.flush()
	h.q.add(Piece{End: HalfClose}, time.Now())
	h.mu.Unlock()
	if ended {
		return nil
	}
	return h.send()
}

// send delivers what is due. It leaves what is late to a goroutine, unless that is too much.
func (h *half) send() error {
	for {
		if err := h.c.ended("write"); err != nil {
			return err
		}
		h.mu.Lock()
		now, changed := time.Now(), h.changed
		it, wait := h.due(now)
		switch {
		case h.expired(now):
			h.mu.Unlock()
			return os.ErrDeadlineExceeded
		case h.c.sending && h.q.size <= MaxHeld, len(h.q.items) == 0, h.ended:
			if !h.c.sending {
				h.q = queue{ended: h.ended}
			}
			h.mu.Unlock()
			return nil
		case h.c.sending || it == nil: // too much is late; the direction stalls
			if h.c.sending {
				wait = 0
			}
			wait = h.bounded(wait, now)
			h.mu.Unlock()
			sleep(wait, changed, h.c.over)
		case wait > 0:
			h.c.sending = true
			h.mu.Unlock()
			go h.later()
			return nil
		default:
			if err := h.deliver(it); err != nil {
				return err
			}
		}
	}
}

// later delivers what is in the queue, and ends when that is empty.
func (h *half) later() {
	for {
		h.mu.Lock()
		now, changed := time.Now(), h.changed
		it, wait := h.due(now)
		switch {
		case len(h.q.items) == 0 || h.ended || done(h.c.dead):
			h.q = queue{ended: h.ended}
			h.c.sending = false
			h.wake()
			h.mu.Unlock()
			h.c.closeBelow()
			return
		case wait > 0:
			h.mu.Unlock()
			sleep(wait, changed, h.c.dead)
		default:
			if h.deliver(it) != nil {
				h.mu.Lock()
				h.ended = true
				h.mu.Unlock()
			}
		}
	}
}

// deliver writes the first piece, or does what it says; mu is held, and free afterwards.
func (h *half) deliver(it *item) error {
	b, end := it.Octets, it.End
	if len(b) == 0 {
		h.q.drop(0)
		h.mu.Unlock()
		if end != Open {
			h.c.End(Out, end)
		}
		return nil
	}
	h.mu.Unlock()
	n, err := h.c.lower.Write(b)
	h.mu.Lock()
	if len(h.q.items) > 0 {
		h.q.drop(n)
	}
	h.wake()
	h.mu.Unlock()
	return err
}
