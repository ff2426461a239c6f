package cases

import (
	"context"
	"net"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// A VI that is the active end, and connections with CRC.

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

// newCRCRig is a rig with CRCs.
func newCRCRig(t *conformance.T, level vipl.ReliabilityLevel, receives int) *viRig {
	return newVIRig(t, viSetup{
		level: level, receives: receives, nic: vipl.Config{CRC: true},
		ce: func(c *viCE) { c.options = viCRCOption },
	})
}

// spoilt is a segment of which an octet, counted from its end, is not what it was.
func spoilt(s viSegment, back int) []byte {
	b := s.octets(true)
	b[len(b)-back] ^= 0x40
	return b
}

// acked is what a segment says of the peer's messages.
func acked(s viSegment) []uint32 { return []uint32{s.ack, uint32(s.code)} }
