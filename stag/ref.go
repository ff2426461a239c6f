package stag

import "math"

// Ref is a resolved range of a region, of a window or of physical memory. It
// is a small value, copied freely and kept as long as wanted; it keeps no lock.
// The zero Ref is that of a revoked STag without an octet.
type Ref struct {
	e   *entry
	gen uint64 // in which it was resolved
	off uint64 // in the memory of e
	n   uint64
}

// Len is the length of the range in octets.
func (r Ref) Len() uint64 { return r.n }

// Hold keeps the memory of the range usable until Release. It returns false,
// and there is nothing to release, if since Resolve the STag was deallocated
// or invalidated, or the pages freed, whatever has become of the STag since:
// the operation then fails with a protection error (verbs draft 7.8, 7.9). A
// hold lasts one copy or one non-blocking system call: the program's Deallocate
// waits for it. Holds nest and may be given back by another goroutine. Whoever
// has one must not deallocate or invalidate that STag.
func (r Ref) Hold() bool { return r.e != nil && r.e.hold(r.gen) }

// Release ends one successful Hold.
func (r Ref) Release() {
	if r.e != nil {
		r.e.release()
	}
}

// SameHold reports whether a hold of r covers o too, so that a batch over both
// holds once.
func (r Ref) SameHold(o Ref) bool { return r.e != nil && r.e == o.e && r.gen == o.gen }

// CopyIn holds the range and copies src to its octets from off on. It returns
// false, and has written nothing, if the STag was revoked or src does not fit; and
// false, with some of it written, if memory has vanished: Lost tells which.
func (r Ref) CopyIn(off uint64, src []byte) bool { return r.copyIn(off, src, program) }

// CopyInForPeer is CopyIn of what a peer writes by itself (see party).
func (r Ref) CopyInForPeer(off uint64, src []byte) bool { return r.copyIn(off, src, peer) }

func (r Ref) copyIn(off uint64, src []byte, p party) bool {
	if !r.contains(off, uint64(len(src))) || !r.Hold() {
		return false
	}
	ok := r.e.copyIn(r.off+off, src, p)
	r.e.release()
	return ok
}

// CopyOut holds the range and fills dst from its octets from off on. It
// returns false, and has written nothing, if the STag was revoked or dst is
// longer than what follows off; and false, with some of it written, if memory has
// vanished: Lost tells which.
func (r Ref) CopyOut(dst []byte, off uint64) bool {
	if !r.contains(off, uint64(len(dst))) || !r.Hold() {
		return false
	}
	ok := r.e.copyOut(dst, r.off+off, program)
	r.e.release()
	return ok
}

// CopyHeld is CopyOut for a caller that has a hold of the range.
func (r Ref) CopyHeld(dst []byte, off uint64) bool { return r.copyHeld(dst, off, program) }

// CopyHeldForPeer is CopyHeld of what a peer reads by itself (see party).
func (r Ref) CopyHeldForPeer(dst []byte, off uint64) bool { return r.copyHeld(dst, off, peer) }

func (r Ref) copyHeld(dst []byte, off uint64, p party) bool {
	if !r.contains(off, uint64(len(dst))) || !r.isHeld() {
		return false
	}
	return r.e.copyOut(dst, r.off+off, p)
}

// SumHeld is CopyHeld that continues crc, a CRC32C, with what is in dst then: if the memory changes
// meanwhile, it is that of the copy all the same.
func (r Ref) SumHeld(crc uint32, dst []byte, off uint64) (sum uint32, ok bool) {
	return r.sumHeld(crc, dst, off, program)
}

// SumHeldForPeer is SumHeld of what a peer reads by itself (see party).
func (r Ref) SumHeldForPeer(crc uint32, dst []byte, off uint64) (sum uint32, ok bool) {
	return r.sumHeld(crc, dst, off, peer)
}

func (r Ref) sumHeld(crc uint32, dst []byte, off uint64, p party) (sum uint32, ok bool) {
	if !r.contains(off, uint64(len(dst))) || !r.isHeld() {
		return crc, false
	}
	return r.e.sumOut(crc, dst, r.off+off, p)
}

// isHeld is false, though somebody says that he has a hold, if that cannot be.
func (r Ref) isHeld() bool { return r.e != nil && r.e.word.Load()&^(holdMask|revokedBit) == r.gen }

// Append appends the memory of octets [off, off+n) of the range to iov, in as
// many pieces as it has, and returns the longer slice. It allocates only when
// the capacity of iov does not suffice. The caller has a hold, and the pieces
// are not used after its release. Octets outside of the range, and a range of
// no octets, add nothing.
func (r Ref) Append(iov [][]byte, off, n uint64) [][]byte {
	if n == 0 || !r.contains(off, n) || !r.isHeld() {
		return iov
	}
	return r.e.mem.append(iov, r.off+off, n, math.MaxInt)
}

// Fill is Append up to the capacity of iov: what needs more pieces is left out. It
// allocates nothing.
func (r Ref) Fill(iov [][]byte, off, n uint64) [][]byte {
	if n == 0 || len(iov) == cap(iov) || !r.contains(off, n) || !r.isHeld() {
		return iov
	}
	return r.e.mem.append(iov, r.off+off, n, cap(iov))
}

// contains reports whether the n octets from off on are in the range.
func (r Ref) contains(off, n uint64) bool { return off <= r.n && n <= r.n-off }
