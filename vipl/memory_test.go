package vipl

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestPtags(t *testing.T) {
	h := newHost(t, Config{})
	p, err := h.nic.CreatePtag()
	require.NoError(t, err)
	require.NotEqual(t, h.ptag, p) // VA-3.2.2.1-M1
	require.NotZero(t, p)
	require.ErrorIs(t, h.nic.DestroyPtag(p+1), ErrInvalidParameter)
	require.ErrorIs(t, h.nic.DestroyPtag(h.ptag), ErrResource, "a region and descriptors have it")

	v := h.vi(0, nil, nil)
	a := h.attributes(0)
	a.Ptag = p
	require.NoError(t, v.SetViAttributes(a))
	require.ErrorIs(t, h.nic.DestroyPtag(p), ErrResource, "a VI has it")
	require.NoError(t, v.DestroyVi())
	require.NoError(t, h.nic.DestroyPtag(p))
	require.ErrorIs(t, h.nic.DestroyPtag(p), ErrInvalidParameter)

	require.NoError(t, h.nic.DeregisterMem(AddressOf(h.mem), h.handle))
	require.ErrorIs(t, h.nic.DestroyPtag(h.ptag), ErrResource)
	require.NoError(t, h.nic.DeregisterMem(AddressOf(h.descs), h.dh))
	require.NoError(t, h.nic.DestroyPtag(h.ptag))
}

// TestTagChange: a tag that nothing has any more can go.
func TestTagChange(t *testing.T) {
	h := newHost(t, Config{})
	mem, descs := make([]byte, 8), make([]Descriptor, 1)
	first, err := h.nic.CreatePtag()
	require.NoError(t, err)
	m, err := h.nic.RegisterMem(mem, &MemAttributes{Ptag: first})
	require.NoError(t, err)
	d, err := h.nic.RegisterDescriptors(descs, first)
	require.NoError(t, err)
	for _, change := range []func() error{
		func() error { return h.nic.SetMemAttributes(AddressOf(mem), m, &MemAttributes{Ptag: h.ptag}) },
		func() error { return h.nic.SetMemAttributes(AddressOf(descs), d, &MemAttributes{Ptag: h.ptag}) },
	} {
		require.ErrorIs(t, h.nic.DestroyPtag(first), ErrResource)
		require.NoError(t, change())
	}
	require.NoError(t, h.nic.DestroyPtag(first))
}

func TestRegisterMem(t *testing.T) {
	h := newHost(t, Config{})
	attributes := &MemAttributes{Ptag: h.ptag, EnableRdmaRead: true}
	for _, c := range []struct {
		memory     []byte
		attributes *MemAttributes
		want       Return
	}{
		{nil, attributes, ErrInvalidParameter}, // 9.5.3: of length zero
		{make([]byte, 0, 8), attributes, ErrInvalidParameter},
		{make([]byte, 8), nil, ErrInvalidParameter},
		{make([]byte, 8), &MemAttributes{}, ErrInvalidPtag},
		{make([]byte, 8), &MemAttributes{Ptag: h.ptag + 1}, ErrInvalidPtag},
	} {
		_, err := h.nic.RegisterMem(c.memory, c.attributes)
		require.Equal(t, c.want, ReturnOf(err))
	}
	again, err := h.nic.RegisterMem(h.mem[3:7], attributes) // 3.2.1: more than once, of any alignment
	require.NoError(t, err)
	require.NotEqual(t, h.handle, again)
	got, err := h.nic.QueryMem(AddressOf(h.mem)+3, again)
	require.NoError(t, err)
	require.Equal(t, attributes, got)

	p, err := h.nic.CreatePtag()
	require.NoError(t, err)
	next := &MemAttributes{Ptag: p, EnableRdmaWrite: true}
	require.NoError(t, h.nic.SetMemAttributes(AddressOf(h.mem)+3, again, next))
	got, err = h.nic.QueryMem(AddressOf(h.mem)+3, again)
	require.NoError(t, err)
	require.Equal(t, next, got)
	require.ErrorIs(t, h.nic.DestroyPtag(p), ErrResource)
	require.ErrorIs(t, h.nic.SetMemAttributes(AddressOf(h.mem)+3, again, &MemAttributes{Ptag: 99}), ErrInvalidPtag)
	require.ErrorIs(t, h.nic.SetMemAttributes(AddressOf(h.mem)+3, again, nil), ErrInvalidParameter)
	got, err = h.nic.QueryMem(AddressOf(h.mem)+3, again)
	require.NoError(t, err)
	require.Equal(t, next, got, "nothing has changed")

	for name, call := range map[string]func(Address, MemHandle) error{
		"deregister": h.nic.DeregisterMem,
		"query":      func(a Address, m MemHandle) error { _, err := h.nic.QueryMem(a, m); return err },
		"set":        func(a Address, m MemHandle) error { return h.nic.SetMemAttributes(a, m, next) },
	} {
		require.ErrorIs(t, call(AddressOf(h.mem), again), ErrInvalidParameter, name)
		require.ErrorIs(t, call(AddressOf(h.mem)+3, again+1), ErrInvalidParameter, name)
		require.ErrorIs(t, call(AddressOf(h.descs)+8, h.dh), ErrInvalidParameter, name)
	}
	require.NoError(t, h.nic.DeregisterMem(AddressOf(h.mem)+3, again))
	require.ErrorIs(t, h.nic.DeregisterMem(AddressOf(h.mem)+3, again), ErrInvalidParameter)
	require.NoError(t, h.nic.DestroyPtag(p))
}

