package fault

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxHeld is how many octets are held back before who writes has to wait.
const maxHeld = 4 << 20

// farewell bounds how long Close lets octets go out that are held back.
const farewell = 5 * time.Second

// conn is a net.Conn with faults. What ends it is in end, and seen by both directions.
//
// Reads take pieces of the queue in when they are due, and read ahead meanwhile. Writes put pieces into the queue out, and deliver what is due
// themselves; what is late a goroutine delivers, which is there as long as there is something in the queue.
type conn struct {
	nc  net.Conn
	st  *stream
	in  half
	out half

	begun  sync.Once
	timers []*time.Timer

	mu     sync.Mutex
	end    What // Reset or Cut: of both directions; guarded by mu, as below
	closed bool
	abrupt bool // SetLinger(0): what is held back goes with the connection

	over chan struct{} // closed by either
	dead chan struct{} // closed when nothing is to be delivered any more

	sending bool // a goroutine delivers what is late; guarded by out.mu
}

// half is one direction.
type half struct {
	c    *conn
	flow *flow
	busy sync.Mutex // who reads or writes

	mu       sync.Mutex // of conn's; taken alone, or within conn.mu
	q        queue
	until    time.Time // nothing moves before that
	deadline time.Time
	changed  chan struct{} // closed and made anew by what a sleeper has to look at
	err      error         // of nc, behind the queue
	ended    bool          // half-closed by a fault
	buf      []byte
}

// halves is a conn that has a half-close.
type halves struct{ *conn }

func newConn(nc net.Conn, st *stream) *conn {
	c := &conn{nc: nc, st: st, over: make(chan struct{}), dead: make(chan struct{})}
	c.in = half{c: c, flow: st.flows[0], changed: make(chan struct{})}
	c.out = half{c: c, flow: st.flows[1], changed: make(chan struct{})}
	return c
}

// offered is c with the methods that the connection below has.
func (c *conn) offered() net.Conn {
	if _, ok := c.nc.(interface{ CloseWrite() error }); ok {
		return halves{c}
	}
	return c
}

// begin starts the clocks of rules by time.
func (c *conn) begin() {
	c.begun.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closed || c.end != 0 {
			return
		}
		for _, k := range c.st.times {
			c.timers = append(c.timers, time.AfterFunc(k.At, func() { c.strike(k) }))
		}
	})
}

// strike carries out a rule by time.
func (c *conn) strike(k *counter) {
	select {
	case <-c.over:
		return
	default:
	}
	c.st.report(k, k.Dir, 0)
	for _, h := range []*half{&c.in, &c.out} {
		if k.Dir != Both && k.Dir != h.flow.dir {
			continue
		}
		if k.What == Stall {
			h.lock()
			h.until = time.Now().Add(k.For)
			h.wake()
			h.mu.Unlock()
			_ = c.nc.SetReadDeadline(past) // a read that sleeps looks again
			continue
		}
		h.finish(k.What)
	}
}

var past = time.Unix(1, 0)

func (h *half) lock() { h.mu.Lock() }

// wake has sleepers look; mu is held.
func (h *half) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// finish carries out an end in this direction.
func (h *half) finish(end What) {
	c := h.c
	if end != HalfClose {
		c.stop(end)
		return
	}
	h.lock()
	h.ended = true
	h.wake()
	h.mu.Unlock()
	if h == &c.in {
		_ = c.nc.SetReadDeadline(past)
	} else if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	} else {
		c.stop(Cut)
	}
}

// stop ends both directions, and the connection below.
func (c *conn) stop(end What) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.end != 0 {
		return
	}
	c.end = end
	close(c.over)
	close(c.dead)
	c.halt()
	if end == Reset {
		c.reset()
		return
	}
	_ = c.nc.Close()
}

// halt stops the clocks; mu is held.
func (c *conn) halt() {
	for _, t := range c.timers {
		t.Stop()
	}
}

// reset drops the connection below, as who ends a stream abruptly does.
func (c *conn) reset() {
	for _, nc := range []net.Conn{c.nc, c.NetConn()} {
		if l, ok := nc.(interface{ SetLinger(int) error }); ok {
			_ = l.SetLinger(0)
		}
	}
	_ = c.NetConn().Close() // TLS would write, and may wait
	_ = c.nc.Close()
}

