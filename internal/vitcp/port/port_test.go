//go:build linux

package port

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	leakcheck.Main(m)
}

// long is how long a test waits for what has to come; with a fault on purpose (conformance/mutants), not as long.
var long = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("SOFTRNIC_PATIENCE")); err == nil {
		return d
	}
	return time.Minute
}()

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	t.Cleanup(cancel)
	return ctx
}

// hosts counts addresses, so that no two tests, of whatever process, meet at one.
var hosts atomic.Uint32

// unused is an address of this host and a port that nobody else uses, with a folder for its sockets.
func unused(t *testing.T) netip.AddrPort {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	pid, n := os.Getpid(), hosts.Add(1)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(100 + n%100), byte(pid >> 8), byte(pid)}), vitcp.DefaultPort)
}

// process is one of several that a test plays.
func process() *Ports { return NewPorts(long) }

// open opens a port of a process, and closes it in the end.
func open(t *testing.T, ps *Ports, at netip.AddrPort) *Use {
	t.Helper()
	u, err := ps.Open(t.Context(), at, Config{MatchTimeout: long, Failed: func(err error) { t.Log("told:", err) }})
	require.NoError(t, err)
	t.Cleanup(u.Close)
	return u
}

// got is what a Wait has come to.
type got struct {
	r   *vitcp.Pending
	err error
}

func waiting4(ctx context.Context, u *Use, called segment.Discriminator) <-chan got {
	c := make(chan got, 1)
	go func() {
		r, err := u.Wait(ctx, vitcp.Filter{Called: called})
		c <- got{r, err}
	}()
	return c
}

// dialled is what a dial has come to.
type dialled struct {
	a   *vitcp.Agreed
	err error
}

func dialling(ctx context.Context, at netip.AddrPort, called segment.Discriminator) <-chan dialled {
	c := make(chan dialled, 1)
	go func() {
		a, err := vitcp.Dial(ctx, vitcp.Address{Discriminator: "client"}, vitcp.Address{Host: at, Discriminator: called}, vitcp.Config{})
		c <- dialled{a, err}
	}()
	return c
}

// link is an established connection.
type link struct{ client, server net.Conn }

// links accepts what w has found, for what d dials.
func links(t *testing.T, w <-chan got, d <-chan dialled) link {
	t.Helper()
	g := <-w
	require.NoError(t, g.err)
	b, err := g.r.Accept(t.Context(), vitcp.Config{})
	require.NoError(t, err)
	a := <-d
	require.NoError(t, a.err)
	t.Cleanup(func() { _ = a.a.Conn.Close(); _ = b.Conn.Close() })
	return link{a.a.Conn, b.Conn}
}

// connects has u wait for a discriminator, and somebody dial it.
func connects(t *testing.T, u *Use, called segment.Discriminator) link {
	t.Helper()
	ctx := bounded(t)
	w := waiting4(ctx, u, called)
	return links(t, w, dialling(ctx, netip.MustParseAddrPort(u.Addr().String()), called))
}

// carries sends octets both ways.
func (l link) carries(t *testing.T) {
	t.Helper()
	for i, c := range []struct{ from, to net.Conn }{{l.client, l.server}, {l.server, l.client}} {
		text := fmt.Sprint("octets ", i)
		_, err := c.from.Write([]byte(text))
		require.NoError(t, err)
		b := make([]byte, len(text))
		_, err = c.to.Read(b)
		require.NoError(t, err)
		assert.Equal(t, text, string(b))
	}
}

// TestOneProcess: two Nics of a process share a port, and one of them may go.
func TestOneProcess(t *testing.T) {
	at, ps := unused(t), process()
	a, b := open(t, ps, at), open(t, ps, at)
	la, lb := connects(t, a, "a"), connects(t, b, "b")
	la.carries(t)
	waited := waiting4(bounded(t), a, "a")
	a.Close()
	require.ErrorIs(t, (<-waited).err, net.ErrClosed)
	lb.carries(t)
	connects(t, b, "b").carries(t)
	b.Close()
	c := open(t, ps, at)
	connects(t, c, "c").carries(t)
	la.carries(t)
}

// TestProcesses: each has its own discriminators at one port, and its own connections.
func TestProcesses(t *testing.T) {
	at := unused(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close what was forgotten
	ledger := leakcheck.Open(t)
	var all []*Use
	for range 3 {
		u, err := process().Open(t.Context(), at, Config{MatchTimeout: long})
		require.NoError(t, err)
		all = append(all, u)
	}
	var made []link
	for round := range 3 {
		for i, u := range all {
			made = append(made, connects(t, u, segment.Discriminator(fmt.Sprint(round, " ", i))))
		}
	}
	for _, l := range made {
		l.carries(t)
	}
	// A request that comes before its Wait is held by the one that accepts, and is whole where it arrives.
	ctx := bounded(t)
	early := dialling(ctx, at, "early")
	held(t, all[0], 1)
	made = append(made, links(t, waiting4(ctx, all[2], "early"), early))

	for i, u := range all { // the one that accepts first: another one follows it
		made = append(made, connects(t, u, "last"))
		u.Close()
		if i+1 < len(all) {
			made = append(made, connects(t, all[i+1], "next"))
		}
	}
	for _, l := range made {
		l.carries(t)
		_, _ = l.client.Close(), l.server.Close()
	}
	ledger.Settle()
	left, err := os.ReadDir(os.Getenv("XDG_RUNTIME_DIR") + "/softrnic")
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing but the lock")
}

// TestNumbersComeBack: a Wait that has ended at a process that does not accept is over at the one that does, which gives
// its number back. Else each costs one of those that there may be.
func TestNumbersComeBack(t *testing.T) {
	at := unused(t)
	open(t, process(), at)
	u := open(t, process(), at)
	connects(t, u, "u").carries(t) // the session has begun
	for range 3 {
		ctx, cancel := context.WithCancel(bounded(t))
		w := waiting4(ctx, u, "nobody")
		require.Eventually(t, func() bool { return u.s.waiting() == 1 }, long, time.Millisecond)
		cancel()
		require.ErrorIs(t, (<-w).err, context.Canceled)
	}
	require.Eventually(t, func() bool {
		u.s.mu.Lock()
		defer u.s.mu.Unlock()
		return len(u.s.member.leaving) == 0
	}, long, time.Millisecond, "Waits whose numbers are not back")
}

// held waits until the process of u holds n requests for a Wait.
func held(t *testing.T, u *Use, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return u.s.l.Held() == n }, long, time.Millisecond)
}
