package netpoll

import (
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
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
	until(t, g, BackgroundPoller)
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
		until(t, g, BackgroundPoller)
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

// TestToldAnew: who sleeps is told of a socket that a stream waits for again, though it was
// ready before, and is on the list of the system from a look: nothing else tells of it. So it is
// of room that is asked for twice: a Drive may leave something, and report that nothing was done,
// though the socket took it all.
func TestToldAnew(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	require.True(t, g.Claim()) // nobody looks
	defer g.Leave()
	outer, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	require.NoError(t, err)
	defer func() { _ = syscall.Close(outer) }()
	const onEdge = 1 << 31
	require.NoError(t, syscall.EpollCtl(outer, syscall.EPOLL_CTL_ADD, g.set.inner, &syscall.EpollEvent{Events: syscall.EPOLLIN | onEdge}))
	told := func() int {
		n, err := syscall.EpollWait(outer, make([]syscall.EpollEvent, 1), 0)
		require.NoError(t, err)
		return n
	}
	require.Zero(t, told())
	p.send(1)
	require.Equal(t, 1, told())
	require.Zero(t, told())
	var ready [readyAtOnce]event
	for range 3 {
		require.Equal(t, 1, g.set.wait(ready[:]))
		require.Zero(t, told())
		p.sock.WantOutput(true)
		require.Equal(t, 1, told(), "of room")
		require.Equal(t, 1, g.set.wait(ready[:]))
		p.sock.WantOutput(true)
		require.Equal(t, 1, told(), "of room, once more")
		p.sock.WantOutput(false)
		require.Zero(t, told())
		require.Equal(t, 1, g.set.wait(ready[:]))
		p.sock.Pause()
		p.sock.Resume()
		require.Equal(t, 1, told(), "of octets")
	}
	require.NoError(t, syscall.Shutdown(p.peer, syscall.SHUT_RDWR))
	p.sock.Pause()
	require.Equal(t, 1, g.set.wait(ready[:]), "of the end")
	require.Zero(t, g.set.wait(ready[:]), "once")
}

// TestPausedIsNotHot: pollers leave the one that was active last alone while it is paused.
func TestPausedIsNotHot(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	require.True(t, g.Claim())
	defer g.Leave()
	p.send(1)
	require.True(t, g.Drive())
	require.Same(t, p.sock, g.hot.Load())
	p.sock.Pause()
	p.send(1)
	for range 2 * hotRow {
		require.False(t, g.Drive())
	}
	require.EqualValues(t, 1, p.driven.Load())
	p.sock.Resume()
	require.True(t, g.Drive())
	require.EqualValues(t, 2, p.octets.Load())
}

// TestLost: a stream is told that the system cannot watch its socket any more.
func TestLost(t *testing.T) {
	g := newGroup(t)
	p := add(t, g)
	until(t, g, BackgroundPoller)
	lost := make(chan Ready, 1)
	g.pollLock.Lock()
	p.on = func(r Ready) bool { lost <- r; return true }
	g.pollLock.Unlock()
	null, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(null, p.fd, syscall.O_CLOEXEC)) // a set takes no such file
	require.NoError(t, syscall.Close(null))
	p.sock.WantOutput(true)
	require.NotZero(t, get(t, lost)&Lost)
	p.sock.Pause()
	p.sock.Resume() // it changes nothing
	require.False(t, g.now().has(soon))
}

// TestSoonOfOneThatGoes: it is not driven, by nobody, though it was to be.
func TestSoonOfOneThatGoes(t *testing.T) {
	g := newGroup(t)
	p, last := add(t, g), add(t, g)
	func() {
		g.pollLock.Lock()
		defer g.pollLock.Unlock()
		p.sock.Soon()
		p.sock.Soon()
		require.Len(t, g.soon, 1)
		require.True(t, g.now().has(soon))
		p.sock.Remove()
		g.advance(false)
		require.Zero(t, p.driven.Load())
		require.False(t, g.now().has(soon))
		last.sock.Soon()
		last.sock.Remove()
	}()
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return !g.open
	}, patience, time.Millisecond)
	require.Zero(t, last.driven.Load())
	require.False(t, g.now().has(soon))
	require.Empty(t, g.soon)
}

// TestReadyInTurn: of more sockets that are always ready than one look tells of, each is driven
// as often as any other.
func TestReadyInTurn(t *testing.T) {
	g := newGroup(t)
	var all []*pipe
	for range 4 * readyAtOnce {
		all = append(all, add(t, g))
	}
	require.True(t, g.Claim())
	defer g.Leave()
	for _, p := range all {
		p.on = func(Ready) bool { return true }
		p.send(1)
	}
	const rounds = 5
	for range rounds * len(all) / readyAtOnce {
		g.driveReadyNow()
	}
	for i, p := range all {
		require.EqualValues(t, rounds, p.driven.Load(), "%d", i)
	}
}

// TestFruitless: of many sockets that are ready, and of which nothing comes, each look tells
// others, and who sleeps has looked at all: nothing wakes it again.
func TestFruitless(t *testing.T) {
	for _, n := range []int{readyAtOnce - 1, readyAtOnce, readyAtOnce + 1, 4 * readyAtOnce} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			g := newGroup(t)
			last := add(t, g)
			var others []*pipe
			for range n {
				others = append(others, add(t, g))
			}
			require.True(t, g.Claim())
			defer g.Leave()
			for _, p := range others {
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

// TestConnLeaves the set before its descriptor is closed, or is the runtime's again: the set
// would keep a socket that somebody else has open.
func TestConnLeaves(t *testing.T) {
	for name, end := range map[string]func(*Conn){
		"Close":  func(c *Conn) { require.NoError(t, c.Close()) },
		"Settle": func(c *Conn) { c.HandToRuntime(); t.Cleanup(func() { _ = c.Close() }) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t)
			stays := add(t, g)
			mine, theirs, err := rawpeer.Pair()
			require.NoError(t, err)
			defer func() { _, _ = mine.Close(), theirs.Close() }()
			c, err := Own(mine, nil)
			require.NoError(t, err)
			sock, err := c.Join(g, stays)
			require.NoError(t, err)
			require.True(t, g.Claim())
			defer g.Leave()
			sock.Begin()
			end(c)
			_, err = theirs.Write([]byte("x"))
			require.NoError(t, err)
			rc, err := mine.(*net.TCPConn).SyscallConn()
			require.NoError(t, err)
			told := -1
			require.NoError(t, rc.Read(func(fd uintptr) bool { // it is open here, and has something to read
				if n, _, _ := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT); n != 1 {
					return false
				}
				told = g.set.wait(make([]event, 1))
				return true
			}))
			require.Zero(t, told)
		})
	}
}
