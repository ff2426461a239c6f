package netpoll

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pipe is one end of a socket pair, and the Member of the other: it counts what it is asked.
type pipe struct {
	t      *testing.T
	sock   *Socket
	fd     int // the group's
	peer   int
	driven atomic.Int64
	octets atomic.Int64
	ended  atomic.Bool // the peer has closed
	room   atomic.Int64
	flush  chan bool
	on     func(Ready) bool // in place of reading
}

func (p *pipe) Drive(r Ready) bool {
	p.driven.Add(1)
	if p.on != nil {
		return p.on(r)
	}
	if r&Out != 0 && p.sock.WantsOutput() {
		p.sock.WantOutput(false)
		p.room.Add(1)
	}
	if r&In == 0 {
		return false
	}
	var b [64]byte
	n, err := syscall.Read(p.fd, b[:])
	if err == nil && n == 0 {
		p.ended.Store(true)
	}
	if n <= 0 {
		return false
	}
	p.octets.Add(int64(n))
	return true
}

func (p *pipe) Flush(looked bool) { p.flush <- looked }

// send sends n octets to the stream.
func (p *pipe) send(n int) {
	p.t.Helper()
	_, err := syscall.Write(p.peer, make([]byte, n))
	require.NoError(p.t, err)
}

// has waits until the stream has got so many octets, whoever drives it.
func (p *pipe) has(n int64) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.octets.Load() == n }, patience, time.Millisecond)
}

// add gives g another stream.
func add(t *testing.T, g *Group) *pipe {
	p := addIdle(t, g)
	p.sock.Begin()
	return p
}

// addIdle gives g another stream that has not begun.
func addIdle(t *testing.T, g *Group) *pipe {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	p := &pipe{t: t, fd: fds[0], peer: fds[1], flush: make(chan bool, 16)}
	p.sock, err = g.Add(p.fd, p)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.sock.Remove()
		g.pollLock.Lock() // nobody drives it any more
		defer g.pollLock.Unlock()
		_ = syscall.Close(p.fd)
		_ = syscall.Close(p.peer)
	})
	return p
}

func newGroup(t *testing.T) *Group {
	g := new(Group)
	t.Cleanup(g.Close)
	return g
}

func until(t *testing.T, g *Group, s Server) {
	t.Helper()
	require.Eventually(t, func() bool { return g.Server() == s }, patience, time.Millisecond)
}

// pollersServe polls until the keeper has stepped aside.
func pollersServe(t *testing.T, g *Group) {
	t.Helper()
	require.Eventually(t, func() bool {
		for range 2 * askAfter {
			g.Drive()
		}
		return g.Server() == Nobody
	}, patience, time.Microsecond)
}

// TestKeeperServes what comes though nobody polls or waits.
func TestKeeperServes(t *testing.T) {
	g := newGroup(t)
	for range 3 {
		p := add(t, g)
		for i := range int64(3) {
			until(t, g, BackgroundPoller)
			p.send(5)
			p.has(5 * (1 + i))
		}
	}
}

// TestPollersServe: the keeper steps aside for pollers, and comes back when they have gone.
func TestPollersServe(t *testing.T) {
	for _, n := range []int{1, 3} {
		g := newGroup(t)
		var all []*pipe
		for range n {
			all = append(all, add(t, g))
		}
		pollersServe(t, g)
		for _, p := range all {
			p.send(5)
			require.Eventually(t, func() bool { g.Drive(); return p.octets.Load() == 5 }, patience, time.Microsecond)
		}
		for _, p := range all {
			p.send(5)
			p.has(10)
		}
		until(t, g, BackgroundPoller)
	}
}

// TestYieldBringsTheKeeper back at once.
func TestYieldBringsTheKeeper(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	pollersServe(t, g)
	g.Yield()
	until(t, g, BackgroundPoller)
	p.send(1)
	p.has(1)
}

