package cases

import (
	"context"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// viCaller is a VI that asks a raw peer for a connection.
type viCaller struct {
	*viHost
	*viPeer
	t    *conformance.T
	v    *vipl.Vi
	req  viSegment
	done chan error
}

// newVICaller reads the ConnectRequest of a VI and does not answer it.
func newVICaller(t *conformance.T, level vipl.ReliabilityLevel, c vipl.Config) *viCaller {
	near, far := net.Pipe()
	c.Dial = func(context.Context, string, string) (net.Conn, error) { return near, nil }
	r := &viCaller{t: t, viHost: newVIHost(t, c), viPeer: newVIPeer(t, far), done: make(chan error, 1)}
	t.Cleanup(func() { _ = near.Close() })
	r.v = r.vi(level)
	go func() {
		_, err := r.v.ConnectRequest(t.Context(), r.address("client"), r.address("server"))
		r.done <- err
	}()
	r.req = r.get(viRequest)
	return r
}

// agrees is a good ConnectAccept.
func (r *viCaller) agrees() viCE {
	ce := r.req.ce
	ce.options = viEndOfOptions
	return ce
}

// answers sends a ConnectAccept and returns what the ConnectRequest came to.
func (r *viCaller) answers(ce viCE) error {
	s := r.message(viSegment{kind: viAccept, flags: viLast, ce: ce})
	r.says(s.octets(hasCRCOption(ce.options)))
	return <-r.done
}

// viCheckedActive asks with addresses that cannot be, and answers with a ConnectAccept of
// other VIs or attributes.
func viCheckedActive(t *conformance.T, h *viHost) {
	v := h.vi(vipl.ServiceReliableDelivery)
	for name, a := range map[string][2]*vipl.NetAddress{
		"a local address of somebody else": {{HostAddress: []byte{192, 0, 2, 1}}, h.address("x")},
		"no remote address":                {nil, {Discriminator: []byte("x")}},
		"a remote address of 5 octets":     {nil, {HostAddress: []byte{1, 2, 3, 4, 5}}},
		"a discriminator of 65 octets":     {nil, {HostAddress: []byte{127, 0, 0, 1}, Discriminator: make([]byte, 65)}},
	} {
		viCode(t, vipl.ErrInvalidParameter, second(v.ConnectRequest(t.Context(), a[0], a[1])), name)
		require.Equal(t, vipl.StateIdle, h.state(v), name)
	}
	for _, spoil := range named(t, "%s", map[string]func(*viCE){
		"another calling VI": func(c *viCE) { c.calling = "clienT" },
		"another called VI":  func(c *viCE) { c.called = "serveR" },
		"another level":      func(c *viCE) { c.attributes ^= viDelivery | viReception },
		"a larger MTU":       func(c *viCE) { c.mtu++ },
		"an MTU of nothing":  func(c *viCE) { c.mtu = 0 },
		"a CRC unasked":      func(c *viCE) { c.options = viCRCOption },
	}) {
		r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
		ce := r.agrees()
		spoil(&ce)
		require.Error(t, r.answers(ce), "ConnectRequest")
		require.NotEqual(t, vipl.StateConnected, r.state(r.v))
		r.over()
	}
	t.Part("nothing wrong")
	r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	require.NoError(t, r.answers(r.agrees()))
}
