//go:build linux && (amd64 || arm64)

package uverbs

import (
	"slices"
	"time"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// An InfiniBand adapter hears nothing of the end of the peer's queue pair: its program learns of it at its next Send, which
// nobody acknowledges. Programs written for that end with receives posted, and take a flushed one for an error. So
// of a queue pair brought up by hand, and of all with the RoCE presentation, a peer's close in good order, which loses
// nothing, is kept from the program: receives that it flushes wait until a Send has completed with RETRY_EXC_ERR, or the
// program changes the queue pair to ERR. RESET and DESTROY drop them. What of the other ends is told late has unanswered.go; the
// rest is told at once, because what has completed as sent may be lost.
//
// Nor does a completion that the program does not find raise an event: gloo takes each for one of a queue that is there still.
type ending struct {
	told     bool      // the program knows of the end, or has brought it about
	closed   bool      // the peer has closed in good order
	blamed   bool      // a Send has completed with RETRY_EXC_ERR
	parting  bool      // DESTROY has come
	dropping bool      // RESET has come, or DESTROY of a discreet one: receives that flush are nobody's
	last     bool      // QP_LAST_WQE_REACHED was told
	unready  bool      // the peer had no receive as often as the program allows
	stalled  bool      // the port, or the peer's, was down for longer than the program allows
	held     []uabi.WC // receives that flushed
	over     bool      // a stream by hand is, and all that was posted to it has completed
	flushed  []uabi.WC // Sends that nobody acknowledges
	behind   []uabi.WC // of Sends that came after the stream, and complete behind what was posted to it

	unanswered unanswering
}

// blame returns the status of the Send that tells of the end; q.mu is held.
func (q *QP) blame(status uint32) uint32 {
	q.ending.blamed = true
	q.hush()
	return status
}

// With the iWARP presentation a connection of rdma_cm says DISCONNECTED first, and flushes announceTime later: librdmacm's sockets
// have a thread for the one, and another that would go to sleep for good if it had seen the other before.
const announceTime = 100 * time.Millisecond

// endingTime is how long DESTROY waits for what was posted to be sent, and for the peer's close.
const endingTime = 500 * time.Millisecond

// discreet reports whether the queue pair keeps a close of the peer's to itself; q.mu is held.
func (q *QP) discreet() bool {
	_, hand := q.taken.(*link)
	return hand || q.file.dev.config.RoCE
}

// announced reports whether an event of rdma_cm tells of the end first; q.mu is held.
func (q *QP) announced() bool {
	_, hand := q.taken.(*link)
	return q.taken != nil && !hand
}

// withhold reports whether a completion is not for the program yet, which w is of. It makes
// what InfiniBand has of the first Send that a lost peer did not acknowledge.
func (q *QP) withhold(d *verbs.Completion, w *uabi.WC) bool {
	if d.Status != verbs.StatusFlushed {
		return false
	}
	s := q.qp.State()
	q.mu.Lock()
	defer q.mu.Unlock()
	e := &q.ending
	switch {
	case e.dropping && d.Op == verbs.OpRecv:
		return true
	case e.unready && !e.blamed && takesReceive(d.Op):
		w.Status = q.blame(uabi.WCRNRRetryExcErr)
		return false
	case e.stalled && !e.blamed && d.Op != verbs.OpRecv:
		w.Status = q.blame(uabi.WCRetryExcErr)
		return false
	case e.told || q.taken == nil:
		return false
	case d.Op != verbs.OpRecv && q.unanswered():
		if e.closed { // it was posted behind the close, and so behind those that came during it
			e.behind = append(e.behind, *w)
		} else {
			e.flushed = append(e.flushed, *w)
		}
		return true
	case d.Op != verbs.OpRecv:
		if !e.blamed && !e.unready && q.uc == nil && q.discreet() {
			w.Status = q.blame(uabi.WCRetryExcErr)
		}
		return false
	case e.closed || s == verbs.StateClosing || s == verbs.StateIdle || q.announced() || q.unanswered():
		e.held = append(e.held, *w)
		return true
	}
	return false
}

// Over is told of the end of the stream by what has brought it up. After a good close the queue pair is Idle, and goes to Error, so that
// receives flush: see ending.
func (q *QP) Over(c Connection) {
	q.mu.Lock()
	if q.taken != c { // RESET has come, and maybe another
		q.mu.Unlock()
		return
	}
	good := q.qp.State() == verbs.StateIdle
	q.ending.closed = good
	q.hush()
	lasting, announced, told := good && q.discreet() || q.unanswered(), q.announced(), q.ending.told
	q.mu.Unlock()
	if good {
		_ = q.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})
	}
	q.settled(c)
	switch {
	case lasting && told:
		q.inError()
	case lasting:
	case announced:
		time.AfterFunc(announceTime, func() { q.errands.run(func() { q.released(c) }) })
	default:
		q.released(c)
	}
}

