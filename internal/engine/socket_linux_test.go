package engine

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fill makes the socket one that takes no more.
func (p *pipe) fill() {
	for err := error(nil); err == nil; {
		_, err = syscall.Write(p.fd, make([]byte, 4096))
	}
}

// drain reads what fill has sent.
func (p *pipe) drain() {
	for n := 1; n > 0; {
		n, _ = syscall.Read(p.peer, make([]byte, 65536))
	}
}

// looks are turns of a keeper, of pollers and of a waiter, at each of the sockets.
func looks(g *Group) {
	for range 2 * hotRow {
		g.look()
		g.Drive()
	}
}

// TestNotBegun: nothing is heard of a stream that has not begun, a failure neither, and all
// that has come when it begins.
func TestNotBegun(t *testing.T) {
	g := newGroup(t)
	other := add(t, g)
	p := addIdle(t, g)
	p.send(1)
	require.NoError(t, syscall.Shutdown(p.peer, syscall.SHUT_RDWR))
	p.sock.WantOutput(true)
	other.send(1)
	other.has(1)
	looks(g)
	require.Zero(t, p.driven.Load())
	until(t, g, Keeper)
	p.sock.Begin()
	p.has(1)
	require.Eventually(t, p.ended.Load, patience, time.Millisecond)
}

// TestOutputWhilePaused: a stream that is paused is told of room all the same, and of nothing
// to read.
func TestOutputWhilePaused(t *testing.T) {
	for _, first := range []bool{true, false} { // it wants room
		g := newGroup(t)
		p := add(t, g)
		until(t, g, Keeper)
		p.fill()
		if first {
			p.sock.WantOutput(true)
		}
		p.sock.Pause()
		p.send(1)
		if !first {
			p.sock.WantOutput(true)
		}
		looks(g)
		require.Zero(t, p.room.Load())
		p.drain()
		require.Eventually(t, func() bool { return p.room.Load() == 1 }, patience, time.Millisecond)
		looks(g)
		require.Zero(t, p.octets.Load())
		p.sock.Resume()
		p.has(1)
	}
}

// TestResumeWakes who sleeps: the socket has been ready all the time, and is on the list of
// the system from a look before.
func TestResumeWakes(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	for i := range int64(3) {
		g.turn.Lock()
		p.send(1)
		var ready [readyAtOnce]event
		require.Equal(t, 1, g.set.wait(ready[:]))
		p.sock.Pause()
		g.turn.Unlock()
		until(t, g, Keeper)
		p.sock.Resume()
		p.has(1 + i)
	}
}

// TestLost: a stream is told that the system cannot watch its socket any more.
func TestLost(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	until(t, g, Keeper)
	lost := make(chan Ready, 1)
	g.turn.Lock()
	p.on = func(r Ready) bool { lost <- r; return true }
	g.turn.Unlock()
	null, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(null, p.fd, syscall.O_CLOEXEC)) // a set takes no such file
	require.NoError(t, syscall.Close(null))
	p.sock.WantOutput(true)
	select {
	case r := <-lost:
		require.NotZero(t, r&Lost)
	case <-time.After(patience):
		require.Fail(t, "it is not told")
	}
	p.sock.Pause()
	p.sock.Resume() // it changes nothing
	require.Zero(t, g.pending.Load())
}

// TestSoonOfOneThatGoes: it is not driven, by nobody, though it was to be.
func TestSoonOfOneThatGoes(t *testing.T) {
	g := newGroup(t)
	p, last := add(t, g), add(t, g)
	func() {
		g.turn.Lock()
		defer g.turn.Unlock()
		p.sock.Soon()
		p.sock.Soon()
		require.EqualValues(t, 1, g.pending.Load())
		p.sock.Remove()
		g.advance(false)
		require.Zero(t, p.driven.Load())
		require.Zero(t, g.pending.Load())
		last.sock.Soon()
		last.sock.Remove()
	}()
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return !g.open
	}, patience, time.Millisecond)
	require.Zero(t, last.driven.Load())
	require.Zero(t, g.pending.Load())
	require.Empty(t, g.soon)
}

// TestFruitless: of many sockets that are ready, and of which nothing comes, each look tells
// others, and who sleeps has looked at all: nothing wakes it again.
func TestFruitless(t *testing.T) {
	for _, n := range []int{readyAtOnce - 1, readyAtOnce, readyAtOnce + 1, 4 * readyAtOnce} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			g := newGroup(t)
			last := add(t, g)
			require.True(t, g.Claim())
			defer g.Leave()
			for range n {
				p := add(t, g)
				p.on = func(Ready) bool { return false }
				p.send(1)
			}
			last.send(1)
			for g.trySleep() {
			}
			require.EqualValues(t, 1, last.octets.Load())
		})
	}
}

// TestClosedSet: what a stream wants of a group that is closed does not reach another set,
// which has the descriptor's number by now.
func TestClosedSet(t *testing.T) {
	g := new(Group)
	p := add(t, g)
	was := g.set.inner
	g.Close()
	inner, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	require.NoError(t, err)
	if inner != was {
		require.NoError(t, syscall.Dup3(inner, was, syscall.O_CLOEXEC))
		require.NoError(t, syscall.Close(inner))
	}
	defer func() { _ = syscall.Close(was) }()
	p.sock.WantOutput(true)
	p.sock.Pause()
	p.sock.Resume()
	require.ErrorIs(t, syscall.EpollCtl(was, syscall.EPOLL_CTL_DEL, p.fd, nil), syscall.ENOENT)
}
