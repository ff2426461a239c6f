package srq

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestLimit is draft 6.3.8: a drop below the limit raises one event for each time
// that it is armed.
func TestLimit(t *testing.T) {
	r := newRig(t, Config{Depth: 8, SGE: 1, Limit: 2})
	low := []wr.EventID{wr.EventSRQLimit}
	r.post(1, 2, 3, 4)
	r.take()
	r.take()
	require.Empty(t, r.raised(), "2 are not below 2")
	require.True(t, r.Query().Armed)
	r.take()
	require.Equal(t, low, r.raised())
	require.False(t, r.Query().Armed)
	r.take()
	r.post(5, 6, 7)
	r.take()
	r.take()
	require.Empty(t, r.raised(), "once")

	require.NoError(t, r.Modify(Modify{Rearm: true}))
	require.NoError(t, r.Modify(Modify{Rearm: true}), "RV-6.3.8-M8")
	require.True(t, r.Query().Armed)
	require.Empty(t, r.raised(), "below already: the next Take tells")
	r.post(8)
	require.Empty(t, r.raised())
	r.take()
	require.Equal(t, low, r.raised())

	r.take()
	require.NoError(t, r.Modify(Modify{Rearm: true}))
	r.takeNone()
	require.Equal(t, low, r.raised(), "a Take that finds nothing tells too")
	r.takeNone()
	require.Empty(t, r.raised())
}

// TestLimitCountsPosted: receives in progress do not count as available.
func TestLimitCountsPosted(t *testing.T) {
	r := newRig(t, Config{Depth: 4, SGE: 1, Limit: 1})
	r.post(1, 2)
	e := r.take()
	require.Empty(t, r.raised())
	e.Release(0)
	require.Empty(t, r.raised())
	r.take()
	require.Equal(t, []wr.EventID{wr.EventSRQLimit}, r.raised())
}

func TestModify(t *testing.T) {
	armed := Attributes{Depth: 4, SGE: 1, Limit: 2, PD: 9, Armed: true}
	disarmed := armed
	disarmed.Armed = false
	with := func(a Attributes, depth, limit int, on bool) Attributes {
		a.Depth, a.Limit, a.Armed = depth, limit, on
		return a
	}
	for _, c := range []struct {
		name   string
		before Attributes
		m      Modify
		want   Attributes
		err    error
	}{
		{"nothing", armed, Modify{}, armed, nil},
		{"nothing, disarmed", disarmed, Modify{}, disarmed, nil},
		{"grow", armed, Modify{Depth: ptr(9)}, with(armed, 9, 2, true), nil},
		{"shrink to what is outstanding", armed, Modify{Depth: ptr(3)}, with(armed, 3, 2, true), nil},
		{"shrink below it", armed, Modify{Depth: ptr(2)}, armed, wr.ErrShrinkFailed},
		{"shrink below it, rest is fine", armed, Modify{Depth: ptr(2), Limit: ptr(1), Rearm: true}, armed, wr.ErrShrinkFailed},
		{"shrink below it, disarmed", disarmed, Modify{Depth: ptr(1)}, disarmed, wr.ErrShrinkFailed},
		{"no depth", armed, Modify{Depth: ptr(0)}, armed, wr.ErrInvalidModifier},
		{"negative depth", armed, Modify{Depth: ptr(-1)}, armed, wr.ErrInvalidModifier},
		{"limit", armed, Modify{Limit: ptr(3)}, with(armed, 4, 3, true), nil},
		{"limit does not arm", disarmed, Modify{Limit: ptr(3)}, with(armed, 4, 3, false), nil},
		{"limit and arm", disarmed, Modify{Limit: ptr(4), Rearm: true}, with(armed, 4, 4, true), nil},
		{"limit 0 disarms", armed, Modify{Limit: ptr(0)}, with(armed, 4, 0, false), nil},
		{"limit 0 cannot be armed", armed, Modify{Limit: ptr(0), Rearm: true}, with(armed, 4, 0, false), nil},
		{"limit above depth", armed, Modify{Limit: ptr(5)}, armed, wr.ErrSRQLimitRange},
		{"limit above depth, disarmed", disarmed, Modify{Limit: ptr(5)}, disarmed, wr.ErrSRQLimitRange},
		{"negative limit", armed, Modify{Limit: ptr(-1)}, armed, wr.ErrSRQLimitRange},
		{"limit of the depth to come", armed, Modify{Depth: ptr(6), Limit: ptr(6)}, with(armed, 6, 6, true), nil},
		{"limit above the depth to come", armed, Modify{Depth: ptr(3), Limit: ptr(4)}, armed, wr.ErrSRQLimitRange},
		{"rearm", disarmed, Modify{Rearm: true}, armed, nil},
		{"rearm armed", armed, Modify{Rearm: true}, armed, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{Depth: 4, SGE: 1, Limit: 2})
			r.post(1, 2, 3)
			require.Equal(t, uint64(1), r.take().ID, "outstanding: 2 posted, 1 taken")
			r.armed = c.before.Armed
			require.Equal(t, c.before, r.Query())
			require.ErrorIs(t, r.Modify(c.m), c.err)
			require.Equal(t, c.want, r.Query())
			require.Empty(t, r.raised())
			for range c.want.Depth - 3 { // as many as it says, and no more
				r.post(4)
			}
			_, err := r.Post(wr.Recv{})
			require.ErrorIs(t, err, wr.ErrQueueFull)
		})
	}
}

