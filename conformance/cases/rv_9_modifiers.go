package cases

import (
	"reflect"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// differing are the names of the fields in which two structs differ.
func differing[S any](a, b S) []string {
	var names []string
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			names = append(names, x.Type().Field(i).Name)
		}
	}
	return names
}

// modifier is an input modifier, and what of the result it alone decides.
type modifier[C any] struct {
	change func(*C)
	fields []string
}

// decides makes something twice, the second time with one modifier changed, and
// says that the results differ in what is its own.
func decides[C, R any](t *conformance.T, base C, run func(C) R, modifiers map[string]modifier[C]) {
	first := run(base)
	require.Empty(t, differing(first, run(base)), "nothing was changed")
	for name, m := range modifiers {
		c := base
		m.change(&c)
		assert.ElementsMatch(t, m.fields, differing(first, run(c)), name)
	}
}

func modifiersOfCreation(t *conformance.T) {
	opened := func(c verbs.Config) verbs.RNICAttributes {
		nic := openRNIC(t, c)
		a := must(nic.Query())(t)
		require.NoError(t, nic.Close())
		return a
	}
	decides(t, verbs.Config{ID: verbs.NewRNICID()}, opened, map[string]modifier[verbs.Config]{
		"Open RNIC, name": {func(c *verbs.Config) { c.ID = verbs.NewRNICID() }, []string{"ID"}},
		"Open RNIC, mode": {func(c *verbs.Config) { c.Mode = verbs.BlockMode }, []string{"Mode", "PageSizes", "MinBlock", "MaxBlock"}},
	})

	n := newHost(t, hostConfig{})
	handler := must(n.nic.AddCompletionHandler(func(*verbs.CQ) {}))(t)
	newCQ := func(c verbs.CQConfig) verbs.CQAttributes {
		cq := must(n.nic.CreateCQ(c))(t)
		return must(cq.Query())(t)
	}
	decides(t, verbs.CQConfig{Entries: 10}, newCQ, map[string]modifier[verbs.CQConfig]{
		"Create CQ, entries": {func(c *verbs.CQConfig) { c.Entries = 1000 }, []string{"Entries"}},
		"Create CQ, handler": {func(c *verbs.CQConfig) { c.Handler = handler }, []string{"Handler"}},
	})

	pd, cq := n.newPD(), n.newCQ(8)
	create := func(c verbs.QPConfig) qpSnapshot {
		v := snapshot(t, n.newQP(c))
		v.ID = 0
		return v
	}
	base := verbs.QPConfig{SendDepth: 8, RecvDepth: 8, SendSGE: 2, WriteSGE: 2, RecvSGE: 2, IRD: 2, ORD: 2}
	one := func(field string, change func(*verbs.QPConfig)) modifier[verbs.QPConfig] {
		return modifier[verbs.QPConfig]{change, []string{field}}
	}
	decides(t, base, create, map[string]modifier[verbs.QPConfig]{
		"Create QP, send CQ":            one("SendCQ", func(c *verbs.QPConfig) { c.SendCQ = cq }),
		"Create QP, receive CQ":         one("RecvCQ", func(c *verbs.QPConfig) { c.RecvCQ = cq }),
		"Create QP, WRs of the SQ":      one("SendDepth", func(c *verbs.QPConfig) { c.SendDepth = 1000 }),
		"Create QP, WRs of the RQ":      one("RecvDepth", func(c *verbs.QPConfig) { c.RecvDepth = 1000 }),
		"Create QP, SGEs of a Send":     one("SendSGE", func(c *verbs.QPConfig) { c.SendSGE = 20 }),
		"Create QP, SGEs of a Write":    one("WriteSGE", func(c *verbs.QPConfig) { c.WriteSGE = 20 }),
		"Create QP, SGEs of a Receive":  one("RecvSGE", func(c *verbs.QPConfig) { c.RecvSGE = 20 }),
		"Create QP, IRD":                one("IRD", func(c *verbs.QPConfig) { c.IRD = 7 }),
		"Create QP, ORD":                one("ORD", func(c *verbs.QPConfig) { c.ORD = 7 }),
		"Create QP, PD":                 one("PD", func(c *verbs.QPConfig) { c.PD = pd }),
		"Create QP, inbound RDMA Read":  one("NoInboundRead", func(c *verbs.QPConfig) { c.NoInboundRead = true }),
		"Create QP, inbound RDMA Write": one("NoInboundWrite", func(c *verbs.QPConfig) { c.NoInboundWrite = true }),
		"Create QP, Bind":               one("NoBind", func(c *verbs.QPConfig) { c.NoBind = true }),
		"Create QP, STag of zero":       one("Privileged", func(c *verbs.QPConfig) { c.Privileged = true }),
	})
	modified := func(m verbs.ModifyQP) qpSnapshot {
		qp := n.newQP(base)
		require.NoError(t, qp.Modify(m))
		v := snapshot(t, qp)
		v.ID = 0
		return v
	}
	decides(t, verbs.ModifyQP{}, modified, map[string]modifier[verbs.ModifyQP]{
		"Modify QP, state": {func(m *verbs.ModifyQP) { m.Next = verbs.StateError }, []string{"State"}},
		"Modify QP, ORD":   {func(m *verbs.ModifyQP) { m.ORD = ptr(1) }, []string{"ORD"}},
	})
}