// TestOutput: a stream is told of room for what the socket did not take, each time that it
// asks, though the socket has room already.
func TestOutput(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	for i := range int64(3) {
		p.sock.WantOutput(true)
		require.Eventually(t, func() bool { return p.room.Load() == 1+i }, patience, time.Millisecond)
	}
	for err := error(nil); err == nil; {
		_, err = syscall.Write(p.fd, make([]byte, 4096))
	}
	p.sock.WantOutput(true)
	done := sleep(t, g)
	for n := 1; n > 0; {
		n, _ = syscall.Read(p.peer, make([]byte, 65536))
	}
	require.Eventually(t, func() bool { return p.room.Load() == 4 }, patience, time.Millisecond)
	g.Rouse()
	get(t, done)
	g.Leave()
}

// TestPause: a stream that is paused is not driven, whatever comes, an end too.
func TestPause(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	p.send(1)
	p.has(1)
	until(t, g, BackgroundPoller)
	p.sock.Pause()
	n := p.driven.Load()
	p.send(1)
	require.NoError(t, syscall.Shutdown(p.peer, syscall.SHUT_RDWR))
	other := add(t, g)
	for range 10 { // turns of the keeper, of a waiter, of pollers
		other.send(1)
	}
	other.has(10)
	sleepOnce(t, g, other)
	for range 2 * hotRow {
		g.driveReadyNow()
	}
	require.Equal(t, n, p.driven.Load())
	p.sock.Resume()
	p.has(2)
	require.Eventually(t, p.ended.Load, patience, time.Millisecond)
	p.sock.Remove()
	p.sock.Resume() // too late
	require.False(t, p.sock.in)
}

// driveReadyNow is what a poller does that has not looked at the hot one.
func (g *Group) driveReadyNow() {
	g.pollLock.Lock()
	defer g.pollLock.Unlock()
	g.driveReady()
}

// TestSoon: a stream is driven though its socket is not ready, by whoever serves.
func TestSoon(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	soon := func() {
		t.Helper()
		n := p.driven.Load()
		p.sock.Soon()
		require.Eventually(t, func() bool { return p.driven.Load() > n }, patience, time.Millisecond)
	}
	until(t, g, BackgroundPoller)
	for range 2 { // the first of which ends a sleep
		require.Eventually(t, func() bool { return g.now().has(bgParked) }, patience, time.Millisecond)
		soon()
	}
	require.Eventually(t, g.Claim, patience, time.Millisecond)
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			g.Sleep()
		}
	}()
	until(t, g, Waiter)
	soon()
	over.Store(true)
	g.Rouse()
	get(t, done)
	g.Leave()
	pollersServe(t, g)
	soon()
	p.sock.Remove()
	n := p.driven.Load()
	p.sock.Soon()
	g.driveReadyNow()
	require.Equal(t, n, p.driven.Load(), "it is gone")
}

// TestRemove: nothing is heard of a stream that has left, though its socket is open
// elsewhere, and one that comes in its place is not taken for it.
func TestRemove(t *testing.T) {
	g := newGroup(t)
	add(t, g) // the group goes on
	p := add(t, g)
	copied, err := syscall.Dup(p.fd)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(copied) })
	p.send(1)
	p.has(1)
	require.Eventually(t, func() bool { return g.hot.Load() == p.sock }, patience, time.Microsecond)
	stale := event{Events: syscall.EPOLLIN, Fd: p.sock.slot, Pad: p.sock.gen}
	g.pollLock.Lock() // no Drive that has begun
	p.sock.Remove()
	p.sock.Remove()
	g.pollLock.Unlock()
	require.ErrorIs(t, syscall.EpollCtl(g.set.inner, syscall.EPOLL_CTL_DEL, p.fd, nil), syscall.ENOENT)
	require.Nil(t, g.hot.Load())
	p.sock.WantOutput(true)
	n := p.driven.Load()
	p.send(1)
	next := add(t, g)
	require.Equal(t, stale.slot(), next.sock.slot)
	require.NotEqual(t, stale.slot(), add(t, g).sock.slot)
	require.NotEqual(t, stale.gen(), next.sock.gen)
	next.send(1)
	next.has(1)
	require.Equal(t, n, p.driven.Load())
	g.pollLock.Lock()
	defer g.pollLock.Unlock()
	driven := next.driven.Load()
	g.ready[0] = stale
	g.drive(1)
	require.Equal(t, driven, next.driven.Load())
}

