//go:build linux && (amd64 || arm64)

package uverbs

import (
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// late is a post to a queue pair whose stream has ended: as on InfiniBand it is taken, and flushes. It reports how
// many of the IDs were, of Sends or of receives, and whether it has ended at all; q.send is held of Sends.
func (q *QP) late(sends bool, ids ...uint64) (taken int, ended bool) {
	if sends {
		q.sendCQ.sift() // what was posted before
	}
	q.mu.Lock()
	e := &q.ending
	if !q.gone() {
		q.mu.Unlock()
		return 0, false
	}
	to := q.recvCQ
	if sends {
		to = q.sendCQ
	}
	wcs := make([]uabi.WC, len(ids))
	for i, id := range ids {
		wcs[i] = uabi.WC{WRID: id, Status: uabi.WCWRFlushErr, VendorErr: uint32(verbs.StatusFlushed), QPNum: q.qpn, PortNum: 1}
		if !sends {
			wcs[i].Opcode = uabi.WCRecv
		}
	}
	if !sends && !e.told && q.ud == nil {
		room := max(0, q.recvDepth-len(e.held))
		wcs = wcs[:min(len(wcs), room)]
		e.held = append(e.held, wcs...)
		q.mu.Unlock()
		return len(wcs), true
	}
	if _, hand := q.taken.(*link); sends && hand && (!e.over || q.unanswered()) {
		wcs = wcs[:min(len(wcs), max(0, q.sendDepth-len(e.flushed)-len(e.behind)))]
		e.behind = append(e.behind, wcs...)
		if e.over {
			q.await(q.taken)
		}
		q.mu.Unlock()
		return len(wcs), true
	}
	announced := q.announced() // the event, which is on its way, releases what is held
	if sends && q.ud == nil && !announced && !e.blamed && (!e.told || e.stalled) {
		wcs[0].Status = q.blame(uabi.WCRetryExcErr)
	}
	q.mu.Unlock()
	n := to.add(wcs...)
	if sends && q.ud == nil && !announced {
		q.releaseHeld()
	}
	return n, true
}

// postLate is a post of which the core has taken some, and refused the rest with err: late has that.
func (q *QP) postLate(sends bool, posted int, err error, rest []uint64) (int, error) {
	n, ended := q.late(sends, rest...)
	switch {
	case !ended:
		return posted, err
	case n < len(rest):
		return posted + n, verbs.ErrQueueFull // what waits for its end keeps its place
	}
	return posted + n, nil
}

// gone reports, of a queue pair that has refused a post, whether the stream has ended, or is about to; q.mu is held. An iWARP
// adapter's own library may refuse a post then with EINVAL, but a program cannot know of an end before it is told.
func (q *QP) gone() bool {
	switch s := q.qp.State(); {
	case q.struck.Load():
		return true
	case q.ud != nil:
		return s == verbs.StateError
	case !q.discreet() && !q.announced():
		return false
	case q.ending.told || q.ending.closed || q.ending.stalled || s == verbs.StateClosing:
		return true
	default:
		_, hand := q.taken.(*link) // one that is not up yet refuses nothing
		return q.taken != nil && (s == verbs.StateTerminate || s == verbs.StateError || hand && s == verbs.StateIdle)
	}
}
