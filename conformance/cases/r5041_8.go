package cases

import (
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_8 is the use of STags, and by which streams: RFC 5041 8.2 and 8.3.
var r5041_8 = []conformance.Case{
	upperCase("8.2/another-pd", withTester(anotherPD), "R5041-8.2-M1", "R5041-8.3.1-M2"),
	upperCase("8.2/another-stream", withTester(anotherStream), "R5041-8.2-M2", "R5041-8.3.1-M3"),
	upperCase("8.2/both-associations", withTester(bothAssociations), "R5041-8.2-M3", "R5041-8.3-M3"),
	upperCase("8.3/range", rangeSet, "R5041-8.3-M1"),
	upperCase("8.3/access-told", withTester(accessTold), "R5041-8.3-M4"),
}

// reached is what a peer may use. noSTag and its like say what it may be told: by an RDMA Write, and by
// a Read.
var reached accessFault

// tryWrite has the peer write one octet, which is the case's if it is taken.
func (r *rig) tryWrite(b *buffer, off int, o accessFault) {
	u := aWrite(b.tag(), b.at(off), []byte{0xB7})
	r.send(u)
	if o.write == allowed {
		r.settled()
		b.holds(off, []byte{0xB7})
		return
	}
	r.tornDown(o.write.code, u, false)
	r.events(o.write.event)
	b.unchanged()
}

// tryRead has the peer read one octet.
func (r *rig) tryRead(b *buffer, off int, o accessFault) {
	u := aReadRequest(r.nextRead(), read{nowhere, nowhereTO, 1, b.tag(), b.at(off)})
	r.send(u)
	if o.read == allowed {
		r.expect(aReadResponse(nowhere, nowhereTO, b.first[off:off+1]))
		return
	}
	r.tornDown(o.read.code, u, true)
	r.events(o.read.event)
	b.unchanged()
}

// tried has peers of new queue pairs write and read one octet of a buffer.
func tried(t *conformance.T, u uppertester.Tester, a uppertester.OpenArgs, b *buffer, off int, o accessFault) {
	openIn(t, u, setup{qp: a}).tryWrite(b, off, o)
	openIn(t, u, setup{qp: a}).tryRead(b, off, o)
}

// anotherPD: a stream gets nowhere with what is another Protection Domain's, both ways
// round; its owner's stream does, before and after.
func anotherPD(t *conformance.T, u uppertester.Tester) {
	for pd := range counted(t, "a region of PD %d", 3) {
		owner := openIn(t, u, setup{qp: uppertester.OpenArgs{PD: pd}})
		b := owner.register(uppertester.RegisterArgs{PD: pd, Len: 64, Access: allRights})
		owner.tryWrite(b, 0, reached)
		for other := range 3 {
			if other != pd {
				tried(t, u, uppertester.OpenArgs{PD: other}, b, 8, noPD)
			}
		}
		require.True(t, b.query().Valid, "the region afterwards")
		owner.tryWrite(b, 1, reached)
		owner.tryRead(b, 1, reached)
		owner.unharmed()
	}
}

// anotherStream is anotherPD for STags that are one stream's, of those of a PD.
func anotherStream(t *conformance.T, u uppertester.Tester) {
	owner := openIn(t, u, setup{})
	scoped := owner.register(uppertester.RegisterArgs{QP: owner.QP, Len: 64, Access: allRights})
	region := owner.region(64, allRights|verbs.BindWindow)
	window := *region
	window.STag = owner.window(region, remoteRights)
	for _, b := range named(t, "%s", map[string]*buffer{"a region": scoped, "a window": &window}) {
		owner.tryWrite(b, 0, reached)
		tried(t, u, uppertester.OpenArgs{}, b, 8, noPD)
		tried(t, u, uppertester.OpenArgs{PD: 1}, b, 8, noPD)
		require.True(t, b.query().Valid, "the region afterwards")
		owner.tryWrite(b, 1, reached)
		owner.tryRead(b, 0, reached)
	}
	owner.unharmed()
}

// bothAssociations: an STag is any stream's of its PD, or one stream's, as its program
// says; and so it is told by the queries.
func bothAssociations(t *conformance.T, u uppertester.Tester) {
	a, c := openIn(t, u, setup{}), openIn(t, u, setup{})
	free := a.region(64, allRights|verbs.BindWindow)
	require.Zero(t, free.query().QP, "the stream of a region of the PD")
	for i, r := range []*rig{a, c, a} {
		r.tryWrite(free, i, reached)
		r.tryRead(free, i, reached)
	}
	for i, r := range []*rig{a, c} {
		t.Part("an STag of stream %d", i)
		b := a.register(uppertester.RegisterArgs{QP: r.QP, Len: 64, Access: allRights})
		require.Equal(t, r.ID, b.query().QP)
		r.tryWrite(b, 0, reached)
		r.tryRead(b, 0, reached)

		var w uppertester.Window
		require.NoError(t, u.AllocateWindow(0, &w))
		r.post(verbs.Request{ID: 1, Op: verbs.OpBind, Bind: &verbs.BindRequest{
			Window: w.STag + 5, Region: free.STag, VA: free.at(0), Length: 64, Access: remoteRights,
		}})
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpBind})
		var q uppertester.WindowState
		require.NoError(t, u.QueryWindow(w.Window, &q))
		require.Equal(t, r.ID, q.QP, "the stream of a window")
		bound := *free
		bound.STag = w.STag + 5
		r.tryWrite(&bound, 9, reached)
		r.tryRead(&bound, 9, reached)
		tried(t, u, uppertester.OpenArgs{}, &bound, 9, noPD)
		tried(t, u, uppertester.OpenArgs{}, b, 9, noPD)
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
			return r.register(uppertester.RegisterArgs{Len: 64, Access: allRights, VA: 1 << 50})
		}, 0, 64, func(_ *rig, b *buffer) { b.deregister() }},
		{"Register, zero-based", func(r *rig) *buffer {
			return r.register(uppertester.RegisterArgs{Len: 64, Access: allRights, ZeroBased: true})
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
			r.tryWrite(x.make(r), off, noBounds)
			r = openIn(t, u, setup{})
			r.tryRead(x.make(r), off, noBounds)
		}
	}
}