// keyOnly is a region's attributes without its STag index, which is another one
// each time.
func keyOnly(t *conformance.T, mr *verbs.MR) verbs.RegionAttributes {
	q := must(mr.Query())(t)
	q.STag = verbs.MakeSTag(0, q.STag.Key())
	return q
}

// inPD is a region with the domain it is to be in.
type inPD struct {
	pd *verbs.PD
	verbs.RegionConfig
}

func modifiersOfMemory(t *conformance.T, n *host) {
	other, p := n.newPD(), n.pages(8, 4096)
	list := func(entries int) verbs.PhysicalBuffers {
		return verbs.PhysicalBuffers{Size: 4096, Addresses: p.Addresses()[:entries], Length: 100}
	}
	regions := map[string]modifier[inPD]{
		"PD":                 {func(c *inPD) { c.pd = other }, []string{"PD"}},
		"key":                {func(c *inPD) { c.Key = 2 }, []string{"STag"}},
		"VA":                 {func(c *inPD) { c.VA = 1 << 31 }, []string{"Base"}},
		"length":             {func(c *inPD) { c.Buffers.Length = 200 }, []string{"Length"}},
		"addressing":         {func(c *inPD) { c.VA, c.ZeroBased = 0, true }, []string{"Addressing", "Base"}},
		"access":             {func(c *inPD) { c.Access = verbs.LocalWrite }, []string{"Access"}},
		"windows":            {func(c *inPD) { c.Access |= verbs.BindWindow }, []string{"Access"}},
		"remote access flag": {func(c *inPD) { c.RemoteAccess = true }, []string{"RemoteAccess"}},
		"entries":            {func(c *inPD) { c.Buffers = list(7) }, []string{"PBL"}},
	}
	base := inPD{n.pd, verbs.RegionConfig{Buffers: list(1), Access: verbs.LocalRead, Key: 1, VA: 1 << 30}}
	decides(t, base, func(c inPD) verbs.RegionAttributes { return keyOnly(t, n.region(c.pd, c.RegionConfig)) }, regions)
	decides(t, base, func(c inPD) verbs.RegionAttributes {
		mr := n.register(8, verbs.LocalRead)
		require.NoError(t, mr.Reregister(c.pd, c.RegionConfig))
		return keyOnly(t, mr)
	}, regions)

	type allocation struct {
		pd *verbs.PD
		verbs.AllocateConfig
	}
	allocate := func(c allocation) verbs.RegionAttributes {
		mr := must(c.pd.AllocateRegion(c.AllocateConfig))(t)
		return keyOnly(t, mr)
	}
	decides(t, allocation{n.pd, verbs.AllocateConfig{PBL: 1}}, allocate, map[string]modifier[allocation]{
		"Allocate STag, PD":      {func(c *allocation) { c.pd = other }, []string{"PD"}},
		"Allocate STag, entries": {func(c *allocation) { c.PBL = 1000 }, []string{"PBL"}},
		"Allocate STag, flag":    {func(c *allocation) { c.RemoteAccess = true }, []string{"RemoteAccess"}},
	})

	type sharing struct {
		pd *verbs.PD
		verbs.SharedConfig
	}
	existing := n.region(n.pd, base.RegionConfig)
	share := func(c sharing) verbs.RegionAttributes {
		mr := must(existing.RegisterShared(c.pd, c.SharedConfig))(t)
		return keyOnly(t, mr)
	}
	decides(t, sharing{n.pd, verbs.SharedConfig{Access: verbs.LocalRead, VA: 1 << 30}}, share, map[string]modifier[sharing]{
		"Register Shared, PD":         {func(c *sharing) { c.pd = other }, []string{"PD"}},
		"Register Shared, key":        {func(c *sharing) { c.Key = 9 }, []string{"STag"}},
		"Register Shared, VA":         {func(c *sharing) { c.VA = 1 << 31 }, []string{"Base"}},
		"Register Shared, addressing": {func(c *sharing) { c.VA, c.ZeroBased = 0, true }, []string{"Addressing", "Base"}},
		"Register Shared, access":     {func(c *sharing) { c.Access = verbs.LocalWrite }, []string{"Access"}},
		"Register Shared, flag":       {func(c *sharing) { c.RemoteAccess = true }, []string{"RemoteAccess"}},
	})
	// Length, FBO and addresses are in the placement cases of 9.2.6.2 too.
}

