//go:build linux && (amd64 || arm64)

package uverbs

import (
	"time"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// A Send to a queue pair that is no more is one that nobody acknowledges: an adapter ends it when the time of timeout and retry_cnt is over
// (IBA 9.7.6.1.3). A program that has only a credit to give back when its peer has gone, as UCX has, is done by then. So Sends behind
// a close in good order wait as long, here without being sent.

// unanswering are the timers of such Sends, from the first of them on. The zero value has none.
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
	_, hand := q.taken.(*link)
	e := &q.ending
	return hand && e.closed && !e.told && !e.blamed && q.uc == nil
}

// await gives the Sends behind the stream of c up when their time is over; q.mu is held.
func (q *QP) await(c Connection) {
	e := &q.ending
	if len(e.behind) == 0 || e.unanswered != (unanswering{}) {
		return
	}
	limit, ends := q.answerTime()
	if ends {
		e.unanswered.limit = time.AfterFunc(limit, func() { q.errands.run(func() { q.completeLate(c) }) })
	}
	if !ends || limit > sayTime {
		e.unanswered.saying = time.AfterFunc(sayTime, func() {
			q.file.dev.Report("unanswered", "queue pair %#x sends to a peer that has destroyed its queue pair: that ends with RETRY_EXC_ERR when the time of timeout and retry_cnt is over", q.qpn)
		})
	}
}

// settled has the Sends that were late complete, now that the stream of c is over, or came to nothing.
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

// completeLate completes the Sends behind the stream of c, the first with RETRY_EXC_ERR if nothing else has told of the end.
func (q *QP) completeLate(c Connection) {
	q.mu.Lock()
	e := &q.ending
	if q.taken != c || len(e.behind) == 0 {
		q.mu.Unlock()
		return
	}
	behind := e.behind
	e.behind = nil
	e.unanswered.stop()
	if !e.blamed && (!e.told || e.stalled) {
		e.blamed, behind[0].Status = true, uabi.WCRetryExcErr
	}
	dropped := e.dropping
	q.mu.Unlock()
	if dropped {
		return
	}
	q.sendCQ.add(behind...)
	q.releaseHeld()
}
