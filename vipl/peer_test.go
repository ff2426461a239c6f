package vipl

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPeerToPeer is chapter 4 of the VI/TCP draft.
func TestPeerToPeer(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{})
	v, w := a.vi(ServiceReliableDelivery, nil, nil), b.vi(ServiceReliableDelivery, nil, nil)
	_, err := v.ConnectPeerDone()
	require.ErrorIs(t, err, ErrInvalidParameter)
	_, err = v.ConnectPeerWait(t.Context())
	require.ErrorIs(t, err, ErrInvalidParameter)

	require.NoError(t, v.ConnectPeerRequest(within(t), a.address("v"), b.address("w")))
	require.Equal(t, StateConnectPending, state(t, v))
	require.ErrorIs(t, v.ConnectPeerRequest(within(t), a.address("v"), b.address("w")), ErrInvalidParameter)
	_, err = v.ConnectPeerDone()
	require.ErrorIs(t, err, ErrNotDone)
	zero, cancel := TimeoutContext(t.Context(), 0)
	defer cancel()
	_, err = v.ConnectPeerWait(zero)
	require.ErrorIs(t, err, ErrTimeout)

	require.NoError(t, w.ConnectPeerRequest(within(t), b.address("w"), a.address("v")))
	for _, x := range []*Vi{v, w} {
		got, err := x.ConnectPeerWait(within(t))
		require.NoError(t, err)
		require.Equal(t, ServiceReliableDelivery, got.ReliabilityLevel)
		require.Equal(t, StateConnected, state(t, x))
		_, err = x.ConnectPeerDone()
		require.ErrorIs(t, err, ErrInvalidParameter, "told once")
	}
	r := b.postRecv(w, b.data(0, 4))
	d := a.desc()
	d.SetSend(a.data(0, 4))
	a.postSend(v, d)
	wait(t, w.RecvWait, r)

	// The time of the attempt ends, or it is given up, or the Nic is closed.
	v, w = a.vi(0, nil, nil), b.vi(0, nil, nil)
	brief, cancel := TimeoutContext(t.Context(), 30)
	defer cancel()
	require.NoError(t, v.ConnectPeerRequest(brief, nil, b.address("nobody")))
	_, err = v.ConnectPeerWait(within(t))
	require.ErrorIs(t, err, ErrTimeout)
	require.Equal(t, StateIdle, state(t, v))
	require.NoError(t, v.ConnectPeerRequest(within(t), nil, b.address("nobody")))
	require.NoError(t, v.Disconnect())
	_, err = v.ConnectPeerWait(within(t))
	require.ErrorIs(t, err, ErrResource)
	require.NoError(t, w.ConnectPeerRequest(within(t), nil, a.address("nobody")))
	require.NoError(t, b.nic.CloseNic())
	_, err = w.ConnectPeerDone()
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNotDone, "the attempt has ended")
}

// TestPeerTimeout: the active end of two peers meets nobody until its time is over.
func TestPeerTimeout(t *testing.T) {
	low, high := newHost(t, Config{MatchTimeout: -1}), newHost(t, Config{MatchTimeout: -1})
	if slices.Compare(low.addr, high.addr) > 0 { // by their ports
		low, high = high, low
	}
	for ms, want := range map[uint32]error{30: ErrTimeout, Infinite: context.Canceled} {
		v := high.vi(ServiceReliableDelivery, nil, nil)
		ctx, cancel := TimeoutContext(t.Context(), ms)
		require.NoError(t, v.ConnectPeerRequest(ctx, high.address("v"), low.address("w")))
		if ms == Infinite {
			cancel()
		}
		_, err := v.ConnectPeerWait(within(t))
		cancel()
		require.ErrorIs(t, err, want)
		require.NotErrorIs(t, err, ErrReject)
		require.Equal(t, StateIdle, state(t, v))
	}
}

func TestBadAddresses(t *testing.T) {
	h := newHost(t, Config{})
	v := h.vi(0, nil, nil)
	good := h.address("")
	for _, a := range []*NetAddress{
		{HostAddress: []byte{1, 2, 3}},
		{HostAddress: good.HostAddress, Discriminator: make([]byte, 65)},
		{HostAddress: []byte{127, 0, 0, 2}},
		{HostAddress: []byte{127, 0, 0, 1, 0, 1}}, // another port
		{Discriminator: make([]byte, 65)},
	} {
		_, err := v.ConnectRequest(t.Context(), a, good)
		require.ErrorIs(t, err, ErrInvalidParameter)
		require.ErrorIs(t, v.ConnectPeerRequest(t.Context(), a, good), ErrInvalidParameter)
		_, err = h.nic.ConnectWait(t.Context(), a)
		require.ErrorIs(t, err, ErrInvalidParameter)
	}
	for _, a := range []*NetAddress{nil, {}, {HostAddress: make([]byte, 5)}, {HostAddress: good.HostAddress, Discriminator: make([]byte, 65)}} {
		_, err := v.ConnectRequest(t.Context(), nil, a)
		require.ErrorIs(t, err, ErrInvalidParameter)
		require.ErrorIs(t, v.ConnectPeerRequest(t.Context(), nil, a), ErrInvalidParameter)
	}
	require.Equal(t, StateIdle, state(t, v))
	require.Equal(t, `[::1]:80/"d"`, NewNetAddress(netip.MustParseAddrPort("[::1]:80"), []byte("d")).String())
	require.Equal(t, `10.0.0.1/""`, NewNetAddress(netip.MustParseAddrPort("[::ffff:10.0.0.1]:0"), nil).String())
	require.Equal(t, `010203/""`, (&NetAddress{HostAddress: []byte{1, 2, 3}}).String())
}

// pipeListener is a network of net.Pipe.
type pipeListener struct{ conns chan net.Conn }

func (l *pipeListener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l *pipeListener) Close() error   { close(l.conns); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	l.conns <- b
	return a, nil
}

// TestOverPipe: any net.Listener and net.Conn do.
func TestOverPipe(t *testing.T) {
	l := &pipeListener{conns: make(chan net.Conn)}
	a, b := newHost(t, Config{Dial: l.dial}), newHost(t, Config{Listener: l})
	v, w := a.vi(ServiceReliableReception, nil, nil), b.vi(ServiceReliableReception, nil, nil)
	connect(t, a, v, b, w)
	fill(a.mem, 9)
	r := b.postRecv(w, b.data(0, 100_000))
	d := a.desc()
	d.SetSend(a.data(0, 100_000))
	a.postSend(v, d)
	wait(t, w.RecvWait, r)
	wait(t, v.SendWait, d)
	require.Equal(t, a.mem[:100_000], b.mem[:100_000])

	failing := newHost(t, Config{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }})
	_, err := failing.vi(0, nil, nil).ConnectRequest(within(t), nil, b.address(""))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorIs(t, err, ErrResource)
}
