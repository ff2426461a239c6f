package stag

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// Draft 7.3.2.4 and 7.4.3: the same memory, everything else its own.
func TestRegisterShared(t *testing.T) {
	tb := NewTable(Config{})
	mem := make([]byte, 100)
	r := register(t, tb, RegionConfig{Memory: mem, VA: 10*page + 5, Key: 1, QP: alice.QP, RemoteInvalidate: true})
	ref := resolve(t, tb, r.STag, r.Base, 100)

	s, err := tb.RegisterShared(r.STag, SharedConfig{
		PD: bob.PD, Key: 0xEE, VA: 77*page + 5, Access: wr.LocalRead, RemoteAccess: true, QP: 9,
	})
	require.NoError(t, err)
	require.NotEqual(t, r.STag.Index(), s.STag.Index(), "RV-7.3.2.4-M7")
	require.Equal(t, Info{
		STag: wr.MakeSTag(s.STag.Index(), 0xEE), Valid: true, Shared: true, PD: bob.PD, RemoteAccess: true, PBL: r.PBL,
		Access: wr.LocalRead, Base: 77*page + 5, Length: 100, QP: 9,
	}, s)
	require.Equal(t, s, query(t, tb, s.STag))
	r.Shared = true
	require.Equal(t, r, query(t, tb, r.STag), "RV-7.3.2.4-M10: nothing else")

	require.True(t, ref.CopyIn(3, []byte{42}), "Refs to the first go on")
	got := make([]byte, 1)
	other, f := tb.Resolve(s.STag, s.Base+3, 1, bob, wr.LocalRead)
	require.Equal(t, OK, f)
	require.True(t, other.CopyOut(got, 0))
	require.Equal(t, byte(42), got[0])
	_, f = tb.Resolve(s.STag, s.Base, 101, bob, wr.LocalRead)
	require.Equal(t, FaultBounds, f, "the lengths are the same")

	// A third one from the second, zero-based; then they go, one by one.
	third, err := tb.RegisterShared(s.STag, SharedConfig{PD: 7, Addressing: wr.ZeroBased, Access: allRights})
	require.NoError(t, err)
	require.Equal(t, Info{
		STag: third.STag, Valid: true, Shared: true, PD: 7, RemoteAccess: true, PBL: r.PBL,
		Access: allRights, Addressing: wr.ZeroBased, Length: 100,
	}, third)
	require.NoError(t, tb.Deallocate(r.STag))
	require.False(t, ref.CopyIn(0, []byte{1}))
	require.True(t, other.CopyOut(got, 0), "RV-7.9-M5")
	require.NoError(t, tb.Deallocate(s.STag))
	require.True(t, resolve(t, tb, third.STag, 3, 1).CopyOut(got, 0))
	require.Equal(t, byte(42), got[0])
}

// The storage of a list of pieces is all of theirs.
func TestSharedPieces(t *testing.T) {
	tb := NewTable(Config{})
	p := pages(t, tb, 3, page)
	pattern(p.Bytes())
	b := wr.PhysicalBuffers{Size: page, Addresses: []uint64{p.Address(2), p.Address(0)}, FBO: 9, Length: page}
	r := register(t, tb, RegionConfig{Buffers: b, Addressing: wr.ZeroBased})
	s, err := tb.RegisterShared(r.STag, SharedConfig{PD: 7, Access: localRights, Addressing: wr.ZeroBased})
	require.NoError(t, err)
	want := content(t, tb, b)
	require.NoError(t, tb.Deallocate(r.STag))
	got := make([]byte, page)
	require.True(t, resolve(t, tb, s.STag, 0, page).CopyOut(got, 0))
	require.Equal(t, want, got)
}

