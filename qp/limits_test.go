package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/wire"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// TestEmptyLastSegment ends a Read Response with an empty segment, whose STag is
// not looked at (RFC 5041 5.2).
func TestEmptyLastSegment(t *testing.T) {
	r := newRig(t, setup{})
	r.postSend(wr.Request{ID: 1, Op: wr.OpRead, Local: r.full.sge(readTO, readSize), Remote: wr.Remote{STag: 5, TO: 6}})
	r.next()
	r.send(halfResponse(readSize)(r)...)
	r.full.expect(readTO, filled(readSize))
	r.send(wire.ReadResponse(0xDEAD, 0, nil).Octets())
	require.Equal(t, []comp{{1, 0, 0}}, r.wait(r.scq, 1))
	r.requireMemory()
	require.Equal(t, wr.StateRTS, r.q.State())
}

// TestORDIsCappedByThePeer refuses to raise ORD above what was agreed (RFC 6581
// 9.1).
func TestORDIsCappedByThePeer(t *testing.T) {
	r := newRig(t, setup{stream: func(s *mpa.Stream) { s.Enhanced, s.IRD, s.ORD = true, 4, 1 }})
	set := func(ord int) error { return r.q.Modify(Modify{Next: wr.StateRTS, ORD: &ord}) }
	require.Equal(t, 1, r.q.Query().ORD)
	require.ErrorIs(t, set(2), wr.ErrORDExceeded)
	require.Equal(t, 1, r.q.Query().ORD)
	require.NoError(t, set(0))
	require.NoError(t, set(1))
}

func TestWatchdog(t *testing.T) {
	start := time.Unix(100, 0)
	type look struct {
		polls uint64
		after time.Duration
		want  bool
	}
	for name, looks := range map[string][]look{
		"polled":                        {{100, watchTick, false}, {200, watchTick, false}},
		"polls stop":                    {{100, watchTick, false}, {101, watchTick, true}},
		"late once":                     {{0, 9 * watchTick, false}, {50, watchTick, false}},
		"late always":                   {{0, 9 * watchTick, false}, {0, 9 * watchTick, false}, {0, 9 * watchTick, true}},
		"late, polled between":          {{0, 9 * watchTick, false}, {0, 9 * watchTick, false}, {50, watchTick, false}, {50, 9 * watchTick, false}},
		"late, then on time and no one": {{0, 9 * watchTick, false}, {0, watchTick, true}},
	} {
		t.Run(name, func(t *testing.T) {
			w, now := watchdog{at: start, tick: watchTick}, start
			for i, l := range looks {
				now = now.Add(l.after)
				assert.Equal(t, l.want, w.look(l.polls, now), "look %d", i)
			}
		})
	}
}

// TestWatchdogSlowsDown: pollers that keep coming are disturbed less and less.
func TestWatchdogSlowsDown(t *testing.T) {
	now := time.Unix(100, 0)
	w := watchdog{at: now, tick: watchTick}
	polls := uint64(0)
	for want := 2 * watchTick; want < 8*watchMost; want *= 2 {
		polls += 100
		now = now.Add(w.tick)
		require.False(t, w.look(polls, now))
		require.Equal(t, min(want, watchMost), w.tick)
	}
	require.True(t, w.look(polls, now.Add(watchMost)), "they have gone")
	require.False(t, w.look(polls, now.Add(4*watchMost)), "who knows")
	require.Equal(t, watchTick, w.tick)
}

func TestDestroyedSaysSo(t *testing.T) {
	r := newRig(t, setup{})
	require.NoError(t, r.q.Destroy())
	_, err := r.q.PostSend(wr.Request{})
	require.ErrorIs(t, err, wr.ErrInvalidQP)
	_, err = r.q.PostRecv(wr.Recv{})
	require.ErrorIs(t, err, wr.ErrInvalidQP)
	require.ErrorIs(t, r.q.Modify(Modify{Next: wr.StateIdle}), wr.ErrInvalidQP)
}
