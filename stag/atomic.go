package stag

import (
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/internal/safecopy"
)

// atomicSize is how many octets an Atomic Operation is about.
const atomicSize = 8

// Update holds the range, which is of eight octets, and replaces the number there by what f
// makes of it: a read-modify-write that is atomic against every other Update of the same
// memory, by whichever STag, and against the program's own use of it by sync/atomic (RFC 7306
// 5.3). f may be called several times. The number is in the byte order of the machine
// (RFC 7306 5.1.1).
//
// It returns what was there. aligned is false, and nothing was touched, unless the octets lie
// together at an address that is a multiple of eight (R7306-5.1.1-M3). ok is false, and
// nothing was changed, if the STag was revoked or the memory has vanished: Lost tells which.
func (r Ref) Update(f func(uint64) uint64) (old uint64, aligned, ok bool) {
	if r.n != atomicSize || !r.Hold() {
		return 0, true, false
	}
	defer r.e.release()
	p := r.e.mem.word(r.off)
	switch {
	case p == nil:
		return 0, false, true
	case r.e.mayVanish():
		old, ok = tryUpdate(p, f)
		return old, true, ok
	}
	return update(p, f), true, true
}

func update(p *uint64, f func(uint64) uint64) uint64 {
	for {
		old := atomic.LoadUint64(p)
		if atomic.CompareAndSwapUint64(p, old, f(old)) {
			return old
		}
	}
}

func tryUpdate(p *uint64, f func(uint64) uint64) (old uint64, ok bool) {
	if safecopy.Foreign() && !safecopy.Writable(unsafe.Pointer(p)) {
		return 0, false // else what vanishes from here on ends the process
	}
	defer endFault(debug.SetPanicOnFault(true))
	return update(p, f), true
}

// word is where the eight octets from off on are, nil if they are not in one stretch or
// not aligned. They are in the memory.
func (m *memory) word(off uint64) *uint64 {
	mem := m.whole
	if m.pieces != nil {
		i, skip := m.from(off)
		mem, off = m.pieces[i].mem, skip
	}
	if uint64(len(mem))-off < atomicSize {
		return nil
	}
	p := unsafe.Pointer(&mem[off])
	if uintptr(p)%atomicSize != 0 {
		return nil
	}
	return (*uint64)(p)
}