// fate is the error of who reads or writes once the connection is over, or nil.
func (c *conn) fate(read bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	op := "write"
	if read {
		op = "read"
	}
	switch {
	case c.closed:
		return net.ErrClosed
	case c.end == Reset:
		return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: syscall.ECONNRESET}
	case c.end == Cut && read:
		return io.EOF
	case c.end == Cut:
		return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: syscall.EPIPE}
	}
	return nil
}

// takes puts octets into the direction as if they had come.
func (h *half) takes(b []byte) {
	if len(b) == 0 {
		return
	}
	now := time.Now()
	pieces := h.flow.feed(b)
	h.lock()
	defer h.mu.Unlock()
	for _, p := range pieces {
		h.q.add(p, now)
	}
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

// late is whether the deadline has passed; mu is held.
func (h *half) late(now time.Time) bool { return !h.deadline.IsZero() && !now.Before(h.deadline) }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	h := &c.in
	h.busy.Lock()
	defer h.busy.Unlock()
	c.begin()
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if err := c.fate(true); err != nil {
			return 0, err
		}
		n, err, again := h.step(p)
		if !again {
			return n, err
		}
	}
}

// step delivers what is due, or waits or reads for more, of which it reports again.
func (h *half) step(p []byte) (n int, err error, again bool) {
	c := h.c
	h.lock()
	now, changed := time.Now(), h.changed
	if h.late(now) {
		h.mu.Unlock()
		return 0, os.ErrDeadlineExceeded, false
	}
	if h.ended {
		h.mu.Unlock()
		return 0, io.EOF, false
	}
	if wait := h.until.Sub(now); wait > 0 {
		wait = h.bounded(wait, now)
		h.mu.Unlock()
		sleep(wait, changed, c.over)
		return 0, nil, true
	}
	it, wait := h.q.next(now)
	switch {
	case it != nil && it.stall > 0 && wait == 0:
		h.until, it.stall = now.Add(it.stall), 0
		h.mu.Unlock()
		return 0, nil, true
	case it != nil && wait == 0 && it.end != 0 && len(it.b) == 0:
		end := it.end
		h.q.items = nil
		h.mu.Unlock()
		h.finish(end)
		return 0, nil, true
	case it != nil && wait == 0:
		n = copy(p, it.b)
		h.q.drop(n)
		h.mu.Unlock()
		return n, nil, n == 0
	case h.err != nil && it == nil:
		err = h.err
		h.mu.Unlock()
		return 0, err, false
	case h.err != nil || h.q.ended || h.q.size >= maxHeld: // nothing more is to be read
		wait = h.bounded(wait, now)
		h.mu.Unlock()
		sleep(wait, changed, c.over)
		return 0, nil, true
	}
	until := h.deadline
	if it != nil && (until.IsZero() || it.due.Before(until)) {
		until = it.due
	}
	_ = c.nc.SetReadDeadline(until)
	if h.buf == nil {
		h.buf = make([]byte, 64<<10)
	}
	h.mu.Unlock()
	n, err = c.nc.Read(h.buf)
	h.takes(h.buf[:n])
	if err == nil || os.IsTimeout(err) {
		return 0, nil, true
	}
	h.lock()
	h.err = err
	if rest := h.flow.rest(); len(rest) > 0 {
		h.q.add(piece{b: rest}, time.Now())
	}
	h.mu.Unlock()
	return 0, nil, true
}

// bounded is wait, or less if the deadline is nearer; mu is held.
func (h *half) bounded(wait time.Duration, now time.Time) time.Duration {
	if !h.deadline.IsZero() {
		wait = min(wait, max(h.deadline.Sub(now), 1))
	}
	return wait
}

