package stag

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

func TestAllocateWindow(t *testing.T) {
	tb := NewTable(Config{})
	w, err := tb.AllocateWindow(7)
	require.NoError(t, err)
	require.NotZero(t, w.Index())
	require.Equal(t, WindowInfo{STag: w &^ 0xFF, PD: 7}, query(t, tb, w|0xFF), "RV-7.10.1-M1")
	_, f := tb.Resolve(w, 0, 1, alice, wr.RemoteRead)
	require.Equal(t, FaultSTag, f)
	_, err = tb.AllocateWindow(0)
	require.ErrorIs(t, err, wr.ErrInvalidPD)
	require.Equal(t, 1, tb.Len())
}

func TestBind(t *testing.T) {
	tb := NewTable(Config{})
	u := consumer(alice)
	mem := pattern(make([]byte, 100))
	r := register(t, tb, RegionConfig{Memory: mem, VA: 5000, Access: localRights | wr.BindWindow, Key: 4})
	w := window(t, tb)
	for round, addressing := range []wr.Addressing{wr.VABased, wr.ZeroBased, wr.VABased} {
		s := wr.MakeSTag(w.Index(), uint8(round+1))
		require.Equal(t, OK, tb.Bind(&wr.BindRequest{
			Window: s, Region: r.STag, VA: 5010, Length: 20, Addressing: addressing, Access: remoteRights,
		}, u))
		want := WindowInfo{
			STag: s, Valid: true, PD: 7, QP: u.QP, Access: remoteRights, Addressing: addressing, Base: 5010, Length: 20, Region: r.STag,
		}
		if addressing == wr.ZeroBased {
			want.Base = 0
		}
		require.Equal(t, want, query(t, tb, w))
		require.Equal(t, 1, query(t, tb, r.STag).(Info).Windows)

		ref, f := tb.Resolve(s, want.Base+3, 4, u, wr.RemoteRead)
		require.Equal(t, OK, f)
		got := make([]byte, 4)
		require.True(t, ref.CopyOut(got, 0))
		require.Equal(t, mem[13:17], got)
		require.Equal(t, FaultNotInvalid, tb.Bind(&wr.BindRequest{
			Window: s, Region: r.STag, VA: 5010, Length: 20, Access: remoteRights,
		}, u), "RV-7.10.2-M30")

		_, f = tb.Resolve(s^0xFF, want.Base, 1, u, wr.RemoteRead)
		require.Equal(t, FaultSTag, f, "RV-7.10.2-M33")
		require.Equal(t, OK, tb.InvalidateLocal(s, u))
		require.False(t, ref.CopyOut(got, 0))
		require.Equal(t, WindowInfo{STag: w, PD: 7}, query(t, tb, w))
		require.Equal(t, r, query(t, tb, r.STag))
	}
}

