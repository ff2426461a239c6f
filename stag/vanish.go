package stag

import (
	"math"
	"runtime/debug"

	"github.com/softrnic/softrnic/internal/crc32c"
	"github.com/softrnic/softrnic/internal/safecopy"
)

// Memory that vanishes. An adapter pins the pages of a region, and what a program does
// to its mappings does not reach them. We cannot: a page that was unmapped, or made
// read-only, faults. Where the region says so (RegionConfig.MayVanish), copies run under
// debug.SetPanicOnFault and such a fault is a protection error of the one operation
// that met it. If the program has put handlers of its own over Go's, which make that panic, the
// system copies in place of us (internal/safecopy). Else system calls are kept away from that memory: what they did not get could
// not be told from the connection's failure within an FPDU.

// MayVanish reports whether the memory may vanish: it is copied then and not named in a
// system call. It takes no hold; of a revoked range the answer means nothing.
func (r Ref) MayVanish() bool { return r.e != nil && r.e.mayVanish() }

// Lost says why a copy within the range, or a hold of it, has just failed:
// FaultAccess if its memory has vanished, else FaultSTag, because it was revoked.
func (r Ref) Lost() AccessFault {
	if r.e != nil && r.e.word.Load()&^holdMask == r.gen {
		return FaultAccess
	}
	return FaultSTag
}

// lookFrom is the length from which a copy takes so long that looking at the signal handlers is
// nothing to it.
const lookFrom = 64 << 10

// unguarded reports whether a copy of n octets that faults would end the process.
func unguarded(n int) bool {
	if n >= lookFrom {
		safecopy.Look()
	}
	return safecopy.Foreign()
}

func (m *memory) tryCopyIn(off uint64, src []byte, p party) (ok bool) {
	if unguarded(len(src)) {
		for _, mem := range m.append(nil, off, uint64(len(src)), math.MaxInt) {
			if !safecopy.Write(mem, src[:len(mem)]) {
				return false
			}
			src = src[len(mem):]
		}
		return true
	}
	defer endFault(debug.SetPanicOnFault(true))
	m.copyIn(off, src, p)
	return true
}

func (m *memory) tryCopyOut(dst []byte, off uint64, p party) (ok bool) {
	if unguarded(len(dst)) {
		for _, mem := range m.append(nil, off, uint64(len(dst)), math.MaxInt) {
			if !safecopy.Read(dst[:len(mem)], mem) {
				return false
			}
			dst = dst[len(mem):]
		}
		return true
	}
	defer endFault(debug.SetPanicOnFault(true))
	m.copyOut(dst, off, p)
	return true
}

func (m *memory) trySumOut(crc uint32, dst []byte, off uint64, p party) (sum uint32, ok bool) {
	if unguarded(len(dst)) {
		ok = m.tryCopyOut(dst, off, p)
		return crc32c.Update(crc, dst), ok
	}
	defer endFault(debug.SetPanicOnFault(true))
	return m.sumOut(crc, dst, off, p), true
}

// endFault ends a copy, deferred by it: before is what debug.SetPanicOnFault was. A
// fault at an address leaves the result false; any other panic goes on.
func endFault(before bool) {
	debug.SetPanicOnFault(before)
	if p := recover(); p != nil {
		if _, fault := p.(interface{ Addr() uintptr }); !fault {
			panic(p)
		}
	}
}
