package cases

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// The raw peer of a VI, and the VI under test at the other end of its connection.

// viPeer is a raw peer of a VI: it sends what it is told, right or wrong, and reads
// segments by itself.
type viPeer struct {
	t    *conformance.T
	conn net.Conn
	crc  bool // the connection has CRCs
	// number is that of its last message.
	number uint32
	// subject is that of the other end's segment of establishment.
	subject uint32
}

// newVIPeer is a raw peer on a connection, which ends with the case.
func newVIPeer(t *conformance.T, c net.Conn) *viPeer {
	t.Cleanup(func() { _ = c.Close() })
	return &viPeer{t: t, conn: t.Trace().Conn(c), number: 0x70FFFFFF}
}

func (p *viPeer) says(b []byte) { require.NoError(p.t, second(p.conn.Write(b)), "sending") }

// put sends a segment.
func (p *viPeer) put(s viSegment) { p.says(s.octets(p.crc)) }

// message gives a segment the number of the next message.
func (p *viPeer) message(s viSegment) viSegment {
	p.number++
	s.number = p.number
	return s
}

// send sends a Send of one segment, and returns its number.
func (p *viPeer) send(payload string) uint32 {
	p.put(p.message(viSegment{kind: viSend, flags: viLast, payload: []byte(payload)}))
	return p.number
}

// rdmaWrite sends an RDMA Write of one segment.
func (p *viPeer) rdmaWrite(to viRDMA, payload string) uint32 {
	to.length = uint32(len(payload))
	p.put(p.message(viSegment{kind: viWrite, flags: viLast, rdma: to, payload: []byte(payload)}))
	return p.number
}

// rdmaRead sends an RDMA Read Request.
func (p *viPeer) rdmaRead(from viRDMA) uint32 {
	p.put(p.message(viSegment{kind: viReadRequest, flags: viLast, rdma: from}))
	return p.number
}

// nop sends a NOP with these fields.
func (p *viPeer) nop(s viSegment) {
	s.kind, s.flags, s.number = viNOP, viLast, p.number
	p.put(s)
}

// raw reads the octets of one segment.
func (p *viPeer) raw() ([]byte, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(patience(p.t)))
	b := make([]byte, 4)
	if _, err := io.ReadFull(p.conn, b); err != nil {
		return nil, err
	}
	n := int(b[2])<<8 | int(b[3])
	require.GreaterOrEqual(p.t, n, viHeaderLen, "Segment Length")
	b = append(b, make([]byte, n-len(b))...)
	_, err := io.ReadFull(p.conn, b[4:])
	return b, err
}

// next is the next segment.
func (p *viPeer) next() viSegment {
	b, err := p.raw()
	if err != nil {
		p.t.Fatalf("instead of a segment: %s", failure(err))
	}
	s, err := readVI(b, p.crc)
	require.NoError(p.t, err, "% x", b)
	return s
}

// get is the next segment, of a kind.
func (p *viPeer) get(kind byte) viSegment {
	s := p.next()
	require.Equal(p.t, kind, s.kind, "%v", &s)
	return s
}

// whole is the next message, of a kind: all its segments.
func (p *viPeer) whole(kind byte) (parts []viSegment, payload []byte) {
	payload = []byte{}
	for s := p.get(kind); ; s = p.get(kind) {
		require.Equal(p.t, uint32(len(payload)), s.offset, "Data Offset of %v", &s)
		if len(parts) > 0 {
			require.Equal(p.t, parts[0].number, s.number, "Message Number of %v", &s)
		}
		parts = append(parts, s)
		payload = append(payload, s.payload...)
		if s.last() {
			return parts, payload
		}
	}
}

// answer is the answer to an RDMA Read. NOPs may come before it.
func (p *viPeer) answer(number uint32) []byte {
	s := p.next()
	for s.kind == viNOP {
		s = p.next()
	}
	var payload []byte
	for {
		require.Equal(p.t, []any{byte(viReadResponse), number, uint32(len(payload))}, []any{s.kind, s.number, s.offset}, "%v", &s)
		require.Zero(p.t, s.flags&viError, "Transmit Error")
		if payload = append(payload, s.payload...); s.last() {
			return payload
		}
		s = p.next()
	}
}

// over says that the connection ends, with nothing before that but NOPs, of which it returns the last.
func (p *viPeer) over() (nop viSegment) {
	for {
		b, err := p.raw()
		switch {
		case err == nil && b[1]&0x1F == viNOP:
			nop = must(readVI(b, p.crc))(p.t)
			continue
		case err == nil:
			p.t.Fatalf("instead of the end: % x", b)
		case !ended(err):
			p.t.Fatalf("instead of the end: %s", failure(err))
		}
		_ = p.conn.Close()
		return nop
	}
}

