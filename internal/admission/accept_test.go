package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// conn claims to come from an address.
type conn struct {
	net.Conn
	from net.Addr
}

func (c conn) RemoteAddr() net.Addr { return c.from }

// from is a connection from an address; the other end is dropped.
func from(ip string) net.Conn {
	a, _ := net.Pipe()
	return conn{a, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 7))}
}

func TestSources(t *testing.T) {
	for _, c := range []struct{ a, b string }{
		{"192.0.2.1", "::ffff:192.0.2.1"},
		{"2001:db8::1", "2001:db8::ffff:1"},
		{"fe80::1%eth0", "fe80::2"},
	} {
		assert.Equal(t, sourceOf(from(c.a)), sourceOf(from(c.b)))
	}
	for _, c := range []struct{ a, b string }{
		{"192.0.2.1", "192.0.2.2"},
		{"2001:db8::1", "2001:db8:0:1::1"},
		{"::1", "0.0.0.1"},
	} {
		assert.NotEqual(t, sourceOf(from(c.a)), sourceOf(from(c.b)))
	}
	for _, a := range []net.Addr{nil, &net.UnixAddr{Name: "x"}} {
		assert.Equal(t, netip.Prefix{}, sourceOf(conn{from: a}))
	}
}

// crowd enters connections, and tells who had to go.
type crowd struct {
	table
	all []*Startup
}

func (c *crowd) enter(ips ...string) {
	for _, ip := range ips {
		c.all = append(c.all, c.table.enter(context.Background(), from(ip)))
	}
}

// evicted are the indices of those that had to go.
func (c *crowd) evicted() (out []int) {
	for i, s := range c.all {
		if s.ctx.Err() != nil {
			out = append(out, i)
		}
	}
	return out
}

// end lets all go: then nothing of them is left.
func (c *crowd) end(t *testing.T) {
	for _, s := range c.all {
		was := s.state != gone
		assert.Equal(t, was, s.Leave())
		assert.False(t, s.Leave(), "twice is once")
	}
	assert.Empty(t, c.sources)
	assert.Zero(t, c.startups.Len())
	assert.Zero(t, c.queued)
}

func TestOldestOfTheMostCrowded(t *testing.T) {
	c := &crowd{table: newTable(5, 5)}
	defer c.end(t)
	c.enter("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.2", "10.0.0.3")
	assert.Empty(t, c.evicted())
	c.enter("10.0.0.4") // two have two: the older goes
	assert.Equal(t, []int{1}, c.evicted())
	c.enter("10.0.0.1")
	assert.Equal(t, []int{0, 1}, c.evicted())
	c.enter("10.0.0.5", "10.0.0.5")
	assert.Equal(t, []int{0, 1, 2, 7}, c.evicted(), "its own goes, as all others have one")
	c.enter("10.0.0.6")
	assert.Equal(t, []int{0, 1, 2, 3, 7}, c.evicted(), "all have one, and the oldest goes")
	require.ErrorIs(t, context.Cause(c.all[0].ctx), ErrCrowded)
	assert.ErrorIs(t, c.all[0].Queue(), ErrCrowded, "it has gone")
}

// A host with a few connections is not the first to go where every other has one.
func TestFewAreNoCrowd(t *testing.T) {
	c := &crowd{table: newTable(64, 64)} // of which two are no crowd
	defer c.end(t)
	for i := range 62 {
		c.enter(fmt.Sprintf("10.0.0.%d", i))
	}
	c.enter("10.1.0.0", "10.1.0.0", "10.2.0.0")
	assert.Equal(t, []int{0}, c.evicted())
	c.enter("10.1.0.0")
	assert.Equal(t, []int{0, 62}, c.evicted(), "three are")
}

// A peer in the backlog does not go, whatever comes.
func TestBacklogStays(t *testing.T) {
	c := &crowd{table: newTable(2, 8)}
	defer c.end(t)
	c.enter("10.0.0.1")
	require.NoError(t, c.all[0].Queue())
	for range 100 {
		c.enter("10.0.0.1", "10.0.0.2")
	}
	assert.NoError(t, c.all[0].ctx.Err())
	assert.Len(t, c.evicted(), 198)
	c.relieve()
	c.relieve()
	c.relieve()
	assert.Len(t, c.evicted(), 200)
}

func TestSharesOfTheBacklog(t *testing.T) {
	c := &crowd{table: newTable(100, 12)}
	defer c.end(t)
	ask := func(ip string) error {
		c.enter(ip)
		return c.all[len(c.all)-1].Queue()
	}
	fill := func(ip string) (n int) {
		for ask(ip) == nil {
			n++
		}
		return n
	}
	assert.Equal(t, 6, fill("10.0.0.1"), "half")
	assert.Equal(t, 3, fill("10.0.0.2"), "half of the rest")
	assert.Equal(t, 2, fill("10.0.0.3"))
	assert.Equal(t, 1, fill("2001:db8::1"), "one for whoever comes")
	require.ErrorIs(t, ask("10.0.0.9"), ErrCrowded, "full")
	assert.True(t, c.all[0].Leave())
	assert.ErrorIs(t, ask("10.0.0.1"), ErrCrowded, "others first")
	assert.NoError(t, ask("10.0.0.9"))
	assert.Empty(t, c.evicted())
}

