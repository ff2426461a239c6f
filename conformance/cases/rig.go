package cases

import (
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
)

// What wire cases play in: a raw peer, played by hand, and at the other end of its
// stream a queue pair under test, which an upper tester drives. Only the peer's
// octets and the upper tester are used: the target may be anywhere.
//
//	case -- raw peer ==== FPDUs ==== queue pair -- upper tester -- case
//
//	rig.go            making it
//	rig_subject.go    the queue pair under test, its memory and its completions
//	rig_wire.go       what the peer sends and expects
//	rig_rejection.go  segments that have to be refused
//	rig_blind.go      the same against a program that speaks rping's language only
//	octets*.go        the cases' own codec, octet by octet, and the raw peer's end

// setup says what a rig is made of. The zero value is a good stream with CRC.
type setup struct {
	// qp is the queue pair under test. A zero CloseTimeout stands for an hour here: the
	// peer ends Closing and Terminate, however slow the machine is.
	qp upper.OpenArgs
	// play is the side of the MPA startup that the raw peer takes; Either leaves
	// it to the target.
	play conformance.Role
	// far is what the queue pair's side wants of the connection, and near what
	// the raw peer's frame says; a zero near is revision 2 with CRC, enhanced,
	// with IRD 64 and ORD 64 of a Request, and what the Request asks for of a
	// Reply.
	far  upper.ConnectArgs
	near startup
	// quiet sends nothing before the case does. Otherwise an Initiator begins
	// with an RDMA Write of nothing: the Responder under test may send then
	// (RFC 5044 7.1.2).
	quiet bool
	// narrow makes the peer's TCP receive buffer small, so that little is under
	// way while the peer does not read.
	narrow bool
	// raw leaves the startup to the case: there is conn, and no peer.
	raw bool
}

// rig is a raw peer and a queue pair under test.
type rig struct {
	*subject
	play conformance.Role // the raw peer's side
	// conn is the raw peer's end of the stream, recorded, and peer what is on it
	// once the startup is over.
	conn net.Conn
	peer *rawEnd
	// frame is the startup frame that the queue pair's side sent.
	frame startup
	numbers
}

// open makes a rig: the startup is over and the queue pair is in RTS.
func open(t *conformance.T, s setup) *rig { return openIn(t, tester(t), s) }

// tester begins a session with the target's upper tester.
func tester(t *conformance.T) upper.Tester {
	u := must(t.Target().Upper(t.Context()))(t, "the upper tester")
	t.Cleanup(func() { _ = u.Close() })
	return u
}

// openIn makes a rig of another queue pair of the same RNIC.
func openIn(t *conformance.T, u upper.Tester, s setup) *rig {
	if s.qp.CloseTimeout == 0 {
		s.qp.CloseTimeout = hour
	}
	if s.play == conformance.Either {
		s.play = t.Target().Role()
	}
	r := &rig{subject: newSubject(t, u, s.qp), play: s.play}
	r.connect(s)
	if !s.raw {
		r.start(s)
	}
	return r
}

// beside makes a rig of another queue pair of the same RNIC.
func (r *rig) beside(s setup) *rig { return openIn(r.t, r.up, s) }

// connect makes the TCP connection, on which the queue pair's side begins its part
// of the startup.
func (r *rig) connect(s setup) {
	far := s.far
	far.QP = r.QP
	var nc net.Conn
	var err error
	if r.play == conformance.Responder {
		nc, err = r.beDialed(far)
	} else {
		var at upper.Listening
		require.NoError(r.t, r.up.Listen(far, &at), "listening")
		var d net.Dialer
		nc, err = d.DialContext(r.t.Context(), "tcp", at.Addr)
	}
	require.NoError(r.t, err, "the TCP connection")
	r.t.Cleanup(func() { _ = nc.Close() })
	if s.narrow {
		require.NoError(r.t, nc.(*net.TCPConn).SetReadBuffer(64<<10))
	}
	r.conn = r.t.Trace().Conn(nc)
}

func (r *rig) beDialed(far upper.ConnectArgs) (net.Conn, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(r.t.Target().Here(), "0"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	if deadline, ok := r.t.Context().Deadline(); ok {
		_ = l.(*net.TCPListener).SetDeadline(deadline)
	}
	far.Addr = l.Addr().String()
	if err := r.up.Dial(far, &upper.None{}); err != nil {
		return nil, err
	}
	return l.Accept()
}

// start is the startup, with a queue pair in RTS at its end.
func (r *rig) start(s setup) {
	if r.play == conformance.Responder {
		r.respond(s.near)
	} else {
		r.initiate(s.near)
	}
	c := r.connected()
	require.Empty(r.t, c.Failed, "the queue pair's side of the MPA startup")
	if r.play == conformance.Initiator && !s.quiet {
		r.send(aWrite(0, 0, nil))
	}
}

func (r *rig) initiate(near startup) {
	if near.Rev == 0 {
		near = startup{CRC: true, Rev: 2, Enhanced: true, IRD: 64, ORD: 64}
	}
	require.NoError(r.t, writeStartup(r.conn, near), "the MPA Request")
	r.readFrame()
	require.False(r.t, r.frame.Reject, "the MPA startup was rejected")
	r.adopt(framing{crc: near.CRC || r.frame.CRC, markersIn: near.Markers, markersOut: r.frame.Markers})
}

// respond answers; by itself with depths that suit the Request.
func (r *rig) respond(near startup) {
	r.readFrame()
	if near.Rev == 0 {
		near = replyTo(r.frame)
	}
	near.Reply = true
	require.NoError(r.t, writeStartup(r.conn, near), "the MPA Reply")
	r.adopt(framing{crc: near.CRC || r.frame.CRC, markersIn: near.Markers, markersOut: r.frame.Markers})
}

// replyTo is the Reply that grants what a Request asks for.
func replyTo(req startup) startup {
	return startup{Reply: true, CRC: true, Rev: req.Rev, Enhanced: req.Enhanced, IRD: req.ORD, ORD: req.IRD}
}

// readFrame reads the startup frame of the queue pair's side.
func (r *rig) readFrame() { r.frame = must(readStartup(r.conn))(r.t, "the MPA startup frame") }

// connected is what the queue pair's side says of the startup.
func (r *rig) connected() upper.Connection {
	var c upper.Connection
	require.NoError(r.t, r.up.Connected(upper.Wait{Of: r.QP, Timeout: r.patience()}, &c))
	return c
}

// adopt makes the raw peer of a rig whose startup the case has done by hand.
func (r *rig) adopt(o framing) {
	if o.patience == 0 {
		o.patience = r.patience()
	}
	r.peer = newRawEnd(r.conn, o)
}