// accessTold: the program learns which stream tried an STag that it may not use, and
// what was answered.
func accessTold(t *conformance.T, u uppertester.Tester) {
	good := openIn(t, u, setup{})
	for _, write := range []bool{true, false} {
		r := openIn(t, u, setup{})
		b := *r.region(64, allRights)
		b.STag ^= 0x42
		want := uint16(0x1100)
		if write {
			r.tryWrite(&b, 0, noSTag)
		} else {
			want = 0x0100
			r.tryRead(&b, 0, noSTag)
		}
		q := r.query()
		require.NotNil(t, q.Terminate, "the Terminate Message of Query QP")
		require.True(t, q.Terminate.Sent)
		require.EqualValues(t, want, q.Terminate.Code)
	}
	good.events()
	good.settled()
}

// r5041_8_3_1 is what a program gives to peers and takes back: RFC 5041 8.3.1.
var r5041_8_3_1 = []conformance.Case{
	upperCase("8.3.1/bound-and-unbound", boundAndUnbound, "R5041-8.3.1-M5"),
	upperCase("8.3.1/rights", withTester(rightsChange), "R5041-8.3.1-M6"),
	upperCase("8.3.1/nothing-behind-revocation", nothingBehind, "R5041-8.3.1-M7"),
}

// boundAndUnbound takes one window over its region, part by part. What it is not bound
// to at the time is out of its reach.
func boundAndUnbound(t *conformance.T) {
	const size, count = 16, 4
	u := tester(t)
	for last := range counted(t, "up to part %d", count) {
		for unbind := range inTurn(t, "unbound: %v", []bool{false, true}) {
			r := openIn(t, u, setup{})
			b := *r.region(size*count, allRights|verbs.BindWindow)
			region := b.STag
			var w uppertester.Window
			require.NoError(t, u.AllocateWindow(0, &w))
			for k := range last + 1 {
				if k > 0 {
					r.unbind(&b)
				}
				b.STag = w.STag + verbs.STag(k)
				r.post(verbs.Request{ID: 1, Op: verbs.OpBind, Bind: &verbs.BindRequest{
					Window: b.STag, Region: region, VA: b.at(size * k), Length: size, Access: remoteRights,
				}})
				r.completions(verbs.Completion{ID: 1, Op: verbs.OpBind})
				r.tryWrite(&b, size*k, reached)
				r.tryWrite(&b, size*k+size-1, reached)
				r.tryRead(&b, size*k+size-1, reached)
			}
			if unbind {
				r.unbind(&b)
				r.tryWrite(&b, size*last, noSTag)
				continue
			}
			r.tryWrite(&b, (size*last+size)%(size*count), noBounds)
		}
	}
}

