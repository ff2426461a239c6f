package endpoint

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/internal/netpoll"
)

// The connection is served by a group of package netpoll. Both sides of the endpoint
// belong to the goroutine that drives it, as long as it drives:
//
//	the reader  the poller of the group, for one read
//	the writer  one with something to send, a post or the reader say, for writeBudget; what
//	            the connection does not take is the group's affair
//
// Nobody waits with a side. At the end finish takes both, for good.

// member is the endpoint as the group sees it.
type member Endpoint

// Drive implements netpoll.Member.
func (s *member) Drive(ready netpoll.Ready) (got bool) {
	e := (*Endpoint)(s)
	if !e.begun.Load() {
		return false
	}
	if ready&netpoll.Lost != 0 {
		return e.lost()
	}
	if ready&netpoll.Out != 0 {
		got = e.unstall()
	}
	if ready&netpoll.In != 0 {
		got = e.driveIn() || got
	}
	e.TryTransmit()
	if e.untold.Load() {
		e.untold.Store(false)
		e.deliver()
	}
	return got
}

// lost ends an endpoint that the group cannot serve any more.
func (e *Endpoint) lost() bool {
	if !e.ownReader() {
		return false
	}
	defer e.rx.own.Unlock()
	e.lose(syscall.ENOMEM)
	e.deliver()
	return true
}

// ownReader takes the reader's side, unless the endpoint has ended: finish may have it.
func (e *Endpoint) ownReader() bool {
	for !e.rx.own.TryLock() {
		if e.over.Load() {
			return false
		}
		runtime.Gosched()
	}
	if e.over.Load() {
		e.rx.own.Unlock()
		return false
	}
	return true
}

// driveIn receives once, and takes what has come.
func (e *Endpoint) driveIn() (got bool) {
	if !e.ownReader() {
		return false
	}
	defer e.rx.own.Unlock()
	r := &e.rx
	on := true
	if r.waits {
		if !e.waited() { // it was for something else
			return false
		}
		e.sock.Resume()
		got, on = true, e.takeAll()
	}
	if on {
		var some bool
		some, on = e.fetch()
		got = got || some
		if some && on {
			e.takeAll()
		}
	}
	if r.waits {
		e.sock.Pause()
	} else if len(r.early) > 0 {
		e.sock.Soon()
	}
	return got
}

// TryTransmit sends what there is to send, unless another goroutine does, and tells the Handler what
// there is to tell.
func (e *Endpoint) TryTransmit() {
	t := &e.tx
	if !e.begun.Load() || !t.more.Load() || t.stalled.Load() {
		return
	}
	for rounds := 1; e.ownWriter(); rounds++ {
		left := e.pump() || rounds == maxRounds // for others, who keep posting
		if left {
			t.stalled.Store(true)
		}
		t.own.Unlock()
		if left { // before the Handler, which may take its time
			e.sock.WantOutput(true)
		}
		e.deliver()
		if left || !t.more.Load() || e.over.Load() {
			return
		}
	}
}

// maxRounds is how often one goroutine looks again for what others have posted meanwhile.
const maxRounds = 8

// ownWriter takes the writer's side if it is free. Else the writer looks again: the caller
// has set more.
func (e *Endpoint) ownWriter() bool {
	if e.over.Load() || !e.tx.own.TryLock() {
		return false
	}
	e.tx.more.Store(false)
	return true
}

// unstall sends on what the socket did not take at once, and sees to it that the group asks
// for room as long as some is wanted.
func (e *Endpoint) unstall() (got bool) {
	t := &e.tx
	if !e.sock.WantsOutput() {
		return false
	}
	if t.stalled.CompareAndSwap(true, false) {
		t.more.Store(true)
		e.TryTransmit()
		got = !t.stalled.Load()
	}
	if !t.stalled.Load() {
		e.sock.WantOutput(false)
		if t.stalled.Load() { // by another just now
			e.sock.WantOutput(true)
		}
	}
	return got
}

// writeBudget is about how many octets one goroutine sends for others before it leaves the
// rest to the group.
const writeBudget = 2 * batchOctets

// pump sends until there is nothing to send, and reports whether something is left for when
// the socket takes more. The caller has the writer's side.
func (e *Endpoint) pump() (left bool) {
	t := &e.tx
	for budget := writeBudget; !t.dead; {
		if t.b == nil && !e.refill() {
			return false
		}
		before := t.b.sent
		err := e.write(t.b)
		budget -= t.b.sent - before
		switch {
		case err != nil && err != netpoll.ErrAgain: //nolint:errorlint // it is made there and not wrapped
			e.breakOff()
			return false
		case e.over.Load(): // the rest is the end's
			return false
		case err != nil:
			return true
		case !t.b.left():
			t.b.free()
			t.b = nil
		}
		if budget <= 0 {
			return true
		}
	}
	return false
}

// refill makes a batch of what there is to send, if there is something.
func (e *Endpoint) refill() bool {
	e.mu.Lock()
	busy := !e.ended && e.busy()
	e.mu.Unlock()
	if !busy {
		return false
	}
	t := &e.tx
	t.b = newBatch()
	if e.fill(t.b); len(t.b.octets) == 0 {
		t.b.free()
		t.b = nil
		return false
	}
	return true
}

// breakOff is for a connection that cannot be written to. The reader has some time to find
// out why: the peer may have said so.
func (e *Endpoint) breakOff() {
	t := &e.tx
	t.dead, t.torn = true, t.b.boundary() != t.b.sent
	t.impatient = time.AfterFunc(e.patience(), func() {
		if e.ownReader() {
			e.lose(os.ErrDeadlineExceeded)
			e.rx.own.Unlock()
			e.deliver()
		}
	})
}
