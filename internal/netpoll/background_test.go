package netpoll

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

// TestRota has every one of those who serve do all that it does, in every state.
func TestRota(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*pollerRole) bool
		want map[uint32]uint32 // the states that change; in the others it reports false
	}{
		"claim":    {(*pollerRole).claim, map[uint32]uint32{roleBackground: roleWaiter, rolePollers: roleWaiter}},
		"leave":    {func(r *pollerRole) bool { r.leave(); return true }, map[uint32]uint32{roleWaiter: rolePollers}},
		"ask":      {(*pollerRole).standAside, map[uint32]uint32{roleBackground: rolePollers}},
		"takeOver": {(*pollerRole).takeOver, map[uint32]uint32{rolePollers: roleBackground}},
	} {
		for _, from := range []uint32{roleBackground, rolePollers, roleWaiter} {
			if name == "leave" && from != roleWaiter {
				continue // only a waiter leaves
			}
			var r pollerRole
			r.state.Store(from)
			to, changes := c.want[from]
			if !changes {
				to = from
			}
			require.Equal(t, changes, c.do(&r), "%s in %d", name, from)
			require.Equal(t, to, r.state.Load(), "%s in %d", name, from)
			require.Equal(t, to == roleBackground, r.background())
			require.Equal(t, to == roleWaiter, r.waiter())
		}
	}
}

// queue is a Queue on which somebody waits elsewhere, or not.
type queue struct{ awaited atomic.Bool }

func (q *queue) Awaited() bool { return q.awaited.Load() }

// TestAskedToTakeOver: the keeper that has stepped aside has a token to come back when there is
// something to do that nobody may poll for.
func TestAskedToTakeOver(t *testing.T) {
	for name, do := range map[string]func(*Group){
		"Yield": (*Group).Yield,
		"Soon":  (*Group).rouse,
		"Leave": func(g *Group) {
			q := new(queue)
			q.awaited.Store(true)
			g.Serve(q)
			g.pollerSlot.Lock()
			g.Leave()
		},
	} {
		g := new(Group)
		g.resume = make(chan struct{}, 1)
		require.True(t, g.role.standAside())
		do(g)
		require.Len(t, g.resume, 1, name)
	}
}
