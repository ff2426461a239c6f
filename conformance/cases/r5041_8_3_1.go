package cases

import (
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_8_3_1 is what a program gives to peers and takes back: RFC 5041 8.3.1.
var r5041_8_3_1 = []conformance.Case{
	upperCase("8.3.1/bound-and-unbound", boundAndUnbound, "R5041-8.3.1-M5"),
	upperCase("8.3.1/rights", rightsChange, "R5041-8.3.1-M6"),
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
			var w upper.Window
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
				r.tryWrite(&b, size*last, notThere)
				continue
			}
			r.tryWrite(&b, (size*last+size)%(size*count), beyond)
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
func rightsChange(t *conformance.T) {
	u := tester(t)
	refused := outcomes{0x1100, 0x0102, verbs.EventProtAccess, verbs.EventIRRQAccess}
	combinations := []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite, remoteRights}
	for before := range inTurn(t, "%v", combinations) {
		for after := range inTurn(t, "then %v", combinations) {
			for write := range inTurn(t, "write: %v", []bool{true, false}) {
				r := openIn(t, u, setup{})
				b := *r.region(64, allRights|verbs.BindWindow)
				var w upper.Window
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
					o = refused
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
			require.NoError(t, r.up.Reregister(upper.ReregisterArgs{Region: b.Region.Region, RegisterArgs: upper.RegisterArgs{
				Len: size, Access: verbs.LocalRead | verbs.LocalWrite,
			}}, &upper.Region{}))
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
			after := upper.Pattern(uint8(99+round), size)
			require.NoError(t, r.up.Fill(upper.FillArgs{Region: b.Region.Region, Octets: after}, &upper.None{}))
			require.Equal(t, byte(opTerminate), r.next()[1], "the peer's next RDMA Write")
			stop.Store(true)
			_ = r.peer.CloseWrite()
			_ = r.peer.Reset()
			wg.Wait()
			same(t, after, b.memory(), "the memory afterwards")
		}
	}
}