// What may be done through a window, to the octet (draft 7.10.6.2).
func TestWindowAccess(t *testing.T) {
	tb := NewTable(Config{})
	u := consumer(alice)
	r := register(t, tb, RegionConfig{Memory: make([]byte, 100), VA: 5000})
	va := bind(t, tb, window(t, tb), 1, r, 10, 20, u)
	bound := func(access wr.Access, a wr.Addressing) wr.STag {
		w := window(t, tb)
		require.Equal(t, OK, tb.Bind(&wr.BindRequest{Window: w, Region: r.STag, VA: 5010, Length: 20, Addressing: a, Access: access}, u))
		return w
	}
	zero := bound(remoteRights, wr.ZeroBased)
	read, write := bound(wr.RemoteRead, wr.VABased), bound(wr.RemoteWrite, wr.VABased)
	otherQP := User{PD: alice.PD, QP: 4}
	otherPD := User{PD: 99, QP: alice.QP}
	const top = math.MaxUint64
	for _, c := range []struct {
		name  string
		s     wr.STag
		to, n uint64
		u     User
		need  wr.Access
		want  AccessFault
	}{
		{"all", va, 5010, 20, u, wr.RemoteWrite, OK},
		{"both rights", va, 5010, 20, u, remoteRights, OK},
		{"last octet", va, 5029, 1, u, wr.RemoteRead, OK},
		{"one beyond", va, 5029, 2, u, wr.RemoteRead, FaultBounds},
		{"one before", va, 5009, 1, u, wr.RemoteRead, FaultBounds},
		{"in the region only", va, 5030, 1, u, wr.RemoteRead, FaultBounds},
		{"wrap", va, top, 2, u, wr.RemoteRead, FaultWrap},
		{"zero-based, all", zero, 0, 20, u, wr.RemoteRead, OK},
		{"zero-based, beyond", zero, 20, 1, u, wr.RemoteRead, FaultBounds},
		{"zero-based, by VA", zero, 5010, 1, u, wr.RemoteRead, FaultBounds},
		{"zero-based, before", zero, top, 1, u, wr.RemoteRead, FaultBounds},
		{"read only, write", read, 5010, 1, u, wr.RemoteWrite, FaultAccess},
		{"read only, read", read, 5010, 1, u, wr.RemoteRead, OK},
		{"write only, read", write, 5010, 1, u, wr.RemoteRead, FaultAccess},
		{"write only, write", write, 5010, 1, u, wr.RemoteWrite, OK},
		{"another QP of the PD", va, 5010, 1, otherQP, wr.RemoteRead, FaultPD},
		{"another PD, its QP", va, 5010, 1, otherPD, wr.RemoteRead, OK}, // RV-7.10.2-M7: in place of the PD
		{"local read", va, 5010, 1, u, wr.LocalRead, FaultSTag},
		{"local write", va, 5010, 1, u, wr.LocalWrite, FaultSTag},
		{"local write, another QP", va, 5010, 1, otherQP, wr.LocalWrite, FaultSTag},
		{"sink of a Read", va, 5010, 20, u, 0, OK},
		{"sink of a Read, beyond", va, 5010, 21, u, 0, FaultBounds},
		{"sink of a Read, another QP", va, 5010, 1, otherQP, 0, FaultPD},
		{"other key", va ^ 1, 5010, 1, otherQP, wr.RemoteRead, FaultSTag},
		{"order: QP, right", read, top, 2, otherQP, wr.RemoteWrite, FaultPD},
		{"order: right, wrap", read, top, 2, u, wr.RemoteWrite, FaultAccess},
		{"length zero", va ^ 1, top, 0, otherQP, wr.LocalRead, OK},
	} {
		_, f := tb.Resolve(c.s, c.to, c.n, c.u, c.need)
		assert.Equal(t, c.want, f, c.name)
	}
}

// RV-7.10.6.2-M7: the region's own remote rights do not matter; its length, PD
// and scope neither, once bound.
func TestWindowGrantsRights(t *testing.T) {
	tb := NewTable(Config{})
	u := consumer(alice)
	mem := make([]byte, 50)
	r := register(t, tb, RegionConfig{Memory: mem, Access: wr.LocalWrite | wr.BindWindow})
	w := window(t, tb)
	require.Equal(t, OK, tb.Bind(&wr.BindRequest{Window: w, Region: r.STag, VA: r.Base, Length: 50, Access: wr.RemoteWrite}, u))
	ref, f := tb.Resolve(w, r.Base+49, 1, u, wr.RemoteWrite)
	require.Equal(t, OK, f)
	require.True(t, ref.CopyIn(0, []byte{3}))
	require.Equal(t, byte(3), mem[49])
	_, f = tb.Resolve(r.STag, r.Base, 1, u, wr.RemoteWrite)
	require.Equal(t, FaultAccess, f)
}

// A window over a list of pieces begins in the middle of one.
func TestWindowPieces(t *testing.T) {
	tb := NewTable(Config{BlockMode: true})
	u := consumer(alice)
	p := pages(t, tb, 6, 5)
	pattern(p.Bytes())
	b := wr.PhysicalBuffers{Size: 5, Addresses: []uint64{p.Address(4), p.Address(0), p.Address(2)}, FBO: 2, Length: 12}
	r := register(t, tb, RegionConfig{Buffers: b, VA: 502})
	want := content(t, tb, b)
	for off := range uint64(12) {
		for n := uint64(1); off+n <= 12; n++ {
			w := window(t, tb)
			s := bind(t, tb, w, 1, r, off, n, u)
			ref, f := tb.Resolve(s, r.Base+off, n, u, wr.RemoteRead)
			require.Equal(t, OK, f)
			got := make([]byte, n)
			require.True(t, ref.CopyOut(got, 0))
			require.Equal(t, want[off:off+n], got)
			require.NoError(t, tb.Deallocate(w))
		}
	}
	require.Equal(t, r, query(t, tb, r.STag))
	require.True(t, resolve(t, tb, r.STag, r.Base, 12).CopyOut(want, 0), "the region's list is its own")
}

