//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// An InfiniBand adapter ends a request that the peer's does not acknowledge, because its port is down, its cable is broken or its machine is
// off (IBA 9.7.6.1.3). A peer's program that is slow, or stopped, is none of these: its adapter answers. Here TCP does, so TCP is asked
// whether it hears of the peer. TCP_USER_TIMEOUT would be less, but it ends streams whose peer does not read, too.

// silentLook is how often the streams are looked at.
const silentLook = 500 * time.Millisecond

// silence is what is known of the peer of a queue pair that does not answer.
type silence struct {
	answers uint64
	since   time.Time // zero: nothing has been tried again
	tries   int
	tried   time.Time // when a look has found that there were more tries
}

// hears is one look. It reports whether the peer is not there: all that TCP has tried for limit, and once more behind it, came to
// nothing. That once is for a peer that is there again: TCP tries less and less often.
func (s *silence) hears(h verbsinternal.Heard, now time.Time, limit time.Duration) (lost bool) {
	switch {
	case h.Answers != s.answers, s.since.IsZero() && h.Tries == 0:
		*s = silence{answers: h.Answers}
	case s.since.IsZero():
		s.since, s.tried = now, now
	case h.Tries > s.tries:
		s.tried = now
	default:
		lost = s.tried.Sub(s.since) >= limit
	}
	s.tries = h.Tries
	return lost
}

// silences has who of a device's queue pairs hears nothing. It begins with the first that is connected.
type silences struct {
	begun sync.Once
	over  chan struct{}
	ended chan struct{}
}

// watchSilent looks at the streams until stop.
func (d *Device) watchSilent() {
	w := &d.silences
	w.begun.Do(func() {
		w.over, w.ended = make(chan struct{}), make(chan struct{})
		go func() {
			defer close(w.ended)
			since := map[*QP]*silence{}
			look := time.NewTicker(silentLook)
			defer look.Stop()
			for {
				select {
				case <-w.over:
					return
				case <-look.C:
					d.endSilent(since)
				}
			}
		}()
	})
}

// end waits until nothing is looked at any more.
func (w *silences) end() {
	w.begun.Do(func() {})
	if w.over != nil {
		close(w.over)
		<-w.ended
	}
}

// endSilent is one look. A port of one's own that is down has another clock.
func (d *Device) endSilent(since map[*QP]*silence) {
	if d.Down() {
		clear(since)
		return
	}
	for q := range since {
		if v, ok := d.qpns.Load(q.qpn); !ok || v != q {
			delete(since, q)
		}
	}
	d.qpns.Range(func(_, v any) bool {
		q := v.(*QP)
		limit, outstanding, ok := q.silent()
		if !ok {
			delete(since, q)
			return true
		}
		h, ok := verbsinternal.HeardOf(q.qp, outstanding)
		switch s := since[q]; {
		case !ok || !outstanding && !h.Owes:
			delete(since, q)
		case s == nil:
			since[q] = &silence{answers: h.Answers}
		case s.hears(h, time.Now(), limit):
			delete(since, q)
			q.giveUp()
			d.Report("silent", "queue pair %#x has failed: its peer's system acknowledges nothing: is its port down, is a cable broken?", q.qpn)
		}
		return true
	})
}

// silent is how long requests wait for a peer that does not answer, and whether there are some. ok is false if that is for ever, or
// TCP's to say.
func (q *QP) silent() (limit time.Duration, outstanding, ok bool) {
	if !q.connected() {
		return 0, false, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken == nil || !q.discreet() {
		return 0, false, false
	}
	limit, ok = q.answerTime()
	return max(limit, q.file.dev.hand.leastTime()), q.outstanding(), ok
}

// answerTime is how long a request may wait for an answer: that of the attributes, or stalledTime without; ok is false if that is for
// ever. q.mu is held.
func (q *QP) answerTime() (limit time.Duration, ok bool) {
	if q.attr.AttrMask&uabi.QPTimeout == 0 {
		return stalledTime, true
	}
	return ackTime(&q.attr)
}

// outstanding reports whether a request waits for its end.
func (q *QP) outstanding() bool {
	send, _ := verbsinternal.Room(q.qp)
	return send < q.sendDepth
}