// TestHotStarvesNobody: a stream that is always busy leaves the pollers to the others.
func TestHotStarvesNobody(t *testing.T) {
	g := newGroup(t)
	hot, other := add(t, g), add(t, g)
	require.True(t, g.Claim()) // the keeper does nothing
	defer g.Leave()
	hot.on = func(Ready) bool { return true }
	hot.send(1)
	require.True(t, g.Drive())
	require.Same(t, hot.sock, g.hot.Load())
	other.send(1)
	for range 4 * hotRow {
		g.Drive()
	}
	require.EqualValues(t, 1, other.octets.Load())
}

// TestPollersMakeWay: a poller that finds the turn taken lets who has it run, who may have lost
// the processor.
func TestPollersMakeWay(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	g := newGroup(t)
	add(t, g)
	until(t, g, BackgroundPoller)
	taken, let := make(chan struct{}), make(chan struct{})
	var over atomic.Bool
	go func() {
		g.pollLock.Lock()
		close(taken)
		<-let
		for range 4 {
			runtime.Gosched() // as if its time was up
		}
		over.Store(true)
		g.pollLock.Unlock()
	}()
	<-taken
	close(let)
	for polls := 0; !over.Load() && polls < 1000; polls++ {
		g.Drive()
	}
	require.True(t, over.Load(), "a thousand polls did not let the other one go on")
}

// TestHold: what is held back goes out when the program looks, at once; a burst by itself.
func TestHold(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	for name, look := range map[string]func(){
		"a poll": func() { g.Drive() },
		"Yield":  g.Yield,
		"Claim": func() {
			require.Eventually(t, g.Claim, patience, time.Millisecond)
			g.Leave()
		},
	} {
		looks := p.sock.Looks()
		p.sock.Hold(false)
		p.sock.Hold(false)
		require.Empty(t, p.flush)
		look()
		require.Len(t, p.flush, 1, name)
		require.True(t, get(t, p.flush))
		require.NotEqual(t, looks, p.sock.Looks())
		require.False(t, g.now().has(held), "there is nothing any more")
	}
	for range 2 { // in a group that ends, and starts again
		require.Nil(t, g.back.burst, "no burst, no goroutine")
		p.sock.Hold(true)
		require.False(t, get(t, p.flush))
		p.sock.Hold(true)
		require.False(t, get(t, p.flush))
		p.sock.Remove()
		g.rest()
		p = add(t, g)
	}
}

// TestClose: who sleeps wakes, and nobody comes any more.
func TestClose(t *testing.T) {
	g := new(Group)
	p := add(t, g)
	done := sleep(t, g)
	closed := make(chan struct{})
	go func() { g.Close(); close(closed) }()
	require.False(t, get(t, done))
	g.Leave()
	get(t, closed)
	g.Close()
	require.False(t, g.Drive())
	require.False(t, g.Claim())
	_, err := g.Add(p.fd, p)
	require.ErrorIs(t, err, ErrClosed)
	new(Group).Close()
}

// TestManyPollersAndWaiters: octets come in all ways at once, and none is lost.
func TestManyPollersAndWaiters(t *testing.T) {
	const streams, each = 20, 200
	g := newGroup(t)
	var all []*pipe
	for range streams {
		all = append(all, add(t, g))
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !stop.Load() {
				g.Drive()
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				if g.Claim() {
					g.Sleep()
					g.Leave()
				}
			}
		})
	}
	for range each {
		for _, p := range all {
			p.send(1)
		}
	}
	for _, p := range all {
		p.has(each)
	}
	stop.Store(true)
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	require.Eventually(t, func() bool {
		g.Rouse() // whoever sleeps by now
		select {
		case <-over:
			return true
		default:
			return false
		}
	}, patience, time.Millisecond)
}

// TestRests: a group without sockets has no goroutines and no descriptors, though nobody
// closes it; one more socket, and it serves again.
func TestRests(t *testing.T) {
	g := new(Group)
	for range 3 {
		p := add(t, g)
		p.send(1)
		p.has(1)
		done := sleep(t, g)
		p.sock.Remove()
		require.False(t, get(t, done), "there is nothing to sleep on any more")
		g.Leave()
		require.Eventually(t, func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return !g.open
		}, patience, time.Millisecond)
		require.False(t, g.Claim())
		require.False(t, g.Drive())
		g.Yield()
	}
}
