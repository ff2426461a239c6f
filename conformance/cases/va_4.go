package cases

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/vipl"
)

// va4 is connections: VI Architecture 4.
var va4 = []conformance.Case{
	apiCase("4/vi-disconnect-first", viDisconnectFirst, "VA-4-M2"),
	apiCase("4.1/vi-robust", onVIHost(viRobust), "VA-4.1-M1"),
	apiCase("4.1/vi-second-request", onVI(vipl.ServiceReliableDelivery, viSecondRequest), "VA-4.1-M2"),
	apiCase("4.1/vi-accept-needs-vi", onVI(vipl.ServiceUnreliable, viAcceptNeedsVI), "VA-4.1-M3"),
	apiCase("4.1/vi-same-node", onVIHost(viSameNode), "VA-4.1-M7", "VA-4.3-M3"),
	apiCase("4.2/vi-old-connection", viOldConnection, "VA-4.2-M1", "VA-4.2-M2"),
	apiCase("4.2/vi-disconnect-noticed", eachLevel(viDisconnectNoticed), "VA-4.2-M3", "PA-5.4-M2"),
}

// viDisconnectFirst destroys and connects a VI that is connected.
func viDisconnectFirst(t *conformance.T) {
	p := newVIPair(t, vipl.ServiceReliableReception)
	for range 3 {
		viCode(t, vipl.ErrResource, p.va.DestroyVi(), "DestroyVi")
		viCode(t, vipl.ErrInvalidParameter, second(p.va.ConnectRequest(t.Context(), nil, p.b.address("server"))), "ConnectRequest")
		require.Equal(t, vipl.StateConnected, p.a.state(p.va))
		require.NoError(t, p.va.Disconnect())
		p.b.becomes(p.vb, vipl.StateError)
		require.NoError(t, p.vb.Disconnect())
		connectVIs(p.a, p.va, p.b, p.vb)
	}
	require.NoError(t, p.va.Disconnect())
	require.NoError(t, p.va.DestroyVi())
}

// viRobust has many peers that say nothing, or nonsense, and then one that connects.
func viRobust(t *conformance.T, h *viHost) {
	v := h.vi(vipl.ServiceReliableDelivery)
	done := serveVI(h, v, "server")
	ce := viPeerCE(vipl.ServiceReliableDelivery, "server")
	whole := (&viSegment{kind: viRequest, flags: viLast, ce: ce}).octets(false)
	for _, b := range [][]byte{
		nil, {1}, whole[:23], whole[:100], whole[:len(whole)-1],
		make([]byte, 4096), {1, 0x85, 0, 0}, {1, 0x85, 0xFF, 0xFF, 0, 0}, []byte("GET / HTTP/1.1\r\n\r\n"),
		(&viSegment{kind: viSend, flags: viLast}).octets(false),
		(&viSegment{kind: viAccept, flags: viLast, ce: ce}).octets(false),
		(&viSegment{kind: viReject, flags: viLast}).octets(false),
		(&viSegment{kind: viRequest, flags: viLast | viError, ce: ce, length: 30}).octets(false),
	} {
		p := dialVI(t, h)
		_, _ = p.conn.Write(b)
		if len(b) == 23 {
			_ = p.conn.Close()
		}
	}
	p := dialVI(t, h)
	p.connects(ce, done)
	h.sends(v, h.data(0, 5))
	require.Equal(t, h.mem[:5], p.get(viSend).payload)
}

// viSecondRequest sends another ConnectRequest over an established connection, while
// somebody waits for one and another connection is there.
func viSecondRequest(t *conformance.T, r *viRig) {
	ce := viPeerCE(vipl.ServiceReliableDelivery, "server")
	other := r.vi(vipl.ServiceReliableDelivery)
	p := dialVI(t, r.viHost)
	done := serveVI(r.viHost, other, "server")
	p.connects(ce, done)

	waited := make(chan *vipl.Conn, 1)
	go func() {
		c, err := r.nic.ConnectWait(t.Context(), r.address("server"))
		if err == nil {
			waited <- c
		}
	}()
	r.asks(ce)
	r.over()
	r.becomes(r.v, vipl.StateError)
	third := dialVI(t, r.viHost)
	ce.calling = "third"
	third.asks(ce)
	c := receive(t, waited, "nothing came")
	require.Equal(t, "third", string(c.RemoteAddr().Discriminator), "who is offered")
	require.NoError(t, c.ConnectReject())
	p.send("") // there is no receive: it gets as far as that
	r.reported(r.v, vipl.ErrorConnLost, 0)
	r.reported(other, vipl.ErrorRecvQEmpty, viOpReceive)
	r.becomes(other, vipl.StateError)
}

