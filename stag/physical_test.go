package stag

import (
	"bytes"
	"math"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

var root = User{PD: 1, QP: 1, Privileged: true}

func TestPageSizes(t *testing.T) {
	sizes := PageSizes()
	require.Len(t, sizes, 19)
	require.Equal(t, uint64(4096), sizes[0])
	require.Equal(t, uint64(1<<30), sizes[18])
	tb := NewTable(Config{})
	for i, size := range sizes {
		assert.True(t, tb.supports(size))
		assert.False(t, tb.supports(size+1))
		assert.False(t, tb.supports(size-1))
		if i > 0 {
			assert.Equal(t, 2*sizes[i-1], size)
		}
	}
	for _, size := range []uint64{0, 1, 2048, 1 << 31, 1 << 63, math.MaxUint64} {
		assert.False(t, tb.supports(size), size)
	}
	block := NewTable(Config{BlockMode: true})
	for size, want := range map[uint64]bool{0: false, 1: true, 4095: true, 1<<30 - 1: true, 1 << 30: true, 1<<30 + 1: false} {
		assert.Equal(t, want, block.supports(size), size)
	}
}

func TestAllocatePages(t *testing.T) {
	tb := NewTable(Config{})
	var end uint64
	for _, c := range []struct {
		n    int
		size uint64
	}{{1, 4096}, {3, 8192}, {1, 1 << 20}, {2, 4096}} {
		p := pages(t, tb, c.n, c.size)
		require.Equal(t, c.size, p.Size())
		require.Len(t, p.Addresses(), c.n)
		require.Equal(t, make([]byte, uint64(c.n)*c.size), p.Bytes(), "zeroed")
		for i, a := range p.Addresses() {
			require.NotZero(t, a)
			require.Zero(t, a%c.size, "RV-7.6.2.1-M2")
			require.Equal(t, a, p.Address(i))
			require.Equal(t, p.Address(0)+uint64(i)*c.size, a, "contiguous")
		}
		require.Greater(t, p.Address(0), end, "a gap between two")
		end = p.Address(0) + uint64(c.n)*c.size
	}
}

func TestAllocBlocks(t *testing.T) {
	tb := NewTable(Config{BlockMode: true})
	p := pages(t, tb, 5, 7)
	require.Len(t, p.Bytes(), 35)
	require.Equal(t, p.Address(0)+28, p.Address(4))
	q := pages(t, tb, 1, 1)
	require.Greater(t, q.Address(0), p.Address(0)+35)
}

func TestAllocatePagesRefuses(t *testing.T) {
	tb := NewTable(Config{PhysicalMemory: 10 * page})
	p := pages(t, tb, 4, page)
	for _, c := range []struct {
		n    int
		size uint64
		want error
	}{
		{1, 0, wr.ErrInvalidPhysBufferSize},
		{1, 4097, wr.ErrInvalidPhysBufferSize},
		{1, 2048, wr.ErrInvalidPhysBufferSize},
		{0, page, wr.ErrInvalidLength},
		{-1, page, wr.ErrInvalidLength},
		{7, page, wr.ErrInsufficientResources},
		{1, 8 * page, wr.ErrInsufficientResources},
		{math.MaxInt, 1 << 30, wr.ErrInsufficientResources},
	} {
		_, err := tb.AllocatePages(c.n, c.size)
		require.ErrorIs(t, err, c.want, "%+v", c)
	}
	q := pages(t, tb, 6, page)
	require.NoError(t, p.Deallocate())
	require.ErrorIs(t, p.Deallocate(), wr.ErrInvalidModifier)
	r := pages(t, tb, 4, page)
	require.Greater(t, r.Address(0), q.Address(5), "addresses are not used again")
	_, err := tb.AllocatePages(1, page)
	require.ErrorIs(t, err, wr.ErrInsufficientResources)

	tb.space.next = math.MaxUint64 - page
	require.NoError(t, q.Deallocate())
	_, err = tb.AllocatePages(1, page)
	require.ErrorIs(t, err, wr.ErrInsufficientResources, "no addresses are left")
	tb.space.next = math.MaxUint64 - 3*page + 1 // room for one and the gap behind it
	pages(t, tb, 1, page)

	tb.Close()
	_, err = tb.AllocatePages(1, page)
	require.ErrorIs(t, err, wr.ErrInvalidRNIC)
	require.ErrorIs(t, r.Deallocate(), wr.ErrInvalidRNIC)
}

// Draft 7.2.1, rules 1 to 3: for privileged users, with local rights, whatever
// the domain.
func TestZeroRights(t *testing.T) {
	tb := NewTable(Config{})
	addr := pages(t, tb, 1, page).Address(0)
	user := alice
	priv := alice
	priv.Privileged = true
	for _, c := range []struct {
		name string
		s    wr.STag
		u    User
		need wr.Access
		want AccessFault
	}{
		{"read", 0, root, wr.LocalRead, OK},
		{"write", 0, root, wr.LocalWrite, OK},
		{"both", 0, root, localRights, OK},
		{"any PD", 0, priv, wr.LocalRead, OK},
		{"not privileged", 0, user, wr.LocalRead, FaultSTag},
		{"remote read", 0, root, wr.RemoteRead, FaultSTag},
		{"remote write", 0, root, wr.RemoteWrite, FaultSTag},
		{"local and remote", 0, root, wr.LocalRead | wr.RemoteRead, FaultSTag},
		{"sink of an RDMA Read", 0, root, 0, FaultSTag},
		{"with a key", wr.MakeSTag(0, 1), root, wr.LocalRead, FaultSTag},
	} {
		ref, f := tb.Resolve(c.s, addr, 1, c.u, c.need)
		assert.Equal(t, c.want, f, c.name)
		assert.Equal(t, f == OK, ref.CopyOut(make([]byte, 1), 0), c.name)
	}
}

func TestZeroBounds(t *testing.T) {
	tb := NewTable(Config{})
	a, b := pages(t, tb, 2, page), pages(t, tb, 1, page)
	c := pages(t, tb, 1, page)
	const top = math.MaxUint64
	for _, x := range []struct {
		name  string
		to, n uint64
		want  AccessFault
	}{
		{"all of the first", a.Address(0), 2 * page, OK},
		{"last octet", a.Address(1) + page - 1, 1, OK},
		{"over both pages", a.Address(1) - 1, 2, OK},
		{"one too far", a.Address(1) + page, 1, FaultBounds},
		{"one too long", a.Address(0), 2*page + 1, FaultBounds},
		{"to the next allocation", a.Address(0), b.Address(0) - a.Address(0) + 1, FaultBounds},
		{"before the first", a.Address(0) - 1, 1, FaultBounds},
		{"before the second", b.Address(0) - 1, 1, FaultBounds},
		{"the second", b.Address(0) + 1, page - 1, OK},
		{"the last", c.Address(0), page, OK},
		{"behind the last", c.Address(0) + page, 1, FaultBounds},
		{"zero", 0, 1, FaultBounds},
		{"top", top, 1, FaultBounds},
		{"wrap", top, 2, FaultWrap},
		{"longest", a.Address(0), top, FaultWrap},
		{"longest from 0", 0, top, FaultBounds},
	} {
		_, f := tb.Resolve(0, x.to, x.n, root, wr.LocalRead)
		assert.Equal(t, x.want, f, x.name)
	}
	ref, _ := tb.Resolve(0, a.Address(1)-1, 2, root, wr.LocalWrite)
	require.True(t, ref.CopyIn(0, []byte("ab")))
	require.Equal(t, "ab", string(a.Bytes()[page-1:page+1]), "RV-7.2.1-M1")
}

// Draft 7.2.1, rules 4 to 6: nothing else takes the STag of zero.
func TestZeroRefused(t *testing.T) {
	tb := NewTable(Config{})
	p := pages(t, tb, 1, page)
	u := consumer(alice)
	w, r := window(t, tb), register(t, tb, RegionConfig{})
	buffers := wr.PhysicalBuffers{Size: page, Addresses: p.Addresses(), Length: 1}
	for _, zero := range []wr.STag{0, wr.MakeSTag(0, 9)} {
		unchanged(t, tb, func() {
			for verb, err := range map[string]error{
				"reregister": second(tb.Reregister(zero, RegionConfig{PD: 1, Access: 1, Memory: make([]byte, 1)})),
				"shared":     second(tb.RegisterShared(zero, SharedConfig{PD: 1, Access: 1})),
				"query":      second(tb.QueryRegion(zero)),
				"query MW":   second(tb.QueryWindow(zero)),
				"deallocate": tb.Deallocate(zero),
			} {
				assert.ErrorIs(t, err, wr.ErrInvalidSTag, verb)
			}
			for op, f := range map[string]AccessFault{
				"local":  tb.InvalidateLocal(zero, u),
				"remote": tb.InvalidateRemote(zero, u),
				"fast":   tb.FastRegister(&wr.FastRegisterRequest{STag: zero, Buffers: buffers, Addressing: wr.ZeroBased, Access: 1}, u),
			} {
				assert.Equal(t, FaultSTag, f, op)
			}
			assert.Equal(t, FaultWindow, tb.Bind(&wr.BindRequest{Window: zero, Region: r.STag, VA: r.Base, Length: 1, Access: wr.RemoteRead}, u))
			assert.Equal(t, FaultRegion, tb.Bind(&wr.BindRequest{Window: w, Region: zero, VA: p.Address(0), Length: 1, Access: wr.RemoteRead}, u))
		}, w, r.STag)
	}
	_, f := tb.Resolve(0, p.Address(0), page, root, localRights)
	assert.Equal(t, OK, f, "RV-7.2.1-M14")
}

func second[T any](_ T, err error) error { return err }

func TestFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := NewTable(Config{})
		p, q := pages(t, tb, 1, page), pages(t, tb, 1, page)
		r := register(t, tb, RegionConfig{Addressing: wr.ZeroBased, Buffers: wr.PhysicalBuffers{
			Size: page, Addresses: []uint64{q.Address(0), p.Address(0)}, Length: 2 * page,
		}})
		ref, f := tb.Resolve(0, p.Address(0), 8, root, localRights)
		require.Equal(t, OK, f)
		require.True(t, ref.Hold())
		done := make(chan error, 1)
		go func() { done <- p.Deallocate() }()
		synctest.Wait()
		require.Empty(t, done, "Free returned under a hold")
		_, f = tb.Resolve(0, p.Address(0), 8, root, localRights)
		require.Equal(t, FaultBounds, f)
		require.False(t, ref.CopyIn(0, []byte{1}))
		require.ErrorIs(t, p.Deallocate(), wr.ErrInvalidModifier)
		ref.Release()
		require.NoError(t, <-done)
		require.False(t, ref.CopyIn(0, []byte{1}))

		// The region over it goes on; a new one there cannot be.
		all := resolve(t, tb, r.STag, 0, 2*page)
		require.True(t, all.CopyIn(page, []byte{7}))
		require.Equal(t, byte(7), p.Bytes()[0])
		_, err := tb.Register(RegionConfig{PD: 1, Access: wr.LocalRead, Addressing: wr.ZeroBased,
			Buffers: wr.PhysicalBuffers{Size: page, Addresses: p.Addresses(), Length: 1}})
		require.ErrorIs(t, err, wr.ErrInvalidPhysBufferEntry)
		_, f = tb.Resolve(0, q.Address(0), 8, root, localRights)
		require.Equal(t, OK, f, "other pages are not affected")
		tb.Close()
		_, f = tb.Resolve(0, q.Address(0), 8, root, localRights)
		require.Equal(t, FaultBounds, f)
	})
}

