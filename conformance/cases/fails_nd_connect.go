package cases

import (
	"context"
	"net/netip"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

// failsNDConnect are the states of NetworkDirect's connectors and listeners, and connecting that fails: it can be tried
// again with the same objects.
var failsNDConnect = []conformance.Case{
	apiCase("7.1.2/nd-connector-states", ndConnectorStates, "R5044-7.1.2-M7"),
	apiCase("7.1.2/nd-connect-fails", ndConnectFails, "R5044-7.1.2-M7"),
	apiCase("7.1.2/nd-accept-fails", ndAcceptFails, "R5044-7.1.2-M7"),
	apiCase("7.1.2/nd-accepted-and-left", ndAcceptedAndLeft, "R5044-7.1.2-M7"),
	apiCase("7.1.2/nd-listener-states", ndListenerStates, "R5044-7.1.2-M2"),
}

// ndListening is a listener of a host, and its address.
func ndListening(h *ndHost) (*nd2.Listener, netip.AddrPort) {
	l := must(h.adapter.CreateListener())(h.t, "CreateListener")
	h.t.Cleanup(func() { _ = l.Close() })
	require.NoError(h.t, l.Bind(ndLoopback), "Bind")
	require.NoError(h.t, l.Listen(0), "Listen")
	return l, must(l.GetLocalAddress())(h.t)
}

// asking has a connect to a listener of b, whose connector has the request then. The channel has what Connect came to.
func ndAsking(a, b *ndHost, private []byte) <-chan error {
	l, at := ndListening(b)
	done := make(chan error, 1)
	go func() { done <- a.conn.Connect(a.t.Context(), a.qp, at, 3, 5, private) }()
	require.NoError(a.t, l.GetConnectionRequest(a.t.Context(), b.conn), "GetConnectionRequest")
	return done
}

// ndConnectorStates calls each method in each state of a connector.
func ndConnectorStates(t *conformance.T) {
	a, b := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	bg := t.Context()
	somewhere := netip.MustParseAddrPort("127.0.0.1:9")
	l, _ := ndListening(b)
	states := func(state string, h *ndHost, not map[string]nd2.Status) {
		c := h.conn
		for name, call := range map[string]func() error{
			"Bind":             func() error { return c.Bind(ndLoopback) },
			"Connect":          func() error { return c.Connect(bg, h.qp, somewhere, 1, 1, nil) },
			"CompleteConnect":  func() error { return c.CompleteConnect(bg) },
			"Accept":           func() error { return c.Accept(bg, h.qp, 1, 1, nil) },
			"Reject":           func() error { return c.Reject(nil) },
			"GetReadLimits":    func() error { _, _, err := c.GetReadLimits(); return err },
			"GetPrivateData":   func() error { return second(c.GetPrivateData()) },
			"GetLocalAddress":  func() error { return second(c.GetLocalAddress()) },
			"GetPeerAddress":   func() error { return second(c.GetPeerAddress()) },
			"NotifyDisconnect": func() error { return c.NotifyDisconnect(bg) },
			"Disconnect":       func() error { return c.Disconnect(bg) },
			"a request": func() error {
				if h != b {
					return nd2.ErrConnectionActive
				}
				return l.GetConnectionRequest(bg, c)
			},
		} {
			want, refused := not[name]
			if refused {
				assert.ErrorIs(t, call(), want, "%s, %s", state, name)
			} else if name[0] == 'G' {
				assert.NoError(t, call(), "%s, %s", state, name)
			}
		}
	}
	none := nd2.ErrConnectionInvalid
	states("unused", a, map[string]nd2.Status{
		"CompleteConnect": none, "Accept": none, "Reject": none, "GetReadLimits": none, "GetPrivateData": none,
		"GetLocalAddress": none, "GetPeerAddress": none, "NotifyDisconnect": none, "Disconnect": none,
	})
	done := ndAsking(a, b, []byte("caller"))
	states("given a request", b, map[string]nd2.Status{
		"Bind": nd2.ErrAddressAlreadyExists, "Connect": nd2.ErrConnectionActive, "CompleteConnect": none, "GetLocalAddress": none,
		"NotifyDisconnect": none, "Disconnect": none, "a request": nd2.ErrConnectionActive,
	})
	in, out, err := b.conn.GetReadLimits()
	require.NoError(t, err)
	require.Equal(t, []int{5, 3}, []int{in, out}, "what the peer asks for, and what it answers")
	require.Equal(t, "caller", string(must(b.conn.GetPrivateData())(t)))
	require.NoError(t, b.conn.Accept(bg, b.qp, 16, 2, []byte("callee")))
	require.NoError(t, <-done)
	active := map[string]nd2.Status{
		"Bind": nd2.ErrAddressAlreadyExists, "Connect": nd2.ErrConnectionActive, "Accept": none,
	}
	states("accepted", a, active)
	require.ErrorIs(t, a.qp.Send(1, nil, 0), none, "the program has not completed it")
	require.NoError(t, a.conn.CompleteConnect(bg))
	require.Equal(t, "callee", string(must(a.conn.GetPrivateData())(t)))
	in, out, err = a.conn.GetReadLimits()
	require.NoError(t, err)
	require.Equal(t, []int{2, 16}, []int{in, out}, "what the peer asks for, and what it answers")
	active["CompleteConnect"], active["Reject"], active["a request"] = none, none, nd2.ErrConnectionActive
	states("connected", a, active)
	states("connected", b, active)
	for _, of := range [][2]*ndHost{{a, b}, {b, a}} {
		require.Equal(t, must(of[0].conn.GetLocalAddress())(t), must(of[1].conn.GetPeerAddress())(t))
	}
	require.NoError(t, a.conn.Disconnect(bg))
	b.over()
	active["Disconnect"] = none
	states("disconnected", a, active)
	require.NoError(t, b.conn.Disconnect(bg), "the peer was first")
	states("disconnected", b, active)
}

// ndConnectFails has Connect fail in each way, and then succeed.
func ndConnectFails(t *conformance.T) {
	a, b := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	l, at := ndListening(b)
	nobody := netip.MustParseAddrPort(nobodyListens(t).String())
	taken := newNDHost(t, ndShape{})
	connectND(taken, b, b.pair(b, ndShape{depth: 1, sge: 1}), b.connector())
	occupied, busy := ndListening(a)
	defer func() { _ = occupied.Close() }()
	canceled, stop := context.WithCancel(t.Context())
	stop()
	held := t.Held()
	connect := func(c *nd2.Connector, qp *nd2.QueuePair, to netip.AddrPort, private int) error {
		return c.Connect(t.Context(), qp, to, 1, 1, make([]byte, private))
	}
	bound := a.connector()
	require.NoError(t, bound.Bind(busy), "whether it is free shows in Connect")
	second := a.pair(a, ndShape{depth: 1, sge: 1, inline: 1})
	require.NoError(t, second.Close())
	for name, w := range named(t, "%s", map[string]struct {
		want nd2.Status
		call func() error
	}{
		"too much private data":       {nd2.ErrInvalidBufferSize, func() error { return connect(a.conn, a.qp, at, 509) }},
		"no address":                  {nd2.ErrInvalidAddress, func() error { return connect(a.conn, a.qp, netip.AddrPort{}, 0) }},
		"no port":                     {nd2.ErrInvalidAddress, func() error { return connect(a.conn, a.qp, netip.AddrPortFrom(at.Addr(), 0), 0) }},
		"any address":                 {nd2.ErrInvalidAddress, func() error { return connect(a.conn, a.qp, netip.MustParseAddrPort("0.0.0.0:7"), 0) }},
		"a multicast address":         {nd2.ErrInvalidAddress, func() error { return connect(a.conn, a.qp, netip.MustParseAddrPort("224.0.0.1:7"), 0) }},
		"no queue pair":               {nd2.ErrInvalidParameter1, func() error { return connect(a.conn, nil, at, 0) }},
		"another adapter's":           {nd2.ErrInvalidParameter1, func() error { return connect(a.conn, b.qp, at, 0) }},
		"a queue pair that is taken":  {nd2.ErrConnectionActive, func() error { return connect(taken.connector(), taken.qp, at, 0) }},
		"nobody listens":              {nd2.ErrConnectionRefused, func() error { return connect(a.conn, a.qp, nobody, 0) }},
		"the local address is in use": {nd2.ErrSharingViolation, func() error { return connect(bound, a.qp, at, 0) }},
		"its context has ended":       {nd2.ErrCanceled, func() error { return a.conn.Connect(canceled, a.qp, at, 1, 1, nil) }},
		"it is rejected": {nd2.ErrConnectionRefused, func() error {
			c, done := b.connector(), make(chan error, 1)
			go func() { done <- connect(a.conn, a.qp, at, 0) }()
			require.NoError(t, l.GetConnectionRequest(t.Context(), c))
			require.ErrorIs(t, c.Reject(make([]byte, 509)), nd2.ErrInvalidBufferSize)
			require.NoError(t, c.Reject(fill(make([]byte, 508), 3)))
			require.ErrorIs(t, c.Reject(nil), nd2.ErrConnectionInvalid, "twice")
			return <-done
		}},
	}) {
		for range 2 {
			require.ErrorIs(t, w.call(), w.want)
		}
		if name == "it is rejected" {
			require.Equal(t, fill(make([]byte, 508), 3), must(a.conn.GetPrivateData())(t), "what it was told")
		}
	}
	require.ErrorIs(t, bound.Bind(netip.MustParseAddrPort("192.0.2.1:0")), nd2.ErrInvalidAddress)
	require.ErrorIs(t, bound.Bind(netip.AddrPort{}), nd2.ErrInvalidAddress)
	require.NoError(t, occupied.Close())
	eventually(t, func() bool { return t.Held()["nd2 adapter: listener"] == held["nd2 adapter: listener"]-1 }, "the listener goes")
	require.NoError(t, bound.Bind(ndLoopback))
	accepted := nd2.Overlap(t.Context(), func(ctx context.Context) error {
		if err := l.GetConnectionRequest(ctx, b.conn); err != nil {
			return err
		}
		return b.conn.Accept(ctx, b.qp, 16, 16, make([]byte, 508))
	})
	a.conn = bound
	require.NoError(t, bound.Connect(t.Context(), a.qp, at, 16, 16, make([]byte, 508)), "all that it is needs is there still")
	require.NoError(t, bound.CompleteConnect(t.Context()))
	require.NoError(t, accepted.GetOverlappedResult(true))
	ndWorks(a, b)
}

// ndAcceptFails has Accept refuse what it is given: the request stands.
func ndAcceptFails(t *conformance.T) {
	a, b := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	other := newNDHost(t, ndShape{})
	taken, c := b.pair(b, ndShape{depth: 1, sge: 1}), b.connector()
	connectND(other, b, taken, c)
	done := ndAsking(a, b, nil)
	for range 2 {
		require.ErrorIs(t, b.conn.Accept(t.Context(), b.qp, 1, 1, make([]byte, 509)), nd2.ErrInvalidBufferSize)
		require.ErrorIs(t, b.conn.Accept(t.Context(), nil, 1, 1, nil), nd2.ErrInvalidParameter1)
		require.ErrorIs(t, b.conn.Accept(t.Context(), a.qp, 1, 1, nil), nd2.ErrInvalidParameter1)
		require.ErrorIs(t, b.conn.Accept(t.Context(), taken, 1, 1, nil), nd2.ErrConnectionActive)
	}
	require.NoError(t, b.conn.Accept(t.Context(), b.qp, 16, 16, nil))
	require.NoError(t, <-done)
	require.NoError(t, a.conn.CompleteConnect(t.Context()))
	ndWorks(a, b)
}

// ndAcceptedAndLeft has the active side not want the connection that its peer has accepted, in each way, and the peer end it
// before it is completed; and a passive side leave a request. Nothing waits for what does not come.
func ndAcceptedAndLeft(t *conformance.T) {
	for how := range inTurn(t, "%s", []string{"Reject", "Close", "Disconnect", "the peer ends it"}) {
		a, b := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
		done := ndAsking(a, b, nil)
		require.NoError(t, b.conn.Accept(t.Context(), b.qp, 16, 16, nil))
		require.NoError(t, <-done)
		want := nd2.ErrConnectionInvalid
		switch how {
		case "Reject":
			require.NoError(t, a.conn.Reject([]byte("no")))
		case "Close":
			require.NoError(t, a.conn.Close())
		case "Disconnect":
			require.NoError(t, a.conn.Disconnect(t.Context()))
		default:
			require.NoError(t, b.qp.Flush())
			require.NoError(t, a.conn.NotifyDisconnect(t.Context()))
			want = nd2.ErrConnectionAborted
		}
		b.over()
		require.ErrorIs(t, a.conn.CompleteConnect(t.Context()), want)
		require.ErrorIs(t, a.conn.CompleteConnect(t.Context()), nd2.ErrConnectionInvalid)
		require.ErrorIs(t, a.conn.Reject(nil), nd2.ErrConnectionInvalid)
		ndEnds(t, a.qp, b.qp)
	}
	t.Part("a request that nobody answers")
	a, b := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	done := ndAsking(a, b, nil)
	require.NoError(t, b.conn.Close())
	require.ErrorIs(t, receive(t, done, "the peer is not told"), nd2.ErrConnectionRefused)
	require.ErrorIs(t, b.conn.Accept(t.Context(), b.qp, 1, 1, nil), nd2.ErrConnectionInvalid)
	connectND(a, b, b.qp, b.connector())
	ndWorks(a, b)
}

// ndListenerStates calls the methods of a listener in a state that they are not for.
func ndListenerStates(t *conformance.T) {
	h, other := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	l := must(h.adapter.CreateListener())(t)
	state := nd2.ErrInvalidDeviceState
	require.ErrorIs(t, l.Listen(0), state)
	require.ErrorIs(t, second(l.GetLocalAddress()), state)
	require.ErrorIs(t, l.GetConnectionRequest(t.Context(), h.conn), state)
	require.ErrorIs(t, l.Bind(netip.AddrPort{}), nd2.ErrInvalidAddress)
	_, busy := ndListening(other)
	require.ErrorIs(t, l.Bind(busy), nd2.ErrSharingViolation)
	require.ErrorIs(t, l.Bind(netip.MustParseAddrPort("192.0.2.1:0")), nd2.ErrInvalidAddress)
	require.NoError(t, l.Bind(ndLoopback))
	require.ErrorIs(t, l.Bind(ndLoopback), state, "it has an address")
	require.ErrorIs(t, second(l.GetLocalAddress()), state)
	require.NoError(t, l.Listen(1))
	require.ErrorIs(t, l.Listen(1), state, "twice")
	require.ErrorIs(t, l.GetConnectionRequest(t.Context(), nil), nd2.ErrInvalidParameter1)
	require.ErrorIs(t, l.GetConnectionRequest(t.Context(), other.conn), nd2.ErrInvalidParameter1)
	canceled, stop := context.WithCancel(t.Context())
	stop()
	for range 2 { // the connector is unused behind it
		require.ErrorIs(t, l.GetConnectionRequest(canceled, h.conn), nd2.ErrCanceled)
	}
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.GetConnectionRequest(t.Context(), h.conn), nd2.ErrCanceled)
	require.ErrorIs(t, l.Bind(ndLoopback), state)
	require.ErrorIs(t, l.Listen(1), state)
	require.ErrorIs(t, second(l.GetLocalAddress()), state)
	unbound := must(h.adapter.CreateListener())(t)
	require.NoError(t, unbound.Bind(ndLoopback))
	require.NoError(t, unbound.Close(), "its address is free")
	connectND(other, h, h.qp, h.conn)
}
