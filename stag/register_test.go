package stag

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// figure18 is verbs draft figure 18, row by row.
var figure18 = []struct {
	access wr.Access
	valid  bool
}{
	{0, false},
	{wr.RemoteRead, false},
	{wr.RemoteWrite, false},
	{wr.RemoteRead | wr.RemoteWrite, false},
	{wr.LocalRead, true},
	{wr.LocalRead | wr.RemoteRead, true},
	{wr.LocalRead | wr.RemoteWrite, false},
	{wr.LocalRead | wr.RemoteRead | wr.RemoteWrite, false},
	{wr.LocalWrite, true},
	{wr.LocalWrite | wr.RemoteRead, false},
	{wr.LocalWrite | wr.RemoteWrite, true},
	{wr.LocalWrite | wr.RemoteRead | wr.RemoteWrite, false},
	{localRights, true},
	{localRights | wr.RemoteRead, true},
	{localRights | wr.RemoteWrite, true},
	{localRights | wr.RemoteRead | wr.RemoteWrite, true},
}

// The right to bind windows goes with every row and changes none.
func TestRegisterFigure18(t *testing.T) {
	tb := NewTable(Config{})
	for _, row := range figure18 {
		for _, bind := range []wr.Access{0, wr.BindWindow} {
			access := row.access | bind
			t.Run(access.String(), func(t *testing.T) {
				before := tb.Len()
				r, err := tb.Register(RegionConfig{PD: 1, Memory: make([]byte, 1), Access: access})
				if !row.valid {
					require.ErrorIs(t, err, wr.ErrInvalidAccess)
					assert.Zero(t, r)
					assert.Equal(t, before, tb.Len(), "a failed registration uses no resource")
					return
				}
				require.NoError(t, err)
				assert.Equal(t, access, r.Access)
			})
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	ok := RegionConfig{PD: 1, Memory: make([]byte, 16), Access: wr.LocalRead}
	for name, c := range map[string]struct {
		change func(*RegionConfig)
		want   error
	}{
		"no PD":              {func(c *RegionConfig) { c.PD = 0 }, wr.ErrInvalidPD},
		"unknown right":      {func(c *RegionConfig) { c.Access |= 1 << 7 }, wr.ErrInvalidAccess},
		"nil memory":         {func(c *RegionConfig) { c.Memory = nil }, wr.ErrInvalidLength},
		"no octet":           {func(c *RegionConfig) { c.Memory = make([]byte, 0, 8) }, wr.ErrInvalidLength},
		"zero-based with VA": {func(c *RegionConfig) { c.Addressing, c.VA = wr.ZeroBased, 4096 }, wr.ErrInvalidVA},
		"end wraps to 0":     {func(c *RegionConfig) { c.VA = math.MaxUint64 - 15 }, wr.ErrInvalidVA},
		"last VA":            {func(c *RegionConfig) { c.VA = math.MaxUint64 }, wr.ErrInvalidVA},
	} {
		t.Run(name, func(t *testing.T) {
			tb := NewTable(Config{})
			cfg := ok
			c.change(&cfg)
			_, err := tb.Register(cfg)
			require.ErrorIs(t, err, c.want)
			assert.Zero(t, tb.Len())
			_, err = tb.Register(ok)
			assert.NoError(t, err, "the table works on")
		})
	}
}

func TestRegionHandle(t *testing.T) {
	tb := NewTable(Config{})
	mem := make([]byte, 33)[1:] // odd address, odd enough length

	byAddress := register(t, tb, RegionConfig{Memory: mem, Access: wr.LocalRead, Key: 0xA5})
	assert.Equal(t, uint64(uintptr(unsafe.Pointer(&mem[0]))), byAddress.Base)
	assert.Equal(t, uint64(32), byAddress.Length)
	assert.Equal(t, alice.PD, byAddress.PD)
	assert.Equal(t, wr.LocalRead, byAddress.Access)
	assert.Equal(t, uint8(0xA5), byAddress.STag.Key(), "RV-7.2-M1")
	assert.NotZero(t, byAddress.STag.Index(), "RV-7.2.1-M2")
	assert.Equal(t, wr.VABased, byAddress.Addressing)

	byVA := register(t, tb, RegionConfig{Memory: mem, VA: 0x1001})
	assert.Equal(t, uint64(0x1001), byVA.Base)

	zeroBased := register(t, tb, RegionConfig{Memory: mem, Addressing: wr.ZeroBased})
	assert.Zero(t, zeroBased.Base)
	assert.Equal(t, wr.ZeroBased, zeroBased.Addressing)

	// RV-7.4.3-M1: the same memory again, another index each time.
	assert.NotEqual(t, byAddress.STag.Index(), byVA.STag.Index())
	assert.NotEqual(t, byVA.STag.Index(), zeroBased.STag.Index())

	// Each of them stands for itself (RV-7.8-M2, 7.9).
	require.NoError(t, tb.Deallocate(byAddress.STag))
	ref := resolve(t, tb, zeroBased.STag, 0, 32)
	assert.True(t, ref.CopyIn(0, []byte("x")))
	assert.Equal(t, byte('x'), mem[0])
	assert.Equal(t, uint64(32), byAddress.Length)
}

func TestTableLimit(t *testing.T) {
	tb := NewTable(Config{Regions: 3})
	var last Info
	for range 3 {
		last = register(t, tb, RegionConfig{})
	}
	_, err := tb.Register(RegionConfig{PD: 1, Memory: make([]byte, 1), Access: wr.LocalRead})
	require.ErrorIs(t, err, wr.ErrInsufficientResources)
	assert.Equal(t, OK, tb.InvalidateLocal(last.STag, alice))
	assert.Equal(t, 3, tb.Len(), "an Invalid STag keeps its place")
	require.NoError(t, tb.Deallocate(last.STag))
	register(t, tb, RegionConfig{})

	defaults := NewTable(Config{}).config
	assert.Equal(t, Config{
		Regions: 1 << 16, Windows: 1 << 16, PBL: 1 << 24, PhysicalMemory: 64 << 30,
	}, defaults)
	assert.Equal(t, defaults, NewTable(Config{Regions: -1, Windows: -1, PBL: -1}).config)
	most := NewTable(Config{Regions: math.MaxInt, Windows: math.MaxInt, PBL: math.MaxInt, PhysicalMemory: 1 << 62}).config
	assert.Equal(t, Config{Regions: 1 << 22, Windows: 1 << 22, PBL: 1 << 30, PhysicalMemory: 1 << 40}, most)
}

func TestDeallocateUnknown(t *testing.T) {
	tb := NewTable(Config{})
	r := register(t, tb, RegionConfig{Key: 9})
	require.ErrorIs(t, tb.Deallocate(0), wr.ErrInvalidSTag, "RV-7.2.1-M16")
	require.ErrorIs(t, tb.Deallocate(wr.MakeSTag(0, 9)), wr.ErrInvalidSTag)
	require.ErrorIs(t, tb.Deallocate(r.STag^1<<8), wr.ErrInvalidSTag)
	require.Equal(t, 1, tb.Len())

	require.NoError(t, tb.Deallocate(r.STag^0xFF), "7.9: the key is not checked")
	require.ErrorIs(t, tb.Deallocate(r.STag), wr.ErrInvalidSTag)
	require.Zero(t, tb.Len())
}

func TestClose(t *testing.T) {
	tb := NewTable(Config{})
	a, b := register(t, tb, RegionConfig{Addressing: wr.ZeroBased}), register(t, tb, RegionConfig{})
	ref := resolve(t, tb, a.STag, 0, 1)
	pages(t, tb, 1, page)
	tb.Close()
	tb.Close()
	assert.Zero(t, tb.Len())
	assert.False(t, ref.Hold())
	assert.Empty(t, *tb.space.list.Load())
	_, f := tb.Resolve(b.STag, b.Base, 1, alice, wr.LocalRead)
	assert.Equal(t, FaultSTag, f)
	_, err := tb.Register(RegionConfig{PD: 1, Memory: make([]byte, 1), Access: wr.LocalRead})
	assert.ErrorIs(t, err, wr.ErrInvalidRNIC)
	assert.ErrorIs(t, tb.Deallocate(a.STag), wr.ErrInvalidRNIC)
}
