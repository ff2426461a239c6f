package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_8 is who may use an STag, and for what: RFC 5041 8.2 and 8.3.
var r5041_8 = []conformance.Case{
	upperCase("8.2/another-pd", anotherPD, "R5041-8.2-M1", "R5041-8.3.1-M2"),
	upperCase("8.2/another-stream", anotherStream, "R5041-8.2-M2", "R5041-8.3.1-M3"),
	upperCase("8.2/both-associations", bothAssociations, "R5041-8.2-M3", "R5041-8.3-M3"),
	upperCase("8.3/range", rangeSet, "R5041-8.3-M1"),
	upperCase("8.3/access-told", accessTold, "R5041-8.3-M4"),
}

// What a peer may be told when it tries an STag: by an RDMA Write, and by a Read.
type outcomes struct {
	write, read   uint16
	wrote, wanted verbs.EventID
}

var (
	reached   = outcomes{}
	notThere  = outcomes{0x1100, 0x0100, verbs.EventProtSTag, verbs.EventIRRQSTag}
	beyond    = outcomes{0x1101, 0x0101, verbs.EventProtBounds, verbs.EventIRRQBounds}
	notItsOwn = outcomes{0x1102, 0x0103, verbs.EventProtPD, verbs.EventIRRQPD}
)

// tryWrite has the peer write one octet, which is the case's if it is taken.
func (r *rig) tryWrite(b *buffer, off int, o outcomes) {
	u := aWrite(b.tag(), b.at(off), []byte{0xB7})
	r.send(u)
	if o.write == 0 {
		r.settled()
		b.holds(off, []byte{0xB7})
		return
	}
	r.tornDown(o.write, u, false)
	r.events(o.wrote)
	b.unchanged()
}

// tryRead has the peer read one octet.
func (r *rig) tryRead(b *buffer, off int, o outcomes) {
	u := aReadRequest(r.nextRead(), read{nowhere, nowhereTO, 1, b.tag(), b.at(off)})
	r.send(u)
	if o.read == 0 {
		r.expect(aReadResponse(nowhere, nowhereTO, b.first[off:off+1]))
		return
	}
	r.tornDown(o.read, u, true)
	r.events(o.wanted)
	b.unchanged()
}

// tried has peers of new queue pairs write and read one octet of a buffer.
func tried(t *conformance.T, u upper.Tester, a upper.OpenArgs, b *buffer, off int, o outcomes) {
	openIn(t, u, setup{qp: a}).tryWrite(b, off, o)
	openIn(t, u, setup{qp: a}).tryRead(b, off, o)
}

// anotherPD: a stream gets nowhere with what is another Protection Domain's, both ways
// round; its owner's stream does, before and after.
func anotherPD(t *conformance.T) {
	u := tester(t)
	for pd := range counted(t, "a region of PD %d", 3) {
		owner := openIn(t, u, setup{qp: upper.OpenArgs{PD: pd}})
		b := owner.register(upper.RegisterArgs{PD: pd, Len: 64, Access: allRights})
		owner.tryWrite(b, 0, reached)
		for other := range 3 {
			if other != pd {
				tried(t, u, upper.OpenArgs{PD: other}, b, 8, notItsOwn)
			}
		}
		require.True(t, b.query().Valid, "the region afterwards")
		owner.tryWrite(b, 1, reached)
		owner.tryRead(b, 1, reached)
		owner.unharmed()
	}
}

// anotherStream is anotherPD for STags that are one stream's, of those of a PD.
func anotherStream(t *conformance.T) {
	u := tester(t)
	owner := openIn(t, u, setup{})
	scoped := owner.register(upper.RegisterArgs{QP: owner.QP, Len: 64, Access: allRights})
	region := owner.region(64, allRights|verbs.BindWindow)
	window := *region
	window.STag = owner.window(region, remoteRights)
	for _, b := range named(t, "%s", map[string]*buffer{"a region": scoped, "a window": &window}) {
		owner.tryWrite(b, 0, reached)
		tried(t, u, upper.OpenArgs{}, b, 8, notItsOwn)
		tried(t, u, upper.OpenArgs{PD: 1}, b, 8, notItsOwn)
		require.True(t, b.query().Valid, "the region afterwards")
		owner.tryWrite(b, 1, reached)
		owner.tryRead(b, 0, reached)
	}
	owner.unharmed()
}

