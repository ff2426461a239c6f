package qp

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// inboundRead is an RDMA Read Request, or an Atomic Request, that waits for its response.
type inboundRead struct {
	req    rdmap.ReadRequestHeader
	atomic rdmap.AtomicRequestHeader
	op     rdmap.Opcode // ReadRequest or AtomicRequest, whose header is in its place
	msn    uint32
	// head is the beginning of its DDP header as it came, whose reserved bits
	// may be anything.
	head [6]byte
}

// acknowledges reports whether the peer's requests complete by the answer: see Config.PlacedWrites.
func (in *inboundRead) acknowledges(c *Config) bool {
	return c.PlacedWrites && in.op == rdmap.ReadRequest && in.req.Size == 0
}

// outboundRead is an RDMA Read, or an Atomic, whose response is awaited.
type outboundRead struct {
	pos    uint64 // of the Send Queue element; meaningless for an RTR
	to     uint64 // tagged offset of the sink
	stag   uint32
	size   uint32
	msn    uint32 // of the Read or Atomic Request
	id     uint32 // of the Atomic Request
	part   bool   // others of the element follow, for its other sinks
	atomic bool   // it is one
	rtr    bool   // of no element: the peer-to-peer mode's ready-to-receive Read, or
	placed bool   // an empty one that tells of Writes before pos
}

// ring is a bounded FIFO between the two sides of a stream: the IRRQ, bounded
// by IRD, which the receive side fills and the transmit side empties; and the
// outbound Reads, bounded by ORD, which go the other way. Items do not change
// once they are in it. Modify QP changes its size.
type ring[T any] struct {
	mu    lockorder.Mutex[lockorder.Ring]
	items []T // as many as there have been, or a few more
	room  int // how many there may be
	head  int
	count atomic.Int32 // written with mu held; "empty" needs no lock
	most  int          // there have been
}

func newRing[T any](size int) *ring[T] { return &ring[T]{room: size} }

func (r *ring[T]) len() int { return int(r.count.Load()) }

// size is how many items there is room for.
func (r *ring[T]) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.room
}

// push reports false if the ring is full.
func (r *ring[T]) push(v T) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.len()
	if n == r.room {
		return false
	}
	if n == len(r.items) { // many have but one, the ready-to-receive Read
		r.move(min(max(2*n, 1), r.room))
	}
	r.items[(r.head+n)%len(r.items)] = v
	r.count.Store(int32(n + 1))
	r.most = max(r.most, n+1)
	return true
}

// first is the oldest item, nil if there is none; valid until pop, across a
// resize.
func (r *ring[T]) first() *T {
	if r.len() == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &r.items[r.head]
}

func (r *ring[T]) pop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.head = (r.head + 1) % len(r.items)
	r.count.Add(-1)
}

// resize makes room for size items. It reports false, and changes nothing, if
// there are more in the ring.
func (r *ring[T]) resize(size int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if size < r.len() {
		return false
	}
	if r.room = size; len(r.items) > size {
		r.move(size)
	}
	return true
}

// move puts the items into a list of so many. With mu held.
func (r *ring[T]) move(size int) {
	items := make([]T, size)
	for i := range r.len() {
		items[i] = r.items[(r.head+i)%len(r.items)]
	}
	r.items, r.head = items, 0
}

// each calls f for every item, oldest first, until it returns false.
func (r *ring[T]) each(f func(*T) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.len() {
		if !f(&r.items[(r.head+i)%len(r.items)]) {
			return
		}
	}
}

// stats is how many there are, and have been.
func (r *ring[T]) stats() wr.Depth {
	r.mu.Lock()
	defer r.mu.Unlock()
	return wr.Depth{Now: uint64(r.len()), Most: uint64(r.most)}
}

// iWARP acknowledges nothing: an RDMA Write completes when it is sent. With
// Config.PlacedWrites a signaled one completes when the peer has placed it, as on InfiniBand. An
// RDMA Read of no octets behind it tells: a peer answers a Read when what came before
// has been placed (RFC 5040 5.5), and looks at no STag if it asks for nothing (5.2.1).
//
// That Read has a place of its own beyond ORD, which both sides offer in the MPA startup.
// There is one, so Writes that are framed while its answer is awaited are asked for
// together with the next. Nothing but their completion waits for it.

// writeAckProbe is what the transmit side knows of Writes that wait to be placed. Positions are
// of the Send Queue.
type writeAckProbe struct {
	granted     bool        // the peer granted the Read; does not change
	due         uint64      // behind the last Write framed that waits
	asked       uint64      // what the last empty Read was about: all before that
	outstanding atomic.Bool // its answer is awaited; cleared by the receive side
}

// writeAckRoom is how many more outbound Reads there is room for with a slot: one, and one whose
// answer has come, until the receive side drops it.
const writeAckRoom = 2

// framedUpTo notes that the element before pos is framed.
func (p *writeAckProbe) framedUpTo(pos uint64, e *sqe) {
	if p.granted && e.placing {
		p.due = pos
	}
}

// wants reports whether an empty Read is to be sent now.
func (p *writeAckProbe) wants() bool { return p.due > p.asked && !p.outstanding.Load() }
