package stag

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/wr"
)

// Sets of rights. remoteRights are those that a peer's operations need.
const (
	localRights  = wr.LocalRead | wr.LocalWrite
	remoteRights = wr.RemoteRead | wr.RemoteWrite | wr.RemoteAtomic
)

// entry is an STag, for the whole of its life: that of a Memory Region or of a
// Memory Window. The memory of one AllocatePages is an entry too, with no STag of
// its own; the STag of zero leads to it.
//
// # States and generations
//
// An entry is Valid or Invalid (verbs draft 7.2.2, 7.10.5). Each stay in the
// Valid state is a generation. A Ref carries the generation it was resolved in
// and is good for no other, so one entry serves for any number of Binds and
// Fast-Registers and none of them allocates.
//
// The hold word has all that the data path and a revocation must agree on:
//
//	 63 62 61                                   24 23            0
//	+--+--+---------------------------------------+---------------+
//	|R |D |              generation               |     holds     |
//	+--+--+---------------------------------------+---------------+
//
// R: revoked, that is Invalid; no hold succeeds. D: drained, nobody touches the
// memory of this generation any more, nor ever will. D is only ever set with R.
//
//	         arm                 revoke, holds > 0          last release
//	R D g ---------> g+1 -------------------------> R g+1 ---------------> R D g+1
//	                  |                                                       ^
//	                  +-------------------------------------------------------+
//	                                     revoke, holds = 0
//
// hold looks at the word, counts itself, and looks again at what it counted
// itself into. It succeeds if R is clear and the generation the wanted one both
// times. If not, it was too late: it takes its count back, having touched
// nothing. One that succeeded was counted before R was set, so D waits for it.
//
// A late hold may be counted for a moment in any word: one with R, which puts
// D off (each goroutine does that once at most, because it looks first); one
// with R and D, which means nothing; and after an arm in that of the next
// generation, which is why arm keeps the count it finds and never writes the
// word blindly. Whoever brings the count of a word with R and without D to zero
// tries to set D in exactly that word; of several one succeeds, and nobody can
// in another generation's. The one that does wakes those who wait.
//
// revoke and arm happen with Table.mu held, so neither meets another of them.
// revoke does nothing to a word that has R: a second revoker waits for the same
// D as the first. After D the first holder of the lock lets go of the memory
// (disarm); arm comes after that only. Waiting is without the lock, so a thread that
// waited looks everything up again.
//
// # Who may look at the fields
//
// grant and mem are written with Table.mu held, before the entry is in the index
// or after D and before the word of the next generation is stored.
//
// mem is read with Table.mu held or under a hold. So a reader never meets a
// writer: it is ordered after the one by the word it counted itself into, and
// before the other by the count it gave back.
//
// grant is read by Resolve without a hold, which would be two more writes to
// the word for each segment: if the word is of the same generation and without R
// before and after, all of what was read is of that generation (look).
type entry struct {
	// Constant after publication.

	index  uint32 // of the STag, not zero; zero for pages
	window bool   // a Memory Window, else a Memory Region
	drain  *drain // told about D

	word atomic.Uint64

	grant published
	mem   memory

	region // unused in a window, guarded by Table.mu
	bound  // unused in a region, guarded by Table.mu
}

// region is what only Memory Regions have. In the Invalid state they keep it
// (RV-7.8-M4, RV-7.8-M7, RV-7.8-M8).
type region struct {
	pbl    int    // entries of the longest physical buffer list it can take
	size   uint64 // of a physical buffer; FBO within the first
	fbo    uint64
	pieces []piece // storage, its own, for entry.mem; reused by Fast-Register

	remoteAccess     bool // the Remote Access Flag
	remoteInvalidate bool
	shared           bool // never Invalid; others may have the same memory

	windows int // bound to it
}

// bound is what only Memory Windows have: both nil unless it is bound.
type bound struct {
	under *entry   // its region
	owner *Windows // the count of its queue pair
}

const (
	revokedBit = 1 << 63
	drainedBit = 1 << 62
	holdMask   = 1<<24 - 1
	genMask    = drainedBit - 1 - holdMask
	nextGen    = holdMask + 1
	minusOne   = ^uint64(0) // to add
)

// stag is the STag with the key of the last generation.
func (e *entry) stag() wr.STag { return wr.MakeSTag(e.index, e.grant.load().key) }

