package endpoint

import (
	"sync"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

const (
	// batchOctets is about how many octets one write carries at most.
	batchOctets = 256 << 10
	// arenaOctets leaves room for the segment that crosses it.
	arenaOctets = batchOctets + segment.MaxSegment
)

// batch is what goes to the connection in one write: many segments.
//
// Owned by the writer. Batches come from a pool: an idle endpoint has none.
type batch struct {
	octets []byte // with the payload
	sent   int    // of them, which the connection has taken
	marks  []mark // the segments
	known  int    // marks that account has done with
	rest   [1][]byte
}

// mark is a segment in a batch.
type mark struct {
	outgoing
	start, end int // octets
}

var batches = sync.Pool{New: func() any { return &batch{octets: make([]byte, 0, arenaOctets)} }}

func newBatch() *batch { return batches.Get().(*batch) }

// free gives b back.
func (b *batch) free() {
	clear(b.marks)
	*b = batch{octets: b.octets[:0], marks: b.marks[:0]}
	batches.Put(b)
}

// add frames a segment. If memory of its payload is gone, it becomes one without
// payload, with a transmit error.
func (b *batch) add(s *outgoing, crc bool) {
	before := len(b.octets)
	if !b.frame(s, crc) {
		b.octets = b.octets[:before]
		s.abandon()
		b.frame(s, crc)
	}
}

// frame appends one segment, with a copy of its payload. It reports false if its memory is gone.
func (b *batch) frame(s *outgoing, crc bool) bool {
	m := mark{start: len(b.octets)}
	s.SetLength(s.n, crc)
	b.octets = s.Append(b.octets)
	if s.Type.HasRDMA() {
		b.octets = s.rdma.Append(b.octets)
	}
	if s.n > 0 {
		body := len(b.octets)
		b.octets = b.octets[:body+s.n]
		if !s.mem.copyOut(b.octets[body:]) {
			return false
		}
	}
	if crc {
		b.octets = segment.AppendCRC(b.octets, m.start)
	}
	m.outgoing, m.end = *s, len(b.octets)
	b.marks = append(b.marks, m)
	return true
}

// left reports whether something was not sent.
func (b *batch) left() bool { return b.sent < len(b.octets) }

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
	b.octets = b.octets[:x]
	for k := len(b.marks); k > 0 && b.marks[k-1].start >= x; k-- {
		b.marks = b.marks[:k-1]
	}
}
