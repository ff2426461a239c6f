package netpoll

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// in is a group in a state, that nobody serves.
func in(s state) *Group {
	g := &Group{backgroundPoller: backgroundPoller{told: make(chan struct{}, 1)}}
	g.state.Store(uint64(s))
	return g
}

// TestTableIsWhole: each event has rows, in one place, and none of them is behind one that always comes first.
func TestTableIsWhole(t *testing.T) {
	for e := range numStateEvents {
		require.NotEmpty(t, rows[e], "%v", e)
		for i, later := range rows[e] {
			for _, r := range rows[e][:i] {
				hidden := later.in&^r.in == 0 && r.with&^later.with == 0 && r.without&^later.without == 0
				require.False(t, hidden, "%v: %+v is never reached", e, later)
			}
		}
	}
	for i := 1; i < len(table); i++ {
		require.LessOrEqual(t, table[i-1].on, table[i].on, "the rows of an event stand together")
	}
}

// TestStepKeeps the number of sockets, and a role, whatever the state.
func TestStepKeeps(t *testing.T) {
	for flags := range state(1) << numFlags {
		for role := range state(roleMask) {
			s := role | flags*bgParked | 7*oneMember
			for e := range numStateEvents {
				next, _, _ := s.step(e)
				require.Equal(t, 7, next.members())
				require.Less(t, next.role(), state(roleMask))
			}
		}
	}
}

// TestRecount: polls that meet the background poller make it step aside when they are many in a row, and are counted anew
// once the program has said that it polls no more.
func TestRecount(t *testing.T) {
	g := in(roleBackground | bgParked | oneMember)
	for range askAfter - 1 {
		g.askBackground()
	}
	g.Yield()
	for range askAfter - 1 {
		g.askBackground()
		require.Equal(t, roleBackground, g.now().role())
	}
	g.askBackground()
	require.Equal(t, rolePollers, g.now().role())
	require.True(t, g.on(evTakeOver))
	require.True(t, g.now().has(recount), "and when it serves again")
}

// TestArrived: what a stream without a descriptor is ready for wakes the one that sleeps, and the background poller for a
// thread that sleeps on descriptors; pollers see it by themselves.
func TestArrived(t *testing.T) {
	for _, c := range []struct {
		from, to state
		do       stateAction
	}{
		{roleWaiter | asleep | parked, roleWaiter | asleep | parked | woken, wakeSleeper},
		{roleWaiter | asleep, roleWaiter | asleep | woken, 0},
		{roleBackground | bgParked, roleBackground | bgParked, wakeSleeper},
		{roleBackground, roleBackground, 0},
		{rolePollers, rolePollers, 0},
		{rolePollers | watched, rolePollers | watched | resume, tellBackground},
	} {
		to, do, _ := c.from.step(evArrived)
		assert.Equal(t, c.to, to, "%v", c.from)
		assert.Equal(t, c.do, do, "%v", c.from)
	}
}

// TestOpen: a group begins with its background poller, but for a waiter that had claimed the slot before the end and has
// not got it yet.
func TestOpen(t *testing.T) {
	for _, role := range []state{roleBackground, rolePollers, roleWaiter} {
		g := in(role | relies | resume | woken | watched | ended)
		g.on(evOpen)
		s := g.now()
		assert.False(t, s.has(ended))
		if role == roleWaiter {
			assert.Equal(t, roleWaiter, s.role())
			continue
		}
		assert.Equal(t, roleBackground|recount, s)
	}
}

// TestStateString names role and flags.
func TestStateString(t *testing.T) {
	require.Equal(t, "waiter asleep parked", (roleWaiter | asleep | parked | 3*oneMember).String())
}