// released is releaseHeld of what is of c.
func (q *QP) released(c Connection) { q.stillWith(c, q.releaseHeld) }

// stillWith has f tell of the end of c, which RESET waits for, or does nothing if RESET has come.
func (q *QP) stillWith(c Connection, f func()) {
	q.telling.Lock()
	defer q.telling.Unlock()
	q.mu.Lock()
	same := q.taken == c
	q.mu.Unlock()
	if same {
		f()
	}
}

// releaseHeld gives the program the receives that withhold kept, and would have: it brings the end about, or is about to hear of it.
func (q *QP) releaseHeld() {
	q.sendCQ.sift() // so that they stay in order
	q.recvCQ.sift()
	q.mu.Lock()
	e := &q.ending
	held, sends := e.held, e.flushed
	e.told, e.held, e.flushed = true, nil, nil
	if e.over {
		sends = append(sends, e.takeWaiting()...)
	}
	q.hush()
	q.mu.Unlock()
	q.recvCQ.add(held...)
	q.sendCQ.add(sends...)
	if q.qp.State() == verbs.StateError {
		q.inError()
	}
}

// part closes the stream in good order, which DESTROY of an InfiniBand adapter has no need of: what was posted arrives, and
// no reset overtakes it. It waits for that, but not for long.
func (q *QP) part() {
	q.mu.Lock()
	c, first := q.taken, !q.ending.parting
	q.ending.parting, q.ending.told, q.ending.held = true, true, nil
	_ = q.ending.takeWaiting()
	q.ending.dropping = q.discreet()
	q.hush()
	q.mu.Unlock()
	if !first {
		return
	}
	if q.ud != nil {
		q.ud.drain(endingTime)
		return
	}
	limit := time.NewTimer(endingTime)
	defer limit.Stop()
	if l, hand := c.(*link); hand && q.outstanding() { // what was posted may still wait for the connection
		select {
		case <-l.up:
		case <-limit.C:
		}
	}
	if s := q.qp.State(); c == nil || s != verbs.StateRTS && s != verbs.StateClosing {
		return
	}
	done := q.qp.Done()
	c.Disconnect()
	select {
	case <-done:
	case <-limit.C:
	}
}

// forget drops what has completed of the queue pair, and what is posted to it: it is Idle.
func (q *QP) forget() error {
	err := q.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})
	if err == nil {
		err = q.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle})
	}
	for _, c := range []*cq{q.sendCQ, q.recvCQ} {
		c.drop(q.qpn)
	}
	return err
}

// gather takes what has completed out of the core's queue, so that more can follow it; v.polls is held.
func (v *cq) gather() {
	c := calls.Get().(*call)
	defer calls.Put(c)
	if n := v.ring.len(); n > 0 {
		wcs := make([]uabi.WC, n)
		v.made = append(wcs[:v.ring.take(wcs)], v.made...)
	}
	for n := pollBatch; n == pollBatch; {
		var k int
		n, k = v.taken(c, v.cq.Poll(c.done[:]))
		v.made = append(v.made, c.wcs[:k]...)
	}
}

// add has completions follow those that are there, and tells of what there is if the program has asked for that. It returns how many
// there was room for.
func (v *cq) add(wcs ...uabi.WC) int {
	v.polls.Lock()
	v.gather()
	n := min(len(wcs), max(0, verbsinternal.Entries(v.cq)-len(v.made)))
	v.made = append(v.made, wcs[:n]...)
	some := len(v.made) > 0
	v.polls.Unlock()
	if some {
		verbsinternal.Fire(v.cq)
	}
	return n
}

// sift has withhold see what has completed: no event has had the program poll for that.
func (v *cq) sift() {
	v.polls.Lock()
	defer v.polls.Unlock()
	v.gather()
}

// drop forgets the completions of a queue pair.
func (v *cq) drop(qpn uint32) {
	v.polls.Lock()
	defer v.polls.Unlock()
	v.gather()
	v.made = slices.DeleteFunc(v.made, func(w uabi.WC) bool { return w.QPNum == qpn })
}
