package netpoll

import (
	"sync"

	"github.com/softrnic/softrnic/internal/safecopy"
)

const (
	// chunkOctets is how much a pump reads or writes at a time, and fewOctets how much it reads at first: a reader that waits
	// for more has no chunk.
	chunkOctets = 64 << 10
	fewOctets   = 2 << 10
)

// chunk is a piece of what waits in a pump, from a pool.
type chunk struct {
	next       *chunk
	begin, end int // what is in octets
	octets     [chunkOctets]byte
}

var chunkPool = sync.Pool{New: func() any { return new(chunk) }}

func newChunk() *chunk { return chunkPool.Get().(*chunk) }

func (c *chunk) free() {
	c.next, c.begin, c.end = nil, 0, 0
	chunkPool.Put(c)
}

// rest is what is in it.
func (c *chunk) rest() []byte { return c.octets[c.begin:c.end] }

// chunks are octets in order. The zero chunks are none.
type chunks struct {
	first, last *chunk
	count       int
}

// maxChunks bounds their number.
const maxChunks = pumpOctets / chunkOctets

func (q *chunks) empty() bool { return q.first == nil }

// full reports whether there is no room.
func (q *chunks) full() bool {
	return q.count == maxChunks && q.last.end == chunkOctets
}

// roomy reports whether half of the room is there.
func (q *chunks) roomy() bool { return q.count <= maxChunks/2 }

// append adds a chunk with something in it.
func (q *chunks) append(c *chunk) {
	if q.last == nil {
		q.first = c
	} else {
		q.last.next = c
	}
	q.last = c
	q.count++
}

// write adds as much of b as there is room for.
func (q *chunks) write(b []byte) (n int) {
	for n < len(b) && !q.full() {
		if q.last == nil || q.last.end == chunkOctets {
			q.append(newChunk())
		}
		k := safecopy.Unseen(q.last.octets[q.last.end:], b[n:])
		q.last.end += k
		n += k
	}
	return n
}

// read takes octets into b.
func (q *chunks) read(b []byte) (n int) {
	for n < len(b) && q.first != nil {
		k := safecopy.Unseen(b[n:], q.first.rest())
		q.skip(k)
		n += k
	}
	return n
}

// skip takes the next n octets, which are of the first chunk.
func (q *chunks) skip(n int) {
	c := q.first
	if c.begin += n; c.begin < c.end {
		return
	}
	q.first = c.next
	if q.first == nil {
		q.last = nil
	}
	q.count--
	c.free()
}

// drop takes all.
func (q *chunks) drop() {
	for q.first != nil {
		q.skip(q.first.end - q.first.begin)
	}
}
