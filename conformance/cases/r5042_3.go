package cases

import (
	"reflect"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// r5042_3 is what programs may do to one another through an RNIC, and what they must
// ask its owner for: RFC 5042 3, 6.4.1, 6.4.3.2, 7.
var r5042_3 = []conformance.Case{
	apiCase("3/handles-without-privilege", unprivilegedReach, "R5042-3-M1"),
	apiCase("3/bounded-by-the-owner", boundedByOwner, "R5042-3-M2"),
	apiCase("6.4.1/one-kind-used-up", oneKindUsedUp, "R5042-6.4.1-M1"),
	apiCase("6.4.3.2/cq-entries-granted", entriesGranted, "R5042-6.4.3.2-M1"),
	apiCase("7.1/cq-of-another-owner", foreignCQ, "R5042-7.1-M1"),
	apiCase("7.2/read-slots-granted", readSlotsGranted, "R5042-7.2-M1"),
	apiCase("7.3/right-to-the-buffer", onHost(rightToTheBuffer), "R5042-7.3-M1"),
}

// unprivilegedReach: with the handles alone a program posts, polls and asks to be
// told; what it names of others is refused, and only its own stream suffers.
func unprivilegedReach(t *conformance.T) {
	allowed := []string{"Notify", "Poll", "PostRecv", "PostSend"}
	n := newHost(t, hostConfig{})
	user := must(n.qp.User())(t)
	for _, handle := range []any{user, n.cq.User(), n.newSRQ(verbs.SRQConfig{}).User()} {
		typ := reflect.TypeOf(handle)
		require.NotZero(t, typ.NumMethod(), "%v", typ)
		for i := range typ.NumMethod() {
			require.True(t, slices.Contains(allowed, typ.Method(i).Name), "%v has %s", typ, typ.Method(i).Name)
		}
		for i := range typ.NumField() {
			require.False(t, typ.Field(i).IsExported(), "field %s of %v", typ.Field(i).Name, typ)
		}
	}
	require.ErrorIs(t, second(n.newQP(verbs.QPConfig{Privileged: true}).User()), verbs.ErrInvalidModifier)

	other := n.newPD()
	theirs := n.region(other, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
	window := must(other.AllocateWindow())(t)
	for x := range inTurn(t, "what belongs to others, %s", []struct {
		what string
		send verbs.Request
		want verbs.Status
	}{
		{"to read", verbs.Request{SGL: theirs.SGL(0, 8)}, verbs.StatusInvalidPD},
		{"to invalidate", verbs.Request{Op: verbs.OpInvalidate, Invalidate: theirs.STag()}, verbs.StatusInvalidPD},
		{"to bind to", verbs.Request{Op: verbs.OpBind, Bind: n.newMW().BindRequest(theirs, 0, 8, remoteRights, 1)}, verbs.StatusInvalidPD},
		{"to bind", verbs.Request{Op: verbs.OpBind, Bind: window.BindRequest(n.mr, 0, 8, remoteRights, 1)}, verbs.StatusInvalidPD},
	}) {
		qp := n.newQP(verbs.QPConfig{})
		user := must(qp.User())(t)
		p := rawPeer(t, qp, asInitiator)
		x.send.ID = 3
		post(t, user, x.send)
		completes(t, n.cq, verbs.Completion{ID: 3, QP: qp.ID(), Op: x.send.Op, Status: x.want})
		p.terminatedAs(0x0000)
	}
	a := must(theirs.Query())(t)
	require.True(t, a.Valid)
	require.Zero(t, a.Windows)
}

// boundedByOwner uses up an RNIC that has two of everything: what was made is as it
// was, and what is given back can be had again.
func boundedByOwner(t *conformance.T) {
	l := verbs.Limits{PDs: 2, QPs: 2, CQs: 2, SRQs: 2, Regions: 2, Windows: 2, EventHandlers: 2, Physical: 2 * 4096}
	exhaust(t, openRNIC(t, verbs.Config{Limits: l}), l)

	nic := openRNIC(t, verbs.Config{Limits: l})
	var pds []*verbs.PD
	var cqs []*verbs.CQ
	for range 2 {
		pd := must(nic.AllocatePD())(t)
		cq := must(nic.CreateCQ(verbs.CQConfig{}))(t)
		pds, cqs = append(pds, pd), append(cqs, cq)
	}
	c := verbs.QPConfig{PD: pds[0], SendCQ: cqs[0], RecvCQ: cqs[0]}
	memory := make([]byte, 8)
	for k := range inTurn(t, "%s", []struct {
		what string
		make func() (free func() error, err error)
	}{
		{"QP", func() (func() error, error) { q, err := nic.CreateQP(c); return q.Destroy, err }},
		{"S-RQ", func() (func() error, error) {
			q, err := nic.CreateSRQ(verbs.SRQConfig{PD: pds[0]})
			return q.Destroy, err
		}},
		{"region", func() (func() error, error) { r, err := pds[0].Register(memory, allRights); return r.Deregister, err }},
		{"window", func() (func() error, error) { w, err := pds[0].AllocateWindow(); return w.Deallocate, err }},
		{"page", func() (func() error, error) { p, err := nic.AllocatePages(1, 4096); return p.Deallocate, err }},
		{"CQ", func() (func() error, error) {
			if cqs[1] != nil { // one of the two that are there makes room
				require.NoError(t, cqs[1].Destroy())
				cqs[1] = nil
				q := must(nic.CreateCQ(verbs.CQConfig{}))(t)
				return q.Destroy, nil
			}
			q, err := nic.CreateCQ(verbs.CQConfig{})
			return q.Destroy, err
		}},
	}) {
		free, err := k.make()
		require.NoError(t, err)
		for err == nil {
			_, err = k.make()
		}
		require.ErrorIs(t, err, verbs.ErrInsufficientResources)
		require.NoError(t, free())
		_, err = k.make()
		require.NoError(t, err, "in the place of one that is gone")
		_, err = k.make()
		require.ErrorIs(t, err, verbs.ErrInsufficientResources)
	}
}

// oneKindUsedUp has connected queue pairs, and an RNIC that runs out of one kind of
// thing after another: the other kinds can be had, and data moves.
func oneKindUsedUp(t *conformance.T) {
	l := verbs.Limits{PDs: 8, QPs: 8, CQs: 8, SRQs: 8, Regions: 8, Windows: 8, Physical: 8 * 4096, EventHandlers: 8}
	type kind struct {
		name string
		make func(n *host) error
	}
	kinds := []kind{
		{"PD", func(n *host) error { return second(n.nic.AllocatePD()) }},
		{"CQ", func(n *host) error { return second(n.nic.CreateCQ(verbs.CQConfig{})) }},
		{"QP", func(n *host) error { return second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{}))) }},
		{"S-RQ", func(n *host) error { return second(n.nic.CreateSRQ(verbs.SRQConfig{PD: n.pd})) }},
		{"region", func(n *host) error { return second(n.pd.Register(make([]byte, 8), allRights)) }},
		{"window", func(n *host) error { return second(n.pd.AllocateWindow()) }},
		{"page", func(n *host) error { return second(n.nic.AllocatePages(1, 4096)) }},
		{"event handler", func(n *host) error { return second(n.nic.AddCompletionHandler(func(*verbs.CQ) {})) }},
	}
	for used := range inTurn(t, "no %s left", kinds) {
		w := newHostPair(t, hostPairConfig{A: hostConfig{RNIC: verbs.Config{Limits: l}}})
		var err error
		for i := 0; err == nil; i++ {
			require.LessOrEqual(t, i, 8, "there is no end of them")
			err = used.make(w.a)
		}
		require.ErrorIs(t, err, verbs.ErrInsufficientResources)
		moves(t, w.a.endpoint(), w.b.endpoint())
		for _, k := range kinds {
			if k.name != used.name {
				require.NoError(t, k.make(w.a), "a %s", k.name)
			}
		}
	}
}

