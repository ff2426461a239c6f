//go:build linux && (amd64 || arm64)

package uverbs

import (
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/verbs"
)

// What raises no event when it flushes: the receives that withhold keeps, and the Sends. The core asks with locks held, under which q.mu is none
// to take.
const (
	hushNone    = iota
	hushClosing // while the stream closes in good order
	hushGone    // and when the peer's end of it is gone
	hushAll

	hushSends = 1 << 2 // of hushGone and hushAll: and Sends
)

// hush says which, after a change of what withhold goes by; q.mu is held.
func (q *QP) hush() {
	e, h := &q.ending, uint32(hushClosing)
	switch {
	case e.dropping:
		h = hushAll
	case e.told || q.taken == nil:
		h = hushNone
	case e.closed || q.announced():
		h = hushAll
	case q.byHand():
		h = hushGone
	}
	if q.mayWait() {
		h |= hushSends
	}
	q.hushed.Store(h)
}

// hushes reports whether what has flushed of the queue pair, which is the Context, raises no event.
func hushes(context any, op verbs.Op) bool {
	q, ok := context.(*QP)
	if !ok {
		return false
	}
	s, h := q.qp.State(), q.hushed.Load()
	closes := s == verbs.StateClosing || s == verbs.StateIdle
	if op != verbs.OpRecv {
		return h&hushSends != 0 && (h == hushAll|hushSends || verbsinternal.PeerGone(q.qp))
	}
	switch h &^ hushSends {
	case hushNone:
		return false
	case hushClosing:
		return closes
	case hushGone:
		return closes || verbsinternal.PeerGone(q.qp)
	}
	return true
}
