package vitcp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// Many wait on one port, each for its discriminator, and each gets its own.
func TestManyDiscriminators(t *testing.T) {
	const n = 40
	l := listen(t, "127.0.0.1", vitcp.ListenConfig{MatchTimeout: 30 * time.Second})
	ctx := bounded(t)
	var waiting, dialing []<-chan outcome
	for i := range n {
		d := segment.Discriminator(fmt.Sprint("vi ", i))
		if i%2 == 0 { // half of them wait first, half come late
			waiting = append(waiting, accepting(ctx, l, d, vitcp.Config{Number: uint32(i)}))
		}
		dialing = append(dialing, in(func() (*vitcp.Agreed, error) {
			return vitcp.Dial(ctx, vitcp.Address{Discriminator: "me"}, at(l, d), vitcp.Config{})
		}))
		if i%2 == 1 {
			waiting = append(waiting, accepting(ctx, l, d, vitcp.Config{Number: uint32(i)}))
		}
	}
	for i := range n {
		a, p := <-dialing[i], <-waiting[i]
		require.NoError(t, a.err)
		require.NoError(t, p.err)
		assert.Equal(t, uint32(i), a.agreed.PeerNumber)
		carries(t, a.agreed.Conn, p.agreed.Conn)
		closeAll(a, p)
	}
}

// Those who wait for the same get requests in the order in which they came, and
// one request goes to one of them.
func TestWaitersTakeTurns(t *testing.T) {
	l := listen(t, "127.0.0.1", vitcp.ListenConfig{})
	ctx := bounded(t)
	first := accepting(ctx, l, "x", vitcp.Config{})
	cancelled, cancel := context.WithCancel(ctx)
	second := accepting(cancelled, l, "x", vitcp.Config{})
	cancel()
	require.ErrorIs(t, (<-second).err, context.Canceled)

	a := dialUntilMatch(ctx, at(l, "x"))
	require.NoError(t, a.err)
	p := <-first
	require.NoError(t, p.err)
	closeAll(a, p)
	_, err := vitcp.Dial(ctx, vitcp.Address{}, at(l, "x"), vitcp.Config{})
	require.ErrorIs(t, err, vitcp.ErrNoMatch, "both waiters are gone")
}

// dialUntilMatch dials until somebody waits.
func dialUntilMatch(ctx context.Context, to vitcp.Address) outcome {
	for {
		a, err := vitcp.Dial(ctx, vitcp.Address{}, to, vitcp.Config{})
		if err == nil || ctx.Err() != nil {
			return outcome{a, err}
		}
	}
}

func TestFilters(t *testing.T) {
	alice := segment.Discriminator("alice")
	for _, c := range []struct {
		name   string
		filter vitcp.Filter
		local  vitcp.Address
		match  bool
	}{
		{"anyone", vitcp.Filter{}, vitcp.Address{Discriminator: "x"}, true},
		{"the one caller", vitcp.Filter{Calling: &alice}, vitcp.Address{Discriminator: "alice"}, true},
		{"another caller", vitcp.Filter{Calling: &alice}, vitcp.Address{Discriminator: "alicf"}, false},
		{"the one host", vitcp.Filter{From: netip.MustParseAddr("127.0.0.1")}, vitcp.Address{}, true},
		{"the one host, as IPv6", vitcp.Filter{From: netip.MustParseAddr("::ffff:127.0.0.1")}, vitcp.Address{}, true},
		{"another host", vitcp.Filter{From: netip.MustParseAddr("127.0.0.2")}, vitcp.Address{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			const grace = 50 * time.Millisecond // a NoMatch has to come by itself
			timeout := 30 * time.Second
			if !c.match {
				timeout = grace
			}
			l := listen(t, "127.0.0.1", vitcp.ListenConfig{MatchTimeout: timeout})
			ctx, cancel := context.WithCancel(bounded(t))
			c.filter.Called = "bob"
			waiting := in(func() (*vitcp.Agreed, error) {
				r, err := l.Wait(ctx, c.filter)
				if err != nil {
					return nil, err
				}
				return r.Accept(ctx, vitcp.Config{})
			})
			a, err := vitcp.Dial(ctx, c.local, at(l, "bob"), vitcp.Config{})
			if c.match {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, vitcp.ErrNoMatch)
			}
			cancel()
			p := <-waiting
			assert.Equal(t, c.match, p.err == nil)
			closeAll(outcome{a, err}, p)
		})
	}
}

// refusals collects what a Listener tells of.
func refusals(cfg vitcp.ListenConfig) (vitcp.ListenConfig, <-chan error) {
	c := make(chan error, 1000)
	cfg.OnRefused = func(_ net.Addr, err error) { c <- err }
	return cfg, c
}

