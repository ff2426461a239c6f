package netpoll

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// get is what comes from c.
func get[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		require.Fail(t, "nothing comes")
	}
	return v
}

// slept is what Sleep returns.
func slept(t *testing.T, g *Group) bool {
	t.Helper()
	done := make(chan bool, 1)
	go func() { done <- g.Sleep() }()
	return get(t, done)
}

// sleep claims, and sleeps until something has been driven or somebody rouses.
func sleep(t *testing.T, g *Group) <-chan bool {
	t.Helper()
	require.Eventually(t, g.Claim, patience, time.Millisecond)
	done := make(chan bool, 1)
	go func() { done <- g.Sleep() }()
	until(t, g, Waiter)
	return done
}

// TestWaiterServes: an arrival wakes who sleeps, for several in a row and with many ready at
// once, and when he has gone the keeper serves.
func TestWaiterServes(t *testing.T) {
	for _, n := range []int{1, crowd - 1, crowd, 3 * readyAtOnce} {
		g := newGroup(t)
		var all []*pipe
		for range n {
			all = append(all, add(t, g))
		}
		got := func() (sum int64) {
			for _, p := range all {
				sum += p.octets.Load()
			}
			return sum
		}
		require.Eventually(t, g.Claim, patience, time.Millisecond)
		for round := range int64(3) {
			for _, p := range all {
				p.send(5)
			}
			for got() < 5*int64(n)*(round+1) {
				require.True(t, slept(t, g))
			}
		}
		g.Leave()
		for _, p := range all {
			p.send(5)
			p.has(20)
		}
	}
}

// TestOneSleeps: a second one is told that it cannot, until the first has left.
func TestOneSleeps(t *testing.T) {
	g := newGroup(t)
	assert.False(t, g.Claim(), "there is nothing to sleep on")
	p := add(t, g)
	done := sleep(t, g)
	require.False(t, g.Claim())
	p.send(1)
	require.True(t, get(t, done))
	require.False(t, g.Claim())
	g.Leave()
	require.True(t, g.Claim())
	g.Leave()
}

// TestRouse ends a sleep, and the next one if it comes first.
func TestRouse(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	done := sleep(t, g)
	g.Rouse()
	require.True(t, get(t, done))
	g.Rouse()
	require.True(t, slept(t, g))
	p.send(1)
	for tries := 0; p.octets.Load() == 0; tries++ { // what roused before is forgotten
		require.Less(t, tries, 100)
		require.True(t, slept(t, g))
	}
	g.Leave()
}

// TestLeave: the keeper, which relies on the sleeper and has no timer any more, is told when
// that one leaves, whether somebody else waits or not.
func TestLeave(t *testing.T) {
	for _, awaited := range []bool{false, true} {
		g, other, q := newGroup(t), new(queue), new(queue)
		g.Serve(other)
		g.Serve(q)
		p := add(t, g)
		until(t, g, BackgroundPoller) // it steps aside for the sleeper
		done := sleep(t, g)
		require.Eventually(t, func() bool { return g.now().has(relies) }, patience, time.Millisecond)
		q.awaited.Store(awaited)
		require.Equal(t, awaited, g.awaited(), "whichever of the queues it is")
		g.Rouse()
		require.True(t, get(t, done))
		g.Leave()
		p.send(1)
		p.has(1)
		g.Forget(q)
		require.False(t, g.awaited())
		g.Forget(other)
	}
}

func sleepOnce(t *testing.T, g *Group, p *pipe) {
	t.Helper()
	done := sleep(t, g)
	p.send(1)
	require.True(t, get(t, done))
	g.Leave()
}

// TestUnarmed: who sleeps is served also if the system has no place in the outer set.
func TestUnarmed(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	pollersServe(t, g)
	g.mu.Lock()
	g.set.detach()
	e := syscall.EpollEvent{Fd: int32(g.set.inner)}
	require.NoError(t, syscall.EpollCtl(g.set.fd, syscall.EPOLL_CTL_ADD, g.set.inner, &e)) // it cannot be added again
	g.mu.Unlock()
	sleepOnce(t, g, p)
	g.Yield()
	p.send(1)
	p.has(2)
}

