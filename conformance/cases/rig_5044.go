package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// bothRoles are the sides of the startup that the raw peer takes.
var bothRoles = []conformance.Role{conformance.Initiator, conformance.Responder}

// mpaSetup says what an mpaRig is made of. The zero value is a stream with CRC,
// without markers, of revision 1.
type mpaSetup struct {
	play  conformance.Role // the raw peer's; Either leaves it to the target
	qp    upper.OpenArgs
	far   upper.ConnectArgs // the queue pair's side; revision 1 unless it has one
	flags byte              // added to those of the raw peer's frame
	noCRC bool              // the raw peer's frame has C=0
	// quiet sends no FPDU before the case does.
	quiet bool
}

// mpaRig is a queue pair under test, and a raw peer that makes its own octets.
type mpaRig struct {
	*subject
	mpaWire
	play conformance.Role
	// told is what the upper tester says of the startup.
	told upper.Connection
	numbers
}

// mpaBegin connects, and leaves the startup to the case.
func mpaBegin(t *conformance.T, s mpaSetup) *mpaRig {
	if s.far.Rev == 0 {
		s.far.Rev = 1
	}
	r := open(t, setup{qp: s.qp, far: s.far, play: s.play, raw: true})
	return &mpaRig{subject: r.subject, mpaWire: mpaWire{test: t, wire: r.conn}, play: r.play}
}

// mpaOpen connects, and goes through the startup.
func mpaOpen(t *conformance.T, s mpaSetup) *mpaRig {
	r := mpaBegin(t, s)
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
	r.full(flags)
	if r.play == conformance.Initiator && !s.quiet {
		r.send(aWrite(0, 0, nil)) // a Responder may send from now on
	}
	return r
}

// full goes over to Full Operation; flags are those of the raw peer's frame.
func (r *mpaRig) full(flags byte) {
	r.agreed(flags)
	r.told = r.connection()
	require.Empty(r.t, r.told.Failed, "the queue pair's side of the startup")
}

// agreed is what two frames mean for the FPDUs (RFC 5044 7.1.1): a CRC if either
// asks for it, markers for who does.
func (w *mpaWire) agreed(mine byte) {
	crc := (mine|w.theirs[16])&frameC != 0
	w.in = mpaLane{markers: mine&frameM != 0, crc: crc}
	w.out = mpaLane{markers: w.theirs[16]&frameM != 0, crc: crc}
}

// connection is what the upper tester says of the startup.
func (r *mpaRig) connection() upper.Connection {
	var c upper.Connection
	require.NoError(r.t, r.up.Connected(upper.Wait{Of: r.QP, Timeout: r.patience()}, &c))
	return c
}

// refused says that the startup fails for the queue pair's side, which has sent
// nothing more and closes, and tells its program why.
func (r *mpaRig) refused(why string) {
	r.closed()
	c := r.connection()
	require.Contains(r.t, c.Failed, why, "what the program is told")
	require.False(r.t, c.Rejected, "a failure is no refusal by the other program")
	r.state(verbs.StateIdle)
	r.drop()
}

// The texts of mpa's error codes, as a program sees them.
const (
	badFrame = "invalid startup frame"
	lostTCP  = "TCP connection lost"
)

// sendMessage sends a whole Send, the next one.
func (r *mpaRig) sendMessage(payload []byte) { r.send(r.message(payload)) }

// message is the next Send.
func (r *mpaRig) message(payload []byte) []byte { return aSend(r.nextSend(), payload) }

// settled waits until the queue pair has dealt with all that was sent: see
// rig.settled.
func (r *mpaRig) settled() {
	r.send(aReadRequest(r.nextRead(), read{sinkSTag: nowhere, sinkTO: nowhereTO}))
	r.expect(aReadResponse(nowhere, nowhereTO, nil))
}

// posts has the queue pair send octets of a buffer, as Sends of these lengths, all
// in one list.
func (r *mpaRig) posts(b *buffer, lengths ...int) {
	var list []verbs.Request
	for i, n := range lengths {
		list = append(list, verbs.Request{ID: uint64(i + 1), SGL: b.sgl(0, n)})
	}
	r.post(list...)
}

// failed says that the queue pair ends in Error with this event, and that its
// receives, so many, are flushed.
func (r *mpaRig) failed(event verbs.EventID, receives int) {
	r.ended(verbs.StateError)
	r.events(event)
	var want []verbs.Completion
	for i := range receives {
		want = append(want, verbs.Completion{ID: uint64(i + 1), Op: verbs.OpRecv, Status: verbs.StatusFlushed})
	}
	if receives > 0 {
		r.completionsOf(r.RecvCQ, want...)
	}
	r.incomplete()
}

// twisted sends a Send in an FPDU that is other than it should be.
func (r *mpaRig) twisted(payload []byte, x twist) { r.raw(r.out.twisted(r.message(payload), x)) }

// got is the completion of a receive.
func (r *mpaRig) got(id uint64, octets int) verbs.Completion {
	return verbs.Completion{ID: id, Op: verbs.OpRecv, Bytes: uint32(octets)}
}

// tornDown is terminated, with the queue pair in Error then.
func (r *mpaRig) tornDown(code uint16) {
	r.terminated(code)
	r.ended(verbs.StateError)
}
