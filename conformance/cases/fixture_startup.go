package cases

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// The MPA startup of a rig, played by the case: its frames octet by octet (RFC 5044 7.1, RFC 6581),
// and what either side makes of them.

// bothRoles are the sides of the startup that the raw peer takes.
var bothRoles = []conformance.Role{conformance.Initiator, conformance.Responder}

// eachRole tries a case with the raw peer on either side of the MPA startup.
func eachRole(run func(*conformance.T, conformance.Role)) func(*conformance.T) {
	return func(t *conformance.T) {
		for play := range inTurn(t, "the peer is the %s", bothRoles) {
			run(t, play)
		}
	}
}

// beginMPA is a rig of a connection of revision 1, unless the queue pair's side has another, whose
// startup is left to the case; openMPA goes through it, and openMPAWith also registers n octets that
// the peer may read and write.
func beginMPA(t *conformance.T, s setup) *rig {
	if s.far.Rev == 0 {
		s.far.Rev = 1
	}
	s.raw = true
	return open(t, s)
}

func openMPA(t *conformance.T, s setup) *rig {
	r := beginMPA(t, s)
	flags := s.flags
	if !s.noCRC {
		flags |= frameC
	}
	if r.play == conformance.Initiator {
		r.raw(requestFrame(flags, 1, nil))
		r.frame()
	} else {
		r.frame()
		r.raw(replyFrame(flags, 1, nil))
	}
	r.agreed(flags)
	r.started(s.quiet)
	return r
}

func openMPAWith(t *conformance.T, s setup, n int) (*rig, *buffer) {
	r := openMPA(t, s)
	b := r.region(n, allRights)
	return r, b
}

// full goes over to Full Operation; flags are those of the raw peer's frame.
func (r *rig) full(flags byte) {
	r.agreed(flags)
	r.ready()
}

// refused says that the startup fails for the queue pair's side, which has sent
// nothing more and closes, and tells its program why.
func (r *rig) refused(why string) {
	r.closed()
	c := r.fails()
	require.Contains(r.t, c.Failed, why, "what the program is told")
	require.False(r.t, c.Rejected, "a failure is no refusal by the other program")
	r.drop()
}

// fails says that the side under test has given the connection up, and that its
// queue pair is as before.
func (r *rig) fails() uppertester.Connection {
	c := r.connected()
	require.NotEmpty(r.t, c.Failed, "the startup of the side under test: %+v", c)
	r.state(verbs.StateIdle)
	return c
}

// What a program sees of frames that are none, and of a connection that ends instead.
const (
	badFrame = "invalid startup frame"
	lostTCP  = "the peer closed the TCP connection"
)

// dialing is a rig whose queue pair is MPA Initiator: its Request is on its way. listening is one
// whose queue pair is MPA Responder, and waits for a Request.
func dialing(t *conformance.T, qp uppertester.OpenArgs, far uppertester.ConnectArgs) *rig {
	return open(t, setup{qp: qp, far: far, play: conformance.Responder, raw: true, narrow: true})
}

func listening(t *conformance.T, qp uppertester.OpenArgs, far uppertester.ConnectArgs) *rig {
	return open(t, setup{qp: qp, far: far, play: conformance.Initiator, raw: true, narrow: true})
}

// asks is a whole startup with an enhanced Request of this word, and an empty RDMA
// Write behind it. It returns the Reply's word.
func (r *rig) asks(first, second uint16) (a, b uint16) {
	r.raw(requestFrame(frameC|frameS, 2, aWord(first, second, "")))
	f := r.hears()
	require.Zero(r.t, f.flags&frameR, "the Reply rejects")
	r.setFraming(withCRC)
	r.started(false)
	return f.word()
}

// answers is a whole startup with an enhanced Reply of this word. It returns the
// Request's.
func (r *rig) answers(first, second uint16) (a, b uint16) {
	a, b = r.hears().word()
	r.raw(replyFrame(frameC|frameS, 2, aWord(first, second, "")))
	r.established(withCRC)
	return a, b
}

// hears reads the startup frame of the queue pair's side.
func (r *rig) hears() heardFrame {
	return r.peer.hears(either(r.play == conformance.Initiator, replyKey, requestKey))
}

// heardFrame is a startup frame of the side under test.
type heardFrame struct {
	t          *conformance.T
	octets     []byte
	flags, rev byte
	rest       []byte // what PD_Length counts
}

