package stag

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// bufferCases are buffer lists over p, four pages of a table with room for six
// entries, with what is wrong with them: the same for the verbs and for
// Fast-Register (draft 7.6.1.1, 7.6.2, 9.5.1.6, figure 36).
func bufferCases(p *Pages) map[string]bufferCase {
	a := p.Addresses()
	seven := []uint64{a[0], a[1], a[2], a[3], a[0], a[1], a[2]}
	list := func(fbo, length uint64, addresses ...uint64) wr.PhysicalBuffers {
		return wr.PhysicalBuffers{Size: page, Addresses: addresses, FBO: fbo, Length: length}
	}
	sized := func(size uint64) wr.PhysicalBuffers {
		return wr.PhysicalBuffers{Size: size, Addresses: a, Length: 1}
	}
	const va, zero = wr.VABased, wr.ZeroBased
	const top = math.MaxUint64
	return map[string]bufferCase{
		"whole":               {list(0, 4*page, a...), zero, 0, OK},
		"one octet":           {list(4095, 1, a[2]), zero, 0, OK},
		"backwards":           {list(1, 8190, a[3], a[0]), zero, 0, OK},
		"same page twice":     {list(0, 2*page, a[1], a[1]), zero, 0, OK},
		"more than needed":    {list(5, 10, a...), zero, 0, OK},
		"six entries":         {list(0, 6*page, seven[:6]...), zero, 0, OK},
		"VA":                  {list(5, 100, a[0]), va, 77*page + 5, OK},
		"VA 0 to FBO":         {list(5, 100, a[0]), va, 5, OK},
		"last VA":             {list(0xFFE, 1, a[0]), va, top - 1, OK},
		"size 0":              {sized(0), zero, 0, FaultBufferSize},
		"size 4097":           {sized(4097), zero, 0, FaultBufferSize},
		"size 2048":           {sized(2048), zero, 0, FaultBufferSize},
		"size 2 GiB":          {sized(1 << 31), zero, 0, FaultBufferSize},
		"seven entries":       {list(0, 1, seven...), zero, 0, FaultBufferList},
		"FBO is size":         {list(page, 1, a...), zero, 0, FaultFBO},
		"FBO above size":      {list(top, 1, a...), zero, 0, FaultFBO},
		"no length":           {list(0, 0, a...), zero, 0, FaultLength},
		"too long":            {list(0, 4*page+1, a...), zero, 0, FaultLength},
		"too long with FBO":   {list(1, 4*page, a...), zero, 0, FaultLength},
		"longest":             {list(0, top, a...), zero, 0, FaultLength},
		"no entries":          {list(0, 1), zero, 0, FaultLength},
		"no entries, FBO":     {list(9, 1), zero, 0, FaultLength},
		"VA 0":                {list(0, 1, a[0]), va, 0, FaultVA},
		"VA off by one":       {list(5, 1, a[0]), va, 77*page + 6, FaultVA},
		"VA off FBO":          {list(5, 1, a[0]), va, 77 * page, FaultVA},
		"VA too high":         {list(0xFFF, 1, a[0]), va, top, FaultVA},
		"VA and length":       {list(0, page, a[0]), va, top - 0xFFF, FaultVA},
		"addressing type":     {list(0, 1, a[0]), 2, 5 * page, FaultVA},
		"not aligned":         {list(0, 1, a[0]+1), zero, 0, FaultBufferEntry},
		"half a page":         {list(0, 1, a[0]+2048), zero, 0, FaultBufferEntry},
		"second not aligned":  {list(0, 1, a[0], a[1]+1), zero, 0, FaultBufferEntry},
		"address 0":           {list(0, 1, 0), zero, 0, FaultBufferEntry},
		"no such page":        {list(0, 1, a[3]+page), zero, 0, FaultBufferEntry},
		"page before":         {list(0, 1, a[0]-page), zero, 0, FaultBufferEntry},
		"last not needed":     {list(0, 1, a[0], a[0]-page), zero, 0, FaultBufferEntry},
		"two pages, off":      {sizedAt(2*page, a[0]+page), zero, 0, FaultBufferEntry},
		"last address":        {list(0, 1, top-page+1), zero, 0, FaultBufferEntry},
		"order: size first":   {wr.PhysicalBuffers{Size: 3, Addresses: seven, FBO: 9}, 2, 1, FaultBufferSize},
		"order: list second":  {list(top, 0, seven...), 2, 1, FaultBufferList},
		"order: FBO third":    {list(page, 0, 1), 2, 1, FaultFBO},
		"order: length next":  {list(0, 0, 1), 2, 1, FaultLength},
		"order: VA then":      {list(0, 1, 1), va, 1, FaultVA},
		"order: entries last": {list(1, 1, 1), va, 1, FaultBufferEntry},
	}
}

