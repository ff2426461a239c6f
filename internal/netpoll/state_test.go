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

// TestSets: the sets of the system are made once, and closed once.
func TestSets(t *testing.T) {
	for _, role := range []state{roleBackground, rolePollers, roleWaiter} {
		g := in(role | soon)
		assert.False(t, g.on(evNoSets), "there are none")
		assert.True(t, g.on(evSets))
		assert.Equal(t, role|soon|sets, g.now())
		assert.True(t, g.on(evNoSets))
		assert.False(t, g.on(evNoSets), "twice")
		assert.Equal(t, role|soon, g.now())
	}
}

// drives is a Member that is driven, and leaves something behind.
type drives struct{}

func (drives) Drive(Ready) bool { return true }
func (drives) Flush(bool)       {}

// listed is a group that pollers serve, with a stream that has a pump, which has something, and is to be driven.
func listed(flags state) *Group {
	g := in(rolePollers | flags | oneMember)
	g.open = true
	s := &Socket{g: g, stream: drives{}, fd: none, waits: In}
	s.level.Store(uint32(In))
	g.mu.Lock()
	s.list()
	g.mu.Unlock()
	return g
}

// TestWatchBehindAnother: a thread that cannot drive what is listed, since another has the poll lock, has the background poller
// take over: the descriptors that it sleeps on do not tell of it, and the other may not look again.
func TestWatchBehindAnother(t *testing.T) {
	g := listed(0)
	g.pollLock.Lock()
	_, got := g.Watch(nil)
	g.pollLock.Unlock()
	assert.False(t, got)
	assert.True(t, g.now().has(resume))
	assert.Len(t, g.told, 1)
	assert.True(t, g.Drive())
	assert.Len(t, g.told, 1)

	g = in(rolePollers | oneMember) // nothing is listed
	g.open = true
	g.pollLock.Lock()
	g.Watch(nil)
	g.pollLock.Unlock()
	assert.Equal(t, rolePollers|watched|oneMember, g.now())
	assert.Empty(t, g.told)
}

// TestWatchedWhileOneIsAwaited: a poll is no sign that no thread sleeps on the set, as long as a completion is awaited: it may be another
// thread's.
func TestWatchedWhileOneIsAwaited(t *testing.T) {
	q := &queue{}
	g := in(rolePollers | oneMember | watched)
	g.queues = []Queue{q}
	q.awaited.Store(true)
	g.Drive()
	assert.True(t, g.now().has(watched))
	q.awaited.Store(false)
	g.Drive()
	assert.False(t, g.now().has(watched))
}

// TestListedAgain: of what a poller leaves in a pump a thread that sleeps is told.
func TestListedAgain(t *testing.T) {
	g := listed(0)
	assert.True(t, g.driveFor())
	assert.Equal(t, rolePollers|soon|oneMember, g.now(), "pollers poll on")
	assert.Empty(t, g.told)

	g = listed(watched)
	assert.True(t, g.driveFor())
	assert.Equal(t, rolePollers|watched|soon|resume|oneMember, g.now())
	assert.Len(t, g.told, 1)
}

// TestStateString names role and flags.
func TestStateString(t *testing.T) {
	require.Equal(t, "waiter asleep parked", (roleWaiter | asleep | parked | 3*oneMember).String())
}