func TestSharedVA(t *testing.T) {
	for _, c := range []struct {
		name       string
		existing   RegionConfig
		addressing wr.Addressing
		va         uint64
		want       error
		base       uint64
	}{
		{"same VA", RegionConfig{VA: 0x5123}, wr.VABased, 0x5123, nil, 0x5123},
		{"other VA, same FBO", RegionConfig{VA: 0x5123}, wr.VABased, 0x999123, nil, 0x999123},
		{"VA left out", RegionConfig{VA: 0x5123}, wr.VABased, 0, nil, 0x5123},
		{"other FBO", RegionConfig{VA: 0x5123}, wr.VABased, 0x5124, wr.ErrInvalidVA, 0},
		{"too high", RegionConfig{VA: 0x5FFF}, wr.VABased, ^uint64(0), wr.ErrInvalidVA, 0},
		{"to zero-based", RegionConfig{VA: 0x5123}, wr.ZeroBased, 0, nil, 0},
		{"to zero-based with VA", RegionConfig{VA: 0x5123}, wr.ZeroBased, 0x5123, wr.ErrInvalidVA, 0},
		{"zero to zero", RegionConfig{Addressing: wr.ZeroBased}, wr.ZeroBased, 0, nil, 0},
		{"zero to VA, none given", RegionConfig{Addressing: wr.ZeroBased}, wr.VABased, 0, wr.ErrInvalidVA, 0},
		{"no such type", RegionConfig{VA: 0x5123}, 2, 0x5123, wr.ErrInvalidVA, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := NewTable(Config{})
			r := register(t, tb, c.existing)
			config := SharedConfig{PD: 7, Addressing: c.addressing, VA: c.va, Access: wr.LocalRead}
			if c.want != nil {
				unchanged(t, tb, func() {
					_, err := tb.RegisterShared(r.STag, config)
					require.ErrorIs(t, err, c.want)
				}, r.STag)
				return
			}
			s, err := tb.RegisterShared(r.STag, config)
			require.NoError(t, err)
			require.Equal(t, c.base, s.Base)
		})
	}

	// The FBO is that of the buffers, modulo their size.
	tb := NewTable(Config{})
	p := pages(t, tb, 1, 2*page)
	r := register(t, tb, RegionConfig{Addressing: wr.ZeroBased, Buffers: wr.PhysicalBuffers{
		Size: 2 * page, Addresses: p.Addresses(), FBO: page + 1, Length: 5,
	}})
	_, err := tb.RegisterShared(r.STag, SharedConfig{PD: 7, VA: 5*page + 1, Access: wr.LocalRead})
	require.NoError(t, err)
	_, err = tb.RegisterShared(r.STag, SharedConfig{PD: 7, VA: 4*page + 1, Access: wr.LocalRead})
	require.ErrorIs(t, err, wr.ErrInvalidVA)
}

// Buffer size and FBO are those of the last time the STag became Valid.
func TestSharedAfterFastRegister(t *testing.T) {
	tb := NewTable(Config{})
	u := consumer(alice)
	s, small, large := allocate(t, tb, false), pages(t, tb, 1, page), pages(t, tb, 1, 2*page)
	for _, b := range []wr.PhysicalBuffers{
		{Size: page, Addresses: small.Addresses(), FBO: 3, Length: 5},
		{Size: 2 * page, Addresses: large.Addresses(), FBO: page + 1, Length: 5},
	} {
		require.Equal(t, OK, tb.InvalidateLocal(s, u))
		require.Equal(t, OK, tb.FastRegister(&wr.FastRegisterRequest{
			STag: s, Buffers: b, Addressing: wr.ZeroBased, Access: wr.LocalRead,
		}, u))
	}
	for _, c := range []struct {
		va   uint64
		want error
	}{
		{6*page + 3, wr.ErrInvalidVA}, // as before
		{4*page + 1, wr.ErrInvalidVA}, // modulo a smaller size
		{4 * page, wr.ErrInvalidVA},
		{5*page + 1, nil},
	} {
		i, err := tb.RegisterShared(s, SharedConfig{PD: alice.PD, VA: c.va, Access: wr.LocalRead})
		require.ErrorIs(t, err, c.want, "VA %#x", c.va)
		if err == nil {
			require.Equal(t, c.va, i.Base)
		}
	}
}

