package cases

import (
	"bytes"
	"net"
	"net/netip"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// pa4 is what connecting and the states of the VI Architecture, 4 and 5, say without a must.
var pa4 = []conformance.Case{
	apiCase("4.1/vi-nobody-there", viNobodyThere, "PA-4.1-M1", "PA-5.2-M2"),
	apiCase("4.1/vi-rejected", viRejected, "PA-4.1-M1", "PA-5.2-M2"),
	apiCase("4.2/vi-disconnect-completes-all", viDisconnectCompletes, "PA-4.2-M1", "PA-5.3-M1", "PA-10.2-M10"),
	apiCase("5.1/vi-idle-flushes", viIdleFlushes, "PA-5.1-M3", "PA-5.1-M4", "PA-4.2-M1", "PA-10.2-M10"),
	apiCase("5.1/vi-idle-errors-told-later", viIdleErrors, "PA-5.1-M5"),
	apiCase("5.1/vi-accept-is-pending", viAcceptPending, "PA-5.1-M2", "PA-5.2-M5", "PA-5.2-M6"),
	apiCase("5.2/vi-disconnect-while-pending", viDisconnectPending, "PA-5.2-M3", "PA-5.2-M5", "PA-5.2-M6", "PA-4.2-M1"),
	apiCase("5.2/vi-transport-error-while-pending", viPendingTransportError, "PA-5.2-M4", "PA-5.4-M1", "PA-5.4-M2"),
	apiCase("5.4/vi-any-error-ends-all", viAnyError,
		"PA-2.5.2-M3", "PA-2.5.3-M3", "PA-5.4-M1", "PA-5.4-M2", "PA-5.4-M3"),
}

// viNobodyThere calls VIs that do not wait, and a port that is no VI's at all.
func viNobodyThere(t *conformance.T) {
	h, other := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{MatchTimeout: -1})
	v := h.vi(vipl.ServiceReliableDelivery)
	d := h.recv(v, h.data(0, 8))
	fails := func(want vipl.Return, to *vipl.NetAddress, what string) {
		viCode(t, want, second(v.ConnectRequest(t.Context(), nil, to)), what)
		require.Equal(t, vipl.StateIdle, h.state(v), what)
	}
	fails(vipl.ErrReject, other.address("server"), "a NIC with no VI")
	w := other.vi(vipl.ServiceReliableDelivery)
	fails(vipl.ErrReject, other.address("server"), "a VI that does not wait")
	server := newVIHost(t, vipl.Config{})
	connectVIs(other, w, server, server.vi(vipl.ServiceReliableDelivery))
	fails(vipl.ErrReject, other.address("client"), "a VI that is connected")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := netip.MustParseAddrPort(l.Addr().String())
	require.NoError(t, l.Close())
	fails(vipl.ErrResource, vipl.NewNetAddress(at, []byte("server")), "no NIC")

	t.Part("another discriminator than who waits")
	asking := newVIHost(t, vipl.Config{})
	done := serveVI(asking, asking.vi(vipl.ServiceReliableDelivery), "server")
	ctx, cancel := vipl.TimeoutContext(t.Context(), 20)
	defer cancel()
	_, err = v.ConnectRequest(ctx, nil, asking.address("serveR"))
	viCode(t, vipl.ErrTimeout, err, "ConnectRequest while the request may still find its match")
	require.Equal(t, vipl.StateIdle, h.state(v))
	_, err = v.ConnectRequest(t.Context(), nil, asking.address("server"))
	require.NoError(t, err, "to who waits")
	require.NoError(t, <-done)
	require.Equal(t, vipl.StateConnected, other.state(w))
	require.False(t, d.Done())
}

// viRejected answers a request by a ConnectReject, or a ConnectNoMatch.
func viRejected(t *conformance.T) {
	for kind := range inTurn(t, "type %d", []byte{viReject, viNoMatch}) {
		r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
		d := r.recv(r.v, r.data(0, 8))
		r.put(viSegment{kind: kind, flags: viLast})
		viCode(t, vipl.ErrReject, <-r.done, "ConnectRequest")
		require.Equal(t, vipl.StateIdle, r.state(r.v))
		r.over()
		require.False(t, d.Done(), "the receive")
		require.Empty(t, r.errors)
	}
}

// viBusy is a VI with something posted that cannot be done: an RDMA Read without an answer
// where there are any, a Send that the peer has no receive for, an RDMA Write behind it, and
// two receives.
type viBusy struct {
	*viRig
	posted []*vipl.Descriptor
	ops    []uint32
}

