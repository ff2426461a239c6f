//go:build linux && (amd64 || arm64)

package uverbs

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// An InfiniBand adapter that is told a wrong GID or number finds out when it sends: nobody acknowledges, and after timeout and
// retry_cnt the request ends with RETRY_EXC_ERR. Here a queue pair brought up by hand is tried to be connected again and again. Nothing
// else happens until the program posts to the Send Queue. From then on it may take as long as the attributes say. Then the
// queue pair goes to ERR; withhold has the first request end with RETRY_EXC_ERR.

const (
	// attemptTime bounds one attempt: a dial that nobody answers, a peer that says nothing.
	attemptTime = time.Minute
	// firstPause and lastPause are between two attempts, each twice the one before.
	firstPause, lastPause = 50 * time.Millisecond, time.Second
	// leastPatience is what requests wait in any case: an adapter's peer answers in microseconds, a process on a busy machine
	// may take seconds to get a processor, and TCP takes one second to send a lost SYN again (RFC 6298 2).
	leastPatience = 5 * time.Second
	// unsetPatience is what they wait if the program has set no timeout, which an adapter would refuse.
	unsetPatience = time.Minute
	// sayTime is how long requests wait before the user is told.
	sayTime = time.Second
)

var errPatience = errors.New("timeout and retry_cnt are over")

// trials are what a link knows of its attempts; link.mu guards them.
type trials struct {
	last          error // of the last attempt
	stray         string
	said          bool
	limit, saying *time.Timer
}

// patience is how long requests wait for the peer: the timeout of 4.096 us x 2^timeout, once and for each retry; ok is
// false if that is for ever (IBA 9.7.6.1.3).
func (q *QP) patience(least time.Duration) (limit time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := &q.attr
	if a.AttrMask&uabi.QPTimeout == 0 {
		return max(least, unsetPatience), true
	}
	limit, ok = ackTime(a)
	return max(least, limit), ok
}

// leastTime is what requests wait in any case.
func (h *byHand) leastTime() time.Duration {
	if d := h.least.Load(); d != 0 {
		return time.Duration(d)
	}
	return leastPatience
}

// ackTime is the time of the attributes.
func ackTime(a *uabi.ModifyQP) (limit time.Duration, ok bool) {
	const mostTimeout, mostRetries = 31, 7
	n := a.Timeout & mostTimeout
	return (4096 * time.Nanosecond << n) * time.Duration(1+a.RetryCnt&mostRetries), n != 0
}

// tried is told that something is in the Send Queue. Only the first time, of a queue pair that is being brought up, it
// matters.
func (q *QP) tried() {
	l := q.trying.Load()
	if l == nil || !q.trying.CompareAndSwap(l, nil) {
		return
	}
	least := l.dev.hand.leastTime()
	limit, ok := q.patience(least)
	if q.uc != nil { // for which an adapter's request does not wait
		limit, ok = least, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil || l.close != nil {
		return
	}
	if ok {
		l.limit = time.AfterFunc(limit, func() { l.cancel(errPatience) })
	}
	if l.saying == nil {
		l.saying = time.AfterFunc(sayTime, l.say)
	}
}

// settled stops the timers.
func (l *link) settled() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range []*time.Timer{l.limit, l.saying} {
		if t != nil {
			t.Stop()
		}
	}
}

// connect tries until the queue pair is up, or l.ctx ends, or the queue pair is not Idle any more.
func (l *link) connect(self bool) (done <-chan struct{}, err error) {
	pause := firstPause
	for {
		if self {
			done, err = l.toItself()
		} else {
			done, err = l.attempt()
		}
		switch {
		case err == nil:
			return done, nil
		case l.ctx.Err() != nil:
			return nil, err
		}
		l.mu.Lock()
		l.last = err
		l.mu.Unlock()
		l.trace(err)
		if l.qp.qp.State() != verbs.StateIdle {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-l.ctx.Done():
			return nil, err
		}
		pause = min(2*pause, lastPause)
	}
}

func (l *link) trace(err error) {
	if t := l.dev.config.Trace; t != nil {
		t(fmt.Sprintf("uverbs queue pair %#x to %v, %#x: %s", l.qp.qpn, l.peer, l.dest, Words(err)))
	}
}

// stranger is told of a Request for the queue pair that the program's GID and number do not name. It returns what the peer is
// told. If the queue pair does not come up meanwhile, the user hears of it though nothing has been sent; byHand.mu is held.
func (l *link) stranger(r *cm.Request, src uint32) string {
	from := remote(r)
	if src == l.dest && from == l.peer {
		return sayTaken
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.close != nil || l.ctx.Err() != nil {
		return sayTaken
	}
	l.stray = fmt.Sprintf("instead %v, queue pair %#x, asks for this one: the GID or the number that one of the two programs was told is wrong", from, src)
	if l.saying == nil {
		l.saying = time.AfterFunc(sayTime, l.say)
	}
	return sayAnother
}

// say tells the user, once, that the queue pair is not up, and why.
func (l *link) say() {
	l.mu.Lock()
	said, why := l.said, l.why()
	l.said = true
	l.mu.Unlock()
	if !said {
		l.dev.Report("by hand", "queue pair %#x does not reach %v, queue pair %#x: %s", l.qp.qpn, l.peer, l.dest, why)
	}
}

// why is the reason, as far as it is known; l.mu is held.
func (l *link) why() string {
	var c *cm.ConnectError
	var rejected *cm.RejectedError
	switch {
	case l.stray != "":
		return l.stray
	case l.last == nil:
		return "nothing comes from there: is the GID right, and the number, and has the peer's program changed its own to RTR?"
	case errors.Is(l.last, syscall.ECONNREFUSED):
		return fmt.Sprintf("nobody there has a queue pair of such a number (port %d is closed): is the GID right, and the number?", l.dest>>8)
	case errors.As(l.last, &rejected) && string(rejected.PrivateData) == sayNone:
		return "no queue pair there has this number: is it the one that the peer's program told?"
	case errors.As(l.last, &c):
		return text(c.Sentence())
	}
	return Words(l.last)
}

// failed takes a queue pair that did not come up to Error: what was posted flushes. There is no asynchronous event, as the first
// request tells of it.
func (l *link) failed() {
	l.say()
	l.trace(context.Cause(l.ctx))
	if l.qp.qp.State() == verbs.StateIdle && l.qp.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}) == nil {
		l.qp.inError()
	}
}