// unbind invalidates the STag of a window, or of a region.
func (r *rig) unbind(b *buffer) {
	r.post(verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: b.STag})
	r.completions(verbs.Completion{ID: 2, Op: verbs.OpInvalidate})
}

// rightsChange gives a window each combination of rights, and then each other one. The
// region has them all.
func rightsChange(t *conformance.T, u uppertester.Tester) {
	combinations := []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite, remoteRights}
	for before := range inTurn(t, "%v", combinations) {
		for after := range inTurn(t, "then %v", combinations) {
			for write := range inTurn(t, "write: %v", []bool{true, false}) {
				r := openIn(t, u, setup{})
				b := *r.region(64, allRights|verbs.BindWindow)
				var w uppertester.Window
				require.NoError(t, u.AllocateWindow(0, &w))
				region := b.STag
				for i, access := range []verbs.Access{before, after} {
					b.STag = w.STag + verbs.STag(i)
					r.post(verbs.Request{ID: 1, Op: verbs.OpBind, Bind: &verbs.BindRequest{
						Window: b.STag, Region: region, VA: b.at(0), Length: 64, Access: access,
					}})
					r.completions(verbs.Completion{ID: 1, Op: verbs.OpBind})
					if i == 1 {
						break
					}
					if access&verbs.RemoteWrite != 0 {
						r.tryWrite(&b, 7, reached)
					}
					if access&verbs.RemoteRead != 0 {
						r.tryRead(&b, 7, reached)
					}
					r.unbind(&b)
				}
				o := reached
				switch {
				case write && after&verbs.RemoteWrite == 0, !write && after&verbs.RemoteRead == 0:
					o = noRight
				}
				if write {
					r.tryWrite(&b, 9, o)
				} else {
					r.tryRead(&b, 9, o)
				}
			}
		}
	}
}

// nothingBehind: the peer writes all the time, while the program takes the right away
// in each way there is. What the program writes to the memory then stays.
func nothingBehind(t *conformance.T) {
	const size = 32 << 10 // one long segment
	for x := range inTurn(t, "%s", []struct {
		what   string
		window bool
		how    func(r *rig, b *buffer)
	}{
		{"Deregister", false, func(_ *rig, b *buffer) { b.deregister() }},
		{"Invalidate a region", false, (*rig).unbind},
		{"Invalidate a window", true, (*rig).unbind},
		{"Reregister without the right", false, func(r *rig, b *buffer) {
			require.NoError(t, r.up.Reregister(uppertester.ReregisterArgs{Region: b.Region.Region, RegisterArgs: uppertester.RegisterArgs{
				Len: size, Access: verbs.LocalRead | verbs.LocalWrite,
			}}, &uppertester.Region{}))
		}},
	}) {
		for round := range counted(t, "round %d", 8) {
			r := open(t, setup{})
			b := *r.region(size, allRights|verbs.BindWindow)
			if x.window {
				b.STag = r.window(&b, remoteRights)
			}
			f := r.peer.Frame(aWrite(b.tag(), b.at(0), make([]byte, size)))
			var written atomic.Int32
			var stop atomic.Bool
			var wg sync.WaitGroup
			wg.Go(func() {
				for !stop.Load() && r.peer.Raw(f) == nil {
					written.Add(1)
				}
			})
			eventually(t, func() bool { return int(written.Load()) > 3*round }, "the peer writes")
			x.how(r, &b)
			after := uppertester.Pattern(uint8(99+round), size)
			require.NoError(t, r.up.Fill(uppertester.FillArgs{Region: b.Region.Region, Octets: after}, &uppertester.None{}))
			require.Equal(t, byte(opTerminate), r.next()[1], "the peer's next RDMA Write")
			stop.Store(true)
			_ = r.peer.CloseWrite()
			_ = r.peer.Reset()
			wg.Wait()
			same(t, after, b.memory(), "the memory afterwards")
		}
	}
}
