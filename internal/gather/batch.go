// Package gather collects what goes to a connection in one write: octets of its own, and registered memory where it is.
package gather

import (
	"unsafe"

	"github.com/softrnic/softrnic/stag"
)

// MaxPieces is of how many pieces a batch is full: systems take 1024 in one call, and a message adds a few.
const MaxPieces = 960

// Batch is what goes to the connection in one write: pieces of Arena (headers, and payload that was copied) and pieces of
// registered memory (payload that was not). Memory is held while a system call reads it and at no other time.
//
// Its owner appends to Arena and says so with Copied, or names memory with Memory; Hold, Next, Release and Advance move it out. A
// Batch is for one goroutine at a time.
type Batch struct {
	Arena  []byte
	pieces [][]byte
	start  int    // in Arena, of octets that no piece names yet
	spans  []span // of the memory that pieces name, in order
	past   int    // spans of which everything is sent
	size   int    // octets in all
	sent   int    // octets that the connection has taken
	gone   int    // pieces that it has taken whole
}

// span is a region's memory, as the octets from start to end of a batch.
type span struct {
	stag.Ref
	start, end int
}

// New is an empty batch with room for so many octets of its own.
func New(octets int) Batch {
	return Batch{Arena: make([]byte, 0, octets), pieces: make([][]byte, 0, MaxPieces+8)}
}

// Size is how many octets there are in all.
func (b *Batch) Size() int { return b.size }

// Sent is how many octets the connection has taken.
func (b *Batch) Sent() int { return b.sent }

// Footprint is how many octets of memory the batch takes by itself, with room for n spans at least (docs/security.md).
func (b *Batch) Footprint(n int) int {
	return cap(b.Arena) + cap(b.pieces)*int(unsafe.Sizeof([]byte(nil))) + max(cap(b.spans), n)*int(unsafe.Sizeof(span{}))
}

// Empty reports whether everything was sent.
func (b *Batch) Empty() bool { return b.sent == b.size }

// Full reports whether what comes next must wait for another batch, which is to have about so many octets.
func (b *Batch) Full(octets int) bool { return b.size >= octets || len(b.pieces) >= MaxPieces }

// Reset empties the batch for another stream, and forgets the memory that it named. The room stays.
func (b *Batch) Reset() {
	clear(b.pieces)
	clear(b.spans)
	*b = Batch{Arena: b.Arena[:0], pieces: b.pieces[:0], spans: b.spans[:0]}
}

// Copied says that what is in Arena from octet from on was appended.
func (b *Batch) Copied(from int) { b.size += len(b.Arena) - from }

// Seal makes a piece of what is in Arena and has none.
func (b *Batch) Seal() {
	if b.start < len(b.Arena) {
		b.pieces = append(b.pieces, b.Arena[b.start:len(b.Arena):len(b.Arena)])
		b.start = len(b.Arena)
	}
}

// Memory adds n octets of r from off on. It reports false if r was revoked.
func (b *Batch) Memory(r stag.Ref, off, n uint64) bool {
	if !r.Hold() {
		return false
	}
	b.Seal()
	b.pieces = r.Append(b.pieces, off, n)
	r.Release()
	from := b.size
	b.size += int(n)
	b.spans = append(b.spans, span{r, from, b.size})
	return true
}

// Hold keeps the memory that is still to be sent usable until Release, in front of the first that was revoked. It returns how
// many octets of the batch may be sent: Size, if all the memory is there.
func (b *Batch) Hold() (octets int, held Held) {
	for b.past < len(b.spans) && b.spans[b.past].end <= b.sent {
		b.past++
	}
	left := b.spans[b.past:]
	for i := range left {
		if i > 0 && left[i].SameHold(left[i-1].Ref) {
			continue // one hold is enough
		}
		if !left[i].Ref.Hold() {
			return left[i].start, left[:i]
		}
	}
	return b.size, left
}

// Held is memory that Hold holds.
type Held []span

// Release ends a Hold, before the next Advance.
func (h Held) Release() {
	for i := range h {
		if i == 0 || !h[i].SameHold(h[i-1].Ref) {
			h[i].Ref.Release()
		}
	}
}

// Next are the pieces that are to be sent, the first of them perhaps in part. What is in Arena is among them once it is sealed.
func (b *Batch) Next() [][]byte { return b.pieces[b.gone:] }

// Advance says that the connection took n octets more.
func (b *Batch) Advance(n int) {
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

// Mark is a place to go back to.
type Mark struct{ arena, pieces, start, spans, size int }

// Mark is where the batch ends now.
func (b *Batch) Mark() Mark {
	return Mark{len(b.Arena), len(b.pieces), b.start, len(b.spans), b.size}
}

// Rollback drops what was added since m. Nothing of it was sent.
func (b *Batch) Rollback(m Mark) {
	clear(b.pieces[m.pieces:])
	clear(b.spans[m.spans:])
	b.Arena, b.pieces, b.start, b.spans, b.size = b.Arena[:m.arena], b.pieces[:m.pieces], m.start, b.spans[:m.spans], m.size
}
