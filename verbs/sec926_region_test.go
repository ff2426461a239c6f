package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

const localRights = verbs.LocalRead | verbs.LocalWrite

// badRegions are the descriptions that RI-Register and RI-Reregister refuse
// (9.2.6.2), for an RNIC in page mode with the limits of small.
func badRegions(w *world) map[string]struct {
	want error
	c    verbs.RegionConfig
} {
	b := make([]byte, 10)
	pages := func(change func(*verbs.RegionConfig)) verbs.RegionConfig {
		c := verbs.RegionConfig{Buffers: w.pages.List(0, 4*4096), Access: localRights, VA: 1 << 20}
		change(&c)
		return c
	}
	type bad = struct {
		want error
		c    verbs.RegionConfig
	}
	return map[string]bad{
		"no rights":           {verbs.ErrInvalidAccess, verbs.RegionConfig{Memory: b}},
		"remote right alone":  {verbs.ErrInvalidAccess, verbs.RegionConfig{Memory: b, Access: verbs.RemoteRead | verbs.LocalWrite}},
		"no memory":           {verbs.ErrInvalidLength, verbs.RegionConfig{Access: localRights}},
		"VA beyond 64 bits":   {verbs.ErrInvalidVA, verbs.RegionConfig{Memory: b, Access: localRights, VA: 1<<64 - 9}},
		"zero-based with VA":  {verbs.ErrInvalidVA, verbs.RegionConfig{Memory: b, Access: localRights, VA: 1, ZeroBased: true}},
		"too many pages":      {verbs.ErrInvalidLength, verbs.RegionConfig{Memory: make([]byte, 65*4096), Access: localRights, VA: 1 << 20}},
		"page size":           {verbs.ErrInvalidPhysBufferSize, pages(func(c *verbs.RegionConfig) { c.Buffers.Size = 5000 })},
		"page not aligned":    {verbs.ErrInvalidPhysBufferEntry, pages(func(c *verbs.RegionConfig) { c.Buffers.Addresses[2]++ })},
		"page of nobody":      {verbs.ErrInvalidPhysBufferEntry, pages(func(c *verbs.RegionConfig) { c.Buffers.Addresses[2] = 1 << 60 })},
		"first byte offset":   {verbs.ErrInvalidFBO, pages(func(c *verbs.RegionConfig) { c.Buffers.FBO = 4096 })},
		"longer than buffers": {verbs.ErrInvalidLength, pages(func(c *verbs.RegionConfig) { c.Buffers.Length++ })},
		"VA and FBO disagree": {verbs.ErrInvalidVA, pages(func(c *verbs.RegionConfig) { c.VA += 8 })},
		"QP of another RNIC":  {verbs.ErrInvalidModifier, verbs.RegionConfig{Memory: b, Access: localRights, QP: newNode(w.t, verbs.QPConfig{}).qp}},
	}
}

// TestRegisterRefusals: the results of RI-Register (9.2.6.2), and of Allocate
// STag (9.2.6.1).
func TestRegisterRefusals(t *testing.T) {
	for name, bad := range badRegions(newWorld(t, verbs.Config{})) {
		refuse(t, verbs.Config{}, []refusal{{name, bad.want, nil, func(w *world) error {
			return second(w.pd.RegisterRegion(badRegions(w)[name].c))
		}}})
	}
	fill := func(w *world) {
		for range small.Regions - 1 {
			require.NoError(w.t, second(w.pd.Register(make([]byte, 1), localRights)))
		}
	}
	refuse(t, verbs.Config{}, []refusal{
		{"all in use", verbs.ErrInsufficientResources, fill, func(w *world) error {
			return second(w.pd.Register(make([]byte, 1), localRights))
		}},
		{"allocate: all in use", verbs.ErrInsufficientResources, fill, func(w *world) error {
			return second(w.pd.AllocateRegion(verbs.AllocateConfig{}))
		}},
		{"allocate: too long a list", verbs.ErrInsufficientResources, nil, func(w *world) error {
			return second(w.pd.AllocateRegion(verbs.AllocateConfig{PBL: small.PBL + 1}))
		}},
		{"allocate: negative", verbs.ErrInvalidModifier, nil, func(w *world) error {
			return second(w.pd.AllocateRegion(verbs.AllocateConfig{PBL: -1}))
		}},
		{"allocate: QP of another RNIC", verbs.ErrInvalidModifier, nil, func(w *world) error {
			return second(w.pd.AllocateRegion(verbs.AllocateConfig{QP: newNode(w.t, verbs.QPConfig{}).qp}))
		}},
		{"deregister: windows are bound", verbs.ErrWindowsBound, (*world).bind, func(w *world) error { return w.mr.Deregister() }},
	})
}

