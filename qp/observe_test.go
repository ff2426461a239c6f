package qp

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// What a test sees of a queue pair: completions, events, and the peer's view.

// comp is what a test looks at in a completion.
type comp struct {
	ID     uint64
	Status wr.Status
	Bytes  uint32
}

func flushed(ids ...uint64) (out []comp) {
	for _, id := range ids {
		out = append(out, comp{ID: id, Status: wr.StatusFlushed})
	}
	return out
}

// wait takes n completions.
func (r *rig) wait(q *cq.Queue, n int) []comp {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out []comp
	for len(out) < n {
		var c [8]wr.Completion
		k, err := q.Wait(ctx, c[:min(n-len(out), len(c))])
		require.NoError(r.t, err, "have %v", out)
		r.requireWhy(c[:k])
		out = append(out, comps(c[:k])...)
	}
	return out
}

// all takes what is queued.
func (r *rig) all(q *cq.Queue) []comp {
	var out []comp
	for {
		var c [8]wr.Completion
		k := q.Poll(c[:])
		if k == 0 {
			return out
		}
		out = append(out, comps(c[:k])...)
	}
}

func comps(list []wr.Completion) (out []comp) {
	for _, c := range list {
		b := c.Bytes
		if c.Op != wr.OpRecv || c.Status != wr.StatusSuccess {
			b = 0 // not valid
		}
		out = append(out, comp{c.ID, c.Status, b})
	}
	return out
}

// eventLog records asynchronous events, and what Query shows in that moment, but of the RQ limit's.
type eventLog struct {
	mu    sync.Mutex
	list  []wr.Event
	query []Attributes
}

func (r *rig) event(e wr.Event) {
	var a Attributes
	if e.ID != wr.EventRQLimit { // the poller raises that one, and is not to wait for a verb
		a = r.q.Query()
	}
	r.events.mu.Lock()
	defer r.events.mu.Unlock()
	r.events.list = append(r.events.list, e)
	r.events.query = append(r.events.query, a)
}

// requireEvents checks that these events came and no other, all of this queue
// pair, and forgets them.
func (r *rig) requireEvents(want ...wr.EventID) {
	r.t.Helper()
	r.events.mu.Lock()
	defer r.events.mu.Unlock()
	var got []wr.EventID
	for _, e := range r.events.list {
		assert.Equal(r.t, r.id, e.QP)
		r.requireWhyOf(e)
		got = append(got, e.ID)
	}
	require.Equal(r.t, want, got, "asynchronous events")
	r.events.list, r.events.query = nil, nil
}

// requireEnd checks how the peer sees the stream end, with no FPDU before.
func (r *rig) requireEnd(want rawpeer.End) {
	r.t.Helper()
	end, n, err := r.peer.End()
	require.NoError(r.t, err)
	require.Equal(r.t, want, end)
	require.Zero(r.t, n, "FPDUs before the end")
}

// requireReset checks that the peer, which has seen the end of what it is sent,
// cannot send any more: the connection was reset.
func (r *rig) requireReset() {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.peer.Raw([]byte{0}) != nil }, patience, time.Millisecond, "no RST")
}

// requireToldIn checks in which state the queue pair was when the first event
// came, and that it had no LLP stream then if that is Error (RV-6.2.5-M15 to M19:
// the reset, the state, the event).
func (r *rig) requireToldIn(want wr.State) {
	r.t.Helper()
	r.over()
	require.NotEmpty(r.t, r.events.query)
	require.Equal(r.t, want, r.events.query[0].State)
	if want == wr.StateError {
		require.Nil(r.t, r.events.query[0].Stream)
	}
}

// requireSettled checks how a session ended: the state, the LLP stream not tied to
// the queue pair any more, and all asynchronous events since it began.
func (r *rig) requireSettled(want wr.State, events ...wr.EventID) {
	r.t.Helper()
	r.over()
	require.Equal(r.t, want, r.q.State())
	require.Nil(r.t, r.q.Query().Stream, "the LLP stream is released")
	r.requireEvents(events...)
}
