package stag

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/softrnic/softrnic/wr"
)

// The sizes of physical buffers, in octets. Pages are powers of two in their
// range, blocks any number in theirs (verbs draft 7.6.2.1, 7.6.2.2).
const (
	MinPage  = 4 << 10
	MaxPage  = 1 << 30
	MinBlock = 1
	MaxBlock = 1 << 30
)

// PageSizes are the page sizes that an RNIC in page mode supports, ascending.
func PageSizes() []uint64 {
	var sizes []uint64
	for size := uint64(MinPage); size <= MaxPage; size *= 2 {
		sizes = append(sizes, size)
	}
	return sizes
}

// supports reports whether size is one of a physical buffer.
func (t *Table) supports(size uint64) bool {
	if t.config.BlockMode {
		return size >= MinBlock && size <= MaxBlock
	}
	return size >= MinPage && size <= MaxPage && size&(size-1) == 0
}

// Pages are physical buffers that a program obtained with AllocatePages: Go memory
// with physical addresses.
type Pages struct {
	t    *Table
	e    *entry
	mem  []byte
	size uint64
}

// space is the physical address space. An address is given out once and never
// again, so what was freed cannot be mistaken for something else; 64 bits last
// for that.
type space struct {
	// list is every allocation by ascending address. It is looked up without
	// a lock. What is published is not changed: adding appends behind it,
	// and freed ones stay until a quarter is freed and a new list is made.
	list atomic.Pointer[[]*entry]

	// Guarded by Table.mu.

	next  uint64 // first address never given out
	used  uint64 // octets given out and not freed
	freed int    // in list
}

// firstAddress leaves addresses out that zeroed or small values would hit.
const firstAddress = 1 << 32

// reset makes s empty. A new space needs it too.
func (s *space) reset() {
	s.list.Store(new([]*entry))
	s.next, s.used, s.freed = max(s.next, firstAddress), 0, 0
}

// find returns the allocation that has all of the n octets at addr, n not zero;
// nil if none has. It may be a freed one. It is safe at any time.
func (s *space) find(addr, n uint64) *entry {
	list := *s.list.Load()
	lo, hi := 0, len(list) // the first that begins above addr
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if list[mid].grant.base.Load() <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return nil
	}
	e := list[lo-1]
	length := e.grant.length.Load()
	if off := addr - e.grant.base.Load(); off >= length || n > length-off {
		return nil
	}
	return e
}

// AllocatePages gives the program n physical buffers of size octets: contiguous in
// the address space of the RNIC and in Go memory, zeroed, and in page mode
// aligned to size. Errors: wr.ErrInvalidRNIC; wr.ErrInvalidPhysBufferSize (not
// one of PageSizes, or of MinBlock to MaxBlock in block mode);
// wr.ErrInvalidLength (n below one); wr.ErrInsufficientResources (beyond
// Config.PhysicalMemory).
func (t *Table) AllocatePages(n int, size uint64) (*Pages, error) {
	if !t.supports(size) {
		what, remedy := t.wrongSize(size)
		return nil, &wr.Reason{Err: wr.ErrInvalidPhysBufferSize, What: what, Remedy: remedy}
	}
	if n < 1 {
		return nil, &wr.Reason{Err: wr.ErrInvalidLength, What: fmt.Sprintf("%d pages", n), Remedy: "ask for one at least"}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.space.alloc(t, uint64(n), size)
	if err != nil {
		return nil, err
	}
	return &Pages{t: t, e: e, mem: e.mem.whole, size: size}, nil
}

func (s *space) alloc(t *Table, n, size uint64) (*entry, error) {
	if t.closed {
		return nil, errClosed
	}
	if n > (t.config.PhysicalMemory-s.used)/size {
		return nil, &wr.Reason{Err: wr.ErrInsufficientResources, What: fmt.Sprintf("%d pages of %d octets, and %d of %d octets are in use", n, size, s.used, t.config.PhysicalMemory)}
	}
	align := uint64(MinPage)
	if !t.config.BlockMode {
		align = size
	}
	length := n * size
	base := (s.next + align - 1) &^ (align - 1)
	if base < s.next || base+length+MinPage < base {
		return nil, &wr.Reason{Err: wr.ErrInsufficientResources, What: "no addresses are left"}
	}
	e := &entry{drain: &t.drain, mem: memory{whole: make([]byte, length)}}
	e.grant.store(grant{base: base, length: length})
	s.next = base + length + MinPage // what goes beyond the end hits nothing
	s.used += length
	list := append(*s.list.Load(), e)
	s.list.Store(&list)
	return e, nil
}

// Addresses are the physical addresses of all buffers.
func (p *Pages) Addresses() []uint64 {
	all := make([]uint64, uint64(len(p.mem))/p.size)
	for i := range all {
		all[i] = p.Address(i)
	}
	return all
}

// Address is the physical address of buffer i. It is not zero.
func (p *Pages) Address(i int) uint64 { return p.e.grant.base.Load() + uint64(i)*p.size }

// Size is that of each buffer, in octets.
func (p *Pages) Size() uint64 { return p.size }

// Bytes is the memory of all buffers, one after the other.
func (p *Pages) Bytes() []byte { return p.mem }

// Deallocate takes the addresses back. When it returns nil, nothing touches the
// memory through the STag of zero any more. A region that was registered over
// these pages is not affected, and keeps the Go memory alive: it is for the
// program to deallocate it first (verbs draft 7.6.2). Errors:
// wr.ErrInvalidRNIC; wr.ErrInvalidModifier (they were freed).
func (p *Pages) Deallocate() error {
	t := p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed
	}
	if p.e.isRevoked() {
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: "they were freed", Remedy: "free them once"}
	}
	p.e.revoke()
	t.space.free(p.e)
	t.await(p.e)
	return nil
}

// free counts a revoked allocation out, and makes a new list when many are.
func (s *space) free(e *entry) {
	s.used -= e.grant.length.Load()
	s.freed++
	old := *s.list.Load()
	if 4*s.freed < len(old) {
		return
	}
	list := slices.DeleteFunc(slices.Clone(old), (*entry).isRevoked) // lookups go on in the old one
	s.list.Store(&list)
	s.freed = 0
}