func newVIBusy(t *conformance.T, level vipl.ReliabilityLevel) *viBusy {
	r := &viBusy{viRig: newVIRig(t, viSetup{
		level: level, receives: 2, vi: func(a *vipl.ViAttributes) { a.FlowControl = true },
	})}
	if level != vipl.ServiceUnreliable {
		r.posted, r.ops = append(r.posted, r.reads(r.v, r.remote(0), r.data(0, 8))), append(r.ops, viOpRead)
		r.get(viReadRequest)
	}
	r.posted = append(r.posted, r.sends(r.v, r.data(8, 8)), r.writes(r.v, r.remote(0), r.data(8, 8)))
	r.ops = append(r.ops, 0, viOpWrite)
	return r
}

// drained reads to the end of the connection, and expects that no Send or RDMA Write comes.
func (p *viPeer) drained() {
	for {
		b, err := p.raw()
		if err != nil {
			require.True(p.t, ended(err), "%v", err)
			_ = p.conn.Close()
			return
		}
		require.NotContains(p.t, []byte{viSend, viWrite}, b[1]&0x1F, "% x", b)
	}
}

// viDisconnectCompletes disconnects a VI with all of it posted.
func viDisconnectCompletes(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels) {
		r := newVIBusy(t, l.level)
		before := bytes.Clone(r.mem)
		done := make(chan error, 1)
		go func() { done <- r.v.Disconnect() }()
		r.drained()
		require.NoError(t, <-done)
		require.Equal(t, vipl.StateIdle, r.state(r.v))
		for i, d := range r.posted {
			require.Same(t, d, must(r.v.SendDone())(t))
			require.Equal(t, vipl.Status(viDone|viFlushed|r.ops[i]), d.Control.Status)
		}
		for _, d := range r.receives {
			require.Same(t, d, must(r.v.RecvDone())(t))
			require.Equal(t, vipl.Status(viDone|viFlushed|viOpReceive), d.Control.Status)
		}
		require.True(t, bytes.Equal(before, r.mem), "the memory")
		require.Empty(t, r.errors, "it was this end that wanted it")
		require.NoError(t, r.v.DestroyVi())
	}
}

// viIdleFlushes posts to an Idle VI, and disconnects it.
func viIdleFlushes(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels) {
		h := newVIHost(t, vipl.Config{})
		v := h.vi(l.level)
		require.NoError(t, v.Disconnect(), "with nothing posted")
		for range 2 {
			receives := []*vipl.Descriptor{h.recv(v, h.data(0, 8)), h.recv(v, h.data(8, 8))}
			for _, tr := range viTransfers {
				if tr.op == viOpRead && l.level == vipl.ServiceUnreliable {
					continue
				}
				d := h.desc()
				tr.set(d, h.remote(0), h.data(0, 1))
				h.post(v, d)
				got := must(v.SendDone())(t, "it is done when the call returns")
				require.Same(t, d, got)
				require.Equal(t, vipl.Status(viDone|viFlushed|tr.op), d.Control.Status)
			}
			h.notDone(v.RecvDone)
			require.NoError(t, v.Disconnect())
			for _, d := range receives {
				require.Same(t, d, must(v.RecvDone())(t))
				require.Equal(t, vipl.Status(viDone|viFlushed|viOpReceive), d.Control.Status)
			}
			require.Equal(t, vipl.StateIdle, h.state(v))
		}
		require.NoError(t, v.DestroyVi())
	}
}

// viIdleErrors meets an error that no Descriptor tells on an Idle VI, and connects it. An
// error of another VI comes in between.
func viIdleErrors(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[1:]) {
		r := newVIRig(t, viSetup{level: l.level})
		idle := r.vi(l.level)
		stray := new(vipl.Descriptor)
		stray.SetSend(r.data(0, 1))
		viCode(t, vipl.ErrInvalidParameter, idle.PostSend(stray, r.dh), "PostSend")
		require.Equal(t, vipl.StateIdle, r.state(idle))
		r.send("there is no receive")
		e := receive(t, r.errors, "nothing came")
		require.Same(t, r.v, e.ViHandle, "the first that is told")

		p, ce := dialVI(t, r.viHost), viPeerCE(l.level, "later")
		done := serveVI(r.viHost, idle, "later")
		p.connects(ce, done)
		r.told(vipl.ErrorDescriptor{
			ViHandle: idle, DescriptorPtr: stray, ResourceCode: vipl.ResourceDescriptor, ErrorCode: vipl.ErrorPostDesc,
		})
		require.Equal(t, vipl.StateConnected, r.state(idle), "it is of before")
	}
}