// entriesGranted: how long a CQ is, is for the RNIC to allow; work cannot lengthen
// it.
func entriesGranted(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{CQs: 2, CQE: 8}})
	require.ErrorIs(t, second(nic.CreateCQ(verbs.CQConfig{Entries: 9})), verbs.ErrTooManyCQE)
	cq := must(nic.CreateCQ(verbs.CQConfig{Entries: 8}))(t)
	shown := queries(cq.Query)
	refuses(t, "Resize beyond the limit", verbs.ErrTooManyCQE, func() error { return cq.Resize(9) }, shown)
	require.NoError(t, second(nic.CreateCQ(verbs.CQConfig{Entries: 1})))
	require.ErrorIs(t, second(nic.CreateCQ(verbs.CQConfig{Entries: 1})), verbs.ErrInsufficientResources)

	pd := must(nic.AllocatePD())(t)
	events := logEvents(t, nic)
	qp := must(nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, RecvDepth: 16}))(t)
	a := must(cq.Query())(t)
	p := rawPeer(t, qp, asResponder)
	for i := range a.Entries + 1 {
		postRecv(t, qp, verbs.Recv{ID: uint64(i)})
	}
	for i := range a.Entries + 1 {
		require.NoError(t, p.Send(aSend(uint32(i+1), nil)))
	}
	p.terminatedAs(0x0207)
	first := events.next()
	require.Contains(t, []verbs.EventID{verbs.EventCQOverflow, verbs.EventCQRQError}, first.ID)
	require.Len(t, await(t, cq, a.Entries), a.Entries)
	empty(t, cq)
}

