package stag

import "github.com/softrnic/softrnic/wr"

// checkBuffers checks a physical buffer list but for its entries, and returns
// the TO of the first octet (verbs draft 7.6.1.1, 7.6.1.2, 7.6.2). pbl is how
// many entries there may be.
func (t *Table) checkBuffers(b *wr.PhysicalBuffers, pbl int, a wr.Addressing, va uint64) (base uint64, f AccessFault) {
	n := uint64(len(b.Addresses))
	switch {
	case !t.supports(b.Size):
		return 0, FaultBufferSize
	case n > uint64(pbl): // RV-7.3.2.5-M10
		return 0, FaultBufferList
	case b.FBO >= b.Size:
		return 0, FaultFBO
	case n == 0 || b.Length == 0 || b.Length > n*b.Size-b.FBO: // no overflow, see maxPBL
		return 0, FaultLength
	}
	return checkBase(a, va, b.Length, b.Size, b.FBO)
}

// checkBase returns the TO of the first octet of a region over buffers of the
// given size.
func checkBase(a wr.Addressing, va, length, size, fbo uint64) (base uint64, f AccessFault) {
	switch {
	case a == wr.ZeroBased: // RV-7.6.1.2-M2
		return 0, OK
	case a != wr.VABased, va == 0: // draft 7.6.1: a non-zero Virtual Address
		return 0, FaultVA
	case va%size != fbo: // RV-7.6.2.1-M4, RV-7.6.2.2-M3
		return 0, FaultVA
	// The end must be a 64-bit number too: an access to an octet at 1<<64-1
	// could only be refused (RFC 5041 7.1, check 5).
	case va+length < va:
		return 0, FaultVA
	}
	return va, OK
}

// lay appends the memory of a checked buffer list to pieces. Every buffer has to
// be in the memory of one AllocatePages, also those behind the length.
func (t *Table) lay(pieces []piece, b *wr.PhysicalBuffers) ([]piece, AccessFault) {
	var (
		in   *entry // the allocation of the last buffer, held
		next uint64 // the address behind it
		skip = b.FBO
		left = b.Length
		f    AccessFault
	)
	for _, addr := range b.Addresses {
		e := t.space.find(addr, b.Size)
		if e == nil || !t.config.BlockMode && addr%b.Size != 0 { // RV-7.6.2.1-M3
			f = FaultBufferEntry
			break
		}
		continues := addr == next // and so in the same allocation: no two touch
		if e != in {
			if !e.hold(0) { // freed; pages have one generation only
				f = FaultBufferEntry
				break
			}
			if in != nil {
				in.release()
			}
			in = e
		}
		if n := min(b.Size-skip, left); n > 0 {
			at := addr - e.grant.base.Load() + skip
			pieces = add(pieces, e.mem.whole[at:at+n], continues)
			left -= n
		}
		skip, next = 0, addr+b.Size
	}
	if in != nil {
		in.release()
	}
	return pieces, f
}

// faultErrors are the Immediate Errors that the verbs have for the faults of
// the work requests (draft 9.2.6.2, 9.5.1.6).
var faultErrors = [numFaults]wr.ImmediateError{
	FaultRights:      wr.ErrInvalidAccess,
	FaultBufferSize:  wr.ErrInvalidPhysBufferSize,
	FaultBufferEntry: wr.ErrInvalidPhysBufferEntry,
	FaultBufferList:  wr.ErrInvalidLength,
	FaultFBO:         wr.ErrInvalidFBO,
	FaultVA:          wr.ErrInvalidVA,
	FaultLength:      wr.ErrInvalidLength,
}
