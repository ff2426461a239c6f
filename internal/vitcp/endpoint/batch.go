package endpoint

import (
	"sync"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/stag"
)

const (
	// batchOctets is about how many octets one write carries at most.
	batchOctets = 256 << 10
	// arenaOctets leaves room for the segment that crosses it.
	arenaOctets = batchOctets + segment.MaxSegment
	// maxPieces stays below the 1024 that systems take in one call.
	maxPieces = 960
	// copyBelow is the payload that is rather copied than named as a piece.
	copyBelow = 2 << 10
)

// batch is what goes to the connection in one write: many segments, as pieces of the
// arena (headers, and payload that was copied) and of registered memory. That is held
// while a system call reads it and at no other time.
//
// Owned by the writer. Batches come from a pool: an idle endpoint has none.
type batch struct {
	arena  []byte
	run    int // start in arena of octets that no piece names yet
	pieces [][]byte
	holds  []holding // of the memory that pieces name
	past   int       // holds of which everything is sent
	marks  []mark    // the segments
	known  int       // marks that account has done with
	size   int       // octets in all
	sent   int       // octets the connection has taken
	gone   int       // pieces it has taken whole
}

// holding is memory that octets start to end of a batch are read from.
type holding struct {
	stag.Ref
	start, end int
}

// mark is a segment in a batch.
type mark struct {
	outgoing
	start, body, end int // octets: headers from start, payload from body
}

var batches = sync.Pool{New: func() any { return &batch{arena: make([]byte, 0, arenaOctets)} }}

func newBatch() *batch { return batches.Get().(*batch) }

// free gives b back, forgetting the memory it named.
func (b *batch) free() {
	clear(b.pieces)
	clear(b.holds)
	clear(b.marks)
	*b = batch{arena: b.arena[:0], pieces: b.pieces[:0], holds: b.holds[:0], marks: b.marks[:0]}
	batches.Put(b)
}

// full reports whether another segment must wait for the next batch.
func (b *batch) full() bool {
	return b.size >= batchOctets || len(b.pieces) >= maxPieces
}

// empty reports whether everything was sent.
func (b *batch) empty() bool { return b.sent == b.size }

// add frames a segment. If memory of its payload is gone, it becomes one without
// payload, with a transmit error.
func (b *batch) add(s *outgoing, crc, inPlace bool) {
	arena, pieces, run, holds, size := len(b.arena), len(b.pieces), b.run, len(b.holds), b.size
	if !b.frame(s, crc, inPlace && s.n >= copyBelow && !s.mem.mayVanish()) {
		clear(b.pieces[pieces:])
		clear(b.holds[holds:])
		b.arena, b.pieces, b.run, b.holds, b.size = b.arena[:arena], b.pieces[:pieces], run, b.holds[:holds], size
		s.abandon()
		b.frame(s, crc, false)
	}
}

// frame appends one segment. It reports false if its memory is gone.
func (b *batch) frame(s *outgoing, crc, inPlace bool) bool {
	m := mark{start: b.size}
	at := len(b.arena)
	s.SetLength(s.n, crc)
	b.arena = s.Append(b.arena)
	if s.Type.HasRDMA() {
		b.arena = s.rdma.Append(b.arena)
	}
	b.size += len(b.arena) - at
	m.body = b.size
	switch {
	case s.n == 0:
	case inPlace:
		if !b.name(s.mem, uint64(s.n)) {
			return false
		}
	default:
		from := len(b.arena)
		b.arena = b.arena[:from+s.n]
		if !s.mem.copyOut(b.arena[from:]) {
			return false
		}
		b.size += s.n
	}
	if crc {
		b.arena = segment.AppendCRC(b.arena, at)
		b.size += segment.Trailer
	}
	m.outgoing, m.end = *s, b.size
	b.marks = append(b.marks, m)
	return true
}

// name makes the next n octets of mem pieces. It reports false if some are gone.
func (b *batch) name(mem *spans, n uint64) bool {
	b.seal()
	for n > 0 {
		ref, off, k := mem.here(n)
		if k == 0 || !ref.Hold() {
			return false
		}
		b.pieces = ref.Append(b.pieces, off, k)
		ref.Release()
		b.holds = append(b.holds, holding{ref, b.size, b.size + int(k)})
		b.size += int(k)
		mem.skip(k)
		n -= k
	}
	return true
}

// seal makes a piece of the arena's octets that have none.
func (b *batch) seal() {
	if b.run < len(b.arena) {
		b.pieces = append(b.pieces, b.arena[b.run:len(b.arena):len(b.arena)])
		b.run = len(b.arena)
	}
}

// hold keeps the memory that is still to be sent usable until release, in front of the
// first that is gone: it returns how many octets of the batch can be sent, and what
// holds that needs.
func (b *batch) hold() (octets int, holds []holding) {
	for b.past < len(b.holds) && b.holds[b.past].end <= b.sent {
		b.past++
	}
	left := b.holds[b.past:]
	for i := range left {
		if i > 0 && left[i].SameHold(left[i-1].Ref) {
			continue // one hold is enough
		}
		if !left[i].Hold() {
			return left[i].start, left[:i]
		}
	}
	return b.size, left
}

func release(holds []holding) {
	for i := range holds {
		if i == 0 || !holds[i].SameHold(holds[i-1].Ref) {
			holds[i].Release()
		}
	}
}

// advance says that the connection took n octets more.
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

// boundary is where the segment that is being sent ends: the first end of one that is
// not before what was sent.
func (b *batch) boundary() int {
	for _, m := range b.marks[b.known:] {
		if m.end >= b.sent {
			if m.start >= b.sent {
				break
			}
			return m.end
		}
	}
	return b.sent
}

// truncate drops everything from octet x on, which was not sent.
func (b *batch) truncate(x int) {
	b.seal()
	i, at := b.gone, b.sent
	for i < len(b.pieces) && at+len(b.pieces[i]) <= x {
		at += len(b.pieces[i])
		i++
	}
	if i < len(b.pieces) && at < x {
		b.pieces[i] = b.pieces[i][:x-at]
		i++
	}
	clear(b.pieces[i:])
	b.pieces = b.pieces[:i]
	b.size = x
	for i := len(b.holds); i > 0 && b.holds[i-1].end > x; i-- {
		h := &b.holds[i-1]
		h.end = x
		if h.start >= x {
			*h = holding{}
			b.holds = b.holds[:i-1]
		}
	}
	b.past = min(b.past, len(b.holds))
	for k := len(b.marks); k > 0 && b.marks[k-1].start >= x; k-- {
		b.marks = b.marks[:k-1]
	}
}

// upTo is how far a batch may be sent whose memory is gone from octet x on: no segment
// is begun that cannot be finished.
func (b *batch) upTo(x int) int {
	if x == b.size {
		return x
	}
	for _, m := range b.marks[b.known:] {
		if m.end > x {
			if m.start >= b.sent {
				return m.start
			}
			return x
		}
	}
	return x
}
