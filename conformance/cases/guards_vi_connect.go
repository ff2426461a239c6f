package cases

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/vipl"
)

// guardsVIConnect are of peers that do what they should not while a connection is established, and of who listens.
var guardsVIConnect = []conformance.Case{
	apiCase("4/vi-peer-hangs-up", viPeerHangsUp, "PT-4-M2"),
	apiCase("4.1/vi-peer-does-not-wait", viPeerDoesNotWait, "VA-4.1-M1"),
	apiCase("3.6/vi-refused-with-a-crc", viRefusedWithCRC, "VT-3.6-M2"),
	apiCase("3.3/vi-peer-to-peer-refused", viPeerToPeerRefused, "VT-3.3-M2", "VT-3.3-M1"),
	apiCase("5.1/vi-error-told-once", onVIHost(viErrorToldOnce), "VA-5-M1"),
	apiCase("9.2.1/vi-names-of-devices", viNamesOfDevices, "VA-3.1-M3"),
	apiCase("4/vi-peers-at-all-addresses", viPeersAtAllAddresses, "PT-4-M1"),
	apiCase("9.9.1/vi-listener-in-trouble", viListenerInTrouble, "VA-4.1-S1"),
}

// viPeerHangsUp has a peer close before it answers: a VI connects again, until it is given up; over a connection of the
// program there is no other.
func viPeerHangsUp(t *conformance.T) {
	t.Part("a connection of the program")
	r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	require.NoError(t, r.conn.Close())
	viCode(t, vipl.ErrResource, receive(t, r.done, "it tries on"), "ConnectRequest")
	require.Equal(t, vipl.StateIdle, r.state(r.v))

	t.Part("others")
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	h := newVIHost(t, vipl.Config{})
	at := vipl.NewNetAddress(must(netip.ParseAddrPort(l.Addr().String()))(t), []byte("server"))
	asked := func() (*viPeer, net.Conn) {
		c := must(l.Accept())(t)
		p := newVIPeer(t, c)
		p.subject = p.get(viRequest).number
		return p, c
	}
	for given := range inTurn(t, "given up: %v", []bool{false, true}) {
		v, answer := h.vi(vipl.ServiceReliableDelivery), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { answer <- second(v.ConnectRequest(ctx, nil, at)) }()
		for range 3 {
			p, c := asked()
			require.NoError(t, c.(*net.TCPConn).CloseWrite())
			p.over() // it closes too, and keeps nothing
		}
		if p, _ := asked(); given {
			cancel()
			require.ErrorIs(t, receive(t, answer, "given up, and it tries on"), context.Canceled)
			require.Equal(t, vipl.StateIdle, h.state(v))
		} else {
			ce := viPeerCE(vipl.ServiceReliableDelivery, "server")
			ce.calling = ""
			s := p.message(viSegment{kind: viAccept, flags: viLast, ce: ce})
			p.put(s)
			require.NoError(t, receive(t, answer, "no answer"))
			require.NoError(t, p.conn.Close())
			require.NoError(t, v.Disconnect())
		}
		cancel()
	}
}

// viPeerDoesNotWait has peers that close, or say more, before they are answered: nobody waits for what they asked, and
// what has been found cannot be accepted.
func viPeerDoesNotWait(t *conformance.T) {
	h := newVIHost(t, vipl.Config{MatchTimeout: hour})
	ce := viPeerCE(vipl.ServiceReliableDelivery, "server")
	const requests = "vitcp listener: request in Matching"
	for says := range inTurn(t, "it says more: %v", []bool{false, true}) {
		stirs := func(p *viPeer) {
			if says {
				p.says([]byte{1})
			} else {
				require.NoError(t, p.conn.Close())
			}
		}
		p := dialVI(t, h)
		p.asks(ce)
		comesToHold(t, 1, requests)
		stirs(p)
		comesToHold(t, 0, requests)
		if says {
			p.over()
		}
		v := h.vi(vipl.ServiceReliableDelivery)
		eventually(t, func() bool { // what it does may not have come yet
			p := dialVI(t, h)
			p.asks(ce)
			c := must(h.nic.ConnectWait(t.Context(), h.address("server")))(t)
			stirs(p)
			time.Sleep(time.Millisecond)
			err := c.ConnectAccept(v)
			if err == nil {
				require.NoError(t, v.Disconnect())
				for len(h.errors) > 0 {
					<-h.errors
				}
				return false
			}
			viCode(t, vipl.ErrResource, err, "ConnectAccept")
			viCode(t, vipl.ErrInvalidParameter, c.ConnectReject(), "it has been answered")
			return true
		}, "the peer is seen not to wait")
		require.Equal(t, either(says, vipl.StateError, vipl.StateIdle), h.state(v))
		if says {
			h.reported(v, vipl.ErrorConnLost, 0)
		}
		succeed(t, v.Disconnect, v.DestroyVi)
	}
}