// bothAssociations: an STag is any stream's of its PD, or one stream's, as its program
// says; and so it is told by the queries.
func bothAssociations(t *conformance.T) {
	u := tester(t)
	a, c := openIn(t, u, setup{}), openIn(t, u, setup{})
	free := a.region(64, allRights|verbs.BindWindow)
	require.Zero(t, free.query().QP, "the stream of a region of the PD")
	for i, r := range []*rig{a, c, a} {
		r.tryWrite(free, i, reached)
		r.tryRead(free, i, reached)
	}
	for i, r := range []*rig{a, c} {
		t.Part("an STag of stream %d", i)
		b := a.register(upper.RegisterArgs{QP: r.QP, Len: 64, Access: allRights})
		require.Equal(t, r.ID, b.query().QP)
		r.tryWrite(b, 0, reached)
		r.tryRead(b, 0, reached)

		var w upper.Window
		require.NoError(t, u.AllocateWindow(0, &w))
		r.post(verbs.Request{ID: 1, Op: verbs.OpBind, Bind: &verbs.BindRequest{
			Window: w.STag + 5, Region: free.STag, VA: free.at(0), Length: 64, Access: remoteRights,
		}})
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpBind})
		var q upper.WindowState
		require.NoError(t, u.QueryWindow(w.Window, &q))
		require.Equal(t, r.ID, q.QP, "the stream of a window")
		bound := *free
		bound.STag = w.STag + 5
		r.tryWrite(&bound, 9, reached)
		r.tryRead(&bound, 9, reached)
		tried(t, u, upper.OpenArgs{}, &bound, 9, notItsOwn)
		tried(t, u, upper.OpenArgs{}, b, 9, notItsOwn)
	}
}

// rangeSet: the first and the last octet of what a program makes reachable are, and
// their neighbours are not; with the STag gone, none is.
func rangeSet(t *conformance.T) {
	const lo, hi = 16, 48
	u := tester(t)
	for x := range inTurn(t, "%s", []struct {
		what     string
		make     func(r *rig) *buffer
		from, to int
		undo     func(r *rig, b *buffer)
	}{
		{"Register", func(r *rig) *buffer { return r.region(64, allRights) }, 0, 64, func(_ *rig, b *buffer) { b.deregister() }},
		{"Register with a VA", func(r *rig) *buffer {
			return r.register(upper.RegisterArgs{Len: 64, Access: allRights, VA: 1 << 50})
		}, 0, 64, func(_ *rig, b *buffer) { b.deregister() }},
		{"Register, zero-based", func(r *rig) *buffer {
			return r.register(upper.RegisterArgs{Len: 64, Access: allRights, ZeroBased: true})
		}, 0, 64, func(_ *rig, b *buffer) { b.deregister() }},
		{"Bind", func(r *rig) *buffer {
			b := *r.region(64, allRights|verbs.BindWindow)
			b.STag = r.windowOf(&b, lo, hi-lo, remoteRights)
			return &b
		}, lo, hi, (*rig).unbind},
	}) {
		r := openIn(t, u, setup{})
		b := x.make(r)
		for _, off := range []int{x.from, x.to - 1} {
			r.tryWrite(b, off, reached)
			r.tryRead(b, off, reached)
		}
		x.undo(r, b)
		r.send(aWrite(b.tag(), b.at(x.from), []byte("x")))
		r.terminated(0x1100, aWrite(b.tag(), b.at(x.from), []byte("x")), false)
		for _, off := range []int{x.from - 1, x.to} {
			if x.what == "Register, zero-based" && off < 0 {
				continue // that would wrap
			}
			r = openIn(t, u, setup{})
			r.tryWrite(x.make(r), off, beyond)
			r = openIn(t, u, setup{})
			r.tryRead(x.make(r), off, beyond)
		}
	}
}

// accessTold: the program learns which stream tried an STag that it may not use, and
// what was answered.
func accessTold(t *conformance.T) {
	u := tester(t)
	good := openIn(t, u, setup{})
	for _, write := range []bool{true, false} {
		r := openIn(t, u, setup{})
		b := *r.region(64, allRights)
		b.STag ^= 0x42
		want := uint16(0x1100)
		if write {
			r.tryWrite(&b, 0, notThere)
		} else {
			want = 0x0100
			r.tryRead(&b, 0, notThere)
		}
		q := r.query()
		require.NotNil(t, q.Terminate, "the Terminate Message of Query QP")
		require.True(t, q.Terminate.Sent)
		require.EqualValues(t, want, q.Terminate.Code)
	}
	good.events()
	good.settled()
}