// The list of allocations against a map, with many that come and go.
func TestSpaceTwin(t *testing.T) {
	tb := NewTable(Config{BlockMode: true})
	live := map[uint64]*Pages{}
	var order, dead []uint64
	for i := range 400 {
		if len(order) > 0 && i%5 < i/100 {
			a := order[i*7%len(order)]
			if p := live[a]; p != nil {
				require.NoError(t, p.Deallocate())
				delete(live, a)
				dead = append(dead, a)
			}
			continue
		}
		p := pages(t, tb, 1+i%3, 10)
		live[p.Address(0)] = p
		order = append(order, p.Address(0))
	}
	require.NotEmpty(t, dead)
	found := func(a, n uint64) bool {
		_, f := tb.Resolve(0, a, n, root, wr.LocalRead)
		return f == OK
	}
	for a, p := range live {
		n := uint64(len(p.Bytes()))
		require.True(t, found(a, n))
		require.False(t, found(a-1, 1))
		require.False(t, found(a, n+1))
		require.False(t, found(a+n, 1))
	}
	for _, a := range dead {
		require.False(t, found(a, 1))
	}
	freed := 0
	for _, e := range *tb.space.list.Load() {
		if e.isRevoked() {
			freed++
		}
	}
	require.Equal(t, tb.space.freed, freed)
	require.LessOrEqual(t, 4*freed, len(live)+freed+4, "freed ones do not pile up")
	var used uint64
	for _, p := range live {
		used += uint64(len(p.Bytes()))
	}
	require.Equal(t, used, tb.space.used)
}

