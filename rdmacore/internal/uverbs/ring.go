//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// Rings are memory that is shared with the library between the program and the device: the completions there go ahead of all others of
// their queue, and it takes them for a poll without a Write. rdmacore/clib/ring.h has the same in C.
type Rings [256]ring

const (
	ringWCs   = 256
	ringSpare = 16 // stay free: who has taken so many may give them back
)

// ring has completions of one queue. A poll may find those in the ring and no others though there are others since: a program
// that waits for an event then has to be told of those. So arming a queue puts in all that there is. Who puts some in holds
// the queue's polls; anybody may take them.
type ring struct {
	key   atomic.Uint64 // File.Share's << 32 | the handle of the queue; 0: free
	taken atomic.Uint64 // the number of the owner << 32 | completions that were taken
	put   atomic.Uint32 // completions that were put in
	more  atomic.Uint32 // not 0: some are not here for lack of room
	wcs   [ringWCs]uabi.WC
}

// Share has queues that are created from here on keep completions in r, where they can: one place is for many. id names the File
// there. Without a context nobody polls: Share comes first. With Config.Trace there are none, since each poll has a line there.
func (f *File) Share(r *Rings, p *PostRings, id int) {
	if f.dev.config.Trace == nil {
		f.rings, f.posts, f.ringID = r, p, uint32(id)
	}
}

// held is the key of a ring that changes hands.
const held = ^uint64(0)

// ring gives the queue of a handle a ring, or nil.
func (f *File) ring(h uint32) *ring {
	if f.rings == nil {
		return nil
	}
	r := &f.rings[(h+f.ringID*37)%uint32(len(f.rings))]
	if !r.key.CompareAndSwap(0, held) {
		return nil
	}
	r.clear()
	r.key.Store(uint64(f.ringID)<<32 | uint64(h))
	return r
}

// free takes the ring from its queue: what is in it is lost.
func (r *ring) free() {
	if r != nil {
		r.key.Store(held)
		r.clear()
		r.key.Store(0)
	}
}

// clear makes the ring another's: a thread that is about to take something from it fails.
func (r *ring) clear() {
	r.taken.Store((r.taken.Load()>>32 + 1) << 32)
	r.put.Store(0)
	r.more.Store(0)
}

// len is how many completions are in the ring, at most: some may be taken meanwhile. A queue without a ring has none there.
func (r *ring) len() int {
	if r == nil {
		return 0
	}
	return int(r.put.Load() - uint32(r.taken.Load()))
}

// add puts in completions, for which there is room.
func (r *ring) add(wcs []uabi.WC) {
	n := r.put.Load()
	for i := range wcs {
		r.wcs[(n+uint32(i))%ringWCs] = wcs[i]
	}
	r.put.Store(n + uint32(len(wcs)))
}

// take takes the oldest completions.
func (r *ring) take(dst []uabi.WC) int {
	for {
		taken := r.taken.Load()
		n := min(int(r.put.Load()-uint32(taken)), len(dst))
		if n == 0 {
			return 0
		}
		for i := range dst[:n] {
			dst[i] = r.wcs[(uint32(taken)+uint32(i))%ringWCs]
		}
		if r.taken.CompareAndSwap(taken, taken&^(1<<32-1)|uint64(uint32(taken)+uint32(n))) {
			return n
		}
	}
}
