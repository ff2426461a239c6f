package cases

import (
	"context"
	"fmt"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/vitcp"
	viend "github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/vipl"
)

// guardsVI are the same of VIs.
var guardsVI = []conformance.Case{
	apiCase("2.2.2.2.2/vi-ends-within-a-message", eachLevel(viEndsWithinAMessage), "VT-2.2.2.2.2-M2"),
	apiCase("4.3/vi-port-free-again", viPortFreeAgain, "VA-4.3-M3"),
	apiCase("3.2/vi-receives-of-before", viReceivesOfBefore, "PT-3.2-M8", "VT-3.3-M3"),
	apiCase("4/vi-peers-of-one-nic", viPeersOfOneNIC, "PT-4-M1"),
}

// viEndsWithinAMessage has the peer close between two segments of a message: what has come of it is told as a
// part, and the connection as lost.
func viEndsWithinAMessage(t *conformance.T, l viLevel) {
	r := newVIRig(t, viSetup{level: l.level, receives: 2})
	s := r.message(viSegment{kind: viSend, payload: []byte("begun")})
	r.put(s)
	require.NoError(t, r.conn.Close())
	r.received(r.v, r.receives[0], viDone|viTransport|viPartial|viOpReceive)
	r.received(r.v, r.receives[1], viDone|viFlushed|viOpReceive)
	require.Equal(t, vipl.StateError, r.state(r.v))
	e := receive(t, r.errors, "nothing is reported")
	require.Equal(t, vipl.ErrorConnLost, e.ErrorCode)
	var end *viend.EndError
	require.ErrorAs(t, e.Err, &end, "why the connection is over")
	require.Equal(t, viend.CauseLost, end.Cause)
}

// viPortFreeAgain has a NIC that listens when it is asked to find its port taken: it says so, and listens once
// the port is free.
func viPortFreeAgain(t *conformance.T) {
	taken, host := takeVIPort(t)
	h := newVIHostAt(t, host, vipl.Config{})
	for range 2 {
		_, err := h.nic.ConnectWait(t.Context(), h.address("server"))
		require.ErrorIs(t, err, vipl.ErrInUse, "ConnectWait")
	}
	require.NoError(t, taken.Close())
	done := serveVI(h, h.vi(vipl.ServiceUnreliable), "server")
	var p *viPeer
	eventually(t, func() bool {
		select {
		case err := <-done:
			require.NoError(t, err, "the port is free")
		default:
		}
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "tcp", taken.Addr().String())
		if err == nil {
			p = newVIPeer(t, c)
		}
		return err == nil
	}, "it listens")
	p.connects(viPeerCE(vipl.ServiceUnreliable, "server"), done)
}

// takeVIPort listens on the port of VIs at an address of this host that nobody else has in mind, as far as the
// system has several.
func takeVIPort(t *conformance.T) (l net.Listener, host string) {
	for range 8 {
		host = fmt.Sprintf("127.%d.%d.%d", 2+t.Rand().IntN(250), t.Rand().IntN(250), 1+t.Rand().IntN(250))
		var err error
		if l, err = net.Listen("tcp", fmt.Sprintf("%s:%d", host, vitcp.DefaultPort)); err == nil {
			break
		}
	}
	if l == nil {
		host = "127.0.0.1"
		l = must(net.Listen("tcp", fmt.Sprintf("%s:%d", host, vitcp.DefaultPort)))(t, "the port of VIs")
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, host
}

// viPeersOfOneNIC connects two VIs peer to peer that have their address and their port in common: what tells them
// apart is their discriminators. A VI that has none is told from others by that.
func viPeersOfOneNIC(t *conformance.T) {
	h := newVIHost(t, vipl.Config{})
	for names := range inTurn(t, "%v", [][2]string{{"one", "two"}, {"two", "one"}, {"", "two"}}) {
		var vis [2]*vipl.Vi
		for i := range vis {
			vis[i] = h.vi(vipl.ServiceReliableDelivery)
			ctx, cancel := context.WithTimeout(t.Context(), patience(t))
			t.Cleanup(cancel)
			require.NoError(t, vis[i].ConnectPeerRequest(ctx, h.address(names[i]), h.address(names[1-i])))
		}
		for _, v := range vis {
			must(v.ConnectPeerWait(t.Context()))(t, "the two come together")
		}
		d := h.recv(vis[1], h.data(0, 8))
		h.sends(vis[0], h.data(40, 8))
		h.received(vis[1], d, viDone|viOpReceive)
		require.Equal(t, h.mem[40:48], h.mem[:8])
	}
}

// viReceivesOfBefore connects a VI on whose Receive Queue Descriptors of the connection before are: they have been
// flushed, so the peer is told of those alone that wait for a message, at either end.
func viReceivesOfBefore(t *conformance.T) {
	const flushed, waiting = 3, 2
	for asks := range inTurn(t, "the VI asks: %v", []bool{false, true}) {
		near, far := net.Pipe()
		t.Cleanup(func() { _ = near.Close() })
		r := newVIRig(t, viSetup{
			level: vipl.ServiceReliableDelivery, receives: flushed,
			nic: vipl.Config{Dial: func(context.Context, string, string) (net.Conn, error) { return near, nil }},
		})
		require.NoError(t, r.conn.Close()) // so that the end waits for nobody, as below
		require.NoError(t, r.v.Disconnect())
		for range waiting {
			r.receives = append(r.receives, r.recv(r.v, r.data(0, 8)))
		}
		var tells viSegment
		if asks {
			r.viPeer = newVIPeer(t, far)
			r.callsServer()
			tells = r.req
			require.NoError(t, r.answers(r.agrees()), "ConnectRequest")
		} else {
			ce := viPeerCE(vipl.ServiceReliableDelivery, "server")
			r.viPeer = dialVI(t, r.viHost)
			tells = r.connects(ce, serveVI(r.viHost, r.v, ce.called))
		}
		require.EqualValues(t, waiting, tells.posted, "receives, in %v", &tells)
		for range waiting {
			r.send("now")
		}
		for i, d := range r.receives {
			r.received(r.v, d, either[uint32](i < flushed, viDone|viFlushed|viOpReceive, viDone|viOpReceive))
		}
		require.NoError(t, r.conn.Close())
	}
}
