package vipl

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pages maps n pages for a test.
func pages(t *testing.T, n, protection int) []byte {
	t.Helper()
	b, err := syscall.Mmap(-1, 0, n*os.Getpagesize(), protection, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(b)) })
	return b
}

const (
	readOnly  = syscall.PROT_READ
	readWrite = syscall.PROT_READ | syscall.PROT_WRITE
)

// TestRegisterReadOnlyPages: pages that cannot be written to are not opened to RDMA Writes
// (VA-9.5.3-S1), wherever in the region they are.
func TestRegisterReadOnlyPages(t *testing.T) {
	h := newHost(t, Config{})
	size := os.Getpagesize()
	mem := pages(t, 3, readWrite)
	ptag, err := h.nic.CreatePtag()
	require.NoError(t, err)
	none, write := &MemAttributes{Ptag: ptag}, &MemAttributes{Ptag: ptag, EnableRdmaWrite: true}
	for name, c := range map[string]struct {
		page       int // whose protection is
		protection int
		attributes *MemAttributes
		want       Return
	}{
		"writable":                  {1, readWrite, write, Success},
		"the first read-only":       {0, readOnly, write, ErrInvalidParameter},
		"the second read-only":      {1, readOnly, write, ErrInvalidParameter},
		"the last read-only":        {2, readOnly, write, ErrInvalidParameter},
		"read-only, without writes": {1, readOnly, none, Success},
		"not readable":              {1, syscall.PROT_NONE, none, ErrInvalidParameter},
	} {
		page := mem[c.page*size : (c.page+1)*size]
		require.NoError(t, syscall.Mprotect(page, c.protection))
		handle, err := h.nic.RegisterMem(mem, c.attributes)
		assert.Equal(t, c.want, ReturnOf(err), "%s: %v", name, err)
		if err == nil {
			want := Success
			if c.protection == readOnly {
				want = ErrInvalidParameter
			}
			assert.Equal(t, want, ReturnOf(h.nic.SetMemAttributes(AddressOf(mem), handle, write)), name)
			require.NoError(t, h.nic.DeregisterMem(AddressOf(mem), handle), name)
		}
		require.NoError(t, syscall.Mprotect(page, readWrite))
	}
	hole := pages(t, 3, readWrite)
	require.NoError(t, syscall.Mprotect(hole[size:2*size], readOnly))
	part, err := h.nic.RegisterMem(hole[1:size], write)
	require.NoError(t, err, "what is beside the region does not matter")
	require.NoError(t, h.nic.DeregisterMem(AddressOf(hole)+1, part))
	require.NoError(t, h.nic.DestroyPtag(ptag), "nothing is left behind")
}

// vanishing are transfers between a and b of n octets, one end of which is memory that is
// not what it was when it was registered.
var vanishing = []struct {
	name  string
	write bool // the memory is written to
	near  bool // it is a's
	do    func(p *pair, d *Descriptor, far AddressSegment, near, receive DataSegment)
	send  [numLevels]Status // the bits of the Descriptor of a
	recv  Status            // of that of b, if there is one
}{
	{"receive", true, false, func(p *pair, d *Descriptor, _ AddressSegment, near, receive DataSegment) {
		p.b.postRecv(p.vb, receive)
		d.SetSend(near)
	}, [numLevels]Status{0, 0, remoteDesc}, protection},
	{"RDMA Write", true, false, func(_ *pair, d *Descriptor, far AddressSegment, near, _ DataSegment) {
		d.SetRdmaWrite(far, near)
	}, [numLevels]Status{0, 0, rdmaProt}, 0},
	{"RDMA Read", false, false, func(_ *pair, d *Descriptor, far AddressSegment, near, _ DataSegment) {
		d.SetRdmaRead(far, near)
	}, [numLevels]Status{0, rdmaProt, rdmaProt}, 0},
	{"sink of an RDMA Read", true, true, func(_ *pair, d *Descriptor, far AddressSegment, near, _ DataSegment) {
		d.SetRdmaRead(far, near)
	}, [numLevels]Status{0, protection, protection}, 0},
	{"source of a Send", false, true, func(p *pair, d *Descriptor, _ AddressSegment, near, receive DataSegment) {
		p.b.postRecv(p.vb, receive)
		d.SetSend(near)
	}, [numLevels]Status{protection, protection, protection}, StatusPartialError},
}

// TestMemoryVanishes: pages that become read-only or go away while they are registered are
// a protection error of the transfer that meets them, of 64 octets and of a megabyte, with
// and without CRC. The process lives.
func TestMemoryVanishes(t *testing.T) {
	for _, c := range vanishing {
		for _, level := range levels {
			for _, n := range []int{64, 1 << 20} {
				for _, crc := range []bool{false, true} {
					if level == ServiceUnreliable && (c.name == "RDMA Read" || c.name == "sink of an RDMA Read") {
						continue
					}
					name := c.name + ", " + level.String() + map[int]string{64: ", short"}[n] + map[bool]string{true: ", CRC"}[crc]
					t.Run(name, func(t *testing.T) {
						p := newPair(t, level, Config{CRC: crc})
						end, to := p.b, syscall.PROT_NONE
						if c.near {
							end = p.a
						}
						if c.write {
							to = readOnly
						}
						mem := pages(t, n/os.Getpagesize()+1, readWrite)
						handle, err := end.nic.RegisterMem(mem, &MemAttributes{Ptag: end.ptag, EnableRdmaWrite: true, EnableRdmaRead: true})
						require.NoError(t, err)
						require.NoError(t, syscall.Mprotect(mem[n/2/os.Getpagesize()*os.Getpagesize():], to))
						gone := DataSegment{Data: AddressOf(mem), Handle: handle, Length: uint32(n)}
						near, receive := p.a.data(0, n), p.b.data(0, n)
						far := p.b.at(0)
						if c.near {
							near = gone
						} else {
							receive, far = gone, AddressSegment{Data: gone.Data, Handle: gone.Handle}
						}
						d := p.a.desc()
						c.do(p, d, far, near, receive)
						p.a.postSend(p.va, d)
						wait(t, p.va.SendWait, d)
						// A long one at Reliable Delivery may be flushed, or done: the error is not told there.
						got := d.Control.Status.Errors() &^ (StatusPartialError | flushed)
						assert.Equal(t, c.send[level], got, "%v", d.Control.Status)
						if c.recv != 0 {
							r := wait(t, p.vb.RecvWait, nil)
							assert.Equal(t, c.recv, r.Control.Status.Errors()&c.recv, "%v", r.Control.Status)
						}
						require.NoError(t, syscall.Mprotect(mem, readWrite))
						if level == ServiceUnreliable {
							p.works(t)
						}
					})
				}
			}
		}
	}
}
