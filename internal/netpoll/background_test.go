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

// queue is a Queue on which somebody waits elsewhere, or not.
type queue struct{ awaited atomic.Bool }

func (q *queue) Awaited() bool { return q.awaited.Load() }

// TestAskedToTakeOver: the background poller that has stepped aside has a token to come back when there is
// something to do that nobody may poll for.
func TestAskedToTakeOver(t *testing.T) {
	for name, do := range map[string]func(*Group){
		"Yield": (*Group).Yield,
		"Soon":  func(g *Group) { g.on(evSoon) },
		"Leave": func(g *Group) {
			q := new(queue)
			q.awaited.Store(true)
			g.Serve(q)
			require.True(t, g.on(evClaim))
			g.slot.Lock()
			g.Leave()
		},
	} {
		g := new(Group)
		g.told = make(chan struct{}, 1)
		g.state.Store(uint64(rolePollers))
		do(g)
		require.Len(t, g.told, 1, name)
		require.True(t, g.on(evAnswer), name)
		require.Equal(t, roleBackground, g.now().role(), name)
	}
}
