package srq

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/wr"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// rig is a queue and the events that it has raised.
type rig struct {
	*Queue
	t      *testing.T
	events []wr.EventID
}

func newRig(t *testing.T, c Config) *rig {
	r := &rig{t: t}
	c.ID, c.PD = 7, 9
	c.Events = func(e wr.Event) {
		assert.Equal(t, wr.Event{ID: e.ID, SRQ: 7}, e, "the S-RQ is the resource, and nothing else")
		assert.True(t, r.mu.TryLock(), "events are raised without the lock")
		r.mu.Unlock()
		r.events = append(r.events, e.ID)
	}
	r.Queue = New(c)
	return r
}

// post posts a receive with each of these IDs.
func (r *rig) post(ids ...uint64) {
	r.t.Helper()
	for _, id := range ids {
		n, err := r.Post(wr.Recv{ID: id, SGL: sgl(id, 1)})
		require.NoError(r.t, err)
		require.Equal(r.t, 1, n)
	}
}

// take takes a receive, which there is.
func (r *rig) take() *Element {
	r.t.Helper()
	e, failed := r.Take()
	require.False(r.t, failed)
	require.NotNil(r.t, e)
	return e
}

// takeNone takes and finds the queue empty.
func (r *rig) takeNone() {
	r.t.Helper()
	e, failed := r.Take()
	require.False(r.t, failed)
	require.Nil(r.t, e)
}

// raised are the events since the last call.
func (r *rig) raised() []wr.EventID {
	e := r.events
	r.events = nil
	return e
}

// sgl is a list of n elements that id determines.
func sgl(id uint64, n int) []wr.SGE {
	var l []wr.SGE
	for i := range n {
		l = append(l, wr.SGE{STag: wr.STag(id), Length: uint32(id) + uint32(i), TO: id << 8})
	}
	return l
}

func ptr(n int) *int { return &n }

func TestQuery(t *testing.T) {
	r := newRig(t, Config{Depth: 5, SGE: 3, Limit: 2})
	assert.Equal(t, wr.SRQID(7), r.ID())
	assert.Equal(t, wr.PDID(9), r.PD())
	assert.Equal(t, Attributes{Depth: 5, SGE: 3, Limit: 2, PD: 9, Armed: true}, r.Query())
	assert.False(t, newRig(t, Config{Depth: 5, SGE: 3}).Query().Armed, "no limit, nothing armed")
}

// TestFail is draft 6.3.6: the queue is broken, what was taken from it is not.
func TestFail(t *testing.T) {
	r := newRig(t, Config{Depth: 4, SGE: 1, Limit: 4})
	r.post(1, 2)
	taken := r.take()
	require.Equal(t, []wr.EventID{wr.EventSRQLimit}, r.raised())
	require.NoError(t, r.Modify(Modify{Rearm: true}))

	r.Fail()
	r.Fail()
	require.Equal(t, []wr.EventID{wr.EventSRQCatastrophic}, r.raised(), "once")
	n, err := r.Post(wr.Recv{ID: 3})
	require.Zero(t, n)
	require.ErrorIs(t, err, wr.ErrInvalidSRQ)
	for range 2 {
		e, failed := r.Take()
		require.Nil(t, e, "the posted ones are out of reach")
		require.True(t, failed)
	}
	require.Empty(t, r.raised(), "no limit event of a broken queue")
	require.Equal(t, Attributes{Depth: 4, SGE: 1, Limit: 4, PD: 9, Armed: true}, r.Query())
	require.NoError(t, r.Modify(Modify{Limit: ptr(1)}))

	require.Equal(t, uint64(1), taken.ID)
	require.Equal(t, sgl(1, 1), taken.SGL)
	taken.Release(0)
	require.Equal(t, 1, r.used, "the one still posted")
	r.Close()
	r.Fail()
	require.Empty(t, r.raised())
}

// TestClose: what is posted goes, what is taken stays with who took it.
func TestClose(t *testing.T) {
	r := newRig(t, Config{Depth: 4, SGE: 1, Limit: 1})
	r.post(1, 2, 3)
	first, second := r.take(), r.take()
	first.Release(0)
	r.Close()
	r.Close()
	n, err := r.Post()
	require.Zero(t, n)
	require.ErrorIs(t, err, wr.ErrInvalidSRQ, "even for an empty list")
	e, failed := r.Take()
	require.Nil(t, e)
	require.True(t, failed)
	require.ErrorIs(t, r.Modify(Modify{}), wr.ErrInvalidSRQ)
	r.Fail()
	require.Empty(t, r.raised(), "nothing is raised for a queue that is gone")

	require.Equal(t, uint64(2), second.ID)
	require.Equal(t, sgl(2, 1), second.SGL)
	second.Release(0)
	second.Release(0)
	first.Release(0)
	require.Equal(t, fifo{}, r.posted)
	require.Nil(t, r.free, "no element is kept")
	require.Zero(t, r.spare)
}

// TestNoEvents: a queue without a sink raises into nothing.
func TestNoEvents(t *testing.T) {
	q := New(Config{Depth: 1, SGE: 1, Limit: 1})
	_, _ = q.Take()
	require.False(t, q.Query().Armed)
	q.Fail()
	_, failed := q.Take()
	require.True(t, failed)
}