// unbindings are the ways of unbinding a window.
var unbindings = map[string]func(*Table, wr.STag, User){
	"InvalidateLocal":  func(tb *Table, s wr.STag, u User) { tb.InvalidateLocal(s, u) },
	"InvalidateRemote": func(tb *Table, s wr.STag, u User) { tb.InvalidateRemote(s, u) },
	"Deallocate":       func(tb *Table, s wr.STag, _ User) { _ = tb.Deallocate(s) },
}

// A region with windows stays; each way of unbinding one lets it go.
func TestWindowsHoldRegion(t *testing.T) {
	for name, unbind := range unbindings {
		t.Run(name, func(t *testing.T) {
			tb := NewTable(Config{})
			u, v := consumer(alice), consumer(User{PD: alice.PD, QP: 4})
			r := register(t, tb, RegionConfig{RemoteInvalidate: true})
			const n = 5 // RV-7.10.2-M3, overlapping
			var stags []wr.STag
			for i := range uint64(n) {
				stags = append(stags, bind(t, tb, window(t, tb), 1, r, i, 10, u))
			}
			stags = append(stags, bind(t, tb, window(t, tb), 1, r, 0, 64, v))
			for i, s := range stags {
				unchanged(t, tb, func() {
					assert.ErrorIs(t, tb.Deallocate(r.STag), wr.ErrWindowsBound, "RV-7.9-M10")
					assert.Equal(t, FaultWindowsBound, tb.InvalidateLocal(r.STag, u), "RV-7.8-M14")
					assert.Equal(t, FaultWindowsBound, tb.InvalidateRemote(r.STag, u))
					assert.ErrorIs(t, tb.Retire(v.Windows), wr.ErrWindowsBound)
					if i < n {
						assert.ErrorIs(t, tb.Retire(u.Windows), wr.ErrWindowsBound)
					}
				}, append(stags, r.STag)...)
				_, f := tb.Resolve(s, r.Base+5, 5, []User{u, v}[i/n], wr.RemoteWrite)
				require.Equal(t, OK, f)
				unbind(tb, s, []User{u, v}[i/n])
				require.Equal(t, n-i, query(t, tb, r.STag).(Info).Windows)
			}
			require.NoError(t, tb.Retire(u.Windows))
			require.NoError(t, tb.Retire(v.Windows))
			require.Equal(t, OK, tb.InvalidateLocal(r.STag, u))
			require.NoError(t, tb.Deallocate(r.STag))
		})
	}
}

// Draft 7.10.4, 7.10.6.3: a Valid window is for its queue pair, an Invalid one
// for its domain.
func TestInvalidateWindow(t *testing.T) {
	u := consumer(alice)
	otherQP, otherPD := User{PD: alice.PD, QP: 4}, User{PD: 99, QP: alice.QP}
	for _, way := range []func(*Table, wr.STag, User) AccessFault{(*Table).InvalidateLocal, (*Table).InvalidateRemote} {
		tb := NewTable(Config{})
		r, w := register(t, tb, RegionConfig{Access: localRights | wr.BindWindow}), window(t, tb)
		assert.Equal(t, OK, way(tb, w, otherQP), "never bound")
		assert.Equal(t, OK, way(tb, w^0xFF, alice), "with any key")
		assert.Equal(t, FaultPD, way(tb, w, otherPD))
		s := bind(t, tb, w, 9, r, 0, 1, u)
		unchanged(t, tb, func() {
			assert.Equal(t, FaultPD, way(tb, s, otherQP))
			assert.Equal(t, FaultSTag, way(tb, s^1, u))
		}, s, r.STag)
		assert.Equal(t, OK, way(tb, s, u))
		assert.Equal(t, OK, way(tb, s, otherQP), "already Invalid")
		assert.Equal(t, FaultPD, way(tb, s, otherPD))
		assert.Equal(t, OK, way(tb, bind(t, tb, w, 9, r, 0, 1, u), otherPD), "RV-7.10.2-M7: the QP, in place of the PD")
	}
}