type bufferCase struct {
	buffers    wr.PhysicalBuffers
	addressing wr.Addressing
	va         uint64
	want       AccessFault
}

func sizedAt(size uint64, addresses ...uint64) wr.PhysicalBuffers {
	return wr.PhysicalBuffers{Size: size, Addresses: addresses, Length: 1}
}

// content is what the octets of a buffer list should be.
func content(t *testing.T, tb *Table, b wr.PhysicalBuffers) []byte {
	t.Helper()
	var all []byte
	for _, a := range b.Addresses {
		ref, f := tb.Resolve(0, a, b.Size, root, wr.LocalRead)
		require.Equal(t, OK, f)
		one := make([]byte, b.Size)
		require.True(t, ref.CopyOut(one, 0))
		all = append(all, one...)
	}
	return all[b.FBO : b.FBO+b.Length]
}

func TestRegisterBuffers(t *testing.T) {
	errs := map[AccessFault]error{
		FaultBufferSize: wr.ErrInvalidPhysBufferSize, FaultBufferEntry: wr.ErrInvalidPhysBufferEntry,
		FaultBufferList: wr.ErrInvalidLength, FaultLength: wr.ErrInvalidLength,
		FaultFBO: wr.ErrInvalidFBO, FaultVA: wr.ErrInvalidVA,
	}
	tb := NewTable(Config{PBL: 6})
	p := pages(t, tb, 4, page)
	pattern(p.Bytes())
	for name, c := range bufferCases(p) {
		t.Run(name, func(t *testing.T) {
			before := tb.Len()
			r, err := tb.Register(RegionConfig{PD: alice.PD, Access: allRights, Buffers: c.buffers, Addressing: c.addressing, VA: c.va})
			if c.want != OK {
				require.ErrorIs(t, err, errs[c.want])
				require.Zero(t, r)
				require.Equal(t, before, tb.Len())
				return
			}
			require.NoError(t, err)
			require.Equal(t, Info{
				STag: r.STag, Valid: true, PD: alice.PD, RemoteAccess: true, PBL: len(c.buffers.Addresses),
				Access: allRights, Addressing: c.addressing, Base: c.va, Length: c.buffers.Length,
			}, r)
			want := content(t, tb, c.buffers)
			got := make([]byte, len(want))
			require.True(t, resolve(t, tb, r.STag, r.Base, r.Length).CopyOut(got, 0))
			require.Equal(t, want, got)
			_, f := tb.Resolve(r.STag, r.Base, r.Length+1, alice, wr.LocalRead)
			require.Contains(t, []AccessFault{FaultBounds, FaultWrap}, f)
			require.NoError(t, tb.Deallocate(r.STag))
		})
	}
}

// Neighbours become one stretch of memory, others do not.
func TestBuffersMerge(t *testing.T) {
	tb := NewTable(Config{})
	p, q := pages(t, tb, 4, page), pages(t, tb, 1, page)
	a := p.Addresses()
	for _, c := range []struct {
		name      string
		addresses []uint64
		fbo, n    uint64
		pieces    int
	}{
		{"one", a[:1], 0, page, 1},
		{"all in a row", a, 0, 4 * page, 1},
		{"a row from within", a, 99, 3*page + 9, 1},
		{"a hole", []uint64{a[0], a[2]}, 0, 2 * page, 2},
		{"a row and one", []uint64{a[1], a[2], a[0]}, 0, 3 * page, 2},
		{"backwards", []uint64{a[1], a[0]}, 0, 2 * page, 2},
		{"one twice", []uint64{a[1], a[1]}, 0, 2 * page, 2},
		{"two allocations", []uint64{a[3], q.Address(0)}, 0, 2 * page, 2},
		{"there and back", []uint64{a[0], q.Address(0), a[1]}, 0, 3 * page, 3},
		{"not needed", []uint64{a[0], a[2]}, 7, 1, 1},
	} {
		r := register(t, tb, RegionConfig{Addressing: wr.ZeroBased, Buffers: wr.PhysicalBuffers{
			Size: page, Addresses: c.addresses, FBO: c.fbo, Length: c.n,
		}})
		ref := resolve(t, tb, r.STag, 0, c.n)
		require.True(t, ref.Hold())
		iov := ref.Append(nil, 0, c.n)
		ref.Release()
		assert.Len(t, iov, c.pieces, c.name)

		octets := 0
		kept := tb.index.get(r.STag.Index()).pieces
		for _, piece := range kept {
			octets += len(piece.mem)
		}
		assert.Len(t, kept, c.pieces, c.name)
		assert.EqualValues(t, c.n, octets, "%s: memory behind the length is not kept alive", c.name)
	}
}