// viRefusedWithCRC refuses requests with the CRC option, in each way: the answers have CRCs. Others have none.
func viRefusedWithCRC(t *conformance.T) {
	held, not := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{MatchTimeout: -1})
	for crc := range inTurn(t, "a CRC: %v", []bool{true, false}) {
		asks := func(h *viHost, change func(*viCE)) *viPeer {
			p, ce := dialVI(t, h), viPeerCE(vipl.ServiceReliableDelivery, "server")
			ce.options = either(crc, viCRCOption, viEndOfOptions)
			change(&ce)
			p.asks(ce)
			p.crc = crc
			return p
		}
		refused := func(p *viPeer, kind byte, reason vitcp.Reason) {
			s := p.get(kind)
			require.Equal(t, []any{p.number, uint16(reason) << 8, byte(viLast)}, []any{s.ack, s.code, s.flags}, "%v", &s)
			p.over()
		}
		refused(asks(not, func(*viCE) {}), viNoMatch, 0)
		p := asks(held, func(*viCE) {})
		require.NoError(t, must(held.nic.ConnectWait(t.Context(), held.address("server")))(t).ConnectReject())
		refused(p, viReject, vitcp.ReasonConsumer)
		refused(asks(held, func(c *viCE) { c.mtu = 0 }), viReject, vitcp.ReasonMTU)
		refused(asks(held, func(c *viCE) { c.attributes |= viUnreliable }), viReject, vitcp.ReasonLevel)
	}
}

// viPeerToPeerRefused has somebody wait when a request with the wrong bit comes, and VIs ask each other that do not fit.
func viPeerToPeerRefused(t *conformance.T) {
	h := newVIHost(t, vipl.Config{MatchTimeout: hour})
	is := func(s viSegment) vitcp.Reason { return vitcp.Reason(s.code >> 8) }

	t.Part("no peer is waited for")
	done := serveVI(h, h.vi(vipl.ServiceReliableDelivery), "server")
	comesToHold(t, 1, "vitcp listener: waiter")
	ce := viPeerCE(vipl.ServiceReliableDelivery, "server")
	ce.attributes |= viPeerToPeer
	p := dialVI(t, h)
	p.asks(ce)
	require.Equal(t, vitcp.ReasonPeerToPeer, is(p.get(viReject)))
	p.over()
	p = dialVI(t, h)
	p.connects(viPeerCE(vipl.ServiceReliableDelivery, "server"), done)

	t.Part("a peer of another level")
	far := vipl.NewNetAddress(netip.MustParseAddrPort("127.0.0.1:65535"), []byte("client")) // it is the active end
	v := h.vi(vipl.ServiceReliableDelivery)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i, level := range []vipl.ReliabilityLevel{vipl.ServiceReliableReception, vipl.ServiceReliableDelivery} {
		require.NoError(t, v.ConnectPeerRequest(ctx, h.address("server"), far))
		ce = viPeerCE(level, "server")
		ce.attributes |= viPeerToPeer
		p = dialVI(t, h)
		p.asks(ce)
		if i > 0 {
			p.accepted(ce)
			must(v.ConnectPeerWait(t.Context()))(t)
			break
		}
		require.Equal(t, vitcp.ReasonLevel, is(p.get(viReject)))
		p.over()
		viCode(t, vipl.ErrInvalidReliabilityLevel, second(v.ConnectPeerWait(t.Context())), "ConnectPeerWait")
		require.Equal(t, vipl.StateIdle, h.state(v))
	}

	t.Part("itself")
	v = h.vi(vipl.ServiceReliableDelivery)
	require.NoError(t, v.ConnectPeerRequest(ctx, h.address("server"), h.address("server")))
	viCode(t, vipl.ErrInvalidParameter, second(v.ConnectPeerWait(t.Context())), "ConnectPeerWait")
}