// TestReregisterRefusals: the errors that leave the region, and those that take it
// (RV-7.3.2.3-M5, RV-7.3.2.3-M6).
func TestReregisterRefusals(t *testing.T) {
	good := verbs.RegionConfig{Memory: make([]byte, 10), Access: localRights}
	share := func(w *world) {
		require.NoError(w.t, second(w.mr.RegisterShared(nil, verbs.SharedConfig{Access: localRights})))
	}
	refuse(t, verbs.Config{}, []refusal{
		{"windows are bound", verbs.ErrWindowsBound, (*world).bind, func(w *world) error { return w.mr.Reregister(nil, good) }},
		{"windows are bound, and the rest is wrong", verbs.ErrWindowsBound, (*world).bind, func(w *world) error {
			return w.mr.Reregister(newNode(w.t, verbs.QPConfig{}).pd, verbs.RegionConfig{})
		}},
		{"shared", verbs.ErrInvalidSTag, share, func(w *world) error { return w.mr.Reregister(nil, good) }},
	})
	dies := func(t *testing.T, want error, pd func(*world) *verbs.PD, c func(*world) verbs.RegionConfig) {
		w := newWorld(t, verbs.Config{})
		other, err := w.nic.AllocatePD()
		require.NoError(t, err)
		to := other
		if pd != nil {
			to = pd(w)
		}
		require.ErrorIs(t, w.mr.Reregister(to, c(w)), want)
		require.ErrorIs(t, second(w.mr.Query()), verbs.ErrInvalidSTag, "it is deallocated")
		require.ErrorIs(t, w.mr.Deregister(), verbs.ErrInvalidSTag)
		require.NoError(t, other.Deallocate(), "it is not in the new domain")
		for range small.Regions {
			require.NoError(t, second(w.pd.Register(make([]byte, 1), localRights)), "its resources are free")
		}
	}
	for name, bad := range badRegions(newWorld(t, verbs.Config{})) {
		t.Run(name, func(t *testing.T) {
			dies(t, bad.want, nil, func(w *world) verbs.RegionConfig { return badRegions(w)[name].c })
		})
	}
	t.Run("PD of another RNIC", func(t *testing.T) {
		dies(t, verbs.ErrInvalidPD, func(w *world) *verbs.PD { return newNode(w.t, verbs.QPConfig{}).pd },
			func(*world) verbs.RegionConfig { return good })
	})
	t.Run("deallocated PD", func(t *testing.T) {
		dies(t, verbs.ErrInvalidPD, func(w *world) *verbs.PD {
			pd, err := w.nic.AllocatePD()
			require.NoError(t, err)
			require.NoError(t, pd.Deallocate())
			return pd
		}, func(*world) verbs.RegionConfig { return good })
	})
}

// TestSharedRefusals: the results of Register Shared Memory Region (9.2.6.6).
func TestSharedRefusals(t *testing.T) {
	shared := func(pd func(*world) *verbs.PD, change func(*world, *verbs.SharedConfig)) func(*world) error {
		return func(w *world) error {
			c := verbs.SharedConfig{Access: localRights}
			change(w, &c)
			return second(w.mr.RegisterShared(pd(w), c))
		}
	}
	same := func(*world) *verbs.PD { return nil }
	set := func(change func(*verbs.SharedConfig)) func(*world) error {
		return shared(same, func(_ *world, c *verbs.SharedConfig) { change(c) })
	}
	refuse(t, verbs.Config{}, []refusal{
		{"no rights", verbs.ErrInvalidAccess, nil, set(func(c *verbs.SharedConfig) { c.Access = 0 })},
		{"VA", verbs.ErrInvalidVA, nil, shared(same, func(w *world, c *verbs.SharedConfig) { c.VA = w.mr.Base() + 1 })},
		{"zero-based with VA", verbs.ErrInvalidVA, nil, set(func(c *verbs.SharedConfig) { c.ZeroBased, c.VA = true, 4096 })},
		{"another key", verbs.ErrInvalidSTag, nil, shared(same, func(w *world, c *verbs.SharedConfig) { c.Existing = w.mr.WithKey(w.mr.STag().Key() + 1) })},
		{"another STag", verbs.ErrInvalidSTag, nil, shared(same, func(w *world, c *verbs.SharedConfig) {
			other, err := w.pd.Register(make([]byte, 1), localRights)
			require.NoError(w.t, err)
			c.Existing = other.STag()
		})},
		{"invalid", verbs.ErrInvalidSTag, (*world).invalidate, set(func(*verbs.SharedConfig) {})},
		{"PD of another RNIC", verbs.ErrInvalidPD, nil, shared(func(w *world) *verbs.PD { return newNode(w.t, verbs.QPConfig{}).pd }, func(*world, *verbs.SharedConfig) {})},
		{"QP of another RNIC", verbs.ErrInvalidModifier, nil, shared(same, func(w *world, c *verbs.SharedConfig) { c.QP = newNode(w.t, verbs.QPConfig{}).qp })},
		{
			"all in use", verbs.ErrInsufficientResources,
			func(w *world) {
				for range small.Regions - 1 {
					require.NoError(w.t, second(w.pd.Register(make([]byte, 1), localRights)))
				}
			},
			set(func(*verbs.SharedConfig) {}),
		},
	})
}

