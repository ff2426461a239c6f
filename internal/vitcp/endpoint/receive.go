package endpoint

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

const (
	// intakeOctets is the buffer that segments are received in, at first.
	intakeOctets = 16 << 10
	// directAbove is the missing payload that is placed as it comes.
	directAbove = 4 << 10
)

// receiver is the state of the reader, and its own.
type receiver struct {
	own    lockorder.Mutex[lockorder.EndpointReceive] // the reader's
	cut    *segment.Cutter
	early  []byte          // received before the endpoint was made
	waits  bool            // it goes on when waited says so,
	kept   segment.Segment // with this segment, if its length is not zero
	direct bool            // a long segment is placed as it comes

	guesses guesses // at Unreliable

	in   inbound // the Send or RDMA Write that is arriving
	sink *spans  // where the payload of the current segment goes; nil: nowhere

	// Of a diverted segment:
	header segment.Header
	away   int // octets of payload that have not come
}

func (r *receiver) init(c Config) {
	r.cut = segment.NewCutter(intakeOctets, c.CRC)
	r.direct = !c.CRC // nothing is placed before its CRC is known
	r.early = append([]byte(nil), c.Early...)
	r.in.number, r.in.begun = c.PeerNumber, c.PeerNumber
}

// waitFor is what the reader waits for before it takes anything else.
type waitFor uint8

const (
	waitNothing waitFor = iota
	waitAnswers         // answers to RDMA Reads, until they have left
	waitPause           // the end of a pause
)

// goOn says that what the reader may wait for has come about. The caller has mu.
func (e *Endpoint) goOn(what waitFor) {
	if e.held != what {
		return
	}
	e.held = waitNothing
	e.sock.Soon()
}

// waited reports whether the reader may go on.
func (e *Endpoint) waited() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rx.waits = e.held != waitNothing
	return !e.rx.waits
}

// takeAll takes all segments that are in the buffer. It reports false at the end, and when
// the reader has to wait.
func (e *Endpoint) takeAll() bool {
	if s := e.rx.kept; s.Length != 0 {
		e.rx.kept = segment.Segment{}
		if s.Missing() > 0 {
			return e.admit(&s) && e.place(s.Payload())
		}
		if !e.take(&s, segment.FaultNone) {
			return false
		}
	}
	for !e.rx.waits {
		s, ok, fault := e.rx.cut.Next()
		switch {
		case ok && !e.take(&s, fault):
			return false
		case ok:
		case fault.Lost(): // nobody knows where the next segment begins
			return e.malformed(fault)
		default:
			return e.divert()
		}
	}
	return false
}

// take takes one whole segment, and reports false at the end.
func (e *Endpoint) take(s *segment.Segment, fault segment.ParseFault) bool {
	if fault != segment.FaultNone {
		return e.takeBad(s, fault)
	}
	if !e.admit(s) {
		return false
	}
	return e.place(s.Payload()) && e.complete(&s.Header)
}

// divert begins a long segment, which the buffer need not hold whole.
func (e *Endpoint) divert() bool {
	r := &e.rx
	if !r.direct || r.cut.Missing() < directAbove {
		return true
	}
	s, ok := r.cut.Divert()
	if !ok {
		return true
	}
	r.header, r.away = s.Header, s.Missing()
	return e.admit(&s) && e.place(s.Payload())
}

// place puts payload of the current segment where it belongs. It reports false at the
// end.
func (e *Endpoint) place(b []byte) bool {
	if e.rx.sink == nil || e.rx.sink.copyIn(b) {
		return true
	}
	return e.loseMemory()
}

// fetch receives more. It reports whether it got some, and false for on at the end.
func (e *Endpoint) fetch() (got, on bool) {
	r := &e.rx
	e.mu.Lock()
	if e.nopDue() {
		e.wake()
	}
	ended := e.ended
	e.mu.Unlock()
	if ended {
		return false, false
	}
	if len(r.early) > 0 {
		n := copy(r.cut.Space(), r.early)
		r.cut.Advance(n)
		r.early = r.early[n:]
		return true, true
	}
	err := e.read()
	switch {
	case err == nil:
	case errors.Is(err, netpoll.ErrAgain):
		return false, true
	case errors.Is(err, errRevoked):
		return true, e.loseMemory()
	default:
		e.lose(err)
		return true, false
	}
	if r.header.Length != 0 && r.away == 0 {
		h := r.header
		r.header = segment.Header{}
		return true, e.complete(&h)
	}
	return true, true
}

// errRevoked: memory that something comes for is not registered any more.
var errRevoked = errors.New("vitcp: memory revoked")

// read receives some octets: of the diverted segment to its memory, others to the
// buffer.
func (e *Endpoint) read() error {
	r := &e.rx
	space := r.cut.Space()
	if r.away == 0 {
		n, err := e.conn.TryRead(space)
		r.cut.Advance(n)
		return err
	}
	n, err := e.conn.TryRead(space[:min(len(space), r.away)])
	r.away -= n
	if r.sink != nil && !r.sink.copyIn(space[:n]) {
		return errRevoked
	}
	return err
}

// lose ends the connection that cannot be read from.
func (e *Endpoint) lose(err error) {
	r := &e.rx
	eof := errors.Is(err, io.EOF)
	if eof {
		_ = e.hearWriter() // broken says why
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if eof && e.broken == nil && e.conn.Dropped() { // a write that has been taken was told
		eof, err = false, syscall.ECONNRESET
	}
	if e.broken != nil && (errors.Is(err, os.ErrDeadlineExceeded) || eof && !closedThere(e.broken)) {
		eof, err = false, e.broken
	}
	cause := CauseLost
	if eof && r.away == 0 && r.cut.Buffered() == 0 && !r.in.open {
		cause, err = CausePeerClosed, nil // VT-2.2.2.2.2-M2
	}
	e.cutInbound()
	e.end(cause, err)
}

// hearWriter waits until the writer has told of its last system call, none of which waits, and reports whether one has
// failed: a system tells the error of a connection to one call only. If that was a write, a read finds the end of a stream
// that the peer has not closed.
func (e *Endpoint) hearWriter() bool {
	e.tx.own.Lock()
	defer e.tx.own.Unlock()
	return e.tx.dead
}

// closedThere reports whether a write may fail like that once the peer has closed the
// connection, so that the end of its stream is the peer's word.
func closedThere(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrDeadlineExceeded)
}

// discard reads over what still comes, until the peer closes or the endpoint has
// lingered long enough.
func (e *Endpoint) discard() {
	scrap := make([]byte, 4<<10) // there may be no space left in front of what was not cut
	for {
		if _, err := e.conn.Read(scrap); err != nil {
			return
		}
	}
}
