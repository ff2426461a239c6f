package srq

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestPostPartial is draft 8.2.1: what is before the refused one is posted, what
// is after it is not.
func TestPostPartial(t *testing.T) {
	recv := func(id uint64, sges int) wr.Recv { return wr.Recv{ID: id, SGL: sgl(id, sges)} }
	for _, c := range []struct {
		name string
		reqs []wr.Recv
		n    int
		err  error
	}{
		{"none", nil, 0, nil},
		{"as many as fit", []wr.Recv{recv(1, 2), recv(2, 0), recv(3, 1)}, 3, nil},
		{"one too many", []wr.Recv{recv(1, 1), recv(2, 1), recv(3, 1), recv(4, 1)}, 3, wr.ErrQueueFull},
		{"list too long", []wr.Recv{recv(1, 2), recv(2, 3), recv(3, 1)}, 1, wr.ErrInvalidSGLLength},
		{"list too long at once", []wr.Recv{recv(1, 3)}, 0, wr.ErrInvalidSGLLength},
		{"both", []wr.Recv{recv(1, 1), recv(2, 1), recv(3, 1), recv(4, 3)}, 3, wr.ErrInvalidSGLLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{Depth: 3, SGE: 2})
			n, err := r.Post(c.reqs...)
			require.Equal(t, c.n, n)
			require.ErrorIs(t, err, c.err)
			for _, want := range c.reqs[:n] {
				e := r.take()
				assert.Equal(t, want.ID, e.ID)
				assert.True(t, slices.Equal(want.SGL, e.SGL))
			}
			r.takeNone()
		})
	}
}

// TestPostCopies: the program may reuse its lists at once.
func TestPostCopies(t *testing.T) {
	r := newRig(t, Config{Depth: 2, SGE: 2})
	list := []wr.SGE{{STag: 1, Length: math.MaxUint32, TO: 3}, {STag: 2, Length: math.MaxUint32, TO: 5}}
	_, err := r.Post(wr.Recv{ID: 1, SGL: list}, wr.Recv{ID: 2, SGL: list[:1]})
	require.NoError(t, err)
	list[0], list[1] = wr.SGE{}, wr.SGE{}
	e := r.take()
	require.Equal(t, []wr.SGE{{STag: 1, Length: math.MaxUint32, TO: 3}, {STag: 2, Length: math.MaxUint32, TO: 5}}, e.SGL)
	require.Equal(t, uint64(2*math.MaxUint32), e.Length, "more than 32 bits")
	e = r.take()
	require.Equal(t, []wr.SGE{{STag: 1, Length: math.MaxUint32, TO: 3}}, e.SGL)
	require.Equal(t, uint64(math.MaxUint32), e.Length)
}

// TestSlots: a slot is in use until the completion is reaped, and comes free in
// whatever order that happens (RV-6.3.7-M2, RV-6.3.5-M8).
func TestSlots(t *testing.T) {
	r := newRig(t, Config{Depth: 3, SGE: 1})
	full := func() {
		t.Helper()
		_, err := r.Post(wr.Recv{ID: 99})
		require.ErrorIs(t, err, wr.ErrQueueFull)
	}
	r.post(1, 2, 3)
	full()
	one, two, three := r.take(), r.take(), r.take()
	r.takeNone()
	full() // taken is not free
	three.Release(3)
	r.post(4)
	full()
	one.Release(1)
	two.Release(2)
	r.post(5, 6)
	full()
	for _, want := range []uint64{4, 5, 6} {
		require.Equal(t, want, r.take().ID, "in the order of posting")
	}
}

// TestReleaseTwice: only the first Release after a Take gives a slot back, and
// none gives back what is posted.
func TestReleaseTwice(t *testing.T) {
	r := newRig(t, Config{Depth: 2, SGE: 1})
	r.post(1, 2)
	e := r.take()
	e.Release(0)
	e.Release(0)
	r.post(3)
	e.Release(0) // the element is posted again by now
	_, err := r.Post(wr.Recv{})
	require.ErrorIs(t, err, wr.ErrQueueFull)
	require.Equal(t, uint64(2), r.take().ID)
	require.Equal(t, uint64(3), r.take().ID)
	r.takeNone()
}

