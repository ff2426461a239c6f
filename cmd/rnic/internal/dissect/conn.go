package dissect

import (
	"bytes"
	"errors"

	"github.com/softrnic/softrnic/mpa"
)

// The keys of MPA's startup frames (RFC 5044 7.1.1).
var (
	requestKey = []byte("MPA ID Req Frame")
	replyKey   = []byte("MPA ID Rep Frame")
)

// conn is a TCP connection.
type conn struct {
	t       *tracker
	key     flowKey
	dirs    [2]*direction // of what key.low sends, and key.high
	request *mpa.Startup
	reply   *mpa.Startup

	// Once MPA was found:
	number    int // from 1
	initiator *direction
	responder *direction
}

// phase is how far a direction has come.
//
//	seek --key--> frame --Request--> wait --Reply--> full
//	                 \----Reply----------------------> full
//
// Any phase can end in off: rejected, malformed, or framing lost.
type phase uint8

const (
	phaseSeek  phase = iota // no startup frame seen
	phaseFrame              // within a startup frame, or due to begin with one
	phaseWait               // Initiator: Request sent, no Reply yet
	phaseFull               // Full Operation
	phaseGap                // behind a hole in that, until an FPDU is found
	phaseOff                // nothing more to decode
)

// direction is what one end of a connection sends.
type direction struct {
	c    *conn
	peer *direction
	from string
	tcp  order
	isn  uint32 // of its SYN, if synSeen

	synSeen bool
	phase   phase
	seen    bool   // octets came before this phase
	joined  bool   // the capture may begin behind this direction's startup frame
	buf     []byte // of a startup frame, or sent while waiting

	deframer mpa.Deframer
	lent     bool   // it has one of the tracker's buffers
	crc      bool   // CRC is in use
	markers  bool   // as markers are
	at       uint64 // behind a gap: the position of buf in the FPDU stream
	hunt     hunt
	report   *StreamReport
	state    messages
}

func newConn(t *tracker, key flowKey) *conn {
	c := &conn{t: t, key: key}
	low, high := &direction{c: c, from: key.low.String()}, &direction{c: c, from: key.high.String()}
	low.peer, high.peer = high, low
	c.dirs = [2]*direction{low, high}
	return c
}

// start makes c an MPA connection with d as its Initiator.
func (c *conn) start(d *direction) {
	c.initiator, c.responder = d, d.peer
	report := &Connection{Client: d.from, Server: d.peer.from}
	for i, s := range [2]*direction{d, d.peer} {
		s.report = &StreamReport{From: s.from, Ops: map[string]int{}, Terminates: []Terminate{}, Violations: []Violation{}}
		report.Streams[i] = s.report
		s.state.reset()
	}
	c.t.report.Connections = append(c.t.report.Connections, report)
	c.t.mpa = append(c.t.mpa, c)
	c.number = len(c.t.mpa)
}

func (c *conn) report() *Connection { return c.t.report.Connections[c.number-1] }

// octets takes the next octets of the stream, as they came in one segment.
func (d *direction) octets(b []byte) {
	switch d.phase {
	case phaseSeek:
		d.seek(b)
	case phaseFrame:
		d.buf = append(d.buf, b...)
		d.frame()
	case phaseWait:
		d.early(b)
	case phaseFull:
		d.full(b)
	case phaseGap:
		d.search(b)
	case phaseOff:
	}
}

// seek looks for a startup frame at the start of the stream, or, as MPA may
// start on a connection that carried other data, at the start of a segment.
func (d *direction) seek(b []byte) {
	if len(d.buf) > 0 {
		d.buf = append(d.buf, b...)
		b = d.buf
	}
	request, reply := beginsLike(b, requestKey), beginsLike(b, replyKey)
	if !request && !reply {
		d.seen, d.buf = true, nil
		return
	}
	if len(d.buf) == 0 {
		d.buf = append(d.buf, b...)
	}
	if len(b) < len(requestKey) {
		return // the beginning of a key, maybe
	}
	d.phase = phaseFrame
	switch {
	case d.c.initiator == nil && request:
		d.c.start(d)
		if !d.peer.seen && len(d.peer.buf) == 0 {
			d.peer.phase = phaseFrame // its first octets must be a Reply
		}
	case d.c.initiator == nil:
		// A Reply whose Request is not in the capture.
		d.c.start(d.peer)
		if d.peer.seen || len(d.peer.buf) > 0 {
			d.peer.phase = phaseOff // where its FPDUs start is not known
		} else {
			d.peer.phase, d.peer.joined = phaseFrame, true
		}
	}
	d.frame()
}