// modifiersOfPosts posts requests that differ in one modifier each, and looks at
// every octet that goes out, or at what Query tells.
func modifiersOfPosts(t *conformance.T) {
	n := newHost(t, hostConfig{QP: verbs.QPConfig{Privileged: true}})
	p := rawPeer(t, n.qp, asInitiator)
	fill(n.mr.Bytes(), 7)
	m := n.mr.Bytes()
	sent := uint32(0)
	send := func(control byte, inv uint32, payload []byte) []byte {
		sent++
		return untagged(lastUntagged, control, inv, 0, sent, 0, payload)
	}
	far, two := verbs.Remote{STag: 0x700, TO: 0x10}, []verbs.SGE{n.mr.SGE(0, 4), n.mr.SGE(9, 3)}
	for _, c := range []struct {
		name string
		req  verbs.Request
		want []byte
	}{
		{"Send", verbs.Request{Op: verbs.OpSend, SGL: n.mr.SGL(0, 4)}, send(opSend, 0, m[:4])},
		{"its list", verbs.Request{Op: verbs.OpSend, SGL: two}, send(opSend, 0, append(append([]byte(nil), m[:4]...), m[9:12]...))},
		{"no list", verbs.Request{Op: verbs.OpSend}, send(opSend, 0, nil)},
		{"Send with Solicited Event", verbs.Request{Op: verbs.OpSendSE, SGL: n.mr.SGL(0, 4)}, send(opSendSE, 0, m[:4])},
		{"Send with Invalidate", verbs.Request{Op: verbs.OpSendInvalidate, Invalidate: 0x501, SGL: n.mr.SGL(0, 4)}, send(opSendInv, 0x501, m[:4])},
		{"its STag", verbs.Request{Op: verbs.OpSendInvalidate, Invalidate: 0x502, SGL: n.mr.SGL(0, 4)}, send(opSendInv, 0x502, m[:4])},
		{"Send with both", verbs.Request{Op: verbs.OpSendSEInvalidate, Invalidate: 0x501, SGL: n.mr.SGL(0, 4)}, send(opSendSEInv, 0x501, m[:4])},
		{"RDMA Write", verbs.Request{Op: verbs.OpWrite, SGL: n.mr.SGL(0, 4), Remote: far}, aWrite(0x700, 0x10, m[:4])},
		{"its data", verbs.Request{Op: verbs.OpWrite, SGL: n.mr.SGL(8, 5), Remote: far}, aWrite(0x700, 0x10, m[8:13])},
		{"its STag", verbs.Request{Op: verbs.OpWrite, SGL: n.mr.SGL(0, 4), Remote: verbs.Remote{STag: 0x800, TO: 0x10}}, aWrite(0x800, 0x10, m[:4])},
		{"its TO", verbs.Request{Op: verbs.OpWrite, SGL: n.mr.SGL(0, 4), Remote: verbs.Remote{STag: 0x700, TO: 1 << 40}}, aWrite(0x700, 1<<40, m[:4])},
	} {
		for id, flags := range []verbs.Flags{0, verbs.Unsignaled} { // IDs, and whether there is a completion
			if c.req.ID = uint64(500 + id); flags != 0 && c.req.Op.IsSend() {
				continue // one of a kind is enough: the MSNs would differ
			}
			c.req.Flags = flags
			post(t, n.qp, c.req)
			require.Equal(t, c.want, must(p.Next())(t), c.name)
			if flags == 0 {
				completes(t, n.cq, verbs.Completion{ID: c.req.ID, QP: n.qp.ID(), Op: c.req.Op})
			}
		}
	}
	empty(t, n.cq)
	readsAsPosted(t, n, p)
	bindsAsPosted(t, n)
}

