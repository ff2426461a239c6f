package verbs

import "github.com/softrnic/softrnic/stag"

// Pages is physical memory of an RNIC that the program holds (verbs draft 7.6.2):
// buffers of one size, one after the other in the RNIC's physical address space,
// and Go memory to the program.
type Pages struct {
	rnic *RNIC
	p    *stag.Pages
}

// AllocatePages gets n buffers of size octets each. In page mode size is one of the
// RNIC's page sizes, in block mode anything in its range. Errors: ErrInvalidRNIC,
// ErrInvalidLength (n below 1), ErrInvalidPhysBufferSize,
// ErrInsufficientResources.
func (r *RNIC) AllocatePages(n int, size uint64) (_ *Pages, err error) {
	defer asRefused(&err, "Allocate Pages", "verbs draft 7.6.2", Reason{})
	if err := r.refusal(); err != nil {
		return nil, err
	}
	p, err := r.stags.AllocatePages(n, size)
	if err != nil {
		return nil, r.explain(err)
	}
	return &Pages{r, p}, nil
}

// Bytes is the memory.
func (p *Pages) Bytes() []byte { return p.p.Bytes() }

// Size is that of one buffer, in octets.
func (p *Pages) Size() uint64 { return p.p.Size() }

// Addresses are the physical addresses of the buffers.
func (p *Pages) Addresses() []uint64 { return p.p.Addresses() }

// Address is the physical address of buffer i, and so the tagged offset of its
// first octet for the STag of zero.
func (p *Pages) Address(i int) uint64 { return p.p.Address(i) }

// List is the Physical Buffer List of n octets, at least one, from octet off on.
func (p *Pages) List(off, n int) PhysicalBuffers {
	size := p.Size()
	first, last := uint64(off)/size, (uint64(off)+uint64(n)-1)/size
	return PhysicalBuffers{
		Size: size, Addresses: p.Addresses()[first : last+1], FBO: uint64(off) % size, Length: uint64(n),
	}
}

// Deallocate gives the memory back. When it returns nothing is placed in it or read
// from it through the STag of zero any more. A region over it stays as it is: it
// is to be deregistered or invalidated first. Errors: ErrInvalidRNIC,
// ErrInvalidModifier (it was freed already).
func (p *Pages) Deallocate() (err error) {
	defer asRefused(&err, "Free Pages", "verbs draft 7.6.2", Reason{})
	if err := p.rnic.refusal(); err != nil {
		return err
	}
	return p.rnic.explain(p.p.Deallocate())
}
