package cases

import (
	"net"
	"net/netip"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
	"github.com/softrnic/softrnic/vitcp"
	"github.com/softrnic/softrnic/vitcp/segment"
)

// va4_3 is addresses: VI Architecture 4.3, 9.4.
var va4_3 = []conformance.Case{
	apiCase("4.1/vi-anybody-or-one", viAnybodyOrOne, "VA-4.3-M4", "VA-4.1-S1"),
	apiCase("4.3/vi-addresses", viAddresses, "VA-4.3-M1", "VA-4.3-M3"),
	apiCase("4.3/vi-address-format", onVIHost(viAddressFormat), "VA-4.3-M2"),
	apiCase("9.4.4/vi-timeout", viTimeout, "VA-9.4.4-M1", "PA-5.2-M2", "PA-9.4.4-M1"),
}

// viAnybodyOrOne waits for one VI, by its address and by its discriminator, while others
// call too; and for anybody.
func viAnybodyOrOne(t *conformance.T) {
	l := must(vitcp.Listen("127.0.0.1:0", vitcp.ListenConfig{MatchTimeout: time.Minute}))(t)
	t.Cleanup(func() { _ = l.Close() })
	call := func(from string) {
		c := must(net.Dial("tcp", l.Addr().String()))(t)
		p, ce := newVIPeer(t, c), viPeerCE(vipl.ServiceUnreliable, "server")
		ce.calling = from
		p.asks(ce)
	}
	wait := func(f vitcp.Filter) string {
		f.Called = "server"
		r := must(l.Wait(t.Context(), f))(t)
		defer r.Close()
		ce := r.CE()
		return string(ce.Calling)
	}
	call("one")
	call("two")
	call("three")
	two := segment.Discriminator("two")
	require.Equal(t, "two", wait(vitcp.Filter{Calling: &two}))
	others := []string{wait(vitcp.Filter{}), wait(vitcp.Filter{From: netip.MustParseAddr("127.0.0.1")})}
	require.ElementsMatch(t, []string{"one", "three"}, others, "in whatever order they came")

	for _, c := range named(t, "%s", map[string]struct {
		f   vitcp.Filter
		fit bool
	}{
		"another host":  {vitcp.Filter{From: netip.MustParseAddr("192.0.2.1")}, false},
		"another VI":    {vitcp.Filter{Calling: &two}, false},
		"this host":     {vitcp.Filter{From: netip.MustParseAddr("127.0.0.1")}, true},
		"anybody":       {vitcp.Filter{}, true},
		"to another VI": {vitcp.Filter{Called: "else"}, false},
	}) {
		if c.f.Called == "" {
			c.f.Called = "server"
		}
		near, far := loopbackPair(t)
		p, ce := newVIPeer(t, far), viPeerCE(vipl.ServiceUnreliable, "server")
		p.asks(ce)
		r, err := vitcp.Await(t.Context(), near, c.f)
		if c.fit {
			require.NoError(t, err)
			require.NoError(t, r.Close())
			continue
		}
		require.ErrorIs(t, err, vitcp.ErrNoMatch)
		p.get(viNoMatch)
		p.over()
	}
}

// loopbackPair is the two ends of a TCP connection.
func loopbackPair(t *conformance.T) (near, far net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	far, err = net.Dial("tcp", l.Addr().String()) // the backlog takes it
	require.NoError(t, err)
	near, err = l.Accept()
	require.NoError(t, err)
	return near, far
}

// viAddresses has two VIs on a NIC and one on another be called by their addresses, in
// another order than they wait.
func viAddresses(t *conformance.T) {
	a, b, caller := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{})
	long := string(make([]byte, 64)) // zeros count too
	called := []struct {
		h    *viHost
		name string
	}{{a, "one"}, {a, "two"}, {b, "one"}, {a, long}, {a, long[1:]}, {a, ""}}
	for _, name := range []string{"six", "ten", "odd", "new", "red"} { // whoever listens in whatever order
		called = append(called, called[0])
		called[len(called)-1].name = name
	}
	vis := make([]*vipl.Vi, len(called))
	done := make([]<-chan error, len(called))
	for i, c := range called {
		vis[i] = c.h.vi(vipl.ServiceUnreliable)
		done[i] = serveVI(c.h, vis[i], c.name)
	}
	for i := len(called) - 1; i >= 0; i-- {
		c := called[i]
		v := caller.vi(vipl.ServiceUnreliable)
		d := c.h.recv(vis[i], c.h.data(0, 8))
		require.NoError(t, second(v.ConnectRequest(t.Context(), caller.address("caller"), c.h.address(c.name))))
		require.NoError(t, <-done[i], "the VI that was called")
		caller.sends(v, caller.data(i, 8))
		c.h.received(vis[i], d, viDone|viOpReceive)
		require.Equal(t, caller.mem[i:i+8], c.h.mem[:8])
	}
}

// viAddressFormat uses addresses of other formats.
func viAddressFormat(t *conformance.T, h *viHost) {
	v := h.vi(vipl.ServiceUnreliable)
	for _, n := range []int{0, 1, 3, 5, 7, 15, 17, 19} {
		_, err := v.ConnectRequest(t.Context(), nil, &vipl.NetAddress{HostAddress: make([]byte, n), Discriminator: []byte("x")})
		viCode(t, vipl.ErrInvalidParameter, err, "a remote host address")
		if n > 0 {
			_, err = h.nic.ConnectWait(t.Context(), &vipl.NetAddress{HostAddress: make([]byte, n)})
			viCode(t, vipl.ErrInvalidParameter, err, "a local host address")
		}
	}
	viCode(t, vipl.ErrInvalidParameter, second(v.ConnectRequest(t.Context(), nil, nil)), "no remote address")
	a := h.address("")
	a.Discriminator = make([]byte, 65)
	viCode(t, vipl.ErrInvalidParameter, second(v.ConnectRequest(t.Context(), nil, a)), "a discriminator of 65 octets")
	viCode(t, vipl.ErrInvalidParameter, second(h.nic.ConnectWait(t.Context(), a)), "a discriminator of 65 octets")
	require.Equal(t, vipl.StateIdle, h.state(v))
}

// viTimeout has nobody answer, at once and after a while.
func viTimeout(t *conformance.T) {
	h := newVIHost(t, vipl.Config{})
	v := h.vi(vipl.ServiceUnreliable)
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	to := vipl.NewNetAddress(netip.MustParseAddrPort(l.Addr().String()), []byte("x"))
	for _, milliseconds := range []uint32{0, 1, 20} {
		ctx, cancel := vipl.TimeoutContext(t.Context(), milliseconds)
		_, err := v.ConnectRequest(ctx, nil, to)
		cancel()
		viCode(t, vipl.ErrTimeout, err, "ConnectRequest")
		require.Equal(t, vipl.StateIdle, h.state(v))
	}
}