// TestSleepOfTheLast: who is roused while it looks, because the last stream goes, is told that
// there is nothing to sleep on.
func TestSleepOfTheLast(t *testing.T) {
	for _, got := range []bool{true, false} {
		g := newGroup(t)
		p := add(t, g)
		require.True(t, g.Claim())
		p.on = func(Ready) bool { p.sock.Remove(); g.Rouse(); return got }
		p.send(1)
		can := slept(t, g)
		g.Leave()
		require.False(t, can)
	}
}

// TestRouseOfItself: what a sleeper drives may rouse it, while it looks. That ends the sleep,
// whether or not there was something, and leaves nothing behind for the next one.
func TestRouseOfItself(t *testing.T) {
	for _, got := range []bool{true, false} {
		g := newGroup(t)
		p := add(t, g)
		require.True(t, g.Claim())
		g.hot.Store(p.sock)
		p.on = func(Ready) bool { g.Rouse(); return got }
		require.True(t, slept(t, g))
		err := g.set.raw.Read(func(uintptr) bool { return true })
		g.Leave()
		require.NoError(t, err)
	}
}

// TestLookAfterArming: what comes before the set is armed told nobody, so the last look is
// behind that.
func TestLookAfterArming(t *testing.T) {
	g := newGroup(t)
	p, other := add(t, g), add(t, g)
	require.True(t, g.Claim())
	defer g.Leave()
	p.on = func(Ready) bool {
		if p.driven.Load() == 1 {
			other.send(1)
		}
		return false
	}
	g.mu.Lock()
	g.set.disarm()
	g.mu.Unlock()
	p.send(1)
	require.True(t, g.trySleep())
	require.EqualValues(t, 1, other.octets.Load())
	require.False(t, g.trySleep())
	require.True(t, g.set.armed)
}

// TestUndisturbed: the keeper takes the set from the runtime while pollers serve, and never
// while a waiter may be asleep.
func TestUndisturbed(t *testing.T) {
	g := newGroup(t)
	add(t, g)
	require.True(t, g.Claim())
	require.False(t, g.trySleep())
	g.undisturbed()
	require.True(t, g.set.armed)
	g.Leave()
	pollersServe(t, g)
	require.Eventually(t, func() bool {
		g.Drive()
		g.mu.Lock()
		defer g.mu.Unlock()
		return !g.set.armed && g.set.detached
	}, patience, time.Microsecond)
}

// TestQuiet: the system keeps to itself what arrives at a stream that pollers read, as long as
// it is alone, has nothing to ask the set for, and nobody is about to sleep.
func TestQuiet(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	mark := func() int {
		n, err := syscall.GetsockoptInt(p.fd, syscall.SOL_SOCKET, syscall.SO_RCVLOWAT)
		require.NoError(t, err)
		return n
	}
	for what, end := range map[string]func(){
		"sleep":  func() { require.True(t, g.Claim()); g.trySleep(); g.trySleep(); g.Leave() },
		"output": func() { p.sock.WantOutput(true); p.sock.WantOutput(false) },
		"pause":  func() { p.sock.Pause(); p.sock.Resume() },
		"other":  func() { add(t, g).sock.Remove() },
	} {
		pollersServe(t, g)
		p.send(1)
		require.Eventually(t, func() bool {
			g.Drive()
			g.undisturbed()
			return mark() == lowWater
		}, patience, time.Microsecond, what)
		n := p.octets.Load()
		p.send(1)
		require.Eventually(t, func() bool { g.Drive(); return p.octets.Load() == n+1 }, patience, time.Microsecond, what)
		p.send(1)
		end()
		require.Equal(t, 1, mark(), what)
		require.Eventually(t, func() bool { // the set tells of what came before
			g.pollLock.Lock()
			defer g.pollLock.Unlock()
			g.driveReady()
			return p.octets.Load() == n+2
		}, patience, time.Microsecond, what)
	}
	other := add(t, g)
	other.send(1)
	other.has(1)
	g.mu.Lock()
	g.hot.Store(p.sock)
	g.mu.Unlock()
	g.undisturbed()
	require.Equal(t, 1, mark(), "not alone")
}