// Write implements net.Conn. What it holds back counts as written.
func (c *conn) Write(p []byte) (int, error) {
	h := &c.out
	h.busy.Lock()
	defer h.busy.Unlock()
	c.begin()
	if err := c.fate(false); err != nil {
		return 0, err
	}
	h.lock()
	if !c.sending {
		_ = c.nc.SetWriteDeadline(h.deadline)
	}
	h.mu.Unlock()
	h.takes(p)
	if err := h.send(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// send delivers what is due. It leaves what is late to a goroutine, unless that is too much.
func (h *half) send() error {
	for {
		if err := h.c.fate(false); err != nil {
			return err
		}
		h.lock()
		if h.late(time.Now()) {
			h.mu.Unlock()
			return os.ErrDeadlineExceeded
		}
		if h.c.sending {
			full, changed := h.q.size > maxHeld, h.changed
			wait := time.Duration(0)
			if !h.deadline.IsZero() {
				wait = max(time.Until(h.deadline), 1)
			}
			h.mu.Unlock()
			if !full {
				return nil
			}
			sleep(wait, changed, h.c.over)
			continue
		}
		it, wait := h.q.next(time.Now())
		if it == nil || h.ended {
			h.q = queue{ended: h.ended}
			h.mu.Unlock()
			return nil
		}
		if wait > 0 {
			h.c.sending = true
			h.mu.Unlock()
			go h.later()
			return nil
		}
		if err := h.deliver(it, h.c.over); err != nil {
			return err
		}
	}
}

// later delivers what is in the queue, and ends when that is empty.
func (h *half) later() {
	c := h.c
	for {
		h.lock()
		changed := h.changed
		it, wait := h.q.next(time.Now())
		if it == nil || h.ended || c.isDead() {
			h.q = queue{ended: h.ended}
			c.sending = false
			h.wake()
			h.mu.Unlock()
			c.bury()
			return
		}
		if wait > 0 {
			h.mu.Unlock()
			sleep(wait, changed, c.dead)
			continue
		}
		if err := h.deliver(it, c.dead); err != nil {
			h.lock()
			h.ended = true
			h.mu.Unlock()
		}
	}
}

// deliver writes the first piece, or does what it says; mu is held, and free afterwards.
func (h *half) deliver(it *item, over <-chan struct{}) error {
	if it.stall > 0 {
		h.until, it.stall = time.Now().Add(it.stall), 0
	}
	if wait := time.Until(h.until); wait > 0 {
		changed := h.changed
		wait = h.bounded(wait, time.Now())
		h.mu.Unlock()
		sleep(wait, changed, over)
		return nil
	}
	if len(it.b) == 0 {
		end := it.end
		h.q.drop(0)
		h.mu.Unlock()
		if end != 0 {
			h.finish(end)
		}
		return nil
	}
	b := it.b
	h.mu.Unlock()
	n, err := h.c.nc.Write(b)
	h.lock()
	if len(h.q.items) > 0 {
		h.q.drop(n)
	}
	h.wake()
	h.mu.Unlock()
	return err
}

func (c *conn) isDead() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// bury closes the connection below, if the program has closed it and somebody was still delivering.
func (c *conn) bury() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = c.nc.Close()
	}
}

// CloseWrite ends the direction out, behind what is held back.
func (c halves) CloseWrite() error {
	h := &c.out
	h.busy.Lock()
	defer h.busy.Unlock()
	if err := c.fate(false); err != nil {
		return err
	}
	h.lock()
	ended := h.ended
	if rest := h.flow.rest(); len(rest) > 0 {
		h.q.add(piece{b: rest}, time.Now())
	}
	h.q.add(piece{end: HalfClose}, time.Now())
	h.mu.Unlock()
	if ended {
		return nil
	}
	return h.send()
}

// Close implements net.Conn. What is held back goes out yet, by a goroutine, unless SetLinger(0) came before.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.halt()
	if c.end != 0 {
		return nil
	}
	close(c.over)
	c.out.lock()
	defer c.out.mu.Unlock()
	if c.sending && !c.abrupt {
		_ = c.nc.SetReadDeadline(past)
		_ = c.nc.SetWriteDeadline(time.Now().Add(max(time.Until(c.out.q.due), 0) + farewell))
		return nil
	}
	close(c.dead)
	return c.nc.Close()
}

// NetConn is the connection at the bottom.
func (c *conn) NetConn() net.Conn {
	if over, ok := c.nc.(interface{ NetConn() net.Conn }); ok {
		return over.NetConn()
	}
	return c.nc
}

// SetLinger is that of the connection below, if it has one. With 0 Close drops what is held back.
func (c *conn) SetLinger(sec int) error {
	c.mu.Lock()
	c.abrupt = sec == 0
	c.mu.Unlock()
	if l, ok := c.nc.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(sec)
	}
	return nil
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	h := &c.in
	h.lock()
	defer h.mu.Unlock()
	h.deadline = t
	h.wake()
	if len(h.q.items) > 0 {
		if due := h.q.items[0].due; !due.IsZero() && (t.IsZero() || due.Before(t)) {
			t = due
		}
	}
	return c.nc.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn. What is late is not bound by it.
func (c *conn) SetWriteDeadline(t time.Time) error {
	h := &c.out
	h.lock()
	defer h.mu.Unlock()
	h.deadline = t
	h.wake()
	if c.sending {
		return nil
	}
	return c.nc.SetWriteDeadline(t)
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }
