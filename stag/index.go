package stag

import (
	"math/bits"
	"sync/atomic"
)

// index maps 24-bit STag indices to entries. Lookups take no lock; writers
// exclude each other by Table.mu.
//
// It is a hash with open addressing and linear probing. The home cell is the
// low bits of the STag index: indices come from a random source, so they are
// spread already and a peer cannot choose them. Within one published array a
// cell never becomes empty again, so a lookup that runs while a writer works
// misses nothing that was there when it started. Growing, shrinking and
// cleaning build a new array and publish it.
type index struct {
	cells atomic.Pointer[[]cell]

	// Writers only.

	live int // cells with an entry
	used int // cells that are not empty: live ones and tombstones
}

type cell = atomic.Pointer[entry]

// minCells is the smallest array. An array is a power of two in length, at
// most half used, and cut down when less than 1/16 is live.
const minCells = 64

// tombstone fills the cell of a removed entry. Its STag index is zero, which
// no lookup asks for.
var tombstone = new(entry)

// reset makes x empty. A new index needs it too.
func (x *index) reset() {
	cells := make([]cell, minCells)
	x.cells.Store(&cells)
	x.live, x.used = 0, 0
}

// get returns the entry of STag index i, or nil. It is safe at any time.
func (x *index) get(i uint32) *entry {
	if i == 0 {
		return nil
	}
	cells := *x.cells.Load()
	mask := uint32(len(cells) - 1)
	for p := i & mask; ; p = (p + 1) & mask {
		e := cells[p].Load()
		if e == nil || e.index == i {
			return e
		}
	}
}

// put adds e, whose STag index is not zero and not in x.
func (x *index) put(e *entry) {
	if 2*(x.used+1) > len(*x.cells.Load()) {
		x.rebuild()
	}
	place(*x.cells.Load(), e)
	x.used++
	x.live++
}

// remove takes the entry of STag index i out.
func (x *index) remove(i uint32) {
	cells := *x.cells.Load()
	mask := uint32(len(cells) - 1)
	for p := i & mask; ; p = (p + 1) & mask {
		e := cells[p].Load()
		if e == nil {
			return
		}
		if e.index == i {
			cells[p].Store(tombstone)
			break
		}
	}
	x.live--
	if len(cells) > minCells && 16*x.live < len(cells) {
		x.rebuild()
	}
}

// rebuild publishes an array without tombstones, an eighth to a quarter of it
// live, so that the next rebuild is as many changes away.
func (x *index) rebuild() {
	n := max(minCells, 1<<bits.Len(uint(4*x.live)))
	cells := make([]cell, n)
	for e := range x.all {
		place(cells, e)
	}
	x.used = x.live
	x.cells.Store(&cells)
}

// all yields the live entries in no order. For writers.
func (x *index) all(yield func(*entry) bool) {
	cells := *x.cells.Load()
	for p := range cells {
		if e := cells[p].Load(); e != nil && e != tombstone && !yield(e) {
			return
		}
	}
}

// place stores e in the first empty cell from its home on. Tombstones stay
// until the next rebuild.
func place(cells []cell, e *entry) {
	mask := uint32(len(cells) - 1)
	p := e.index & mask
	for cells[p].Load() != nil {
		p = (p + 1) & mask
	}
	cells[p].Store(e)
}
