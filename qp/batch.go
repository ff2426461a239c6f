package qp

import (
	"slices"
	"sync"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/stag"
)

const (
	// arenaBytes leaves room behind batchBytes for the FPDU that crosses it.
	arenaBytes = batchBytes + mpa.MinBuffer
	// maxPieces stays below the 1024 pieces that systems take in one call.
	maxPieces = 960
)

// batch is what goes to the LLP in one write: many FPDUs, as pieces of the arena
// (headers, and payload that was copied) and pieces of registered memory
// (payload that was not). Memory is held while a system call reads it and at no
// other time.
//
// Owned by the transmit side. Batches come from a pool: an idle stream has none.
type batch struct {
	arena    []byte
	pieces   [][]byte
	unsealed int       // start in arena of octets that no piece names yet
	holds    []holding // one for each region that pieces name, in order, runs of one merged
	past     int       // holds of which everything is sent
	ends     []int     // size after each FPDU
	answers  []answer  // the FPDUs of answers to RDMA Reads that name memory, in order
	size     int       // octets in all
	sent     int       // octets the LLP has taken
	gone     int       // pieces the LLP has taken whole
	marked   []byte    // scratch of frameMarked
}

// holding is a region that a batch names up to octet end of it. What is sent may
// have completed, and then the program may deregister it.
type holding struct {
	stag.Ref
	end int
}

// answer is an FPDU of the answer to an RDMA Read, whose payload is not copied.
type answer struct {
	inboundRead
	source stag.Ref
	off    uint64 // octets of the answer before it
	end    int    // as that of a holding
}

// lostAnswer is the cause if memory that answers an RDMA Read is there no more. ok is
// false if there is all that has to be sent still.
func (b *batch) lostAnswer() (c cause, ok bool) {
	for i := range b.answers {
		switch a := &b.answers[i]; {
		case a.end <= b.sent:
		case a.source.Hold():
			a.source.Release()
		default:
			return a.cause(faultReadSTag, a.off), true
		}
	}
	return cause{}, false
}

var batches = sync.Pool{New: func() any {
	return &batch{arena: make([]byte, 0, arenaBytes), pieces: make([][]byte, 0, maxPieces+8)}
}}

func newBatch() *batch { return batches.Get().(*batch) }

// free gives b back, forgetting the memory it named.
func (b *batch) free() {
	clear(b.pieces)
	clear(b.holds)
	clear(b.answers)
	b.arena, b.pieces, b.holds, b.ends, b.answers = b.arena[:0], b.pieces[:0], b.holds[:0], b.ends[:0], b.answers[:0]
	b.unsealed, b.past, b.size, b.sent, b.gone = 0, 0, 0, 0, 0
	batches.Put(b)
}

// full reports whether another FPDU must wait for the next batch, which is to have
// about so many octets.
func (b *batch) full(octets int) bool { return b.size >= octets || len(b.pieces) >= maxPieces }

// empty reports whether everything was sent.
func (b *batch) empty() bool { return b.sent == b.size }

// copied says that FPDU octets were appended to the arena.
func (b *batch) copied(from int) {
	b.size += len(b.arena) - from
	b.ends = append(b.ends, b.size)
}

// seal makes a piece of the arena octets that have none.
func (b *batch) seal() {
	if b.unsealed < len(b.arena) {
		b.pieces = append(b.pieces, b.arena[b.unsealed:len(b.arena):len(b.arena)])
		b.unsealed = len(b.arena)
	}
}

// memory adds n octets of r from off on as pieces. It reports false if r was
// revoked.
func (b *batch) memory(r stag.Ref, off, n uint64) bool {
	if !r.Hold() {
		return false
	}
	b.seal()
	b.pieces = r.Append(b.pieces, off, n)
	r.Release()
	b.size += int(n)
	if k := len(b.holds); k == 0 || !b.holds[k-1].SameHold(r) {
		b.holds = append(b.holds, holding{Ref: r})
	}
	b.holds[len(b.holds)-1].end = b.size
	return true
}

// hold keeps the memory that is still to be sent usable until release. It
// reports false, holding nothing, if some of it was revoked.
func (b *batch) hold() bool {
	for b.past < len(b.holds) && b.holds[b.past].end <= b.sent {
		b.past++
	}
	left := b.holds[b.past:]
	for i := range left {
		if !left[i].Hold() {
			for _, h := range left[:i] {
				h.Release()
			}
			return false
		}
	}
	return true
}

// release ends hold, before the next advance.
func (b *batch) release() {
	for _, h := range b.holds[b.past:] {
		h.Release()
	}
}

// advance says that the LLP took n octets more.
func (b *batch) advance(n int) {
	b.sent += n
	for n > 0 {
		p := b.pieces[b.gone]
		if n < len(p) {
			b.pieces[b.gone] = p[n:]
			return
		}
		n -= len(p)
		b.pieces[b.gone] = nil
		b.gone++
	}
}

// boundary reports whether what the LLP has taken ends with a whole FPDU.
func (b *batch) boundary() bool {
	return b.sent == 0 || slices.Contains(b.ends, b.sent)
}

// mark is a place to go back to when an FPDU cannot be finished.
type mark struct{ arena, pieces, unsealed, holds, size int }

func (b *batch) mark() mark {
	return mark{len(b.arena), len(b.pieces), b.unsealed, len(b.holds), b.size}
}

func (b *batch) rollback(m mark) {
	clear(b.pieces[m.pieces:])
	clear(b.holds[m.holds:])
	b.arena, b.pieces, b.unsealed, b.holds, b.size = b.arena[:m.arena], b.pieces[:m.pieces], m.unsealed, b.holds[:m.holds], m.size
	if m.holds > 0 {
		h := &b.holds[m.holds-1]
		h.end = min(h.end, m.size)
	}
}

// holder holds memory for one copy after the other: the hold of a region goes on while
// what is copied next is of the same. The zero holder has none.
type holder struct{ ref stag.Ref }

// hold holds r, until the next hold or release. It reports false if r was revoked.
func (h *holder) hold(r stag.Ref) bool {
	if h.ref.SameHold(r) {
		return true
	}
	h.release()
	if !r.Hold() {
		return false
	}
	h.ref = r
	return true
}

func (h *holder) release() {
	h.ref.Release()
	h.ref = stag.Ref{}
}
