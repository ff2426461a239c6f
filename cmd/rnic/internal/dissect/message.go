package dissect

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
)

const queues = 4 // QN 0 to 3

// messages is what a direction's earlier FPDUs say about the next.
type messages struct {
	queue      [queues]queueState
	tagged     taggedState
	terminated bool

	reads   []rdmap.ReadRequestHeader // sent this way, not yet answered
	atomics []uint32                  // request identifiers, likewise
	// unsure says that this direction may have sent Reads, Atomics or their
	// answers that were not understood, so that neither way's answers can be
	// matched.
	unsure bool
}

// queueState is an untagged queue. The source should send the segments of a
// message in order (RFC 5041 5.3), so an MO out of order is only a fault when
// the message's end shows that it does not add up.
type queueState struct {
	known   bool   // msn is
	msn     uint32 // of the open message, or the next
	open    bool   // within a message
	partial bool   // segments of it may have been missed
	control byte
	stag    uint32 // Invalidate STag
	octets  uint64 // of payload so far
	end     uint64 // highest MO plus length so far
}

// taggedState is the tagged message being sent, if open.
type taggedState struct {
	open     bool
	partial  bool // segments of it may have been missed
	control  byte
	stag     uint32
	base     uint64 // TO of the first octet seen
	low, end int64  // extent of what came, relative to base
	octets   int64
	read     bool // it answers reads[0] of the peer
}

func (m *messages) reset() {
	*m = messages{}
	for i := range m.queue {
		m.queue[i] = queueState{known: true, msn: 1} // R5041-4.3-M10
	}
}

// distrust forgets what the next FPDU must be, after one that is not what it
// should be.
func (m *messages) distrust() {
	for i := range m.queue {
		m.queue[i] = queueState{}
	}
	m.tagged = taggedState{partial: true}
	m.unsure = true
}

// sequence judges a well-formed segment against those before it.
func (d *direction) sequence(s ddp.Segment, op rdmap.Opcode) {
	if s.Tagged() {
		d.taggedSegment(s, op)
		return
	}
	d.untaggedSegment(s)
	switch op {
	case rdmap.ReadRequest, rdmap.AtomicRequest:
		d.asked(s, op)
	case rdmap.AtomicResponse:
		d.atomicAnswer(s)
	default:
	}
}

func (d *direction) untaggedSegment(s ddp.Segment) {
	q := &d.state.queue[s.QN()]
	out, n := d.report, d.report.FPDUs
	if !q.known {
		*q = queueState{known: true, msn: s.MSN(), open: true, partial: true, control: s.RsvdULP(), stag: s.RsvdULP32()}
	}
	switch {
	case s.MSN() != q.msn && q.open: // R5041-4.3-M12, R5041-4.1-M3
		out.violate(n, ruleMSN, "queue %d: MSN is %d within message %d, which no segment has ended", s.QN(), s.MSN(), q.msn)
		*q = queueState{known: true, msn: s.MSN()}
	case s.MSN() != q.msn: // R5041-4.3-M9, M10
		out.violate(n, ruleMSN, "queue %d: MSN is %d, due is %d", s.QN(), s.MSN(), q.msn)
		*q = queueState{known: true, msn: s.MSN()}
	case q.open && (s.RsvdULP() != q.control || s.RsvdULP32() != q.stag): // R5041-4.3-M4
		out.violate(n, ruleConstant, "queue %d: the RDMAP control octet or Invalidate STag changes within message %d", s.QN(), q.msn)
	}
	q.open, q.control, q.stag = true, s.RsvdULP(), s.RsvdULP32()
	end := uint64(s.MO()) + uint64(len(s.Payload()))
	q.octets += uint64(len(s.Payload()))
	q.end = max(q.end, end)
	if !s.Last() {
		return
	}
	if !q.partial {
		switch {
		case end != q.end: // R5041-4.1-M6
			out.violate(n, ruleMO, "queue %d: message %d ends at %d, but an earlier segment reaches %d", s.QN(), q.msn, end, q.end)
		case q.end != q.octets: // R5041-5.2-M6
			out.violate(n, ruleMO, "queue %d: message %d ends at %d by its MO, but %d octets were sent", s.QN(), q.msn, q.end, q.octets)
		}
	}
	*q = queueState{known: true, msn: q.msn + 1} // wraps to 0 (R5041-4.3-M11)
}

func (d *direction) taggedSegment(s ddp.Segment, op rdmap.Opcode) {
	t := &d.state.tagged
	out, n := d.report, d.report.FPDUs
	if t.open && (s.RsvdULP() != t.control || s.STag() != t.stag) { // R5041-4.2-M4, M9
		out.violate(n, ruleConstant, "the RDMAP control octet or STag changes before a segment with L=1 ended the tagged message")
		*t = taggedState{}
		d.state.unsure = d.state.unsure || op == rdmap.ReadResponse
	}
	if !t.open {
		*t = taggedState{open: true, partial: t.partial, control: s.RsvdULP(), stag: s.STag()}
		t.read = op == rdmap.ReadResponse && d.answered()
	}
	if len(s.Payload()) > 0 { // an empty segment's TO means nothing (R5041-5.2-M11)
		if t.octets == 0 {
			t.base = s.TO()
		}
		off := int64(s.TO() - t.base)
		t.low, t.end = min(t.low, off), max(t.end, off+int64(len(s.Payload())))
		t.octets += int64(len(s.Payload()))
	}
	if t.read {
		d.readSegment(s)
	}
	if !s.Last() {
		return
	}
	switch {
	case t.partial:
	case t.end-t.low != t.octets: // R5041-5.2-M8
		out.violate(n, ruleTO, "the tagged message spans %d octets by its TOs, but %d were sent", t.end-t.low, t.octets)
	case t.read:
		d.readEnd()
	}
	if t.read {
		d.peer.state.reads = d.peer.state.reads[1:]
	}
	*t = taggedState{}
}
