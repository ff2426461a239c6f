package stag

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

func TestAllocate(t *testing.T) {
	tb := NewTable(Config{PBL: 100})
	for _, c := range []struct {
		name   string
		config AllocateConfig
		pbl    int
		want   error
	}{
		{"plain", AllocateConfig{PD: 7, PBL: 5}, 5, nil},
		{"all of it", AllocateConfig{PD: 7, PBL: 100, RemoteAccess: true, QP: 9, RemoteInvalidate: true}, 100, nil},
		{"no room asked for", AllocateConfig{PD: 7}, 1, nil},
		{"less than none", AllocateConfig{PD: 7, PBL: -1}, 1, nil},
		{"no PD", AllocateConfig{PBL: 5}, 0, wr.ErrInvalidPD},
		{"too much", AllocateConfig{PD: 7, PBL: 101}, 0, wr.ErrInsufficientResources},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := tb.Len()
			i, err := tb.Allocate(c.config)
			require.ErrorIs(t, err, c.want)
			if err != nil {
				assert.Zero(t, i)
				assert.Equal(t, before, tb.Len())
				return
			}
			assert.NotZero(t, i.STag.Index())
			assert.Equal(t, Info{
				STag: i.STag, PD: 7, PBL: c.pbl, RemoteAccess: c.config.RemoteAccess,
				QP: c.config.QP, RemoteInvalidate: c.config.RemoteInvalidate,
			}, i)
			assert.Equal(t, i, query(t, tb, i.STag|0xFF), "by index")
			_, f := tb.Resolve(i.STag, 0, 1, alice, wr.LocalRead)
			assert.Equal(t, FaultSTag, f, "RV-7.2.2-M1")
		})
	}
}

// The limits of regions and windows are apart.
func TestLimits(t *testing.T) {
	tb := NewTable(Config{Regions: 2, Windows: 1})
	r := register(t, tb, RegionConfig{})
	w := window(t, tb)
	a := allocate(t, tb, false)
	full := func() {
		t.Helper()
		unchanged(t, tb, func() {
			_, err := tb.Register(RegionConfig{PD: 1, Memory: make([]byte, 1), Access: wr.LocalRead})
			assert.ErrorIs(t, err, wr.ErrInsufficientResources)
			_, err = tb.Allocate(AllocateConfig{PD: 1})
			assert.ErrorIs(t, err, wr.ErrInsufficientResources)
			_, err = tb.RegisterShared(r.STag, SharedConfig{PD: 1, Access: wr.LocalRead})
			assert.ErrorIs(t, err, wr.ErrInsufficientResources)
			_, err = tb.AllocateWindow(1)
			assert.ErrorIs(t, err, wr.ErrInsufficientResources)
		}, r.STag, a, w)
	}
	full()
	require.Equal(t, OK, tb.InvalidateLocal(r.STag, alice))
	require.NoError(t, tb.Deallocate(a))
	r = second1(tb.Reregister(r.STag, RegionConfig{PD: 7, Memory: make([]byte, 1), Access: localRights}))
	a = allocate(t, tb, false)
	full()
	require.NoError(t, tb.Deallocate(w))
	w = window(t, tb)
	full()
	_, err := tb.Reregister(a, RegionConfig{}) // fails and so deallocates
	require.ErrorIs(t, err, wr.ErrInvalidPD)
	a = allocate(t, tb, false)
	full()
}

func second1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestQuery(t *testing.T) {
	tb := NewTable(Config{})
	mem := make([]byte, 2*page)
	want := Info{
		Valid: true, PD: 7, RemoteAccess: true, PBL: 3, Access: allRights, Base: 4*page + 9, Length: 2 * page,
		QP: 3, RemoteInvalidate: true,
	}
	r := register(t, tb, RegionConfig{PD: 7, Memory: mem, Key: 0x77, Access: allRights, VA: 4*page + 9, QP: 3, RemoteInvalidate: true})
	want.STag = r.STag
	require.Equal(t, want, r)
	require.Equal(t, uint8(0x77), r.STag.Key())
	require.Equal(t, want, query(t, tb, r.STag))
	require.Equal(t, want, query(t, tb, r.STag^0xFF), "the key is not looked at")

	u := consumer(alice)
	w := window(t, tb)
	s := bind(t, tb, w, 1, r, 0, 1, u)
	want.Windows = 1
	require.Equal(t, want, query(t, tb, r.STag))
	require.Equal(t, OK, tb.InvalidateLocal(s, u))
	require.Equal(t, OK, tb.InvalidateLocal(r.STag, alice))
	require.Equal(t, Info{
		STag: r.STag &^ 0xFF, PD: 7, RemoteAccess: true, PBL: 3, Access: allRights, QP: 3, RemoteInvalidate: true,
	}, query(t, tb, r.STag), "what 7.8 retains")

	for _, s := range []wr.STag{w, 0, r.STag ^ 1<<8} {
		_, err := tb.QueryRegion(s)
		assert.ErrorIs(t, err, wr.ErrInvalidSTag)
	}
	for _, s := range []wr.STag{r.STag, 0, w ^ 1<<8} {
		_, err := tb.QueryWindow(s)
		assert.ErrorIs(t, err, wr.ErrInvalidSTag)
	}
}

