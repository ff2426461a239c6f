package vitcp_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// peers lets two ends call Peer on each other.
func peers(t testing.TB, ctx context.Context, a, b *vitcp.Listener, ac, bc vitcp.Config, aFirst bool) (outcome, outcome) {
	call := func(l, other *vitcp.Listener, me, you segment.Discriminator, cfg vitcp.Config) <-chan outcome {
		return in(func() (*vitcp.Agreed, error) {
			return vitcp.Peer(ctx, l, vitcp.Address{Discriminator: me}, at(other, you), cfg)
		})
	}
	if aFirst {
		x := call(a, b, "a", "b", ac)
		y := call(b, a, "b", "a", bc)
		return <-x, <-y
	}
	y := call(b, a, "b", "a", bc)
	x := call(a, b, "a", "b", ac)
	return <-x, <-y
}

// The higher address is the active end, whoever calls first; 127.0.0.10 is
// higher than 127.0.0.9 as a number, and lower as a string.
func TestPeerHigherAddressIsActive(t *testing.T) {
	for _, hosts := range [][2]string{{"127.0.0.2", "127.0.0.1"}, {"127.0.0.10", "127.0.0.9"}, {"127.1.0.0", "127.0.255.255"}} {
		for _, aFirst := range []bool{true, false} {
			a, b := listen(t, hosts[0], vitcp.ListenConfig{}), listen(t, hosts[1], vitcp.ListenConfig{})
			x, y := peers(t, bounded(t), a, b, vitcp.Config{MTU: 1 << 16, Number: 1}, vitcp.Config{CRC: true, Number: 2}, aFirst)
			require.NoError(t, x.err)
			require.NoError(t, y.err)
			assert.True(t, x.agreed.Active, "%v", hosts)
			assert.False(t, y.agreed.Active, "%v", hosts)
			assert.NotZero(t, x.agreed.Local&x.agreed.Peer&segment.PeerToPeer)
			assert.Equal(t, uint32(1<<16), y.agreed.MTU)
			assert.Equal(t, segment.Discriminator("a"), y.agreed.PeerDiscriminator)
			assert.Equal(t, netip.MustParseAddrPort(y.agreed.Conn.RemoteAddr().String()).Addr().String(), hosts[0])
			carries(t, x.agreed.Conn, y.agreed.Conn)
			closeAll(x, y)
		}
	}
}

// On one address the ports decide, and on one Listener the discriminators.
func TestPeerOnOneHost(t *testing.T) {
	a, b := listen(t, "127.0.0.1", vitcp.ListenConfig{}), listen(t, "127.0.0.1", vitcp.ListenConfig{})
	x, y := peers(t, bounded(t), a, b, vitcp.Config{}, vitcp.Config{}, true)
	require.NoError(t, x.err)
	require.NoError(t, y.err)
	higher := at(a, "").Host.Port() > at(b, "").Host.Port()
	assert.Equal(t, higher, x.agreed.Active)
	assert.Equal(t, !higher, y.agreed.Active)
	closeAll(x, y)

	x, y = peers(t, bounded(t), a, a, vitcp.Config{}, vitcp.Config{}, true)
	require.NoError(t, x.err)
	require.NoError(t, y.err)
	assert.False(t, x.agreed.Active)
	assert.True(t, y.agreed.Active)
	closeAll(x, y)

	_, err := vitcp.Peer(bounded(t), a, vitcp.Address{Discriminator: "x"}, at(a, "x"), vitcp.Config{})
	assert.ErrorIs(t, err, vitcp.ErrInvalid)
}

// The address of a Listener on all addresses is the one that reaches the peer.
func TestPeerFindsItsAddress(t *testing.T) {
	a, b := listen(t, "0.0.0.0", vitcp.ListenConfig{}), listen(t, "127.0.0.77", vitcp.ListenConfig{})
	ctx := bounded(t)
	y := in(func() (*vitcp.Agreed, error) {
		remote := vitcp.Address{Host: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at(a, "").Host.Port()), Discriminator: "a"}
		return vitcp.Peer(ctx, b, vitcp.Address{Discriminator: "b"}, remote, vitcp.Config{})
	})
	agr, err := vitcp.Peer(ctx, a, vitcp.Address{Discriminator: "a"}, at(b, "b"), vitcp.Config{})
	require.NoError(t, err)
	assert.False(t, agr.Active)
	closeAll(outcome{agr, nil}, <-y)
}