// isRevoked reports whether the STag is Invalid.
func (e *entry) isRevoked() bool { return e.word.Load()&revokedBit != 0 }

// isDraining reports whether it is Invalid and its memory possibly still in use.
func (e *entry) isDraining() bool { return e.word.Load()&(revokedBit|drainedBit) == revokedBit }

// hold keeps the memory of generation gen usable until release. It fails if
// that has been revoked.
func (e *entry) hold(gen uint64) bool {
	return e.word.Load()&^holdMask == gen && e.count(gen)
}

// count is a hold by a reader that has looked.
func (e *entry) count(gen uint64) bool {
	if e.word.Add(1)&^holdMask != gen {
		e.release()
		return false
	}
	return true
}

// look reads the grant of a Valid entry and tells its generation. It takes no hold.
func (e *entry) look(g *grant) (gen uint64, ok bool) {
	gen = e.word.Load() &^ holdMask
	e.grant.read(g)
	return gen, gen&revokedBit == 0 && e.word.Load()&^holdMask == gen
}

func (e *entry) release() {
	w := e.word.Add(minusOne)
	if w&(revokedBit|drainedBit|holdMask) == revokedBit && e.word.CompareAndSwap(w, w|drainedBit) {
		e.drain.wake()
	}
}

// revoke makes all later holds fail. Those it finds are waited for by
// Table.await. The caller has Table.mu.
func (e *entry) revoke() {
	for {
		w := e.word.Load()
		next := w | revokedBit
		switch {
		case w&revokedBit != 0:
			return
		case w&holdMask == 0:
			next |= drainedBit
		}
		if e.word.CompareAndSwap(w, next) {
			return
		}
	}
}

// arm begins the next generation, in which what grant says is granted. The entry is
// drained and the caller has Table.mu.
func (e *entry) arm() {
	for {
		w := e.word.Load()
		if e.word.CompareAndSwap(w, (w+nextGen)&genMask|w&holdMask) {
			return
		}
	}
}

// disarm lets go of the memory of a drained entry, so that neither it nor a
// stored Ref keeps it alive, and of the region and queue pair of a window: not
// before, because a region with no windows bound may go at once. Doing it twice
// is doing it once. The caller has Table.mu.
func (e *entry) disarm() {
	e.mem = memory{}
	if e.shared || e.windows > 0 { // the storage is others' too; windows: at Close
		e.pieces = nil
	}
	clear(e.pieces)
	e.pieces = e.pieces[:0]
	if e.under != nil {
		e.under.windows--
		e.owner.bound--
		e.bound = bound{}
	}
}

// drain is where those wait who need an entry drained; one for each table. It
// has a mutex of its own, so that the data path never needs Table.mu, and a
// release is allowed with that held.
type drain struct {
	mu   lockorder.Mutex[lockorder.Drain]
	cond sync.Cond
}

func (d *drain) init() { d.cond.L = &d.mu }

// wake is called after the change of a word that somebody may wait for.
func (d *drain) wake() {
	d.mu.Lock() // a thread that looked before the change waits already
	defer d.mu.Unlock()
	d.cond.Broadcast()
}

// wait returns when e, which the caller saw revoked in generation gen, is
// drained. It may be in another generation by then.
func (d *drain) wait(e *entry, gen uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for e.word.Load()&^holdMask == gen|revokedBit {
		d.cond.Wait()
	}
}

// mayVanish reports whether the memory of the current generation may.
func (e *entry) mayVanish() bool { return e.grant.how.Load()&vanishBit != 0 }

// copyIn is memory.copyIn under a hold. It reports false if memory has vanished.
func (e *entry) copyIn(off uint64, src []byte, p party) bool {
	if e.mayVanish() {
		return e.mem.tryCopyIn(off, src, p)
	}
	e.mem.copyIn(off, src, p)
	return true
}

// copyOut is memory.copyOut under a hold. It reports false if memory has vanished.
func (e *entry) copyOut(dst []byte, off uint64, p party) bool {
	if e.mayVanish() {
		return e.mem.tryCopyOut(dst, off, p)
	}
	e.mem.copyOut(dst, off, p)
	return true
}

// sumOut is memory.sumOut under a hold, as copyOut.
func (e *entry) sumOut(crc uint32, dst []byte, off uint64, p party) (sum uint32, ok bool) {
	if e.mayVanish() {
		return e.mem.trySumOut(crc, dst, off, p)
	}
	return e.mem.sumOut(crc, dst, off, p), true
}