// TestSlabs: elements come as they are needed and never more than Depth.
func TestSlabs(t *testing.T) {
	const depth = 2*slabSize + 3
	r := newRig(t, Config{Depth: depth, SGE: 2})
	require.Nil(t, r.free, "nothing before the first Post")
	r.post(1)
	require.Equal(t, slabSize-1, r.spare)
	for id := uint64(2); id <= depth; id++ {
		r.post(id)
	}
	require.Zero(t, r.spare)
	seen := map[*Element]bool{}
	var all []*Element
	for range depth {
		e := r.take()
		require.False(t, seen[e])
		seen[e], all = true, append(all, e)
	}
	for _, e := range all { // no list lies in another's storage
		require.Equal(t, sgl(e.ID, 1), e.SGL)
		require.Equal(t, 2, cap(e.SGL))
		e.Release(0)
	}
	require.Equal(t, depth, r.spare)
	for id := range uint64(depth) {
		r.post(id)
		require.True(t, seen[r.posted.tail], "none is new")
	}
}

func token(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// waiterChan is a Waiter that gets a token.
type waiterChan chan struct{}

func (c waiterChan) Wake() { signal(c) }

func (waiterChan) Holds() {}

// TestAwait is draft 13.2: who found nothing is woken once, by whatever may let it
// go on.
func TestAwait(t *testing.T) {
	for _, c := range []struct {
		name string
		all  bool
		wake func(*rig)
	}{
		{"post", false, func(r *rig) { r.post(1) }},
		{"part of a list", false, func(r *rig) {
			n, err := r.Post(wr.Recv{}, wr.Recv{SGL: sgl(1, 9)})
			require.Equal(r.t, 1, n)
			require.Error(r.t, err)
		}},
		{"fail", true, func(r *rig) { r.Fail() }},
		{"close", true, func(r *rig) { r.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{Depth: 4, SGE: 1})
			a, b := make(waiterChan, 1), make(waiterChan, 1)
			first, gone := make(waiterChan, 1), make(waiterChan, 1)
			r.Await(first)
			r.Await(a)
			r.Await(a)
			r.Await(gone)
			r.Await(b)
			r.Forget(first)
			r.Forget(gone)
			r.Forget(gone)
			require.False(t, token(a) || token(b))
			c.wake(r)
			require.True(t, token(a))
			require.Equal(t, c.all, token(b))
			if !c.all {
				r.post(2)
				require.True(t, token(b))
			}
			require.False(t, token(first) || token(gone), "forgotten")
			require.Nil(t, r.starved.first)
			_, _ = r.Post(wr.Recv{})
			r.Fail()
			r.Close()
			require.False(t, token(a) || token(b), "once")
		})
	}
}

// TestAwaitTooLate: a receive that came between a Take and its Await wakes too.
func TestAwaitTooLate(t *testing.T) {
	for name, before := range map[string]func(*rig){
		"posted": func(r *rig) { r.post(1) },
		"failed": func(r *rig) { r.Fail() },
		"closed": func(r *rig) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{Depth: 4, SGE: 1})
			c := make(waiterChan, 1)
			r.takeNone()
			before(r)
			r.Await(c)
			require.True(t, token(c))
			require.Nil(t, r.starved.first)
		})
	}
}

// TestAwaitPostFails: a Post that posts nothing wakes nobody.
func TestAwaitPostFails(t *testing.T) {
	r := newRig(t, Config{Depth: 1, SGE: 1})
	r.post(1)
	r.take()
	c := make(waiterChan, 1)
	r.Await(c)
	_, err := r.Post(wr.Recv{})
	require.ErrorIs(t, err, wr.ErrQueueFull)
	_, err = r.Post()
	require.NoError(t, err)
	require.False(t, token(c))
}

// TestAwaitHoldsToken: a token that nobody has fetched does not block a Post.
func TestAwaitHoldsToken(t *testing.T) {
	r := newRig(t, Config{Depth: 2, SGE: 1})
	c := make(waiterChan, 1)
	for id := range uint64(2) {
		r.Await(c)
		r.post(id)
		r.take()
	}
	require.True(t, token(c))
	require.False(t, token(c))
}
