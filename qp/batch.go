package qp

import (
	"slices"
	"sync"

	"github.com/softrnic/softrnic/internal/gather"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/stag"
)

// arenaBytes leaves room behind batchBytes for the FPDU that crosses it.
const arenaBytes = batchBytes + mpa.MinBuffer

// batch is what goes to the LLP in one write: many FPDUs.
//
// Owned by the transmit side. Batches come from a pool: an idle stream has none.
type batch struct {
	gather.Batch
	ends    []int    // size after each FPDU
	answers []answer // the FPDUs of answers to RDMA Reads that name memory, in order
	marked  []byte   // scratch of frameMarked
}

// answer is an FPDU of the answer to an RDMA Read, whose payload is not copied.
type answer struct {
	inboundRead
	source stag.Ref
	off    uint64 // octets of the answer before it
	end    int    // size of the batch behind it
}

// gone is where memory begins that is there no more; the size of the batch if all is.
func (b *batch) gone() int {
	octets, held := b.Hold()
	held.Release()
	return octets
}

// answerAt is the cause if the octet at off, whose memory is there no more, is of an answer to an RDMA Read.
func (b *batch) answerAt(off int) (c cause, ok bool) {
	fpdu, _ := slices.BinarySearch(b.ends, off+1)
	for i := range b.answers {
		if a := &b.answers[i]; fpdu < len(b.ends) && a.end == b.ends[fpdu] {
			return a.cause(faultReadSTag, a.off), true
		}
	}
	return cause{}, false
}

var batches = sync.Pool{New: func() any {
	return &batch{Batch: gather.New(arenaBytes)}
}}

func newBatch() *batch { return batches.Get().(*batch) }

// free gives b back, forgetting the memory it named.
func (b *batch) free() {
	b.Reset()
	clear(b.answers)
	b.ends, b.answers = b.ends[:0], b.answers[:0]
	batches.Put(b)
}

// framed says that FPDU octets were appended to the arena.
func (b *batch) framed(from int) {
	b.Copied(from)
	b.ends = append(b.ends, b.Size())
}

// boundary reports whether what the LLP has taken ends with a whole FPDU.
func (b *batch) boundary() bool {
	return b.Sent() == 0 || slices.Contains(b.ends, b.Sent())
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