// pipeListener has one connection to accept, and none after it.
type pipeListener struct {
	net.Listener
	conns chan net.Conn
}

func (l *pipeListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		close(l.conns)
		return c, nil
	}
	return l.Listener.Accept()
}

// viAcceptPending has a ConnectAccept not get rid of its segment, and looks at the VI
// meanwhile.
func viAcceptPending(t *conformance.T) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close() })
	given := &pipeListener{l, make(chan net.Conn, 1)}
	given.conns <- near
	h := newVIHost(t, vipl.Config{Listener: given})
	v := h.vi(vipl.ServiceReliableDelivery)
	d := h.recv(v, h.data(0, 8))
	p, ce := newVIPeer(t, far), viPeerCE(vipl.ServiceReliableDelivery, "server")
	asked := make(chan *vipl.Conn, 1)
	go func() {
		if c, err := h.nic.ConnectWait(t.Context(), &vipl.NetAddress{Discriminator: []byte("server")}); err == nil {
			asked <- c
		}
	}()
	p.asks(ce)
	c := receive(t, asked, "nothing came")
	require.Equal(t, vipl.StateIdle, h.state(v))
	done := make(chan error, 1)
	go func() { done <- c.ConnectAccept(v) }()
	h.becomes(v, vipl.StateConnectPending)
	s := h.sends(v, h.data(0, 1))
	require.Same(t, s, must(v.SendDone())(t))
	require.Equal(t, vipl.Status(viDone|viFlushed), s.Control.Status)
	h.notDone(v.RecvDone)
	p.accepted(ce)
	require.NoError(t, receive(t, done, "nothing came"))
	require.Equal(t, vipl.StateConnected, h.state(v))
	p.send("now")
	h.received(v, d, viDone|viOpReceive)
}

// viDisconnectPending disconnects a VI whose ConnectRequest is not answered, and connects it
// then.
func viDisconnectPending(t *conformance.T) {
	r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	d := r.recv(r.v, r.data(0, 8))
	s := r.sends(r.v, r.data(0, 8))
	got := must(r.v.SendDone())(t)
	require.Same(t, s, got)
	require.Equal(t, vipl.Status(viDone|viFlushed), s.Control.Status)
	require.Equal(t, vipl.StateConnectPending, r.state(r.v))
	r.notDone(r.v.RecvDone)
	require.NoError(t, r.v.Disconnect())
	require.Equal(t, vipl.StateIdle, r.state(r.v))
	got = must(r.v.RecvDone())(t)
	require.Same(t, d, got)
	require.Equal(t, vipl.Status(viDone|viFlushed|viOpReceive), d.Control.Status)
	viCode(t, vipl.ErrResource, receive(t, r.done, "nothing came"), "ConnectRequest")
	r.over()

	p, ce := dialVI(t, r.viHost), viPeerCE(vipl.ServiceReliableDelivery, "server")
	served := serveVI(r.viHost, r.v, "server")
	p.connects(ce, served)
	require.Equal(t, vipl.StateConnected, r.state(r.v))
	require.Empty(t, r.errors)
}

// viPendingTransportError answers a ConnectRequest with what is no answer.
func viPendingTransportError(t *conformance.T) {
	for _, s := range named(t, "%s", map[string]viSegment{
		"another version":        {kind: viAccept, flags: viLast, version: 2, length: viHeaderLen, bare: true},
		"an accept without a CE": {kind: viAccept, flags: viLast, bare: true},
		"a Send":                 {kind: viSend, flags: viLast},
		"a NOP":                  {kind: viNOP, flags: viLast},
	}) {
		r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
		d := r.recv(r.v, r.data(0, 8))
		_, _ = r.conn.Write(s.octets(false)) // the VI may hang up on the header
		require.Error(t, receive(t, r.done, "nothing came"), "ConnectRequest")
		require.Equal(t, vipl.StateError, r.state(r.v))
		r.reported(r.v, vipl.ErrorConnLost, 0)
		r.received(r.v, d, viDone|viFlushed|viOpReceive)
		late := r.sends(r.v, r.data(0, 1))
		r.sent(r.v, late, viDone|viFlushed)
		late = r.recv(r.v, r.data(0, 1))
		r.received(r.v, late, viDone|viFlushed|viOpReceive)
		require.NoError(t, r.v.Disconnect())
		require.Equal(t, vipl.StateIdle, r.state(r.v))
	}
}

