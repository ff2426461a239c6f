package stag

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// Draft 7.3.2.3: everything may change but the index.
func TestReregister(t *testing.T) {
	tb := NewTable(Config{})
	p := pages(t, tb, 3, page)
	old, mem := make([]byte, 2*page), make([]byte, 10)
	r := register(t, tb, RegionConfig{Memory: old, Addressing: wr.ZeroBased, Key: 1})
	ref := resolve(t, tb, r.STag, 0, 10)

	next, err := tb.Reregister(r.STag, RegionConfig{
		PD: bob.PD, Memory: mem, Access: wr.LocalWrite, Key: 2, VA: 5000, QP: 9, RemoteInvalidate: true,
	})
	require.NoError(t, err)
	require.Equal(t, Info{
		STag: wr.MakeSTag(r.STag.Index(), 2), Valid: true, PD: bob.PD, PBL: r.PBL, Access: wr.LocalWrite,
		Base: 5000, Length: 10, QP: 9, RemoteInvalidate: true,
	}, next)
	require.Greater(t, r.PBL, 1, "room does not get less")
	require.Equal(t, next, query(t, tb, r.STag))
	require.False(t, ref.CopyIn(0, []byte{1}))
	require.Equal(t, make([]byte, 2*page), old)
	_, f := tb.Resolve(next.STag, 5000, 10, bob, wr.LocalWrite)
	require.Equal(t, OK, f)

	// An Invalid one, and from Go memory to buffers with more entries.
	require.Equal(t, OK, tb.InvalidateLocal(next.STag, bob))
	next, err = tb.Reregister(next.STag^0xFF, RegionConfig{PD: 7, Access: allRights, Addressing: wr.ZeroBased, Buffers: wr.PhysicalBuffers{
		Size: page, Addresses: []uint64{p.Address(2), p.Address(0), p.Address(1), p.Address(2)}, Length: 4 * page,
	}})
	require.NoError(t, err, "RV-7.3.2.3-O1")
	require.Equal(t, 4, next.PBL)
	require.True(t, resolve(t, tb, next.STag, 0, 4*page).CopyIn(page, []byte{8}))
	require.Equal(t, byte(8), p.Bytes()[0])

	// An allocated one, which begins with fewer entries.
	a := allocate(t, tb, false)
	next, err = tb.Reregister(a, RegionConfig{PD: 7, Access: allRights, Memory: mem})
	require.NoError(t, err, "RV-7.3.2.1-M10")
	require.Equal(t, 8, next.PBL)
	require.True(t, next.RemoteAccess)
}