// A peer that connects and says nothing, or not enough, is closed after a time,
// and nobody else notices.
func TestIncomingTimeout(t *testing.T) {
	cfg, refused := refusals(vitcp.ListenConfig{IncomingTimeout: 100 * time.Millisecond, MatchTimeout: 30 * time.Second})
	l := listen(t, "127.0.0.1", cfg)
	whole := ceSegment(segment.ConnectRequest, withCRC)
	for _, n := range []int{0, 1, 23, 24, len(whole) - 1} {
		nc, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = nc.Write(whole[:n])
		require.NoError(t, err)
		_, err = nc.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err, "closed, with %d octets of a request", n)
		require.ErrorIs(t, <-refused, context.DeadlineExceeded)
		nc.Close()
	}
}

// A host that opens connections and says nothing drives out its own only.
func TestCrowd(t *testing.T) {
	cfg, refused := refusals(vitcp.ListenConfig{MaxStartups: 8, MatchTimeout: 30 * time.Second, IncomingTimeout: time.Minute})
	l := listen(t, "127.0.0.1", cfg)
	ctx := bounded(t)
	silent := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		nc, err := d.DialContext(ctx, "tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	var hostile []net.Conn
	for range 8 {
		hostile = append(hostile, silent("127.0.0.9"))
	}
	honest := silent("127.0.0.8") // takes its time
	require.ErrorIs(t, <-refused, vitcp.ErrCrowded)
	_, err := hostile[0].Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET, "the oldest of the host with the most")
	for range 30 {
		hostile = append(hostile, silent("127.0.0.9"))
		require.ErrorIs(t, <-refused, vitcp.ErrCrowded)
	}

	waiting := accepting(ctx, l, "bob", vitcp.Config{Level: segment.ReliableDelivery})
	ce := segment.CE{Attributes: segment.Attributes(0).WithLevel(segment.ReliableDelivery), MTU: 1 << 16, Called: "bob"}
	_, err = honest.Write(ce.Append(nil, segment.Header{Type: segment.ConnectRequest}))
	require.NoError(t, err)
	p := <-waiting
	require.NoError(t, p.err)
	closeAll(p)
}

// Closing ends what is pending at every point, and lets go of everything; what
// a Wait has returned stays.
func TestCloseListener(t *testing.T) {
	cfg, refused := refusals(patient)
	l := listen(t, "127.0.0.1", cfg)
	ctx := bounded(t)
	dialing := in(func() (*vitcp.Agreed, error) {
		return vitcp.Dial(ctx, vitcp.Address{}, at(l, "bob"), vitcp.Config{})
	})
	r, err := l.Wait(ctx, vitcp.Filter{Called: "bob"})
	require.NoError(t, err)

	waiting := accepting(ctx, l, "x", vitcp.Config{})
	silent, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	unmatched, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer unmatched.Close()
	_, err = unmatched.Write(ceSegment(segment.ConnectRequest, withCRC))
	require.NoError(t, err)

	require.NoError(t, l.Close())
	require.ErrorIs(t, (<-waiting).err, net.ErrClosed)
	for _, nc := range []net.Conn{silent, unmatched} {
		_, err = nc.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
	p, err := r.Accept(ctx, vitcp.Config{})
	require.NoError(t, err)
	a := <-dialing
	require.NoError(t, a.err)
	closeAll(a, outcome{p, nil})
	assert.Empty(t, refused, "a close is no news")
}

// brokenListener fails with errs.
type brokenListener struct {
	net.Listener
	errs chan error
}

func (b brokenListener) Accept() (net.Conn, error) { return nil, <-b.errs }
func (b brokenListener) Addr() net.Addr            { return &net.UnixAddr{Name: "nowhere", Net: "unix"} }
func (b brokenListener) Close() error              { return nil }

func TestListenerFails(t *testing.T) {
	cfg, refused := refusals(vitcp.ListenConfig{})
	b := brokenListener{errs: make(chan error, 3)}
	b.errs <- fmt.Errorf("accept: %w", syscall.EMFILE)
	b.errs <- fmt.Errorf("accept: %w", syscall.EPROTO)
	b.errs <- io.ErrUnexpectedEOF
	l := vitcp.NewListener(b, cfg)
	_, err := l.Wait(bounded(t), vitcp.Filter{})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorIs(t, <-refused, syscall.EMFILE)
	require.ErrorIs(t, <-refused, syscall.EPROTO)
	_, err = vitcp.Peer(bounded(t), l, vitcp.Address{}, vitcp.Address{}, vitcp.Config{})
	require.ErrorIs(t, err, vitcp.ErrInvalid, "no TCP address to compare")
	require.NoError(t, l.Close())
}