// viErrorToldOnce makes errors at a VI that is not connected: the next attempt tells them, and no other.
func viErrorToldOnce(t *conformance.T, h *viHost) {
	v, elsewhere := h.vi(vipl.ServiceReliableDelivery), h.newPtag()
	other := must(h.nic.RegisterDescriptors(make([]vipl.Descriptor, 1), elsewhere))(t)
	d := h.desc()
	for range 20 {
		viCode(t, vipl.ErrInvalidParameter, v.PostSend(d, other), "PostSend")
	}
	require.Empty(t, h.errors)
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	at := vipl.NewNetAddress(must(netip.ParseAddrPort(l.Addr().String()))(t), nil)
	require.NoError(t, l.Close())
	for i := range counted(t, "attempt %d", 3) {
		require.ErrorIs(t, second(v.ConnectRequest(t.Context(), nil, at)), vipl.ErrRefused)
		if i == 0 {
			for range 16 { // no more are kept
				e := receive(t, h.errors, "nothing is told")
				require.Equal(t, []any{vipl.ErrorPostDesc, v, d}, []any{e.ErrorCode, e.ViHandle, e.DescriptorPtr})
			}
		}
		require.Empty(t, h.errors, "it has been told")
	}
}

// viNamesOfDevices opens NICs by each kind of name, and takes addresses apart.
func viNamesOfDevices(t *conformance.T) {
	opens := func(name string) []byte {
		nic := must(vipl.OpenNic(name, vipl.Config{}))(t, "%s", name)
		a := must(nic.QueryNic())(t)
		require.Equal(t, name, a.Name)
		require.EqualValues(t, len(a.LocalNicAddress), a.NicAddressLen)
		require.NoError(t, nic.CloseNic())
		return a.LocalNicAddress
	}
	require.Equal(t, []byte{127, 0, 0, 1}, opens("127.0.0.1"), "the port goes without saying")
	require.Equal(t, []byte{127, 0, 0, 1}, opens("127.0.0.1:0")[:4])
	require.Len(t, opens("127.0.0.1:0"), 6)
	require.Equal(t, make([]byte, 16), opens(":0")[:16])
	opensLoopback(t, opens)
	if b := opens("localhost"); !net.IP(b).IsLoopback() {
		t.Fatalf("localhost is % x", b)
	}

	t.Part("refused")
	viCode(t, vipl.ErrResource, second(vipl.OpenNic("192.0.2.1:0", vipl.Config{})), "no address of this host")
	viCode(t, vipl.ErrInvalidParameter, second(vipl.OpenNic("127.0.0.1:70000", vipl.Config{})), "no port")
	taken := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = taken.Close() })
	require.ErrorIs(t, second(vipl.OpenNic(taken.Addr().String(), vipl.Config{})), vipl.ErrInUse)

	t.Part("addresses of others")
	for name, want := range map[string][]byte{
		"127.0.0.1": {127, 0, 0, 1}, "127.0.0.1:22089": {127, 0, 0, 1}, "127.0.0.1:258": {127, 0, 0, 1, 1, 2},
		"[::1]": net.IPv6loopback, "::1": net.IPv6loopback, "[::1]:258": append(append([]byte{}, net.IPv6loopback...), 1, 2),
		"[::ffff:127.0.0.1]:258": {127, 0, 0, 1, 1, 2},
	} {
		list := must(vipl.ResolveNetAddress(t.Context(), name, []byte("server")))(t, "%s", name)
		require.Equal(t, []*vipl.NetAddress{{HostAddress: want, Discriminator: []byte("server")}}, list, "%s", name)
	}
	for _, name := range []string{"127.0.0.1:0", "127.0.0.1:70000", "127.0.0.1:no-such-service"} {
		viCode(t, vipl.ErrInvalidParameter, second(vipl.ResolveNetAddress(t.Context(), name, nil)), name)
	}
	viCode(t, vipl.ErrInvalidParameter, second(vipl.ResolveNetAddress(t.Context(), "127.0.0.1", make([]byte, 65))), "too long")
	must(vipl.ResolveNetAddress(t.Context(), "127.0.0.1", make([]byte, 64)))(t)
	require.NotEmpty(t, must(vipl.ResolveNetAddress(t.Context(), "localhost", nil))(t))
}

