package stag

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// Draft figure 20, row by row; a region has a local right always.
func TestBindFigure20(t *testing.T) {
	const lr, lw, rr, rw = wr.LocalRead, wr.LocalWrite, wr.RemoteRead, wr.RemoteWrite
	for _, c := range []struct {
		region, window wr.Access
		ok             bool
	}{
		{lr, rw, false}, {lr, rr, true}, {lr, rr | rw, false},
		{lw, rw, true}, {lw, rr, false}, {lw, rr | rw, false},
		{lr | lw, rw, true}, {lr | lw, rr, true}, {lr | lw, rr | rw, true},
		{lr, 0, false}, {lw, 0, false}, {lr | lw, 0, false},
		{lr | lw, lr, false}, {lr | lw, rr | lr, false}, {lr | lw, rw | wr.BindWindow, false}, {lr | lw, rr | 1<<6, false},
	} {
		for _, remote := range []wr.Access{0, c.region << 2} { // the region's remote rights change nothing
			tb := NewTable(Config{})
			r, w := register(t, tb, RegionConfig{Access: c.region | remote | wr.BindWindow}), window(t, tb)
			b := wr.BindRequest{Window: w, Region: r.STag, VA: r.Base, Length: 1, Access: c.window}
			if c.ok {
				assert.Equal(t, OK, tb.Bind(&b, consumer(alice)), "%v over %v", c.window, c.region)
				continue
			}
			unchanged(t, tb, func() {
				assert.Equal(t, FaultAccess, tb.Bind(&b, consumer(alice)), "%v over %v", c.window, c.region)
			}, w, r.STag)
		}
	}
}

// Figure 19.
func TestBindFigure19(t *testing.T) {
	for _, region := range []wr.Addressing{wr.VABased, wr.ZeroBased} {
		for _, win := range []wr.Addressing{wr.VABased, wr.ZeroBased} {
			tb := NewTable(Config{})
			r, w := register(t, tb, RegionConfig{Addressing: region}), window(t, tb)
			want := OK
			if region == wr.ZeroBased {
				want = FaultRegion
			}
			assert.Equal(t, want, tb.Bind(&wr.BindRequest{
				Window: w, Region: r.STag, VA: r.Base, Length: 1, Addressing: win, Access: wr.RemoteRead,
			}, consumer(alice)), "%v over %v", win, region)
		}
	}
}

func TestBindBounds(t *testing.T) {
	tb := NewTable(Config{})
	u := consumer(alice)
	const top = math.MaxUint64
	low := register(t, tb, RegionConfig{Memory: make([]byte, 100), VA: 5000})
	high := register(t, tb, RegionConfig{Memory: make([]byte, 100), VA: top - 100})
	w := window(t, tb)
	for _, c := range []struct {
		r     Info
		va, n uint64
		want  AccessFault
	}{
		{low, 5000, 100, OK}, {low, 5099, 1, OK}, {low, 5000, 1, OK},
		{low, 5000, 101, FaultBounds}, {low, 5099, 2, FaultBounds}, {low, 5100, 1, FaultBounds},
		{low, 4999, 1, FaultBounds}, {low, 4999, 101, FaultBounds}, {low, 0, 1, FaultBounds},
		{low, 5000, 0, FaultBounds}, {low, 5100, 0, FaultBounds}, {low, top, 0, FaultBounds},
		{low, 5000, top, FaultWrap}, {low, 5000, top - 4999, FaultBounds}, {low, 5001, top, FaultWrap},
		{low, top, 1, FaultBounds}, {low, top, 2, FaultWrap},
		{high, top - 100, 100, OK}, {high, top - 1, 1, OK}, {high, top - 1, 2, FaultBounds}, {high, top - 1, 3, FaultWrap},
	} {
		b := wr.BindRequest{Window: w, Region: c.r.STag, VA: c.va, Length: c.n, Access: wr.RemoteRead}
		got := OK
		unchanged(t, tb, func() {
			if got = tb.Bind(&b, u); got == OK {
				assert.Equal(t, OK, tb.InvalidateLocal(w, u))
			}
		}, w, c.r.STag)
		assert.Equal(t, c.want, got, "VA %#x, %d octets", c.va, c.n)
	}
}