// The Remote Access Flag without a remote right is the program's wish.
func TestRemoteAccessFlag(t *testing.T) {
	tb := NewTable(Config{})
	for _, c := range []struct {
		flag   bool
		access wr.Access
		want   bool
	}{
		{false, wr.LocalRead, false},
		{true, wr.LocalRead, true},
		{false, localRights | wr.BindWindow, false},
		{false, wr.LocalRead | wr.RemoteRead, true},
		{false, wr.LocalWrite | wr.RemoteWrite, true},
	} {
		r := register(t, tb, RegionConfig{Access: c.access, RemoteAccess: c.flag})
		assert.Equal(t, c.want, r.RemoteAccess, "%+v", c)
		s, err := tb.RegisterShared(r.STag, SharedConfig{PD: 7, Access: c.access, RemoteAccess: c.flag})
		require.NoError(t, err)
		assert.Equal(t, c.want, s.RemoteAccess, "%+v", c)
		require.NoError(t, tb.Deallocate(s.STag))
		require.NoError(t, tb.Deallocate(r.STag))
		r = register(t, tb, RegionConfig{})
		r, err = tb.Reregister(r.STag, RegionConfig{PD: 7, Memory: make([]byte, 1), Access: c.access, RemoteAccess: c.flag})
		require.NoError(t, err)
		assert.Equal(t, c.want, r.RemoteAccess, "RV-7.3.2.3-M10")
	}
}

// What waits for an invalidation looks again: the STag may be gone.
func TestGoneWhileWaiting(t *testing.T) {
	p := RegionConfig{PD: 7, Access: localRights, Memory: make([]byte, 8)}
	for name, c := range map[string]struct {
		window bool
		do     func(*Table, wr.STag) any
		want   [2]any // after Deallocate, after Close
	}{
		"Bind": {true, func(tb *Table, s wr.STag) any {
			return tb.Bind(&wr.BindRequest{Window: s}, consumer(alice))
		}, [2]any{FaultWindow, FaultWindow}},
		"FastRegister": {false, func(tb *Table, s wr.STag) any {
			return tb.FastRegister(&wr.FastRegisterRequest{STag: s}, consumer(alice))
		}, [2]any{FaultSTag, FaultSTag}},
		"Reregister": {false, func(tb *Table, s wr.STag) any {
			_, err := tb.Reregister(s, p)
			return errors.Unwrap(err)
		}, [2]any{wr.ErrInvalidSTag, wr.ErrInvalidRNIC}},
	} {
		for i, end := range []func(*Table, wr.STag){
			func(tb *Table, s wr.STag) { _ = tb.Deallocate(s) },
			func(tb *Table, _ wr.STag) { tb.Close() },
		} {
			t.Run(fmt.Sprint(name, i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tb := NewTable(Config{})
					u := consumer(alice)
					r := register(t, tb, RegionConfig{})
					s, need := r.STag, wr.LocalRead
					if c.window {
						s, need = bind(t, tb, window(t, tb), 1, r, 0, 8, u), wr.RemoteRead
					}
					ref, f := tb.Resolve(s, r.Base, 8, u, need)
					require.Equal(t, OK, f)
					require.True(t, ref.Hold())
					go tb.InvalidateLocal(s, u)
					synctest.Wait()
					got := make(chan any)
					go func() { got <- c.do(tb, s) }()
					synctest.Wait()
					go end(tb, s)
					synctest.Wait()
					ref.Release()
					require.Equal(t, c.want[i], <-got)
				})
			})
		}
	}
}

// After Close everything that can says so.
func TestClosed(t *testing.T) {
	tb := NewTable(Config{})
	r, w := register(t, tb, RegionConfig{}), window(t, tb)
	u := consumer(alice)
	s := bind(t, tb, w, 1, r, 0, 1, u)
	tb.Close()
	for verb, err := range map[string]error{
		"allocate":   second(tb.Allocate(AllocateConfig{PD: 1})),
		"register":   second(tb.Register(RegionConfig{PD: 1, Access: 1, Memory: make([]byte, 1)})),
		"reregister": second(tb.Reregister(r.STag, RegionConfig{})),
		"shared":     second(tb.RegisterShared(r.STag, SharedConfig{PD: 1, Access: 1})),
		"window":     second(tb.AllocateWindow(1)),
		"query":      second(tb.QueryRegion(r.STag)),
		"query MW":   second(tb.QueryWindow(w)),
		"deallocate": tb.Deallocate(r.STag),
		"pages":      second(tb.AllocatePages(1, page)),
	} {
		assert.ErrorIs(t, err, wr.ErrInvalidRNIC, verb)
	}
	assert.Equal(t, FaultWindow, tb.Bind(&wr.BindRequest{Window: w, Region: r.STag, VA: r.Base, Length: 1, Access: wr.RemoteRead}, u))
	assert.Equal(t, FaultSTag, tb.FastRegister(&wr.FastRegisterRequest{STag: r.STag}, u))
	assert.Equal(t, FaultSTag, tb.InvalidateLocal(s, u))
	assert.NoError(t, tb.Retire(u.Windows), "no window is bound any more")
	assert.Zero(t, tb.Len())
}
