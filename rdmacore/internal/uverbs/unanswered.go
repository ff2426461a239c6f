//go:build linux && (amd64 || arm64)

package uverbs

import (
	"slices"
	"time"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// What is sent to a queue pair that is no more nobody acknowledges: an adapter ends it when the time of timeout and retry_cnt is over (IBA
// 9.7.6.1.3). A program that has only a credit to give back when its peer has gone, as UCX has, or has no use for its receives any more, as
// gloo, is done by then. So when the peer's end of a stream by hand is gone, what flushes waits as long, and what is posted behind it.
//
// A close in good order loses nothing: its time begins with a Send. Any other end may have lost what has completed as sent, so
// its time begins at once. A queue pair in RTR sends nothing yet: its time begins with RTS.

// unanswering are the timers of that. The zero value has none.
type unanswering struct{ limit, saying *time.Timer }

func (u *unanswering) stop() {
	if u.limit != nil {
		u.limit.Stop()
	}
	if u.saying != nil {
		u.saying.Stop()
	}
	*u = unanswering{}
}

// unanswered reports whether nobody acknowledges Sends, which the program does not know yet; q.mu is held.
func (q *QP) unanswered() bool {
	return q.mayWait() && (q.ending.closed || verbsinternal.PeerGone(q.qp))
}

// mayWait is unanswered, but for the end itself; q.mu is held.
func (q *QP) mayWait() bool {
	e := &q.ending
	return q.byHand() && !e.told && !e.blamed && !e.unready && !e.stalled
}

// waitsForPeer is unanswered, without the lock.
func (q *QP) waitsForPeer() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.unanswered()
}

// byHand reports whether the queue pair is one of a reliable connection that was brought up by hand; q.mu is held.
func (q *QP) byHand() bool {
	_, hand := q.taken.(*link)
	return hand && q.uc == nil
}

// await gives up what waits for an acknowledgement of the peer, and does not get it, when its time is over; q.mu is held.
func (q *QP) await(c Connection) {
	e := &q.ending
	if e.closed && len(e.behind) == 0 || e.unanswered != (unanswering{}) || q.state == uabi.QPSRTR {
		return
	}
	limit, ends := q.answerTime()
	if ends {
		e.unanswered.limit = time.AfterFunc(limit, func() { q.errands.run(func() { q.completeLate(c) }) })
	}
	if !ends || limit > sayTime {
		e.unanswered.saying = time.AfterFunc(sayTime, func() { q.errands.run(q.sayGone) })
	}
}

func (q *QP) sayGone() {
	q.file.dev.Report("unanswered", "queue pair %#x has a peer that has destroyed its queue pair, or has ended: what is sent to it ends with RETRY_EXC_ERR when the time of timeout and retry_cnt is over", q.qpn)
}

// takeWaiting takes the Sends that wait; q.mu is held.
func (e *ending) takeWaiting() []uabi.WC {
	all := slices.Concat(e.flushed, e.behind)
	e.flushed, e.behind = nil, nil
	e.unanswered.stop()
	return all
}

// settled has what has flushed, and the Sends that were late, complete, now that the stream of c is over, or came to nothing.
func (q *QP) settled(c Connection) {
	q.sendCQ.sift() // who is to blame is known then
	q.mu.Lock()
	if q.taken != c {
		q.mu.Unlock()
		return
	}
	q.ending.over = true
	waits := q.unanswered()
	if waits {
		q.await(c)
	}
	q.mu.Unlock()
	if !waits {
		q.completeLate(c)
	}
}

// completeLate completes the Sends of the stream of c, and behind it, that have waited, the first with RETRY_EXC_ERR if nothing else has told
// of the end; and the receives.
func (q *QP) completeLate(c Connection) {
	q.telling.Lock()
	defer q.telling.Unlock()
	q.mu.Lock()
	e := &q.ending
	if q.taken != c || len(e.behind) == 0 && !q.unanswered() {
		q.mu.Unlock()
		return
	}
	behind := e.takeWaiting()
	if len(behind) > 0 && !e.blamed && (!e.told || e.stalled) {
		behind[0].Status = q.blame(uabi.WCRetryExcErr)
	}
	dropped := e.dropping
	q.mu.Unlock()
	if dropped {
		return
	}
	q.sendCQ.add(behind...)
	q.releaseHeld()
}
