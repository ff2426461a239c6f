package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

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