// While a hold keeps an unbinding waiting, region and queue pair still have the
// window, and the next Bind waits.
func TestUnbindWaits(t *testing.T) {
	for name, unbind := range unbindings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tb := NewTable(Config{})
				u := consumer(alice)
				mem := make([]byte, 64)
				r, w := register(t, tb, RegionConfig{Memory: mem}), window(t, tb)
				s := bind(t, tb, w, 1, r, 0, 64, u)
				ref, f := tb.Resolve(s, r.Base, 64, u, wr.RemoteWrite)
				require.Equal(t, OK, f)
				require.True(t, ref.Hold())
				done := make(chan struct{})
				go func() { defer close(done); unbind(tb, s, u) }()
				synctest.Wait()
				require.False(t, ref.CopyIn(0, []byte{1}))
				require.ErrorIs(t, tb.Deallocate(r.STag), wr.ErrWindowsBound)
				require.ErrorIs(t, tb.Retire(u.Windows), wr.ErrWindowsBound)
				bound := make(chan AccessFault, 1)
				go func() {
					bound <- tb.Bind(&wr.BindRequest{Window: w, Region: r.STag, VA: r.Base + 32, Length: 8, Access: wr.RemoteWrite}, u)
				}()
				synctest.Wait()
				ref.Release()
				<-done
				if name == "Deallocate" {
					require.Equal(t, FaultWindow, <-bound)
					require.NoError(t, tb.Deallocate(r.STag))
					return
				}
				require.Equal(t, OK, <-bound)
				require.False(t, ref.CopyIn(0, []byte{1}), "of the generation before")
				ref, f = tb.Resolve(w, r.Base+32, 8, u, wr.RemoteWrite)
				require.Equal(t, OK, f)
				require.True(t, ref.CopyIn(0, []byte{1}))
				require.Equal(t, byte(1), mem[32])
			})
		})
	}
}

// Close with a window in use over a list of pieces: the region goes first, and
// the window's holder finds its pieces all the same.
func TestCloseUnderWindow(t *testing.T) {
	for round := range 8 { // whatever order the index has
		synctest.Test(t, func(t *testing.T) {
			tb := NewTable(Config{})
			u := consumer(alice)
			p := pages(t, tb, 3, page)
			r := register(t, tb, RegionConfig{VA: page, Buffers: wr.PhysicalBuffers{
				Size: page, Addresses: []uint64{p.Address(2), p.Address(0)}, Length: 2 * page,
			}})
			s := bind(t, tb, window(t, tb), uint8(round), r, 0, 2*page, u)
			ref, f := tb.Resolve(s, r.Base, 2*page, u, wr.RemoteRead)
			require.Equal(t, OK, f)
			require.True(t, ref.Hold())
			done := make(chan struct{})
			go func() { defer close(done); tb.Close() }()
			synctest.Wait()
			n := 0
			for _, piece := range ref.Append(nil, 0, 2*page) {
				n += len(piece)
			}
			require.Equal(t, 2*page, n)
			ref.Release()
			<-done
			require.NoError(t, tb.Retire(u.Windows))
		})
	}
}

// RV-7.10.2-M4, and that the counts of two tables and queue pairs are apart.
func TestManyWindows(t *testing.T) {
	tb := NewTable(Config{})
	u := consumer(alice)
	regions := []Info{register(t, tb, RegionConfig{}), register(t, tb, RegionConfig{})}
	var all []wr.STag
	for i := range 200 {
		all = append(all, bind(t, tb, window(t, tb), uint8(i), regions[i%2], uint64(i%64), 1, u))
	}
	for i, s := range all {
		require.Equal(t, 100-i/2-i%2, query(t, tb, regions[0].STag).(Info).Windows, fmt.Sprint(i))
		require.Equal(t, 200-i, u.Windows.bound)
		require.NoError(t, tb.Deallocate(s))
	}
	require.NoError(t, tb.Retire(u.Windows))
	require.Equal(t, 2, tb.Len())
}