// Every range of a region in pieces, copied both ways and appended, against a
// flat copy.
func TestPieces(t *testing.T) {
	tb := NewTable(Config{BlockMode: true})
	p := pages(t, tb, 9, 3)
	a := p.Addresses()
	list := []uint64{a[7], a[2], a[3], a[0] + 1, a[5], a[8]} // 7 | 23 | 0+1 | 5 | 8
	r := register(t, tb, RegionConfig{Addressing: wr.ZeroBased, Buffers: wr.PhysicalBuffers{
		Size: 3, Addresses: list, FBO: 1, Length: 16,
	}})
	flat := make([]*byte, 0, 18)
	for _, addr := range list {
		for i := range uint64(3) {
			flat = append(flat, &p.Bytes()[addr-a[0]+i])
		}
	}
	flat = flat[1:17]
	tick := byte(0)
	for lo := range uint64(16) {
		for n := uint64(1); lo+n <= 16; n++ {
			ref := resolve(t, tb, r.STag, lo, n)
			for off := range n {
				src := make([]byte, n-off)
				for i := range src {
					tick++
					src[i] = tick
				}
				require.True(t, ref.CopyIn(off, src))
				for i, b := range src {
					require.Equal(t, b, *flat[lo+off+uint64(i)])
				}
				got := make([]byte, n-off)
				require.True(t, ref.CopyOut(got, off))
				require.Equal(t, src, got)
				require.True(t, ref.Hold())
				iov := ref.Append(nil, off, n-off)
				ref.Release()
				got = got[:0]
				for _, piece := range iov {
					require.NotEmpty(t, piece)
					require.Equal(t, len(piece), cap(piece), "no append beyond the piece")
					got = append(got, piece...)
				}
				require.Equal(t, src, got)
			}
			require.True(t, ref.CopyIn(n, nil), "nothing, at the end")
			require.True(t, ref.CopyOut(nil, n))
			require.False(t, ref.CopyIn(n, []byte{1}))
			require.False(t, ref.CopyOut(make([]byte, 1), n))
		}
	}
}

// RV-7.6.2.2-M2: blocks of any size and alignment.
func TestBlockMode(t *testing.T) {
	tb := NewTable(Config{BlockMode: true})
	p := pages(t, tb, 1, 1000)
	pattern(p.Bytes())
	at := func(off uint64) uint64 { return p.Address(0) + off }
	for _, c := range []struct {
		name       string
		buffers    wr.PhysicalBuffers
		addressing wr.Addressing
		va         uint64
		want       error
	}{
		{"odd", wr.PhysicalBuffers{Size: 77, Addresses: []uint64{at(1), at(501), at(300)}, FBO: 76, Length: 155}, wr.ZeroBased, 0, nil},
		{"of one octet", wr.PhysicalBuffers{Size: 1, Addresses: []uint64{at(999), at(3), at(0)}, Length: 3}, wr.ZeroBased, 0, nil},
		{"overlapping", wr.PhysicalBuffers{Size: 10, Addresses: []uint64{at(5), at(7)}, Length: 20}, wr.ZeroBased, 0, nil},
		{"VA", wr.PhysicalBuffers{Size: 77, Addresses: []uint64{at(1)}, FBO: 5, Length: 9}, wr.VABased, 7705, nil},
		{"VA off", wr.PhysicalBuffers{Size: 77, Addresses: []uint64{at(1)}, FBO: 5, Length: 9}, wr.VABased, 7706, wr.ErrInvalidVA},
		{"last whole", wr.PhysicalBuffers{Size: 77, Addresses: []uint64{at(923)}, Length: 1}, wr.ZeroBased, 0, nil},
		{"over the end", wr.PhysicalBuffers{Size: 77, Addresses: []uint64{at(924)}, Length: 1}, wr.ZeroBased, 0, wr.ErrInvalidPhysBufferEntry},
		{"size 0", wr.PhysicalBuffers{Size: 0, Addresses: []uint64{at(0)}, Length: 1}, wr.ZeroBased, 0, wr.ErrInvalidPhysBufferSize},
		{"size too large", wr.PhysicalBuffers{Size: 1<<30 + 1, Addresses: []uint64{at(0)}, Length: 1}, wr.ZeroBased, 0, wr.ErrInvalidPhysBufferSize},
	} {
		r, err := tb.Register(RegionConfig{PD: alice.PD, Access: allRights, Buffers: c.buffers, Addressing: c.addressing, VA: c.va})
		require.ErrorIs(t, err, c.want, c.name)
		if err == nil {
			got := make([]byte, c.buffers.Length)
			require.True(t, resolve(t, tb, r.STag, c.va, c.buffers.Length).CopyOut(got, 0))
			require.Equal(t, content(t, tb, c.buffers), got, c.name)
		}
	}
	register(t, tb, RegionConfig{}) // Go memory does as well
}