// readsAsPosted: the modifiers of an RDMA Read.
func readsAsPosted(t *conformance.T, n *host, p *peer) {
	other := n.register(64, allRights)
	local, far := n.mr.SGE(16, 3), verbs.Remote{STag: 0x700, TO: 0x10}
	for i, c := range []struct {
		name string
		req  verbs.Request
		want read
	}{
		{"RDMA Read", verbs.Request{Local: local, Remote: far}, read{uint32(n.mr.STag()), n.mr.Base() + 16, 3, 0x700, 0x10}},
		{"its sink", verbs.Request{Local: other.SGE(1, 3), Remote: far}, read{uint32(other.STag()), other.Base() + 1, 3, 0x700, 0x10}},
		{"its length", verbs.Request{Local: n.mr.SGE(16, 9), Remote: far}, read{uint32(n.mr.STag()), n.mr.Base() + 16, 9, 0x700, 0x10}},
		{"its source", verbs.Request{Local: local, Remote: verbs.Remote{STag: 0x800, TO: 0x11}}, read{uint32(n.mr.STag()), n.mr.Base() + 16, 3, 0x800, 0x11}},
	} {
		c.req.ID, c.req.Op = uint64(600+i), verbs.OpRead
		post(t, n.qp, c.req)
		require.Equal(t, aReadRequest(uint32(i+1), c.want), must(p.Next())(t), c.name)
		require.NoError(t, p.Send(aReadResponse(c.want.sinkSTag, c.want.sinkTO, make([]byte, c.want.size))))
		completes(t, n.cq, verbs.Completion{ID: c.req.ID, QP: n.qp.ID(), Op: verbs.OpRead})
	}
}

