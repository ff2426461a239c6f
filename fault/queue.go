package fault

import "time"

// item is a piece that waits for its time.
type item struct {
	piece
	due  time.Time // before that it is not delivered; zero: at once
	open bool      // more of its lump is to come
}

// queue are the pieces of one direction that have not been delivered, in order.
type queue struct {
	items []item
	size  int // octets
	due   time.Time
	ended bool // a piece with an end is in it: nothing comes behind that
}

// add puts p behind the others: it is never due before them.
func (q *queue) add(p piece, now time.Time) {
	if q.ended {
		return
	}
	q.ended = p.end != 0
	if n := len(q.items); n > 0 && q.items[n-1].open && p.lump != alone && p.stall == 0 && p.end == 0 {
		it := &q.items[n-1]
		it.b = append(it.b, p.b...)
		q.size += len(p.b)
		if p.lump == lastOf {
			it.open, it.due = false, time.Time{}
			if n > 1 {
				it.due = q.items[n-2].due
			}
			q.due = it.due
		}
		return
	}
	if p.late > 0 {
		if at := now.Add(p.late); at.After(q.due) {
			q.due = at
		}
	}
	q.items = append(q.items, item{p, q.due, p.lump == together})
	q.size += len(p.b)
}

// next is the first piece, and how long it has to wait from now on; nil if there is none. That piece is not a lump's beginning any
// more if its time has come.
func (q *queue) next(now time.Time) (it *item, wait time.Duration) {
	if len(q.items) == 0 {
		return nil, 0
	}
	it = &q.items[0]
	if !it.due.IsZero() {
		wait = max(it.due.Sub(now), 0)
	}
	if wait == 0 {
		it.open = false
	}
	return it, wait
}

// drop takes n octets of the first piece away, and the piece once it has none.
func (q *queue) drop(n int) {
	it := &q.items[0]
	it.b = it.b[n:]
	q.size -= n
	if len(it.b) == 0 {
		q.items = q.items[1:]
	}
}