// viAcceptNeedsVI accepts with whatever is no VI that is ready.
func viAcceptNeedsVI(t *conformance.T, r *viRig) {
	p, ce := dialVI(t, r.viHost), viPeerCE(vipl.ServiceUnreliable, "server")
	p.asks(ce)
	c := must(r.nic.ConnectWait(t.Context(), r.address("server")))(t)
	gone, good := r.vi(vipl.ServiceUnreliable), r.vi(vipl.ServiceUnreliable)
	require.NoError(t, gone.DestroyVi())
	for name, v := range map[string]*vipl.Vi{"none": nil, "one that is connected": r.v, "one that is destroyed": gone} {
		viCode(t, vipl.ErrInvalidParameter, c.ConnectAccept(v), name)
	}
	require.NoError(t, c.ConnectAccept(good))
	p.accepted(ce)
	require.Equal(t, vipl.StateConnected, r.state(good))
	r.sends(r.v, r.data(0, 1))
	r.get(viSend)
}

// viSameNode connects two VIs of a NIC.
func viSameNode(t *conformance.T, h *viHost) {
	a, b := h.vi(vipl.ServiceReliableReception), h.vi(vipl.ServiceReliableReception)
	d := h.recv(b, h.data(100, 4))
	connectVIs(h, a, h, b)
	s := h.sends(a, h.data(0, 4))
	h.received(b, d, viDone|viOpReceive)
	h.sent(a, s, viDone)
	require.Equal(t, h.mem[:4], h.mem[100:104])
}

// viOldConnection connects a VI anew while its old peer talks on.
func viOldConnection(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, receives: 1, nic: vipl.Config{Linger: time.Millisecond}})
	old := r.viPeer
	require.NoError(t, r.v.Disconnect())
	r.received(r.v, r.receives[0], viDone|viFlushed|viOpReceive)
	late := old.message(viSegment{kind: viSend, flags: viLast, payload: []byte("old")})
	_, _ = old.conn.Write(late.octets(false))

	d := r.recv(r.v, r.data(0, 8))
	r.viPeer = dialVI(t, r.viHost)
	ce := viPeerCE(vipl.ServiceReliableDelivery, "server")
	r.connects(ce, serveVI(r.viHost, r.v, ce.called))
	_, _ = old.conn.Write(late.octets(false))
	_, _ = old.conn.Write((&viSegment{kind: viWrite, flags: viLast, number: old.number + 1, rdma: r.at(0, 3), payload: []byte("old")}).octets(false))
	old.over()
	r.takes("new", d, viDone|viOpReceive)
	require.Equal(t, "new", string(r.mem[:3]))
	require.Equal(t, vipl.StateConnected, r.state(r.v))
}

// viDisconnectNoticed has the other VI disconnect: the next request says so at the
// latest.
func viDisconnectNoticed(t *conformance.T, l viLevel) {
	p := newVIPair(t, l.level)
	require.NoError(t, p.vb.Disconnect())
	p.a.becomes(p.va, vipl.StateError)
	for _, tr := range viTransfers {
		d := p.a.desc()
		tr.set(d, p.b.remote(0), p.a.data(0, 1))
		p.a.sent(p.va, p.a.post(p.va, d), viDone|viFlushed|tr.op)
	}
	p.a.received(p.va, p.a.recv(p.va), viDone|viFlushed|viOpReceive)
}