// bindsAsPosted: the modifiers of Bind Memory Window and of Fast-Register.
func bindsAsPosted(t *conformance.T, n *host) {
	one := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 4096), Access: allRights | verbs.BindWindow, VA: 1 << 20})
	two := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 4096), Access: allRights | verbs.BindWindow, VA: 1 << 20})
	mw := n.newMW()
	bound := func(b verbs.BindRequest) verbs.WindowAttributes {
		run(t, n.qp, verbs.Request{ID: 1, Op: verbs.OpBind, Bind: &b}, verbs.StatusSuccess)
		q := must(mw.Query())(t)
		run(t, n.qp, verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: b.Window}, verbs.StatusSuccess)
		return q
	}
	base := verbs.BindRequest{Window: mw.STag(1), Region: one.STag(), VA: 1<<20 + 8, Length: 100, Access: verbs.RemoteRead}
	decides(t, base, bound, map[string]modifier[verbs.BindRequest]{
		"Bind, key":        {func(b *verbs.BindRequest) { b.Window = mw.STag(2) }, []string{"STag"}},
		"Bind, region":     {func(b *verbs.BindRequest) { b.Region = two.STag() }, []string{"Region"}},
		"Bind, VA":         {func(b *verbs.BindRequest) { b.VA = 1<<20 + 9 }, []string{"Base"}},
		"Bind, length":     {func(b *verbs.BindRequest) { b.Length = 101 }, []string{"Length"}},
		"Bind, addressing": {func(b *verbs.BindRequest) { b.Addressing = verbs.ZeroBased }, []string{"Addressing", "Base"}},
		"Bind, access":     {func(b *verbs.BindRequest) { b.Access = verbs.RemoteWrite }, []string{"Access"}},
	})
	mr, p := n.allocate(verbs.AllocateConfig{PBL: 4, RemoteAccess: true}), n.pages(4, 4096)
	fast := func(f verbs.FastRegisterRequest) verbs.RegionAttributes {
		run(t, n.qp, verbs.Request{ID: 3, Op: verbs.OpFastRegister, FastRegister: &f}, verbs.StatusSuccess)
		q := keyOnly(t, mr)
		run(t, n.qp, verbs.Request{ID: 4, Op: verbs.OpInvalidate, Invalidate: f.STag}, verbs.StatusSuccess)
		return q
	}
	decides(t, verbs.FastRegisterRequest{STag: mr.WithKey(1), Buffers: p.List(0, 100), VA: 1 << 20, Access: verbs.LocalRead}, fast, map[string]modifier[verbs.FastRegisterRequest]{
		"Fast-Register, key":        {func(f *verbs.FastRegisterRequest) { f.STag = mr.WithKey(2) }, []string{"STag"}},
		"Fast-Register, length":     {func(f *verbs.FastRegisterRequest) { f.Buffers = p.List(0, 101) }, []string{"Length"}},
		"Fast-Register, VA":         {func(f *verbs.FastRegisterRequest) { f.VA = 1 << 21 }, []string{"Base"}},
		"Fast-Register, addressing": {func(f *verbs.FastRegisterRequest) { f.VA, f.Addressing = 0, verbs.ZeroBased }, []string{"Addressing", "Base"}},
		"Fast-Register, access":     {func(f *verbs.FastRegisterRequest) { f.Access = allRights }, []string{"Access"}},
	})
}

// modifiersOfOptions: those of S-RQs, resizing, changing IRD and raising ORD, and
// block mode.
func modifiersOfOptions(t *conformance.T, n *host) {
	pd := n.newPD()
	newSRQ := func(c verbs.SRQConfig) verbs.SRQAttributes { return must(n.newSRQ(c).Query())(t) }
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
	modified := func(m verbs.ModifyQP) qpSnapshot {
		c := verbs.QPConfig{SendDepth: 8, RecvDepth: 8, IRD: 2, ORD: 2}
		if m.RQLimit != nil || m.ArmRQLimit {
			c.SRQ = s
		}
		qp := n.newQP(c)
		before := snapshot(t, qp)
		require.NoError(t, qp.Modify(m))
		after := snapshot(t, qp)
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
	created := func(c verbs.QPConfig) qpSnapshot {
		v := snapshot(t, n.newQP(c))
		v.ID = 0
		return v
	}
	decides(t, verbs.QPConfig{SRQ: s}, created, map[string]modifier[verbs.QPConfig]{
		"Create QP, S-RQ":         {func(c *verbs.QPConfig) { c.SRQ = n.newSRQ(verbs.SRQConfig{Depth: 8}) }, []string{"SRQ"}},
		"Create QP, RQ Limit":     {func(c *verbs.QPConfig) { c.RQLimit = 3 }, []string{"RQLimit", "RQLimitArmed"}},
		"Create QP, WRs, ignored": {func(c *verbs.QPConfig) { c.RecvDepth = 7 }, nil},
	})
	block := newHost(t, hostConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
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
	n := newHost(t, hostConfig{RNIC: verbs.Config{
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
		refuses(t, c.name, c.want, c.call, snapshotOf(t, n.qp))
	}
}