// Each check of Bind is tried with everything after it wrong too (7.10.6.1).
func TestBindOrder(t *testing.T) {
	tb := NewTable(Config{})
	u := consumer(alice)
	retired := consumer(alice)
	require.NoError(t, tb.Retire(retired.Windows))
	w, bound, theirs := window(t, tb), window(t, tb), second1(tb.AllocateWindow(bob.PD))
	good := register(t, tb, RegionConfig{VA: page})
	bind(t, tb, bound, 0, good, 0, 1, u)
	invalid := register(t, tb, RegionConfig{})
	require.Equal(t, OK, tb.InvalidateLocal(invalid.STag, alice))
	foreign := register(t, tb, RegionConfig{PD: bob.PD, Access: wr.LocalRead, Addressing: wr.ZeroBased})
	scoped := register(t, tb, RegionConfig{QP: 99, Access: wr.LocalRead, Addressing: wr.ZeroBased})
	closed := register(t, tb, RegionConfig{Access: wr.LocalRead, Addressing: wr.ZeroBased})
	narrow := register(t, tb, RegionConfig{Access: wr.LocalRead | wr.BindWindow, Addressing: wr.ZeroBased})
	zero := register(t, tb, RegionConfig{Addressing: wr.ZeroBased})
	const top = math.MaxUint64
	for _, c := range []struct {
		name   string
		w, r   wr.STag
		u      User
		a      wr.Addressing
		access wr.Access
		va, n  uint64
		want   AccessFault
	}{
		{"nothing", w ^ 1<<8, 0, u, 2, 0, top, 2, FaultWindow},
		{"zero", 0, 0, u, 2, 0, top, 2, FaultWindow},
		{"a region", good.STag, 0, u, 2, 0, top, 2, FaultWindow},
		{"no count", w, 0, alice, 0, 0, top, 2, FaultWindow},
		{"retired", w, 0, retired, 0, 0, top, 2, FaultWindow},
		{"addressing type", w, 0, u, 2, 0, top, 2, FaultWindow},
		{"window bound", bound, 0, u, 0, 0, top, 2, FaultNotInvalid},
		{"no region", w, good.STag ^ 1<<8, consumer(bob), 0, 0, top, 2, FaultRegion},
		{"region zero", w, 0, consumer(bob), 0, 0, top, 2, FaultRegion},
		{"region's key", w, good.STag ^ 1, consumer(bob), 0, 0, top, 2, FaultRegion},
		{"region Invalid", w, invalid.STag, consumer(bob), 0, 0, top, 2, FaultRegion},
		{"to a window", w, bound, consumer(bob), 0, 0, top, 2, FaultRegion},
		{"to itself", w, w, consumer(bob), 0, 0, top, 2, FaultRegion},
		{"user's PD", w, good.STag, consumer(bob), 0, 0, top, 2, FaultPD},
		{"region's PD", w, foreign.STag, u, 0, 0, top, 2, FaultPD},
		{"window's PD", theirs, closed.STag, u, 0, 0, top, 2, FaultPD},
		{"window's and user's PD", theirs, closed.STag, consumer(bob), 0, 0, top, 2, FaultPD},
		{"region's QP", w, scoped.STag, u, 0, 0, top, 2, FaultPD},
		{"not for windows", w, closed.STag, u, 0, wr.RemoteRead, top, 2, FaultAccess},
		{"figure 20", w, narrow.STag, u, 0, wr.RemoteWrite, top, 2, FaultAccess},
		{"figure 19", w, zero.STag, u, 0, wr.RemoteRead, top, 2, FaultRegion},
		{"wrap", w, good.STag, u, 0, wr.RemoteRead, top, 2, FaultWrap},
		{"bounds", w, good.STag, u, 0, wr.RemoteRead, page, 65, FaultBounds},
	} {
		unchanged(t, tb, func() {
			assert.Equal(t, c.want, tb.Bind(&wr.BindRequest{
				Window: c.w, Region: c.r, VA: c.va, Length: c.n, Addressing: c.a, Access: c.access,
			}, c.u), c.name)
		}, w, bound, theirs, good.STag, invalid.STag, foreign.STag, scoped.STag, closed.STag, narrow.STag, zero.STag)
	}
	u99 := consumer(User{PD: 7, QP: 99})
	mine := register(t, tb, RegionConfig{QP: 99})
	bind(t, tb, w, 0, mine, 0, 1, u99)
}