// viFaults are what breaks a reliable connection: octets of the peer, or something that the
// program does.
var viFaults = []struct {
	name string
	says func(r *viRig) viSegment
	does func(r *viRig)
	// passed is what may be overtaken at Reliable Delivery by what comes behind (6.3.1.1).
	passed bool
}{
	{name: "a message too long", says: func(*viRig) viSegment {
		return viSegment{kind: viSend, flags: viLast, payload: make([]byte, viSlot+1)}
	}},
	{name: "an aborted message", says: func(*viRig) viSegment { return viSegment{kind: viSend, flags: viLast | viError} }},
	{name: "an RDMA Write to nowhere", says: func(*viRig) viSegment {
		return viSegment{kind: viWrite, flags: viLast, rdma: viRDMA{1, 1, 1}, payload: []byte("x")}
	}},
	{name: "an RDMA Read from nowhere", passed: true, says: func(*viRig) viSegment {
		return viSegment{kind: viReadRequest, flags: viLast, rdma: viRDMA{1, 1, 1}}
	}},
	{name: "a number left out", says: func(r *viRig) viSegment { r.number++; return viSegment{kind: viSend, flags: viLast} }},
	{name: "a first segment that is none", says: func(*viRig) viSegment { return viSegment{kind: viSend, flags: viLast, offset: 1} }},
	{name: "another version", says: func(*viRig) viSegment { return viSegment{kind: viSend, flags: viLast, version: 2} }},
	{name: "type 9", says: func(*viRig) viSegment { return viSegment{kind: 9, flags: viLast} }},
	{name: "a ConnectReject", says: func(*viRig) viSegment { return viSegment{kind: viReject, flags: viLast} }},
	{name: "an answer to nothing", says: func(*viRig) viSegment { return viSegment{kind: viReadResponse, flags: viLast} }},
	{name: "the end", does: func(r *viRig) { require.NoError(r.t, r.conn.Close()) }},
	{name: "a Descriptor from nowhere", does: func(r *viRig) {
		d := new(vipl.Descriptor)
		d.SetSend()
		viCode(r.t, vipl.ErrInvalidParameter, r.v.PostSend(d, r.dh), "PostSend")
	}},
}

// viAnyError breaks connections in each way, with work on both queues, and goes on sending.
func viAnyError(t *conformance.T) {
	for l := range inTurn(t, "%s", viLevels[1:]) {
		for c := range inTurn(t, "%s", viFaults) {
			r := newVIBusy(t, l.level)
			before := bytes.Clone(r.mem[:viSlots])
			var b []byte
			if c.says != nil {
				s := r.message(c.says(r.viRig))
				b = s.octets(false)
			} else {
				c.does(r.viRig)
			}
			for _, s := range []viSegment{
				{kind: viWrite, flags: viLast, rdma: r.at(16, 4), payload: []byte("late")},
				{kind: viSend, flags: viLast, payload: []byte("late")},
			} {
				if s = r.message(s); !c.passed || l.level != vipl.ServiceReliableDelivery {
					b = append(b, s.octets(false)...)
				}
			}
			_, _ = r.conn.Write(b) // it may have closed
			if c.name != "the end" {
				r.drained()
			}
			receive(t, r.errors, "nothing came")
			require.Equal(t, vipl.StateError, r.state(r.v))
			for i, d := range r.posted {
				require.Same(t, d, must(r.v.SendWait(t.Context()))(t))
				require.NotZero(t, d.Control.Status.Errors(), "%v", d.Control.Status)
				require.Equal(t, vipl.Status(r.ops[i]), d.Control.Status.Op())
			}
			for _, d := range r.receives {
				require.Same(t, d, must(r.v.RecvWait(t.Context()))(t))
				require.NotZero(t, d.Control.Status.Errors(), "%v", d.Control.Status)
			}
			require.True(t, bytes.Equal(before, r.mem[:viSlots]), "the memory")
			r.sent(r.v, r.sends(r.v, r.data(0, 1)), viDone|viFlushed)
			r.received(r.v, r.recv(r.v, r.data(0, 1)), viDone|viFlushed|viOpReceive)
			require.NoError(t, r.v.Disconnect())
			require.Equal(t, vipl.StateIdle, r.state(r.v))
			require.Empty(t, r.errors, "told once")
			require.NoError(t, r.v.DestroyVi())
		}
	}
}