// invalidate puts the region into the Invalid state.
func (w *world) invalidate() {
	w.connect()
	c := w.run(verbs.Request{Op: verbs.OpInvalidate, Invalidate: w.mr.STag()})
	require.Equal(w.t, verbs.StatusSuccess, c.Status)
}

func TestRegion(t *testing.T) {
	n := newNode(t, verbs.QPConfig{})
	buf := make([]byte, 100)
	zero, err := n.pd.RegisterRegion(verbs.RegionConfig{Memory: buf, Access: allRights, ZeroBased: true, Key: 9, QP: n.qp})
	require.NoError(t, err)
	assert.Equal(t, uint8(9), zero.STag().Key())
	assert.Equal(t, verbs.MakeSTag(zero.STag().Index(), 4), zero.WithKey(4))
	assert.Zero(t, zero.Base())
	assert.Equal(t, 100, zero.Len())
	assert.Equal(t, &buf[0], &zero.Bytes()[0])
	assert.Equal(t, verbs.SGE{STag: zero.STag(), TO: 10, Length: 20}, zero.SGE(10, 20))
	assert.Equal(t, []verbs.SGE{zero.SGE(10, 20)}, zero.SGL(10, 20))
	assert.Equal(t, verbs.Remote{STag: zero.STag(), TO: 10}, zero.Remote(10))
	a, err := zero.Query()
	require.NoError(t, err)
	assert.Equal(t, verbs.RegionAttributes{
		STag: zero.STag(), Valid: true, PD: n.pd.ID(), RemoteAccess: true, PBL: a.PBL, Access: allRights,
		Addressing: verbs.ZeroBased, Length: 100, QP: n.qp.ID(),
	}, a)
	va, err := n.pd.RegisterRegion(verbs.RegionConfig{Memory: buf, Access: allRights, VA: 1 << 40, RemoteInvalidate: true})
	require.NoError(t, err)
	assert.Equal(t, uint64(1<<40+10), va.Remote(10).TO)
	a, err = va.Query()
	require.NoError(t, err)
	assert.True(t, a.RemoteInvalidate)
	b, err := n.pd.Register(buf, allRights)
	require.NoError(t, err)
	c, err := n.pd.Register(buf, allRights)
	require.NoError(t, err)
	assert.NotEqual(t, b.STag().Key(), c.STag().Key())
	assert.Equal(t, b.Base(), c.Base())
	for _, mr := range []*verbs.MR{zero, va, b, c} {
		require.NoError(t, mr.Deregister())
	}
	empty, err := n.pd.AllocateRegion(verbs.AllocateConfig{PBL: 3, RemoteAccess: true, QP: n.qp, RemoteInvalidate: true})
	require.NoError(t, err)
	a, err = empty.Query()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, a.PBL, 3)
	assert.Equal(t, verbs.RegionAttributes{
		STag: empty.STag(), PD: n.pd.ID(), RemoteAccess: true, PBL: a.PBL, QP: n.qp.ID(), RemoteInvalidate: true,
	}, a)
	assert.Zero(t, empty.Len())
	assert.Nil(t, empty.Bytes())
}
