package cq

import (
	"time"

	"github.com/softrnic/softrnic/wr"
)

// Faults are what a fault plan makes of completions. Neither function may block or call into the Queue.
type Faults struct {
	// Watches reports whether Of has to be asked, and for ever from the first time on: what is kept back is so in order.
	Watches func() bool
	// Of is how long a completion stays hidden, and those behind it, and whether there is no room for it.
	Of func(wr.Completion) (late time.Duration, full bool)
}

// late are completions that a fault plan keeps back, in order: they have their places in the ring, but no poll finds them.
type late struct {
	list  []hidden // guarded by the queue's mu, as below
	timer *time.Timer
}

type hidden struct {
	e   Entry
	due time.Time
}

// pushFaulty is PushAll with the faults of a plan.
func (q *Queue) pushFaulty(list []Entry) (n int) {
	for i := range list {
		d, full := q.faults.Of(list[i].Completion)
		kept, room := q.keep(&list[i], d, full)
		if kept {
			n++
			continue
		}
		if q.push(list[i:i+1], full || !room) == 0 {
			return n
		}
		n++
	}
	return n
}

// keep keeps e back for d at least, and behind those that are kept back. kept is false if nothing delays it, or there is no
// room, which those that are kept back take too.
func (q *Queue) keep(e *Entry, d time.Duration, full bool) (kept, room bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.late
	room = q.count+len(l.list) < len(q.ring)
	if full || q.failed || q.closed || d == 0 && len(l.list) == 0 || !room {
		return false, room
	}
	due := time.Now().Add(d)
	if n := len(l.list); n > 0 && l.list[n-1].due.After(due) {
		due = l.list[n-1].due
	}
	l.list = append(l.list, hidden{*e, due})
	if l.timer == nil {
		l.timer = time.AfterFunc(d, q.show)
	}
	return true, true
}

// show adds those whose time has come. Their room was kept for them, unless Resize took it: then it is an overflow.
func (q *Queue) show() {
	for {
		q.mu.Lock()
		l := &q.late
		if len(l.list) == 0 {
			l.timer = nil
			q.mu.Unlock()
			return
		}
		if wait := time.Until(l.list[0].due); wait > 0 {
			l.timer = time.AfterFunc(wait, q.show)
			q.mu.Unlock()
			return
		}
		e := l.list[0].e
		l.list = l.list[1:]
		p := q.put([]Entry{e}, false) // in the same hold: it counts in one place, and has its turn
		q.mu.Unlock()
		q.tell(p)
		if p.n == 0 && e.Owner != nil {
			e.Owner.Release(e.Pos)
		}
	}
}

// drop drops all; mu is held.
func (l *late) drop() {
	if l.timer != nil {
		l.timer.Stop()
	}
	for _, k := range l.list {
		if k.e.Owner != nil {
			k.e.Owner.Release(k.e.Pos)
		}
	}
	l.list, l.timer = nil, nil
}