// foreignCQ: a CQ is of use to queue pairs of its own RNIC only, which is open once.
func foreignCQ(t *conformance.T) {
	id := verbs.NewRNICID()
	mine := newHost(t, hostConfig{RNIC: verbs.Config{ID: id}})
	require.ErrorIs(t, second(verbs.Open(verbs.Config{ID: id})), verbs.ErrRNICInUse)
	yours := newHost(t, hostConfig{})
	for _, c := range []verbs.QPConfig{{SendCQ: yours.cq}, {RecvCQ: yours.cq}, {SendCQ: yours.cq, RecvCQ: yours.cq}} {
		require.ErrorIs(t, second(mine.nic.CreateQP(mine.withDefaults(c))), verbs.ErrInvalidCQ)
	}
	qp := mine.newQP(verbs.QPConfig{})
	require.Same(t, mine.cq, attributes(t, qp).SendCQ)
	postRecv(t, qp, verbs.Recv{ID: 4})
	require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	completes(t, mine.cq, verbs.Completion{ID: 4, QP: qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusFlushed})
	empty(t, yours.cq)
}

// readSlotsGranted: places for inbound RDMA Reads come from Create QP and Modify QP
// alone, and out of what the RNIC has.
func readSlotsGranted(t *conformance.T) {
	n := newHost(t, hostConfig{QP: verbs.QPConfig{IRD: 2}, RNIC: verbs.Config{Limits: verbs.Limits{QPs: 4, IRD: 6, SharedIRD: 10}}})
	user := must(n.qp.User())(t)
	typ := reflect.TypeOf(user)
	_, can := typ.MethodByName("Modify")
	require.False(t, can, "%v has Modify QP", typ)
	for i := range typ.NumField() {
		require.False(t, typ.Field(i).IsExported(), "field %s of %v", typ.Field(i).Name, typ)
	}
	require.ErrorIs(t, second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{IRD: 7}))), verbs.ErrIRDExceeded)
	refuses(t, "Modify QP", verbs.ErrIRDExceeded, func() error { return n.qp.Modify(verbs.ModifyQP{IRD: ptr(7)}) }, snapshotOf(t, n.qp))
	second := n.newQP(verbs.QPConfig{IRD: 6})
	third := n.newQP(verbs.QPConfig{IRD: 6})
	sum := 0
	for _, qp := range []*verbs.QP{n.qp, second, third} {
		sum += attributes(t, qp).IRD
	}
	require.LessOrEqual(t, sum, 10, "what was granted of a pool of 10")
	require.Equal(t, 2, attributes(t, n.qp).IRD)
	require.Equal(t, 6, attributes(t, second).IRD)
}

// rightToTheBuffer: a queue pair without privileges cannot say that an STag means
// memory of its choosing.
func rightToTheBuffer(t *conformance.T, n *host) {
	pages := n.pages(1, 4096)
	secret := pages.Bytes()
	fill(secret, 3)
	want := slices.Clone(secret)
	region := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true}))(t)
	small := n.register(64, allRights|verbs.BindWindow)
	beyond := n.newMW().BindRequest(small, 60, 4, remoteRights, 1)
	beyond.Length = 5
	zero := verbs.SGE{Length: 8, TO: pages.Address(0)}
	for x := range inTurn(t, "%s", []struct {
		what string
		send verbs.Request
		want verbs.Status
	}{
		{"a Send from the STag of zero", verbs.Request{SGL: []verbs.SGE{zero}}, verbs.StatusInvalidSTag},
		{"an RDMA Write from it", verbs.Request{Op: verbs.OpWrite, SGL: []verbs.SGE{zero}, Remote: verbs.Remote{STag: 7}}, verbs.StatusInvalidSTag},
		{"an RDMA Read to it", verbs.Request{Op: verbs.OpRead, Local: zero, Remote: verbs.Remote{STag: 7}}, verbs.StatusInvalidSTag},
		{"Fast-Register", verbs.Request{Op: verbs.OpFastRegister, FastRegister: &verbs.FastRegisterRequest{
			STag: region.STag(), Buffers: pages.List(0, 64), Addressing: verbs.ZeroBased, Access: allRights,
		}}, verbs.StatusNotPrivileged},
		{"Bind beyond its region", verbs.Request{Op: verbs.OpBind, Bind: beyond}, verbs.StatusBaseBounds},
	}) {
		qp := n.newQP(verbs.QPConfig{})
		user := must(qp.User())(t)
		p := rawPeer(t, qp, asInitiator)
		x.send.ID = 6
		post(t, user, x.send)
		completes(t, n.cq, verbs.Completion{ID: 6, QP: qp.ID(), Op: x.send.Op, Status: x.want})
		p.terminatedAs(0x0000)
		require.Equal(t, want, secret, "the memory")
	}
	t.Part("a receive into the STag of zero")
	qp := n.newQP(verbs.QPConfig{})
	p := rawPeer(t, qp, asResponder)
	postRecv(t, qp, verbs.Recv{ID: 8, SGL: []verbs.SGE{zero}})
	require.NoError(t, p.Send(aSend(1, []byte("overwrite"[:8]))))
	completes(t, n.cq, verbs.Completion{ID: 8, QP: qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusInvalidSTag})
	require.Equal(t, want, secret, "the memory")
}
