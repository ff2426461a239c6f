//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// A Send that finds no receive waits (decision 0018), and after a second the user is told. With the RoCE presentation the peer is
// told, too, and again after each min_rnr_timer: the word counts as an RNR NAK (IBA 9.7.5.2.8). If the peer's program allows
// rnr_retry of them, of which 7 is any number, the one behind ends the Send with RNR_RETRY_EXC_ERR. Nothing is read behind a message that
// waits, so TCP is asked whether the peer has closed meanwhile.

// RNRForever is the rnr_retry that never ends.
const RNRForever = 7

// leastRNR is the least time until a peer is told, and told again: what comes late by less is late because this machine is slow.
const leastRNR = 100 * time.Millisecond

// rnrTimes are the codes of min_rnr_timer, in units of 10 us (IBA 9.7.5.2.8, table 45).
var rnrTimes = [...]int{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
	16384, 24576, 32768, 49152,
}

// rnrTime is the time of a code, of which five bits count.
func rnrTime(code uint8) time.Duration {
	return time.Duration(rnrTimes[int(code)%len(rnrTimes)]) * 10 * time.Microsecond
}

// readiness is what a queue pair knows of messages that wait for a receive, here and at the peer.
type readiness struct {
	q *QP

	mu     sync.Mutex
	timer  *time.Timer // for the message that waits here; nil after the end
	msn    uint32      // its
	since  time.Time   // and since when it does
	parted time.Time   // and when it was seen to wait though the program has disconnected; zero: it was not

	naks int    // of the Send of MSN nak, from the peer
	nak  uint32 // 0: of none yet
}

func (r *readiness) init(q *QP) {
	r.q = q
	r.timer = time.AfterFunc(time.Hour, r.look)
	r.timer.Stop()
	verbsinternal.OnReadiness(q.qp, r.waits, r.notReady, func() { q.errands.run(q.arrived) })
}

func (r *readiness) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
}

// waits is told that a message begins to wait for a receive.
func (r *readiness) waits(msn uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		return
	}
	r.msn, r.since, r.parted = msn, time.Now(), time.Time{}
	r.timer.Reset(either(r.q.file.dev.config.RoCE, leastRNR, sayTime))
}

// look looks whether the message waits still, behind receives that wait for company.
func (r *readiness) look() {
	q := r.q
	q.recv.Lock()
	q.recvs.flush()
	q.recv.Unlock()
	msn, ok := verbsinternal.WaitsForReceive(q.qp)
	if !ok || !r.still(msn) {
		return
	}
	q.mu.Lock()
	asks, conn, told := q.discreet() && q.outstanding(), q.taken, q.ending.told
	q.mu.Unlock()
	if r.parts(told) {
		q.abort() // a close waits for what is behind the message, and there will be no receive
		return
	}
	if h, _ := verbsinternal.HeardOf(q.qp, asks); h.Closed && conn != nil {
		conn.Leaving()
	}
	if q.file.dev.config.RoCE {
		q.errands.run(func() { verbsinternal.TellNotReady(q.qp, msn) })
	}
}

// parts reports whether the program, if it has disconnected, has had its time to receive the message.
func (r *readiness) parts(told bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !told:
		r.parted = time.Time{}
	case r.parted.IsZero():
		r.parted = time.Now()
	default:
		return time.Since(r.parted) >= sayTime
	}
	return false
}

// still reports whether the message waited before, too. It says so once, and has look look again.
func (r *readiness) still(msn uint32) bool {
	q := r.q
	q.mu.Lock()
	code := q.attr.MinRNRTimer
	q.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if msn != r.msn || r.timer == nil {
		return false
	}
	if time.Since(r.since) >= sayTime {
		queue := "the program has posted none (ibv_post_recv)"
		if q.srq != nil {
			queue = "its shared receive queue is empty (ibv_post_srq_recv)"
		}
		q.file.dev.Report("no receive", "queue pair %#x: a Send of the peer's waits for a receive for a second: %s", q.qpn, queue)
	}
	r.timer.Reset(either(q.file.dev.config.RoCE, max(leastRNR, rnrTime(code)), sayTime))
	return true
}

// notReady is told that the peer has no receive for a Send.
func (r *readiness) notReady(msn uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nak != msn {
		r.naks, r.nak = 0, msn
	}
	r.naks++
	n := r.naks
	r.q.errands.run(func() { r.q.unready(n) })
}

// SetRNRRetry is rnr_retry of a connection of rdma_cm, which the other end's program says.
func (q *QP) SetRNRRetry(n uint8) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.attr.RNRRetry = n
	q.attr.AttrMask |= uabi.QPRNRRetry
	q.placeSends()
}

// placeSends has Sends complete when they have arrived, if the program wants to know of those for which there is no receive; q.mu is
// held.
func (q *QP) placeSends() {
	if q.ud == nil && q.uc == nil && q.file.dev.config.RoCE {
		verbsinternal.PlaceSends(q.qp, q.attr.RNRRetry < RNRForever)
	}
}

// unready ends a Send for which the peer has told n times that it has no receive, if that is too often.
func (q *QP) unready(n int) {
	q.mu.Lock()
	most := int(q.attr.RNRRetry)
	over := q.attr.AttrMask&uabi.QPRNRRetry != 0 && most < RNRForever && n > most && !q.ending.told && !q.ending.unready &&
		q.qp.State() == verbs.StateRTS // of a stream that has ended otherwise nothing is left to say
	if over {
		q.ending.unready = true
		q.hush()
	}
	q.mu.Unlock()
	if !over {
		return
	}
	q.file.dev.Report("rnr", "queue pair %#x has failed: the peer's program has posted no receive for a Send, and rnr_retry is %d: post it before, or set 7, which is for ever", q.qpn, most)
	_ = q.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})
}

// takesReceive reports whether an operation needs a receive at the peer.
func takesReceive(op verbs.Op) bool { return op.IsSend() || op.IsImmediate() }
