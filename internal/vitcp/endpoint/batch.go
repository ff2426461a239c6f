package endpoint

import (
	"sync"

	"github.com/softrnic/softrnic/internal/gather"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

const (
	// batchOctets is about how many octets one write carries at most.
	batchOctets = 256 << 10
	// arenaOctets leaves room for the segment that crosses it.
	arenaOctets = batchOctets + segment.MaxSegment
	// copyBelow is the payload that is rather copied than named as a piece.
	copyBelow = 2 << 10
)

// batch is what goes to the connection in one write: many segments.
//
// Owned by the writer. Batches come from a pool: an idle endpoint has none.
type batch struct {
	gather.Batch
	marks []mark // the segments
	known int    // marks that account has done with
}

// mark is a segment in a batch.
type mark struct {
	outgoing
	start, body, end int // octets: headers from start, payload from body
}

var batches = sync.Pool{New: func() any { return &batch{Batch: gather.New(arenaOctets)} }}

func newBatch() *batch { return batches.Get().(*batch) }

// free gives b back, forgetting the memory it named.
func (b *batch) free() {
	b.Reset()
	clear(b.marks)
	b.marks, b.known = b.marks[:0], 0
	batches.Put(b)
}

// add frames a segment. If memory of its payload is gone, it becomes one without
// payload, with a transmit error.
func (b *batch) add(s *outgoing, crc, inPlace bool) {
	before := b.Mark()
	if !b.frame(s, crc, inPlace && s.n >= copyBelow && !s.mem.mayVanish()) {
		b.Rollback(before)
		s.abandon()
		b.frame(s, crc, false)
	}
}

// frame appends one segment. It reports false if its memory is gone.
func (b *batch) frame(s *outgoing, crc, inPlace bool) bool {
	m := mark{start: b.Size()}
	at := len(b.Arena)
	s.SetLength(s.n, crc)
	b.Arena = s.Append(b.Arena)
	if s.Type.HasRDMA() {
		b.Arena = s.rdma.Append(b.Arena)
	}
	b.Copied(at)
	m.body = b.Size()
	from := len(b.Arena)
	switch {
	case s.n == 0:
	case inPlace:
		if !b.name(s.mem, uint64(s.n)) {
			return false
		}
	default:
		b.Arena = b.Arena[:from+s.n]
		if !s.mem.copyOut(b.Arena[from:]) {
			return false
		}
	}
	if crc {
		b.Arena = segment.AppendCRC(b.Arena, at)
	}
	b.Copied(from)
	m.outgoing, m.end = *s, b.Size()
	b.marks = append(b.marks, m)
	return true
}

// name makes the next n octets of mem pieces. It reports false if some are gone.
func (b *batch) name(mem *spans, n uint64) bool {
	for n > 0 {
		ref, off, k := mem.here(n)
		if k == 0 || !b.Memory(ref, off, k) {
			return false
		}
		mem.skip(k)
		n -= k
	}
	return true
}

// boundary is where the segment that is being sent ends: the first end of one that is
// not before what was sent.
func (b *batch) boundary() int {
	for _, m := range b.marks[b.known:] {
		if m.end >= b.Sent() {
			if m.start >= b.Sent() {
				break
			}
			return m.end
		}
	}
	return b.Sent()
}

// truncate drops everything from octet x on, which was not sent.
func (b *batch) truncate(x int) {
	b.Truncate(x)
	for k := len(b.marks); k > 0 && b.marks[k-1].start >= x; k-- {
		b.marks = b.marks[:k-1]
	}
}

// upTo is how far a batch may be sent whose memory is gone from octet x on: no segment
// is begun that cannot be finished.
func (b *batch) upTo(x int) int {
	if x == b.Size() {
		return x
	}
	for _, m := range b.marks[b.known:] {
		if m.end > x {
			if m.start >= b.Sent() {
				return m.start
			}
			return x
		}
	}
	return x
}