// Until the other end calls, there is no match; that goes on until the timeout.
func TestPeerRetriesNoMatch(t *testing.T) {
	cfg, refused := refusals(vitcp.ListenConfig{})
	a, b := listen(t, "127.0.0.2", vitcp.ListenConfig{}), listen(t, "127.0.0.1", cfg)
	ctx := bounded(t)
	x := in(func() (*vitcp.Agreed, error) {
		return vitcp.Peer(ctx, a, vitcp.Address{Discriminator: "a"}, at(b, "b"), vitcp.Config{})
	})
	for range 3 {
		require.ErrorIs(t, <-refused, vitcp.ErrNoMatch)
	}
	agr, err := vitcp.Peer(ctx, b, vitcp.Address{Discriminator: "b"}, at(a, "a"), vitcp.Config{})
	require.NoError(t, err)
	closeAll(outcome{agr, nil}, <-x)

	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = vitcp.Peer(short, a, vitcp.Address{Discriminator: "a"}, at(b, "b"), vitcp.Config{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	short, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = vitcp.Peer(short, b, vitcp.Address{Discriminator: "b"}, at(a, "a"), vitcp.Config{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// Levels that differ end it for both, each with the reason.
func TestPeerMismatch(t *testing.T) {
	a, b := listen(t, "127.0.0.2", vitcp.ListenConfig{}), listen(t, "127.0.0.1", vitcp.ListenConfig{})
	x, y := peers(t, bounded(t), a, b, vitcp.Config{}, vitcp.Config{Level: segment.ReliableDelivery}, true)
	rejected(t, x.err, vitcp.ReasonLevel)
	mismatch(t, y.err, vitcp.ReasonLevel)

	_, err := vitcp.Peer(bounded(t), a, vitcp.Address{}, at(b, "b"), vitcp.Config{Level: 9})
	require.ErrorIs(t, err, vitcp.ErrInvalid)
	_, err = vitcp.Peer(bounded(t), a, vitcp.Address{}, vitcp.Address{}, vitcp.Config{})
	require.ErrorIs(t, err, vitcp.ErrInvalid)
}

// The passive end takes the one peer that it was called for, and a client that
// is no peer is rejected.
func TestPeerIgnoresOthers(t *testing.T) {
	cfg, refused := refusals(vitcp.ListenConfig{})
	a, b := listen(t, "127.0.0.2", vitcp.ListenConfig{}), listen(t, "127.0.0.1", cfg)
	ctx := bounded(t)
	y := in(func() (*vitcp.Agreed, error) {
		return vitcp.Peer(ctx, b, vitcp.Address{Discriminator: "b"}, at(a, "a"), vitcp.Config{})
	})
	client := vitcp.Address{Host: netip.MustParseAddrPort("127.0.0.2:0"), Discriminator: "a"}
	for {
		_, err := vitcp.Dial(ctx, client, at(b, "b"), vitcp.Config{})
		if told := <-refused; errors.Is(told, vitcp.ErrNoMatch) != errors.Is(err, vitcp.ErrNoMatch) {
			t.Fatal(told, err)
		}
		if !errors.Is(err, vitcp.ErrNoMatch) { // it has begun to wait
			rejected(t, err, vitcp.ReasonPeerToPeer)
			break
		}
	}
	for _, from := range []vitcp.Address{
		{Host: netip.MustParseAddrPort("127.0.0.3:0"), Discriminator: "a"},
		{Host: netip.MustParseAddrPort("127.0.0.2:0"), Discriminator: "z"},
	} {
		_, err := vitcp.Dial(ctx, from, at(b, "b"), vitcp.Config{})
		assert.ErrorIs(t, err, vitcp.ErrNoMatch, "%v", from)
	}
	agr, err := vitcp.Peer(ctx, a, vitcp.Address{Discriminator: "a"}, at(b, "b"), vitcp.Config{})
	require.NoError(t, err)
	closeAll(outcome{agr, nil}, <-y)
}

// Numbers compare, whatever form an address has.
func TestPeerAddressFamilies(t *testing.T) {
	six, err := net.Listen("tcp", "[::1]:0")
	if err != nil { // a machine without IPv6
		six, err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
	}
	b := vitcp.NewListener(six, vitcp.ListenConfig{})
	defer b.Close()
	x, y := peers(t, bounded(t), b, b, vitcp.Config{}, vitcp.Config{}, false)
	require.NoError(t, x.err)
	require.NoError(t, y.err)
	closeAll(x, y)
}