// hears reads one startup frame, with this key.
func (p *peer) hears(key string) heardFrame {
	b := p.frame()
	require.Equal(p.test, key, string(b[:16]), "its key")
	return heardFrame{t: p.test, octets: b, flags: b[16], rev: b[17], rest: b[20:]}
}

// word is the enhanced word.
func (f heardFrame) word() (first, second uint16) {
	require.NotZero(f.t, f.flags&frameS, "S of % x", f.octets)
	require.GreaterOrEqual(f.t, len(f.rest), 4, "the octets behind PD_Length in % x", f.octets)
	return binary.BigEndian.Uint16(f.rest), binary.BigEndian.Uint16(f.rest[2:])
}

// keepsORD posts more RDMA Reads than ord: exactly that many are outstanding at a
// time.
func (r *rig) keepsORD(ord int) {
	b := r.region(64, allRights)
	for i := range ord + 3 {
		r.post(verbs.Request{ID: uint64(i), Op: verbs.OpRead, Local: b.sge(i, 1), Remote: verbs.Remote{STag: 7, TO: uint64(i)}})
	}
	request := func(i int) []byte {
		return aReadRequest(uint32(i+1), read{b.tag(), b.at(i), 1, 7, uint64(i)})
	}
	for i := range ord {
		r.expect(request(i))
	}
	r.settled()
	var done []verbs.Completion
	for i := range 3 {
		r.send(aReadResponse(b.tag(), b.at(i), []byte{0xA0}))
		b.gets(i, []byte{0xA0})
		r.expect(request(ord + i))
		r.settled()
		done = append(done, verbs.Completion{ID: uint64(i), Op: verbs.OpRead})
	}
	r.completions(done...)
	b.unchanged()
}

// keepsIRD sends as many RDMA Read Requests as ird, of which the first cannot be
// answered whole, and one too many: that ends the stream.
func (r *rig) keepsIRD(ird int) {
	const size = 8 << 20 // more than TCP takes for a peer that does not read
	b := r.region(size, allRights)
	for i := range ird {
		n := either(i == 0, size, uint32(0))
		r.send(aReadRequest(r.nextRead(), read{nowhere, 0, n, b.tag(), b.at(0)}))
	}
	more := aReadRequest(r.nextRead(), read{nowhere, 0, 0, 0, 0})
	r.send(more)
	r.events(verbs.EventIRRQTooMany) // before anything is read
	r.eventuallyTerminated(0x1202, more, false)
	r.ended(verbs.StateError)
}

// rtrKind says what kind of ready-to-receive frame a ULPDU is: 1 an empty Send, 2 an
// empty RDMA Write, 4 an RDMA Read Request for nothing; 0 for none.
func rtrKind(u []byte) int {
	switch {
	case len(u) == 18 && string(u) == string(aSend(1, nil)):
		return 1
	case len(u) == 14 && u[0] == lastTagged && u[1] == opWrite:
		return 2
	case len(u) == 46 && string(u[:18]) == string(aReadRequest(1, read{})[:18]) && string(u[30:34]) == "\x00\x00\x00\x00":
		return 4
	}
	return 0
}

// frame reads a startup frame.
func (p *peer) frame() []byte {
	b := p.octets(20)
	b = append(b, p.octets(int(b[18])<<8|int(b[19]))...)
	p.theirs = b
	return b
}

// agreed is what two startup frames mean for the FPDUs (RFC 5044 7.1.1): a CRC if either asks for
// it, markers for the side that does. mine are the flags of the peer's.
func (p *peer) agreed(mine byte) {
	crc := (mine|p.theirs[16])&frameC != 0
	p.in = mpaLane{markers: mine&frameM != 0, crc: crc}
	p.out = mpaLane{markers: p.theirs[16]&frameM != 0, crc: crc}
}

// setFraming says what the FPDUs are from here on, and adopt takes it from the startup frames of
// both sides.
func (p *peer) setFraming(f framing) {
	p.out, p.in = mpaLane{crc: f.crc, markers: f.markersOut}, mpaLane{crc: f.crc, markers: f.markersIn}
}

func (p *peer) adopt(mine, its startup) {
	p.setFraming(framing{crc: mine.CRC || its.CRC, markersIn: mine.Markers, markersOut: its.Markers})
}
