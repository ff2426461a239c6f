package cases

import (
	"net"
	"net/netip"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// pt4 is what the VI/TCP draft, 4, says of connections between peers without a must.
var pt4 = []conformance.Case{
	apiCase("4/vi-higher-address-asks", viHigherAsks, "PT-4-M1"),
	apiCase("4/vi-lower-address-waits", viLowerWaits, "PT-4-M1"),
	apiCase("4/vi-no-match-again", viNoMatchAgain, "PT-4-M2"),
}

// viLow and viHigh are addresses of which the second is the higher one as a number, though
// not as text.
const (
	viLow  = "127.0.0.9"
	viHigh = "127.0.0.10"
)

// viNeighbour is a NIC at one address, and a raw peer's listener at another.
type viNeighbour struct {
	*viHost
	t      *conformance.T
	listen net.Listener
	there  *vipl.NetAddress // of the peer
}

func newVINeighbour(t *conformance.T, here, there string) *viNeighbour {
	l := must(net.Listen("tcp", there+":0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return &viNeighbour{
		viHost: newVIHostAt(t, here+":0", vipl.Config{}), t: t, listen: l,
		there: vipl.NewNetAddress(netip.MustParseAddrPort(l.Addr().String()), []byte("there")),
	}
}

// asked is the next connection of the NIC, and the request on it.
func (n *viNeighbour) asked() (*viPeer, viSegment) {
	_ = n.listen.(*net.TCPListener).SetDeadline(time.Now().Add(patience(n.t)))
	c := must(n.listen.Accept())(n.t, "a connection to the peer")
	p := newVIPeer(n.t, c)
	s := p.get(viRequest)
	require.NotZero(n.t, s.ce.attributes&viPeerToPeer, "the peer-to-peer bit")
	require.Equal(n.t, "here", s.ce.calling)
	require.Equal(n.t, "there", s.ce.called)
	return p, s
}

// agrees answers a request by a ConnectAccept.
func (p *viPeer) agrees(request viSegment) {
	ce := request.ce
	ce.options = viEndOfOptions
	s := p.message(viSegment{kind: viAccept, flags: viLast, ce: ce})
	p.says(s.octets(false))
}

// viHigherAsks connects a VI to a peer at a lower address.
func viHigherAsks(t *conformance.T) {
	n := newVINeighbour(t, viHigh, viLow)
	v := n.vi(vipl.ServiceReliableDelivery)
	require.NoError(t, v.ConnectPeerRequest(t.Context(), n.address("here"), n.there))
	p, s := n.asked()
	p.agrees(s)
	require.NoError(t, second(v.ConnectPeerWait(t.Context())))
	require.Equal(t, vipl.StateConnected, n.state(v))
	n.sends(v, n.data(0, 4))
	require.Equal(t, n.mem[:4], p.get(viSend).payload)
}

// viLowerWaits connects a VI to a peer at a higher address, which asks. The NIC has made no
// connection by itself.
func viLowerWaits(t *conformance.T) {
	n := newVINeighbour(t, viLow, viHigh)
	v := n.vi(vipl.ServiceReliableDelivery)
	require.NoError(t, v.ConnectPeerRequest(t.Context(), n.address("here"), n.there))
	host := must(n.address("").AddrPort())(t)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(viHigh)}}
	c := must(d.DialContext(t.Context(), "tcp", host.String()))(t)
	p, ce := newVIPeer(t, c), viPeerCE(vipl.ServiceReliableDelivery, "here")
	ce.calling = "there"
	ce.attributes |= viPeerToPeer
	p.asks(ce)
	require.NotZero(t, p.accepted(ce).ce.attributes&viPeerToPeer)
	require.NoError(t, second(v.ConnectPeerWait(t.Context())))
	require.Equal(t, vipl.StateConnected, n.state(v))

	mine := must(net.Dial("tcp", n.listen.Addr().String()))(t)
	defer mine.Close()
	first := must(n.listen.Accept())(t)
	defer first.Close()
	require.Equal(t, mine.LocalAddr().String(), first.RemoteAddr().String(), "the first connection to the peer")
}

// viNoMatchAgain answers by ConnectNoMatch until the third attempt, and for ever.
func viNoMatchAgain(t *conformance.T) {
	n := newVINeighbour(t, viHigh, viLow)
	v := n.vi(vipl.ServiceReliableDelivery)
	refuse := func() {
		p, _ := n.asked()
		p.put(viSegment{kind: viNoMatch, flags: viLast})
		p.over()
	}
	require.NoError(t, v.ConnectPeerRequest(t.Context(), n.address("here"), n.there))
	refuse()
	refuse()
	require.Equal(t, vipl.StateConnectPending, n.state(v))
	p, s := n.asked()
	p.agrees(s)
	_, err := v.ConnectPeerWait(t.Context())
	require.NoError(t, err)

	t.Part("until the time is over")
	w := n.vi(vipl.ServiceReliableDelivery)
	ctx, cancel := vipl.TimeoutContext(t.Context(), vipl.Infinite)
	require.NoError(t, w.ConnectPeerRequest(ctx, n.address("here"), n.there))
	for range 3 {
		refuse()
	}
	cancel()
	_, err = w.ConnectPeerWait(t.Context())
	require.Error(t, err)
	require.Equal(t, vipl.ErrTimeout, vipl.ReturnOf(err))
	require.Equal(t, vipl.StateIdle, n.state(w))

	t.Part("a client has one attempt")
	r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	r.put(viSegment{kind: viNoMatch, flags: viLast})
	viCode(t, vipl.ErrReject, <-r.done, "ConnectRequest")
}