// last is the NOP that an end at Reliable Reception says good-bye with, and the end.
func (p *viPeer) last() viSegment {
	nop := p.over()
	require.Equal(p.t, byte(viNOP), nop.kind, "the last segment")
	return nop
}

// viRig is a VI under test and a raw peer.
type viRig struct {
	*viHost
	*viPeer
	t *conformance.T
	v *vipl.Vi
	// req and accept are the ConnectRequest and the ConnectAccept, one of them the VI's; done has
	// what the ConnectRequest of a VI that is the active end came to.
	req, accept viSegment
	done        chan error
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
	ce := viPeerCE(s.level, "server")
	if s.ce != nil {
		s.ce(&ce)
	}
	if s.pipe {
		r := newActiveVI(t, s)
		require.NoError(t, r.answers(ce), "ConnectRequest")
		return r
	}
	r := newIdleVI(t, s)
	r.viPeer = dialVI(t, r.viHost)
	r.accept = r.connects(ce, serveVI(r.viHost, r.v, ce.called))
	return r
}

// newIdleVI makes a VI that is not connected, with its receives.
func newIdleVI(t *conformance.T, s viSetup) *viRig {
	r := &viRig{t: t, viHost: newVIHost(t, s.nic), done: make(chan error, 1)}
	r.v = r.vi(s.level, func(a *vipl.ViAttributes) {
		if s.vi != nil {
			s.vi(a)
		}
	})
	for i := range s.receives {
		r.receives = append(r.receives, r.recv(r.v, r.data(viSlots+i*viSlot, viSlot)))
	}
	return r
}

// newActiveVI reads the ConnectRequest of a VI, over a net.Pipe, and does not answer it.
func newActiveVI(t *conformance.T, s viSetup) *viRig {
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close() })
	s.nic.Dial = func(context.Context, string, string) (net.Conn, error) { return near, nil }
	r := newIdleVI(t, s)
	r.viPeer = newVIPeer(t, far)
	r.callsServer()
	return r
}

// callsServer has the VI ask, and reads its ConnectRequest.
func (r *viRig) callsServer() {
	go func() {
		_, err := r.v.ConnectRequest(r.t.Context(), r.address("client"), r.address("server"))
		r.done <- err
	}()
	r.req = r.get(viRequest)
	r.subject = r.req.number
}

// newVICaller is newActiveVI of a level.
func newVICaller(t *conformance.T, level vipl.ReliabilityLevel, c vipl.Config) *viRig {
	return newActiveVI(t, viSetup{level: level, nic: c})
}

// newCRCRig is a rig with CRCs.
func newCRCRig(t *conformance.T, level vipl.ReliabilityLevel, receives int) *viRig {
	return newVIRig(t, viSetup{
		level: level, receives: receives, nic: vipl.Config{CRC: true},
		ce: func(c *viCE) { c.options = viCRCOption },
	})
}

// agrees is a good ConnectAccept, and answers sends one and returns what the ConnectRequest came to.
func (r *viRig) agrees() viCE {
	ce := r.req.ce
	ce.options = viEndOfOptions
	return ce
}

func (r *viRig) answers(ce viCE) error {
	r.accept = r.message(viSegment{kind: viAccept, flags: viLast, ce: ce})
	r.crc = hasCRCOption(ce.options) && hasCRCOption(r.req.ce.options)
	r.says(r.accept.octets(hasCRCOption(ce.options)))
	return <-r.done
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

// onVI is a case of a raw peer and a VI of that reliability level, and onVIHost one on a VI NIC.
func onVI(level vipl.ReliabilityLevel, run func(*conformance.T, *viRig)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newVIRig(t, viSetup{level: level})) }
}

func onVIHost(run func(*conformance.T, *viHost)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newVIHost(t, vipl.Config{})) }
}

// eachLevel tries a case at each reliability level of VIs.
func eachLevel(run func(*conformance.T, viLevel)) func(*conformance.T) {
	return func(t *conformance.T) {
		for l := range inTurn(t, "%s", viLevels) {
			run(t, l)
		}
	}
}

// spoilt is a segment of which an octet, counted from its end, is not what it was.
func spoilt(s viSegment, back int) []byte {
	b := s.octets(true)
	b[len(b)-back] ^= 0x40
	return b
}

// acked is what a segment says of the peer's messages.
func acked(s viSegment) []uint32 { return []uint32{s.ack, uint32(s.code)} }