func TestRegisterSharedErrors(t *testing.T) {
	tb := NewTable(Config{})
	r := register(t, tb, RegionConfig{Key: 5, VA: page})
	gone, w := register(t, tb, RegionConfig{}), window(t, tb)
	require.Equal(t, OK, tb.InvalidateLocal(gone.STag, alice))
	a := allocate(t, tb, true)
	good := SharedConfig{PD: 7, Access: wr.LocalRead}
	for name, c := range map[string]struct {
		s      wr.STag
		config SharedConfig
		want   error
	}{
		"other key":  {r.STag ^ 1, good, wr.ErrInvalidSTag},
		"Invalid":    {gone.STag, good, wr.ErrInvalidSTag},
		"allocated":  {a, good, wr.ErrInvalidSTag},
		"a window":   {w, good, wr.ErrInvalidSTag},
		"nothing":    {r.STag ^ 1<<9, good, wr.ErrInvalidSTag},
		"no PD":      {r.STag, SharedConfig{Access: wr.LocalRead}, wr.ErrInvalidPD},
		"no right":   {r.STag, SharedConfig{PD: 7}, wr.ErrInvalidAccess},
		"figure 18":  {r.STag, SharedConfig{PD: 7, Access: wr.LocalRead | wr.RemoteWrite}, wr.ErrInvalidAccess},
		"VA":         {r.STag, SharedConfig{PD: 7, Access: wr.LocalRead, VA: 1}, wr.ErrInvalidVA},
		"STag first": {r.STag ^ 1, SharedConfig{VA: 1}, wr.ErrInvalidSTag},
	} {
		unchanged(t, tb, func() {
			_, err := tb.RegisterShared(c.s, c.config)
			assert.ErrorIs(t, err, c.want, name)
		}, r.STag, gone.STag, w, a)
	}
}

// A Shared Memory Region is Valid for ever (RV-7.2.2-M2), the first as well.
func TestSharedStaysValid(t *testing.T) {
	tb := NewTable(Config{})
	u := consumer(alice)
	r := register(t, tb, RegionConfig{VA: page})
	w := window(t, tb)
	bound := bind(t, tb, w, 1, r, 0, 8, u)
	s, err := tb.RegisterShared(r.STag, SharedConfig{PD: 7, Access: allRights})
	require.NoError(t, err)
	_, f := tb.Resolve(bound, r.Base, 8, alice, wr.RemoteWrite)
	require.Equal(t, OK, f, "RV-7.3.2.4-M2")
	require.Equal(t, OK, tb.InvalidateLocal(bound, u))

	p := pages(t, tb, 1, page)
	for _, one := range []Info{r, s} {
		unchanged(t, tb, func() {
			assert.Equal(t, FaultSTag, tb.InvalidateLocal(one.STag, alice), "RV-7.8-M3")
			assert.Equal(t, FaultSTag, tb.InvalidateRemote(one.STag, alice))
			assert.Equal(t, FaultSTag, tb.FastRegister(&wr.FastRegisterRequest{
				STag: one.STag, Access: wr.LocalRead, Addressing: wr.ZeroBased,
				Buffers: wr.PhysicalBuffers{Size: page, Addresses: p.Addresses(), Length: 1},
			}, u))
		}, r.STag, s.STag)
		// Windows bind to it all the same (RV-7.10.2-M2), and each counts its own.
		bound := bind(t, tb, w, 2, one, 0, 8, u)
		require.ErrorIs(t, tb.Deallocate(one.STag), wr.ErrWindowsBound)
		require.Equal(t, OK, tb.InvalidateLocal(bound, u))
		require.NoError(t, tb.Deallocate(one.STag))
	}
	require.Equal(t, 1, tb.Len())
}
