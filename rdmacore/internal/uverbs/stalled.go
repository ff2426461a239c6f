//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
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
		since := map[*QP]time.Time{}
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

// endStalled is one look. since has when each queue pair was first found to wait.
func (d *Device) endStalled(since map[*QP]time.Time, now time.Time) {
	d.qpns.Range(func(_, v any) bool {
		q := v.(*QP)
		limit, waits := q.stalled()
		switch first, known := since[q]; {
		case !waits:
			delete(since, q)
		case !known:
			since[q] = now
		case now.Sub(first) >= limit:
			delete(since, q)
			d.Report("stalled", "queue pair %#x has failed: the port of %s is down for longer than its connection waits", q.qpn, d.Name())
			q.mu.Lock()
			q.ending.stalled = q.discreet()
			q.mu.Unlock()
			q.abort()
		}
		return true
	})
}

// stalled reports whether the queue pair waits for something while the port is down, and how long it may.
func (q *QP) stalled() (limit time.Duration, waits bool) {
	if q.ud != nil || q.qp.State() != verbs.StateRTS {
		return 0, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken == nil || !q.discreet() { // iWARP: TCP's, which asks the peer
		return stalledTime, true
	}
	if send, _ := verbsinternal.Room(q.qp); send >= q.sendDepth {
		return 0, false
	}
	if q.attr.AttrMask&uabi.QPTimeout == 0 {
		return stalledTime, true
	}
	return ackTime(&q.attr)
}