func TestRegisterDescriptors(t *testing.T) {
	h := newHost(t, Config{})
	_, err := h.nic.RegisterDescriptors(nil, h.ptag)
	require.ErrorIs(t, err, ErrInvalidParameter)
	_, err = h.nic.RegisterDescriptors(h.descs, 0)
	require.ErrorIs(t, err, ErrInvalidPtag)
	got, err := h.nic.QueryMem(AddressOf(h.descs), h.dh)
	require.NoError(t, err)
	require.Equal(t, &MemAttributes{Ptag: h.ptag}, got)
	for _, a := range []*MemAttributes{{Ptag: h.ptag, EnableRdmaWrite: true}, {Ptag: h.ptag, EnableRdmaRead: true}} {
		require.ErrorIs(t, h.nic.SetMemAttributes(AddressOf(h.descs), h.dh, a), ErrInvalidParameter)
	}
	require.ErrorIs(t, h.nic.SetMemAttributes(AddressOf(h.descs), h.dh, &MemAttributes{Ptag: 99}), ErrInvalidPtag)
	p, err := h.nic.CreatePtag()
	require.NoError(t, err)
	require.NoError(t, h.nic.SetMemAttributes(AddressOf(h.descs), h.dh, &MemAttributes{Ptag: p}))
	got, err = h.nic.QueryMem(AddressOf(h.descs), h.dh)
	require.NoError(t, err)
	require.Equal(t, &MemAttributes{Ptag: p}, got)
	require.ErrorIs(t, h.nic.DestroyPtag(p), ErrResource)
}

// TestPostDescriptor is VA-6.1-M2, VA-6.1-M3 and VA-9.5.1-M1: where a posted Descriptor has
// to be.
func TestPostDescriptor(t *testing.T) {
	h := newHost(t, Config{})
	other, err := h.nic.CreatePtag()
	require.NoError(t, err)
	part, err := h.nic.RegisterDescriptors(h.descs[2:4], h.ptag)
	require.NoError(t, err)
	foreign, err := h.nic.RegisterDescriptors(h.descs[:1], other)
	require.NoError(t, err)
	gone, err := h.nic.RegisterDescriptors(h.descs[:1], h.ptag)
	require.NoError(t, err)
	require.NoError(t, h.nic.DeregisterMem(AddressOf(h.descs), gone))
	v := h.vi(ServiceReliableDelivery, nil, nil)
	for _, c := range []struct {
		name   string
		d      *Descriptor
		handle MemHandle
		want   Return
	}{
		{"none", nil, h.dh, ErrInvalidParameter},
		{"in its region", &h.descs[0], h.dh, Success},
		{"the last of its region", &h.descs[len(h.descs)-1], h.dh, Success},
		{"outside", new(Descriptor), h.dh, ErrInvalidParameter},
		{"in front of the region", &h.descs[1], part, ErrInvalidParameter},
		{"first", &h.descs[2], part, Success},
		{"last", &h.descs[3], part, Success},
		{"between two", (*Descriptor)(unsafe.Add(unsafe.Pointer(&h.descs[0]), 8)), h.dh, ErrInvalidParameter},
		{"behind", &h.descs[4], part, ErrInvalidParameter},
		{"handle of data", &h.descs[5], h.handle, ErrInvalidParameter},
		{"handle of nothing", &h.descs[5], 0, ErrInvalidParameter},
		{"another tag", &h.descs[0], foreign, ErrInvalidParameter},
		{"deregistered", &h.descs[0], gone, ErrInvalidParameter},
	} {
		require.Equal(t, c.want, ReturnOf(v.PostRecv(c.d, c.handle)), c.name)
		require.Equal(t, c.want, ReturnOf(v.PostSend(c.d, c.handle)), c.name)
	}
	h.noError() // 5.1: later
	require.Len(t, v.deferred, 16)
}
