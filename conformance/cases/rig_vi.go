package cases

import (
	"context"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// viRig is a VI under test, connected with a raw peer.
type viRig struct {
	*viHost
	*viPeer
	t *conformance.T
	v *vipl.Vi
	// accept is the ConnectAccept: of the VI, or of the peer if the VI is the active end.
	accept viSegment
	// receives were posted before connecting.
	receives []*vipl.Descriptor
}

// viSetup is how a rig is made.
type viSetup struct {
	level    vipl.ReliabilityLevel
	nic      vipl.Config
	vi       func(*vipl.ViAttributes)
	ce       func(*viCE) // of the peer
	receives int         // of 1024 octets each, from octet 32768 of the memory on
	// pipe has the VI be the active end, over a net.Pipe: what it sends has not left
	// before the peer reads it.
	pipe bool
}

// viLevel is a reliability level, with its attribute bit.
type viLevel struct {
	name  string
	level vipl.ReliabilityLevel
	bit   uint16
}

// viLevels are the three levels.
var viLevels = []viLevel{
	{"Unreliable Delivery", vipl.ServiceUnreliable, viUnreliable},
	{"Reliable Delivery", vipl.ServiceReliableDelivery, viDelivery},
	{"Reliable Reception", vipl.ServiceReliableReception, viReception},
}

const viSlot, viSlots = 1024, 32768

// slot is where pre-posted receive i is in the memory.
func (r *viRig) slot(i int) []byte { return r.mem[viSlots+i*viSlot:][:viSlot] }

// newVIRig makes a rig.
func newVIRig(t *conformance.T, s viSetup) *viRig {
	r := &viRig{t: t}
	var near, far net.Conn
	if s.pipe {
		near, far = net.Pipe()
		t.Cleanup(func() { _ = near.Close() })
		s.nic.Dial = func(context.Context, string, string) (net.Conn, error) { return near, nil }
	}
	r.viHost = newVIHost(t, s.nic)
	r.v = r.vi(s.level, func(a *vipl.ViAttributes) {
		if s.vi != nil {
			s.vi(a)
		}
	})
	for i := range s.receives {
		r.receives = append(r.receives, r.recv(r.v, r.data(viSlots+i*viSlot, viSlot)))
	}
	ce := viPeerCE(s.level, "server")
	if s.ce != nil {
		s.ce(&ce)
	}
	if s.pipe {
		r.viPeer = newVIPeer(t, far)
		r.answers(ce)
	} else {
		r.viPeer = dialVI(t, r.viHost)
		r.calls(ce)
	}
	return r
}

// viPeerCE is what a raw peer says that allows everything.
func viPeerCE(level vipl.ReliabilityLevel, called string) viCE {
	return viCE{
		attributes: viLevels[level].bit | viWriteEnable | viReadEnable, window: 4, mtu: viMemory,
		calling: "client", called: called, options: viEndOfOptions,
	}
}

// dialVI is a raw peer on a TCP connection to a NIC.
func dialVI(t *conformance.T, h *viHost) *viPeer {
	host := must(h.address("").AddrPort())(t)
	var d net.Dialer
	c := must(d.DialContext(t.Context(), "tcp", host.String()))(t, "a TCP connection to the NIC")
	return newVIPeer(t, c)
}

// asks sends a ConnectRequest.
func (p *viPeer) asks(ce viCE) {
	s := p.message(viSegment{kind: viRequest, flags: viLast, ce: ce})
	p.says(s.octets(hasCRCOption(ce.options)))
}

// accepted reads the ConnectAccept.
func (p *viPeer) accepted(ce viCE) viSegment {
	s := p.get(viAccept)
	p.subject = s.number
	p.crc = hasCRCOption(ce.options) && hasCRCOption(s.ce.options)
	return s
}

// calls connects the peer to the VI.
func (r *viRig) calls(ce viCE) { r.accept = r.connects(ce, serveVI(r.viHost, r.v, ce.called)) }

// serveVI waits for a request and accepts it with v.
func serveVI(h *viHost, v *vipl.Vi, discriminator string) <-chan error {
	done := make(chan error, 1)
	go func() {
		c, err := h.nic.ConnectWait(h.t.Context(), h.address(discriminator))
		if err == nil {
			err = c.ConnectAccept(v)
		}
		done <- err
	}()
	return done
}

// answers is the passive end, for a VI that is the active one.
func (r *viRig) answers(ce viCE) {
	done := make(chan error, 1)
	go func() {
		_, err := r.v.ConnectRequest(r.t.Context(), r.address("client"), r.address("server"))
		done <- err
	}()
	req := r.get(viRequest)
	r.subject = req.number
	r.accept = r.message(viSegment{kind: viAccept, flags: viLast, ce: ce})
	r.crc = hasCRCOption(ce.options) && hasCRCOption(req.ce.options)
	r.says(r.accept.octets(hasCRCOption(ce.options)))
	require.NoError(r.t, <-done, "ConnectRequest")
}

// connects asks a VI that is served, and is accepted.
func (p *viPeer) connects(ce viCE, done <-chan error) viSegment {
	p.asks(ce)
	accept := p.accepted(ce)
	require.NoError(p.t, <-done, "ConnectAccept")
	return accept
}

// takes sends a message, which completes a receive so.
func (r *viRig) takes(payload string, d *vipl.Descriptor, status uint32) {
	r.send(payload)
	r.received(r.v, d, status)
}
