package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// modifiersOfOptions: those of S-RQs, resizing, changing IRD and raising ORD, and
// block mode.
func modifiersOfOptions(t *conformance.T, n *node) {
	pd := n.newPD()
	newSRQ := func(c verbs.SRQConfig) verbs.SRQAttributes {
		return must(n.newSRQ(c).Query())(t)
	}
	decides(t, verbs.SRQConfig{Depth: 8, SGE: 2}, newSRQ, map[string]modifier[verbs.SRQConfig]{
		"Create S-RQ, PD":    {func(c *verbs.SRQConfig) { c.PD = pd }, []string{"PD"}},
		"Create S-RQ, WRs":   {func(c *verbs.SRQConfig) { c.Depth = 99 }, []string{"Depth"}},
		"Create S-RQ, SGEs":  {func(c *verbs.SRQConfig) { c.SGE = 9 }, []string{"SGE"}},
		"Create S-RQ, limit": {func(c *verbs.SRQConfig) { c.Limit = 3 }, []string{"Limit", "Armed"}},
	})
	changed := func(m verbs.ModifySRQ) verbs.SRQAttributes {
		s := n.newSRQ(verbs.SRQConfig{Depth: 8, SGE: 2})
		require.NoError(t, s.Modify(verbs.ModifySRQ{Limit: ptr(1)}))
		require.NoError(t, s.Modify(m))
		return must(s.Query())(t)
	}
	decides(t, verbs.ModifySRQ{}, changed, map[string]modifier[verbs.ModifySRQ]{
		"Modify S-RQ, WRs":   {func(m *verbs.ModifySRQ) { m.Depth = ptr(99) }, []string{"Depth"}},
		"Modify S-RQ, limit": {func(m *verbs.ModifySRQ) { m.Limit = ptr(2) }, []string{"Limit"}},
		"Modify S-RQ, rearm": {func(m *verbs.ModifySRQ) { m.Rearm = true }, []string{"Armed"}},
	})
	s := n.newSRQ(verbs.SRQConfig{Depth: 8})
	modified := func(m verbs.ModifyQP) told {
		c := verbs.QPConfig{SendDepth: 8, RecvDepth: 8, IRD: 2, ORD: 2}
		if m.RQLimit != nil || m.ArmRQLimit {
			c.SRQ = s
		}
		qp := n.newQP(c)
		before := tell(t, qp)
		require.NoError(t, qp.Modify(m))
		after := tell(t, qp)
		after.ID, after.SRQ, after.RecvDepth, after.RecvSGE = 0, 0, after.RecvDepth-before.RecvDepth, 0
		return after
	}
	decides(t, verbs.ModifyQP{}, modified, map[string]modifier[verbs.ModifyQP]{
		"Modify QP, WRs of the SQ": {func(m *verbs.ModifyQP) { m.SendDepth = ptr(1000) }, []string{"SendDepth"}},
		"Modify QP, WRs of the RQ": {func(m *verbs.ModifyQP) { m.RecvDepth = ptr(1000) }, []string{"RecvDepth"}},
		"Modify QP, IRD":           {func(m *verbs.ModifyQP) { m.IRD = ptr(5) }, []string{"IRD"}},
		"Modify QP, more ORD":      {func(m *verbs.ModifyQP) { m.ORD = ptr(5) }, []string{"ORD"}},
		"Modify QP, RQ Limit":      {func(m *verbs.ModifyQP) { m.RQLimit = ptr(3) }, []string{"RQLimit"}},
		"Modify QP, arm":           {func(m *verbs.ModifyQP) { m.ArmRQLimit = true }, []string{"RQLimitArmed"}},
	})
	created := func(c verbs.QPConfig) told {
		v := tell(t, n.newQP(c))
		v.ID = 0
		return v
	}
	decides(t, verbs.QPConfig{SRQ: s}, created, map[string]modifier[verbs.QPConfig]{
		"Create QP, S-RQ":         {func(c *verbs.QPConfig) { c.SRQ = n.newSRQ(verbs.SRQConfig{Depth: 8}) }, []string{"SRQ"}},
		"Create QP, RQ Limit":     {func(c *verbs.QPConfig) { c.RQLimit = 3 }, []string{"RQLimit", "RQLimitArmed"}},
		"Create QP, WRs, ignored": {func(c *verbs.QPConfig) { c.RecvDepth = 7 }, nil},
	})
	block := newNode(t, nodeConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
	p := block.pages(3, 100)
	for _, size := range []uint64{100, 99} { // the size of the first block decides where the second octet is
		b := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{p.Address(2), p.Address(0)}, Length: size + 1}
		mr := block.region(block.pd, verbs.RegionConfig{Buffers: b, Access: allRights, ZeroBased: true})
		clear(p.Bytes())
		block.remotely(verbs.Remote{STag: mr.STag(), TO: 99}, 0, 0)
		at := map[uint64]int{100: 299, 99: 0}[size]
		assert.Equal(t, byte(0xAB), p.Bytes()[at], "blocks of %d octets", size)
	}
}

// optionsTakenAway: Query RNIC says so, and the verbs refuse.
func optionsTakenAway(t *conformance.T) {
	n := newNode(t, nodeConfig{RNIC: verbs.Config{
		Without: verbs.FeatureBlockMode | verbs.FeatureSRQ | verbs.FeatureResize | verbs.FeatureChangeIRD | verbs.FeatureRaiseORD,
	}, QP: verbs.QPConfig{IRD: 4, ORD: 4}})
	a := must(n.nic.Query())(t)
	assert.Equal(t, []bool{false, false, false, false, false}, []bool{a.Features.Has(verbs.FeatureBlockMode), a.Features.Has(verbs.FeatureSRQ), a.Features.Has(verbs.FeatureResize), a.Features.Has(verbs.FeatureChangeIRD), a.Features.Has(verbs.FeatureRaiseORD)})
	for _, c := range []struct {
		name string
		want error
		call func() error
	}{
		{"Open RNIC in block mode", verbs.ErrBlockListNotSupported, func() error {
			return second(verbs.Open(verbs.Config{Mode: verbs.BlockMode, Without: verbs.FeatureBlockMode}))
		}},
		{"Create S-RQ", verbs.ErrInsufficientResources, func() error { return second(n.nic.CreateSRQ(verbs.SRQConfig{PD: n.pd})) }},
		{"WRs of the SQ", verbs.ErrCannotChangeAttribute, func() error { return n.qp.Modify(verbs.ModifyQP{SendDepth: ptr(99)}) }},
		{"WRs of the RQ", verbs.ErrCannotChangeAttribute, func() error { return n.qp.Modify(verbs.ModifyQP{RecvDepth: ptr(99)}) }},
		{"IRD", verbs.ErrCannotChangeAttribute, func() error { return n.qp.Modify(verbs.ModifyQP{IRD: ptr(3)}) }},
		{"more ORD", verbs.ErrCannotChangeAttribute, func() error { return n.qp.Modify(verbs.ModifyQP{ORD: ptr(5)}) }},
	} {
		refuses(t, c.name, c.want, c.call, tells(t, n.qp))
	}
}