// listener is a net.Listener that says what it is told to.
type listener struct {
	answers chan any // net.Conn or error
	done    chan struct{}
}

func newListener(answers ...any) *listener {
	l := &listener{make(chan any, max(len(answers), 1)), make(chan struct{})}
	for _, a := range answers {
		l.answers <- a
	}
	return l
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.answers:
		if err, ok := a.(error); ok {
			return nil, &net.OpError{Op: "accept", Err: err}
		}
		return a.(net.Conn), nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { close(l.done); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// untilGone serves a Startup of which nothing comes.
func untilGone(s *Startup) error {
	<-s.Context().Done()
	_ = s.Conn.Close()
	return context.Cause(s.Context())
}

// Errors that accept(2) says to retry end nothing.
func TestPassingErrors(t *testing.T) {
	for _, e := range append(append([]syscall.Errno{}, passes...), lacks...) {
		t.Run(e.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told, served := make(chan error, 100), make(chan net.Conn, 1)
				answers := []any{}
				for range 70 { // from the 64th on there is a pause
					answers = append(answers, e)
				}
				c := from("10.0.0.1")
				nl := newListener(append(answers, c)...)
				l := New(nl, Config{
					Failed: func(remote net.Addr, err error) { assert.Nil(t, remote); told <- err },
					Serve:  func(s *Startup) error { served <- s.Conn; return untilGone(s) },
				})
				assert.Equal(t, c, <-served)
				require.Len(t, told, 70)
				require.ErrorIs(t, <-told, e)
				require.NoError(t, l.Close())
				require.NoError(t, l.Close(), "twice is once")
				require.ErrorIs(t, context.Cause(l.Context()), net.ErrClosed)
			})
		})
	}
}

// TestPassingErrorsTakeNoRoom: more errors than there is room for connections leave room for one.
func TestPassingErrorsTakeNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []any
		for range 10 { // 2*MaxStartups + Backlog is 3
			answers = append(answers, syscall.ECONNABORTED)
		}
		served := make(chan struct{})
		l := New(newListener(append(answers, from("192.0.2.1"))...), Config{MaxStartups: 1, Backlog: 1, Serve: func(*Startup) error {
			close(served)
			return nil
		}})
		synctest.Wait()
		select {
		case <-served:
		default:
			assert.Fail(t, "the connection behind the errors is not served")
		}
		require.NoError(t, l.Close())
	})
}

func TestFatalError(t *testing.T) {
	broken := errors.New("broken")
	l := New(newListener(from("10.0.0.1"), broken), Config{Serve: untilGone})
	<-l.Context().Done()
	require.ErrorIs(t, context.Cause(l.Context()), broken)
	require.NoError(t, l.Close())
}

func TestPauses(t *testing.T) {
	assert.Zero(t, growing(-1))
	assert.Equal(t, time.Millisecond, growing(0))
	assert.Equal(t, 512*time.Millisecond, growing(9))
	assert.Equal(t, time.Second, growing(10))
	assert.Equal(t, time.Second, growing(1000))
}

// Close does not wait for the end of a pause.
func TestCloseWithinAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nl := newListener(syscall.EMFILE, syscall.EMFILE, syscall.EMFILE)
		l := New(nl, Config{Serve: untilGone})
		synctest.Wait()
		start := time.Now()
		require.NoError(t, l.Close())
		assert.Zero(t, time.Since(start))
	})
}

// When the system is short of files, silent peers give theirs up.
func TestLackTakesFromTheSilent(t *testing.T) {
	ended := make(chan error, 10)
	nl := newListener(from("10.0.0.1"), from("10.0.0.1"), syscall.EMFILE)
	l := New(nl, Config{Package: "x", Serve: untilGone, Failed: func(remote net.Addr, err error) {
		if remote != nil {
			ended <- err
		}
	}})
	err := <-ended
	require.ErrorIs(t, err, ErrCrowded)
	assert.ErrorContains(t, err, "x: connection from 10.0.0.1:7: ")
	require.NoError(t, l.Close())
	assert.Empty(t, ended, "of the other nothing is told, as the Listener closes")
}

// What had to go and takes its time to end does not let others come without end.
func TestGoroutinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, running := make(chan struct{}), make(chan struct{}, 100)
		nl := newListener()
		l := New(nl, Config{MaxStartups: 2, Backlog: 1, Serve: func(*Startup) error {
			running <- struct{}{}
			<-release
			return nil
		}})
		go func() {
			for range 20 {
				nl.answers <- from("10.0.0.1")
			}
		}()
		synctest.Wait()
		assert.Len(t, running, 5)
		close(release)
		synctest.Wait()
		assert.Len(t, running, 20)
		require.NoError(t, l.Close())
	})
}
