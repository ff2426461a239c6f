package cq

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// eventful is a queue and the events it has raised.
type eventful struct {
	*Queue
	events []wr.EventID
}

func newEventful(t *testing.T, entries int) *eventful {
	f := &eventful{}
	f.Queue = New(Config{ID: 7, Entries: entries, Event: func(e wr.Event) {
		assert.Equal(t, wr.Event{ID: e.ID, CQ: 7}, e, "the CQ is the resource, and nothing else")
		f.Len() // raised without the lock
		f.events = append(f.events, e.ID)
	}})
	return f
}

func (f *eventful) raised() []wr.EventID {
	e := f.events
	f.events = nil
	return e
}

// TestOverflow: what is in the queue stays, what does not fit is dropped, and that
// is told once for each time that the queue is full (draft 5.3.1, figure 25).
func TestOverflow(t *testing.T) {
	told := []wr.EventID{wr.EventCQOverflow}
	q := newEventful(t, 2)
	var s slots
	for i := range uint64(2) {
		e := entry(1 + i)
		e.Owner, e.Pos = s.slot(i), i
		require.True(t, q.Push(e))
	}
	require.Empty(t, q.raised(), "full is not too full")
	lost := entry(3)
	lost.Owner, lost.Pos = s.slot(99), 99
	require.False(t, q.Push(lost))
	require.Equal(t, told, q.raised())
	require.False(t, q.Push(lost))
	require.Empty(t, q.raised(), "once")
	require.Empty(t, s.released, "the slots of what is lost are the caller's business")

	c, err := q.PollOne()
	require.NoError(t, err)
	require.Equal(t, uint64(1), c.ID)
	require.True(t, q.Push(entry(4)))
	require.False(t, q.Push(lost))
	require.Equal(t, told, q.raised(), "there was room in between")
	var buf [4]wr.Completion
	require.Equal(t, []uint64{2, 4}, ids(buf[:q.Poll(buf[:])]))
	require.Equal(t, []uint64{0, 1}, s.released)
}

// TestOverflowResize: a resize that makes room counts as room, another does not.
func TestOverflowResize(t *testing.T) {
	told := []wr.EventID{wr.EventCQOverflow}
	q := newEventful(t, 1)
	require.True(t, q.Push(entry(1)))
	require.False(t, q.Push(entry(2)))
	require.Equal(t, told, q.raised())
	require.NoError(t, q.Resize(1))
	require.False(t, q.Push(entry(2)))
	require.Empty(t, q.raised())
	require.NoError(t, q.Resize(2))
	require.True(t, q.Push(entry(2)))
	require.False(t, q.Push(entry(3)))
	require.Equal(t, told, q.raised())
}

// TestFail is "CQ Operation Error" of figure 25.
func TestFail(t *testing.T) {
	q := newEventful(t, 4)
	require.True(t, q.Push(entry(1)))
	require.NoError(t, q.Request(wr.NotifyNext))
	q.Fail()
	q.Fail()
	require.Equal(t, []wr.EventID{wr.EventCQOperation}, q.raised(), "once")
	for id := range uint64(6) { // with room and beyond: it is no overflow
		require.False(t, q.Push(entry(10+id)))
	}
	require.Empty(t, q.raised())
	require.False(t, notified(q.Queue), "nothing was added")
	require.Equal(t, 1, q.Len())
	require.NoError(t, q.Resize(1))
	require.False(t, q.Push(entry(20)))
	require.NoError(t, q.Request(wr.NotifyNext))
	require.Empty(t, q.raised())
	c, err := q.PollOne()
	require.NoError(t, err)
	require.Equal(t, uint64(1), c.ID)
	require.False(t, q.Push(entry(21)))
	_, err = q.PollOne()
	require.ErrorIs(t, err, wr.ErrCQEmpty)
	q.Close()
	_, err = q.PollOne()
	require.ErrorIs(t, err, wr.ErrInvalidCQ)
}

// TestFailAfterOverflow: the two are told apart, and both are told.
func TestFailAfterOverflow(t *testing.T) {
	q := newEventful(t, 1)
	require.True(t, q.Push(entry(1)))
	require.False(t, q.Push(entry(2)))
	q.Fail()
	require.False(t, q.Push(entry(3)))
	require.Equal(t, []wr.EventID{wr.EventCQOverflow, wr.EventCQOperation}, q.raised())
}

// TestNoEvents: a queue without a sink raises into nothing.
func TestNoEvents(t *testing.T) {
	q := New(Config{Entries: 1})
	require.True(t, q.Push(entry(1)))
	require.False(t, q.Push(entry(2)))
	q.Fail()
	_, err := q.PollOne()
	require.NoError(t, err)
	require.False(t, q.Push(entry(3)))
}