// The list of Go memory is one of pages of 4 KiB.
func TestMemoryEntries(t *testing.T) {
	tb := NewTable(Config{PBL: 3})
	for _, c := range []struct {
		va, n uint64
		want  int
	}{
		{page, 1, 1}, {page, page, 1}, {page, page + 1, 2}, {page + 4095, 1, 1}, {page + 4095, 2, 2},
		{page + 4095, page + 2, 3}, {page, 3 * page, 3}, {page, 3*page + 1, 0}, {page + 1, 3 * page, 0},
	} {
		r, err := tb.Register(RegionConfig{PD: 1, Access: wr.LocalRead, VA: c.va, Memory: make([]byte, c.n)})
		if c.want == 0 {
			require.ErrorIs(t, err, wr.ErrInvalidLength)
		} else {
			require.NoError(t, err)
		}
		require.Equal(t, c.want, r.PBL, "%+v", c)
	}
	mem := make([]byte, 4*page)
	r := register(t, tb, RegionConfig{Memory: mem[:2*page+1], Addressing: wr.ZeroBased})
	require.Contains(t, []int{3}, r.PBL, "of 2 pages and an octet, wherever they lie")
	_, err := tb.Register(RegionConfig{PD: 1, Access: wr.LocalRead, Memory: mem[:3*page+1], Addressing: wr.ZeroBased})
	require.ErrorIs(t, err, wr.ErrInvalidLength)
}

// Memory comes before Buffers, and buffers without size or entries are none.
func TestMemoryOrBuffers(t *testing.T) {
	tb := NewTable(Config{})
	p := pages(t, tb, 1, page)
	good := wr.PhysicalBuffers{Size: page, Addresses: p.Addresses(), Length: 5}
	r := register(t, tb, RegionConfig{Memory: make([]byte, 9), Buffers: good, Addressing: wr.ZeroBased})
	assert.Equal(t, uint64(9), r.Length)
	for _, c := range []struct {
		config RegionConfig
		want   error
	}{
		{RegionConfig{Memory: []byte{}, Buffers: good}, wr.ErrInvalidLength},
		{RegionConfig{Buffers: wr.PhysicalBuffers{Length: 5}}, wr.ErrInvalidLength},
		{RegionConfig{Buffers: wr.PhysicalBuffers{Addresses: p.Addresses(), Length: 5}}, wr.ErrInvalidPhysBufferSize},
		{RegionConfig{Buffers: wr.PhysicalBuffers{Size: page, Length: 5}}, wr.ErrInvalidLength},
		{RegionConfig{Buffers: good, Addressing: wr.ZeroBased, VA: page}, wr.ErrInvalidVA},
		{RegionConfig{Memory: make([]byte, 1), Addressing: 2, VA: page}, wr.ErrInvalidVA},
	} {
		c.config.PD, c.config.Access = 1, wr.LocalRead
		_, err := tb.Register(c.config)
		assert.ErrorIs(t, err, c.want, "%+v", c.config)
	}
}