// frame reads a startup frame when it is whole.
func (d *direction) frame() {
	if d.joined && !beginsLike(d.buf, requestKey) {
		// The Request was before the capture began; these are FPDUs.
		d.wait()
		return
	}
	s, n, err := mpa.ParseStartup(d.buf)
	isReply := d == d.c.responder
	switch {
	case errors.Is(err, mpa.ErrShort):
		return
	case err != nil || s.Reply != isReply:
		d.badFrame(isReply, err)
		return
	}
	judgeFrame(d.report, d.buf, &s)
	rest := d.buf[n:]
	d.buf = nil
	s.PrivateData = append([]byte(nil), s.PrivateData...)
	if !isReply {
		d.c.request = &s
		d.c.report().MPA.Request = describe(&s)
		d.phase = phaseWait
		if d.c.reply != nil {
			d.c.accepted()
		}
	} else {
		d.c.reply = &s
		d.c.report().MPA.Reply = describe(&s)
		if d.c.request != nil {
			judgePair(d.report, d.c.request, &s)
		}
		d.c.accepted()
	}
	if len(rest) > 0 {
		d.octets(rest)
	}
}

func beginsLike(b, key []byte) bool {
	n := min(len(b), len(key))
	return bytes.Equal(b[:n], key[:n])
}

// badFrame ends a connection whose startup frame is malformed or of the other
// kind. If the other end goes on, that is not decoded.
func (d *direction) badFrame(isReply bool, err error) {
	key, kind := requestKey, "Request"
	if isReply {
		key, kind = replyKey, "Reply"
	}
	if beginsLike(d.buf, key) {
		d.report.violate(0, ruleStartupLength, "the %s is malformed: %v", kind, err)
	} else {
		d.report.violate(0, ruleStartupKey, "where a %s was due, the key is %q", kind, d.buf[:min(len(d.buf), len(key))])
	}
	d.phase, d.peer.phase = phaseOff, phaseOff
	d.buf, d.peer.buf = nil, nil
}

// early takes what the Initiator sends before the Reply has passed. It is kept
// for when it does.
func (d *direction) early(b []byte) {
	if len(d.buf) == 0 && d.peer.tcp.whole() {
		d.report.violate(1, ruleEarlyFPDU, "octets follow the Request before the Reply came")
	}
	if len(d.buf)+len(b) > maxPending {
		d.phase, d.buf = phaseOff, nil
		return
	}
	d.buf = append(d.buf, b...)
}

// wait makes an Initiator whose Request was not captured go on.
func (d *direction) wait() {
	early := d.buf
	d.joined, d.buf = false, nil
	d.phase = phaseWait
	if d.c.reply != nil {
		d.c.accepted()
	}
	d.octets(early)
}

// accepted moves both directions on after the Reply. The Initiator's Request
// may be missing from the capture.
func (c *conn) accepted() {
	rep, req := c.reply, c.request
	if rep.Reject { // RFC 5044 7.1.2: both leave MPA
		c.initiator.phase, c.responder.phase = phaseOff, phaseOff
		return
	}
	crc := rep.CRC || req != nil && req.CRC // R5044-7.1.1-M11
	if c.responder.phase == phaseFrame {
		c.responder.operate(crc, req != nil && req.Markers)
	}
	i := c.initiator
	if i.phase != phaseWait {
		return
	}
	i.operate(crc, rep.Markers)
	if early := i.buf; len(early) > 0 {
		i.buf = nil
		i.full(early)
	}
}

// operate starts Full Operation of a direction.
func (d *direction) operate(crc, markers bool) {
	d.phase, d.crc, d.markers = phaseFull, crc, markers
	d.deframer = mpa.NewDeframer(crc, markers)
}