// opensLoopback opens a NIC by the name of the loopback interface: it has the first address there.
func opensLoopback(t *conformance.T, opens func(string) []byte) {
	for _, nif := range must(net.Interfaces())(t) {
		addrs, err := nif.Addrs()
		if nif.Flags&net.FlagLoopback == 0 || err != nil || len(addrs) == 0 {
			continue
		}
		want := must(netip.ParsePrefix(addrs[0].String()))(t).Addr().Unmap()
		require.Equal(t, want.AsSlice(), opens(nif.Name), "the first address of %s", nif.Name)
	}
}

// viPeersAtAllAddresses connects a VI peer to peer that has no address of its own but all of the host's: the way to the
// other one says which. It may be called by any, and takes requests that are for it.
func viPeersAtAllAddresses(t *conformance.T) {
	seen := map[bool]bool{}
	for range counted(t, "NICs %d", 64) {
		a, b := newVIHostAt(t, ":0", vipl.Config{}), newVIHost(t, vipl.Config{})
		port, other := must(a.address("").AddrPort())(t).Port(), must(b.address("").AddrPort())(t).Port()
		if len(seen) == 2 {
			break // whichever port was the higher
		}
		if seen[port > other] {
			continue
		}
		seen[port > other] = true
		loopback := func(discriminator string) *vipl.NetAddress {
			return vipl.NewNetAddress(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port), []byte(discriminator))
		}
		va, vb := a.vi(vipl.ServiceReliableDelivery), b.vi(vipl.ServiceReliableDelivery)
		require.NoError(t, va.ConnectPeerRequest(t.Context(), &vipl.NetAddress{Discriminator: []byte("a")}, b.address("b")))
		require.NoError(t, vb.ConnectPeerRequest(t.Context(), b.address("b"), loopback("a")))
		must(va.ConnectPeerWait(t.Context()))(t)
		must(vb.ConnectPeerWait(t.Context()))(t)
		succeed(t, va.Disconnect, vb.Disconnect)
		answer := make(chan error, 1)
		go func() { answer <- second(vb.ConnectRequest(t.Context(), nil, loopback("server"))) }()
		c := must(a.nic.ConnectWait(t.Context(), loopback("server")))(t)
		require.NoError(t, c.ConnectAccept(va))
		require.NoError(t, receive(t, answer, "no answer"))
		far := vipl.NewNetAddress(netip.MustParseAddrPort("127.0.0.1:1"), []byte("server"))
		viCode(t, vipl.ErrInvalidParameter, second(a.nic.ConnectWait(t.Context(), far)), "another port")
		far = vipl.NewNetAddress(netip.MustParseAddrPort("192.0.2.1:0"), []byte("server"))
		viCode(t, vipl.ErrInvalidParameter, second(b.nic.ConnectWait(t.Context(), far)), "another host's")
		succeed(t, va.Disconnect, vb.Disconnect)
	}
}

// troubledListener fails to accept once for each token, when it has accepted what came before.
type troubledListener struct {
	net.Listener
	trouble chan struct{}
}

func (l *troubledListener) Accept() (net.Conn, error) {
	select {
	case <-l.trouble:
		return (&faultyListener{fails: 1}).Accept()
	default:
		return l.Listener.Accept()
	}
}

// viListenerInTrouble has a NIC whose listener fails for a while: the program is told once, and VIs connect then.
func viListenerInTrouble(t *conformance.T) {
	l := &troubledListener{must(net.Listen("tcp", "127.0.0.1:0"))(t), make(chan struct{}, 3)}
	h := newVIHost(t, vipl.Config{Listener: l})
	for range cap(l.trouble) {
		l.trouble <- struct{}{}
	}
	for range 2 {
		done := serveVI(h, h.vi(vipl.ServiceReliableDelivery), "server")
		dialVI(t, h).connects(viPeerCE(vipl.ServiceReliableDelivery, "server"), done)
	}
	e := receive(t, h.errors, "nothing is told")
	require.Equal(t, []any{vipl.ErrorListen, vipl.ResourceNic}, []any{e.ErrorCode, e.ResourceCode})
	require.True(t, e.ViHandle == nil && e.NicHandle == h.nic)
	require.ErrorIs(t, e.Err, second((&faultyListener{fails: 1}).Accept()))
	require.Empty(t, l.trouble)
	require.Empty(t, h.errors, "once a second at most")
}