// Freed pages are let go of by the table, and by Refs that are kept.
func TestFreeForgets(t *testing.T) {
	tb := NewTable(Config{})
	p := pages(t, tb, 1, page)
	ref, f := tb.Resolve(0, p.Address(0), page, root, wr.LocalRead)
	require.Equal(t, OK, f)
	require.NoError(t, p.Deallocate())
	require.Zero(t, ref.e.mem)
	require.True(t, bytes.Equal(p.Bytes(), make([]byte, page)), "the program's for as long as it wants")
}

// What was freed stays in the list for a while. Nothing finds memory there, and
// whoever tried holds nothing.
func TestFreedInList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := NewTable(Config{})
		var all []*Pages
		for range 8 {
			all = append(all, pages(t, tb, 1, page))
		}
		gone := all[3].Address(0)
		require.NoError(t, all[3].Deallocate())
		require.Len(t, *tb.space.list.Load(), 8, "it is there still")
		_, f := tb.Resolve(0, gone, 1, root, wr.LocalRead)
		require.Equal(t, FaultBounds, f)
		for _, addresses := range [][]uint64{
			{gone}, {all[0].Address(0), gone}, {gone, all[0].Address(0)}, {all[0].Address(0), gone, all[1].Address(0)},
		} {
			_, err := tb.Register(RegionConfig{PD: 1, Access: wr.LocalRead, Addressing: wr.ZeroBased,
				Buffers: wr.PhysicalBuffers{Size: page, Addresses: addresses, Length: 1}})
			require.ErrorIs(t, err, wr.ErrInvalidPhysBufferEntry)
		}
		require.NoError(t, all[0].Deallocate(), "no hold is left")
		require.Len(t, *tb.space.list.Load(), 6, "a quarter of it is enough")
		require.NoError(t, all[1].Deallocate())
	})
}
