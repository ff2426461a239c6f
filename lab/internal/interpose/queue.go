package interpose

import "time"

// Piece is octets that are delivered at once, in the order of pieces.
type Piece struct {
	Stall  time.Duration // first nothing moves so long
	Octets []byte
	Delay  time.Duration // Octets and what follows them are held back so long, while their sender goes on
	Group  Group         // Octets go together with those of the pieces around
	End    End           // without Octets
}

// Group says whether a piece is one of several that go together. They are late by what the first of them is, at most.
type Group uint8

// The groups.
const (
	Alone    Group = iota
	Together       // with what comes next
	LastOf
)

// item is a piece that waits for its time.
type item struct {
	Piece
	due  time.Time // before that it is not delivered; zero: at once
	open bool      // more of its group is to come
}

// queue are the pieces of one direction that have not been delivered, in order.
type queue struct {
	items []item
	size  int // octets, and itemCost of each item
	due   time.Time
	ended bool // a piece with an end is in it: nothing comes behind that
}

// itemCost is what an item takes beside its octets: else the smallest FPDUs, and those of which nothing is left, would take a
// multiple of MaxHeld.
const itemCost = 128

// add puts p behind the others: it is never due before them.
func (q *queue) add(p Piece, now time.Time) {
	if q.ended {
		return
	}
	q.ended = p.End != Open
	if n := len(q.items); n > 0 && q.items[n-1].open && p.Group != Alone && p.Stall == 0 && p.End == Open {
		it := &q.items[n-1]
		it.Octets = append(it.Octets, p.Octets...)
		q.size += len(p.Octets)
		if p.Group == LastOf {
			it.open, it.due = false, time.Time{}
			if n > 1 {
				it.due = q.items[n-2].due
			}
			q.due = it.due
		}
		return
	}
	if p.Delay > 0 {
		if at := now.Add(p.Delay); at.After(q.due) {
			q.due = at
		}
	}
	q.items = append(q.items, item{p, q.due, p.Group == Together})
	q.size += len(p.Octets) + itemCost
}

// next is the first piece, and how long it has to wait from now on; nil if there is none. Once its time has come,
// no more join it.
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
	it.Octets = it.Octets[n:]
	q.size -= n
	if len(it.Octets) == 0 {
		q.items = q.items[1:]
		q.size -= itemCost
	}
}
