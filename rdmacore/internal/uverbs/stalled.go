//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/verbs"
)

// A port that is down holds its connections up. An adapter ends them by its own clock, each when something of it has waited too long:
// InfiniBand's when a request was not acknowledged in the time of timeout and retry_cnt (IBA 9.7.6.1.3), iWARP's when TCP gives up.

const (
	// stalledLook is how often a port that is down is looked at.
	stalledLook = 20 * time.Millisecond
	// stalledTime is for those that say no time: TCP's, and queue pairs of rdma_cm.
	stalledTime = 5 * time.Second
)

// watchStalled ends what the port holds up for too long, until stop is called. It does not wait for a look that is under way.
func (d *Device) watchStalled() (stop func()) {
	over := make(chan struct{})
	go func() {
		since := map[*QP]stall{}
		look := time.NewTicker(stalledLook)
		defer look.Stop()
		for {
			select {
			case <-over:
				return
			case now := <-look.C:
				d.endStalled(since, now)
			}
		}
	}()
	return sync.OnceFunc(func() { close(over) })
}

// stall is since when a queue pair waits, and how long it may.
type stall struct {
	since time.Time
	limit time.Duration
}

// endStalled is one look. since has when each queue pair was first found to wait, of another request for another time anew.
func (d *Device) endStalled(since map[*QP]stall, now time.Time) {
	d.qpns.Range(func(_, v any) bool {
		q := v.(*QP)
		limit, waits := q.stalled()
		switch first, known := since[q]; {
		case !waits:
			delete(since, q)
		case !known || first.limit != limit:
			since[q] = stall{now, limit}
		case now.Sub(first.since) >= limit:
			delete(since, q)
			if !q.giveUp() {
				break
			}
			d.Report("stalled", "queue pair %#x has failed: the port of %s is down for longer than its connection waits", q.qpn, d.Name())
		}
		return true
	})
}

// giveUp ends a queue pair whose requests have waited for too long. It reports false of one that has ended meanwhile.
func (q *QP) giveUp() bool {
	q.mu.Lock()
	waits := q.connected()
	if waits {
		q.ending.stalled = q.discreet()
		q.hush()
	}
	q.mu.Unlock()
	if waits {
		q.abort()
	}
	return waits
}

// connected reports whether the queue pair has a stream, in RTS, whose requests wait for answers.
func (q *QP) connected() bool { return q.ud == nil && q.uc == nil && q.qp.State() == verbs.StateRTS }

// stalled reports whether the queue pair waits for something while the port is down, and how long it may.
func (q *QP) stalled() (limit time.Duration, waits bool) {
	if !q.connected() {
		return 0, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken == nil || !q.discreet() { // iWARP: TCP's, which asks the peer
		return stalledTime, true
	}
	limit, waits = q.answerTime()
	if q.outstanding() {
		return limit, waits
	}
	// What has completed as sent and is not acknowledged would wait on an adapter. TCP acknowledges late, so that it may have come.
	h, _ := verbsinternal.HeardOf(q.qp, false)
	return max(limit, q.file.dev.hand.leastTime()), waits && h.Owes
}