// RV-7.3.2.3-M5, RV-7.3.2.3-M6: some errors leave the region, others end it.
func TestReregisterErrors(t *testing.T) {
	good := RegionConfig{PD: 7, Access: wr.LocalRead, Memory: make([]byte, 8)}
	p := func(change func(*RegionConfig)) RegionConfig {
		c := good
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		config RegionConfig
		want   error
	}{
		"PD":     {p(func(c *RegionConfig) { c.PD = 0 }), wr.ErrInvalidPD},
		"rights": {p(func(c *RegionConfig) { c.Access = wr.RemoteRead }), wr.ErrInvalidAccess},
		"length": {p(func(c *RegionConfig) { c.Memory = nil }), wr.ErrInvalidLength},
		"VA":     {p(func(c *RegionConfig) { c.VA = ^uint64(0) }), wr.ErrInvalidVA},
		"size":   {p(func(c *RegionConfig) { c.Memory, c.Buffers.Size = nil, 5 }), wr.ErrInvalidPhysBufferSize},
		"FBO": {p(func(c *RegionConfig) {
			c.Memory, c.Buffers = nil, wr.PhysicalBuffers{Size: page, FBO: page, Addresses: []uint64{page}, Length: 1}
		}), wr.ErrInvalidFBO},
		"entry": {p(func(c *RegionConfig) {
			c.Memory, c.Addressing = nil, wr.ZeroBased
			c.Buffers = wr.PhysicalBuffers{Size: page, Addresses: []uint64{page}, Length: 1}
		}), wr.ErrInvalidPhysBufferEntry},
	} {
		for _, state := range []string{"Valid", "Invalid"} {
			t.Run(name+"/"+state, func(t *testing.T) {
				tb := NewTable(Config{})
				mem := make([]byte, 8)
				r := register(t, tb, RegionConfig{Memory: mem, Addressing: wr.ZeroBased})
				ref := resolve(t, tb, r.STag, 0, 8)
				if state == "Invalid" {
					require.Equal(t, OK, tb.InvalidateLocal(r.STag, alice))
				}
				i, err := tb.Reregister(r.STag, c.config)
				require.ErrorIs(t, err, c.want)
				assert.Zero(t, i)
				assert.Nil(t, query(t, tb, r.STag))
				assert.Zero(t, tb.Len())
				assert.False(t, ref.CopyIn(0, []byte{1}))
				assert.ErrorIs(t, tb.Deallocate(r.STag), wr.ErrInvalidSTag)
			})
		}
	}

	tb := NewTable(Config{})
	u := consumer(alice)
	r, w := register(t, tb, RegionConfig{}), window(t, tb)
	s := bind(t, tb, w, 1, r, 0, 8, u)
	shared := register(t, tb, RegionConfig{})
	second1(tb.RegisterShared(shared.STag, SharedConfig{PD: 7, Access: wr.LocalRead}))
	for name, c := range map[string]struct {
		s    wr.STag
		want error
	}{
		"windows bound": {r.STag, wr.ErrWindowsBound},
		"a window":      {w, wr.ErrInvalidSTag},
		"shared":        {shared.STag, wr.ErrInvalidSTag},
		"nothing":       {r.STag ^ 1<<8, wr.ErrInvalidSTag},
		"zero":          {0, wr.ErrInvalidSTag},
	} {
		for _, config := range []RegionConfig{good, {}} {
			unchanged(t, tb, func() {
				_, err := tb.Reregister(c.s, config)
				assert.ErrorIs(t, err, c.want, name)
			}, r.STag, w, shared.STag)
		}
	}
	_, f := tb.Resolve(s, r.Base, 8, u, wr.RemoteWrite)
	assert.Equal(t, OK, f)
	tb.Close()
	_, err := tb.Reregister(r.STag, good)
	assert.ErrorIs(t, err, wr.ErrInvalidRNIC)
}

// Reregister and whoever else comes while a hold keeps the old memory.
func TestReregisterWaits(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*Table, wr.STag)
		want      error
	}{
		"nobody":     {func(*Table, wr.STag) {}, nil},
		"Deallocate": {func(tb *Table, s wr.STag) { _ = tb.Deallocate(s) }, wr.ErrInvalidSTag},
		"Close":      {func(tb *Table, _ wr.STag) { tb.Close() }, wr.ErrInvalidRNIC},
		"invalidate": {func(tb *Table, s wr.STag) { tb.InvalidateLocal(s, alice) }, nil},
		"FastRegister": {func(tb *Table, s wr.STag) {
			tb.FastRegister(&wr.FastRegisterRequest{STag: s}, consumer(alice))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tb := NewTable(Config{})
				old, mem := make([]byte, 8), make([]byte, 8)
				r := register(t, tb, RegionConfig{Memory: old, Addressing: wr.ZeroBased})
				ref := resolve(t, tb, r.STag, 0, 8)
				require.True(t, ref.Hold())
				go c.meanwhile(tb, r.STag)
				if name != "nobody" {
					synctest.Wait() // it waits, or is refused
				}
				done := make(chan error)
				go func() {
					_, err := tb.Reregister(r.STag, RegionConfig{PD: 7, Access: localRights, Memory: mem, Addressing: wr.ZeroBased})
					done <- err
				}()
				synctest.Wait()
				select {
				case err := <-done:
					require.ErrorIs(t, err, c.want)
					require.Error(t, err, "it did not wait")
					ref.Release()
					return
				default:
				}
				ref.Release()
				require.ErrorIs(t, <-done, c.want)
				if c.want == nil {
					require.True(t, resolve(t, tb, r.STag&^0xFF, 0, 8).CopyIn(0, []byte{1}))
					require.Equal(t, byte(1), mem[0])
				}
				require.Zero(t, old[0])
			})
		})
	}
}