// va4_3 is addresses: VI Architecture 4.3, 9.4.
var va4_3 = []conformance.Case{
	apiCase("4.1/vi-anybody-or-one", viAnybodyOrOne, "VA-4.3-M4", "VA-4.1-S1"),
	apiCase("4.3/vi-addresses", viAddresses, "VA-4.3-M1", "VA-4.3-M3"),
	apiCase("4.3/vi-one-port", viOnePort, "VA-4.3-M1", "VA-4.3-M3"),
	apiCase("4.3/vi-one-port-one-caller", viOnePortOneCaller, "VA-4.3-M4"),
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
		"its IPv6 form": {vitcp.Filter{From: netip.MustParseAddr("::ffff:127.0.0.1")}, true},
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
	for _, name := range []string{"six", "ten", "odd", "new", "red"} { // in any order
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

// viSharing is a NIC, and another at its address and port.
func viSharing(t *conformance.T) (a, b *viHost) {
	a = newVIHost(t, vipl.Config{})
	at := must(a.address("").AddrPort())(t, "AddrPort")
	return a, newVIHostAt(t, at.String(), vipl.Config{})
}

// viOnePort has two NICs at one address and port, which the discriminator alone tells apart,
// whichever was there first; and one of them when the other is closed.
func viOnePort(t *conformance.T) {
	first, other := viSharing(t)
	caller := newVIHost(t, vipl.Config{})
	require.Equal(t, first.address("x"), other.address("x"))
	reach := func(h *viHost, name string) {
		v, w := caller.vi(vipl.ServiceReliableDelivery), h.vi(vipl.ServiceReliableDelivery)
		d := h.recv(w, h.data(0, 8))
		done := serveVI(h, w, name)
		require.NoError(t, second(v.ConnectRequest(t.Context(), caller.address("caller"), h.address(name))))
		require.NoError(t, <-done, "the VI that was called")
		caller.sends(v, caller.data(40, 8))
		h.received(w, d, viDone|viOpReceive)
		require.Equal(t, caller.mem[40:48], h.mem[:8])
	}
	for _, name := range []string{"one", "two"} {
		reach(first, name+" of the first")
		reach(other, name+" of the second")
	}
	require.NoError(t, first.nic.CloseNic())
	reach(other, "one of the first")
}

// viOnePortOneCaller has a NIC wait for one remote VI, and another NIC of its port for any, at the
// same discriminator.
func viOnePortOneCaller(t *conformance.T) {
	anybody, one := viSharing(t)
	caller := newVIHost(t, vipl.Config{})
	blue := make(chan error, 1)
	go func() {
		c, err := one.nic.ConnectWaitFrom(t.Context(), one.address("server"), &vipl.NetAddress{Discriminator: []byte("blue")})
		if err == nil {
			if got := string(c.RemoteAddr().Discriminator); got != "blue" {
				err = errors.New(got)
			}
			err = errors.Join(err, c.ConnectReject())
		}
		blue <- err
	}()
	v := caller.vi(vipl.ServiceUnreliable)
	ctx, cancel := vipl.TimeoutContext(t.Context(), 50) // the request is there, and only that wait
	defer cancel()
	_, err := v.ConnectRequest(ctx, caller.address("violet"), one.address("server"))
	viCode(t, vipl.ErrTimeout, err, "ConnectRequest")

	v = caller.vi(vipl.ServiceUnreliable)
	done := make(chan error, 1)
	go func() {
		done <- second(v.ConnectRequest(t.Context(), caller.address("red"), anybody.address("server")))
	}()
	for from := ""; from != "red"; {
		c := must(anybody.nic.ConnectWait(t.Context(), anybody.address("server")))(t, "ConnectWait")
		if from = string(c.RemoteAddr().Discriminator); from == "red" {
			require.NoError(t, c.ConnectAccept(anybody.vi(vipl.ServiceUnreliable)))
			continue
		}
		require.Equal(t, "violet", from, "who has given up, and may still be there")
		require.NoError(t, c.ConnectReject())
	}
	require.NoError(t, <-done)
	_, err = caller.vi(vipl.ServiceUnreliable).ConnectRequest(t.Context(), caller.address("blue"), one.address("server"))
	viCode(t, vipl.ErrReject, err, "ConnectRequest")
	require.NoError(t, <-blue, "who is offered")
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