// TestModifyDepthBelowLimit is RV-6.3.8-M9, with few receives outstanding.
func TestModifyDepthBelowLimit(t *testing.T) {
	r := newRig(t, Config{Depth: 8, SGE: 1, Limit: 4})
	before := r.Query()
	require.ErrorIs(t, r.Modify(Modify{Depth: ptr(3)}), wr.ErrInvalidModifier)
	require.Equal(t, before, r.Query())
	require.NoError(t, r.Modify(Modify{Depth: ptr(4)}))
	require.NoError(t, r.Modify(Modify{Depth: ptr(3), Limit: ptr(3)}), "both at once")

	r.takeNone() // disarms
	require.NoError(t, r.Modify(Modify{Depth: ptr(2)}), "not armed: no limit to break")
	before = r.Query()
	require.Equal(t, 3, before.Limit)
	require.ErrorIs(t, r.Modify(Modify{Rearm: true}), wr.ErrInvalidModifier)
	require.Equal(t, before, r.Query())
	require.NoError(t, r.Modify(Modify{Depth: ptr(1)}))
	require.NoError(t, r.Modify(Modify{Limit: ptr(1), Rearm: true}))
}

// TestResize: receives outstanding survive every resize, posted or taken.
func TestResize(t *testing.T) {
	r := newRig(t, Config{Depth: 6, SGE: 1})
	r.post(1, 2, 3, 4, 5, 6)
	one, two, three := r.take(), r.take(), r.take()
	one.Release(0)
	two.Release(0)
	require.Equal(t, 2, r.spare)
	require.NoError(t, r.Modify(Modify{Depth: ptr(5)}))
	require.Equal(t, 1, r.spare)
	require.NoError(t, r.Modify(Modify{Depth: ptr(4)}))
	require.Zero(t, r.spare, "nothing is kept for what cannot be posted")
	require.Nil(t, r.free)
	require.ErrorIs(t, r.Modify(Modify{Depth: ptr(3)}), wr.ErrShrinkFailed)
	_, err := r.Post(wr.Recv{})
	require.ErrorIs(t, err, wr.ErrQueueFull)

	require.Equal(t, uint64(3), three.ID)
	require.Equal(t, sgl(3, 1), three.SGL)
	three.Release(0)
	require.Equal(t, 1, r.spare)
	r.post(7)
	require.NoError(t, r.Modify(Modify{Depth: ptr(1000)}))
	for id := range uint64(996) {
		r.post(8 + id)
	}
	_, err = r.Post(wr.Recv{})
	require.ErrorIs(t, err, wr.ErrQueueFull)
	for id := uint64(4); id < 1004; id++ {
		require.Equal(t, id, r.take().ID)
	}
}
