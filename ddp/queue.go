package ddp

// Inbound keeps the receiving end of one untagged queue of one stream: which
// message may come next and how much of it has come. The LLP delivers in order,
// so exactly one (MSN, MO) is right at any time. Owned by the receive side.
type Inbound struct {
	msn uint32 // of the message being received, or of the next
	mo  uint64 // octets of it received so far
}

// NewInbound is a queue on which nothing has come yet. The first MSN is 1
// (R5041-4.3-M10).
func NewInbound() Inbound { return InboundFrom(1) }

// InboundFrom is a queue on which all messages before msn have come.
func InboundFrom(msn uint32) Inbound { return Inbound{msn: msn} }

// MSN is the message number the next segment must have.
func (q *Inbound) MSN() uint32 { return q.msn }

// MO is the number of octets received of that message.
func (q *Inbound) MO() uint64 { return q.mo }

// Accept takes an untagged segment of this queue. have says whether the queue
// has a buffer for message MSN, and room is that buffer's size in octets. On
// CodeOK the payload belongs at MO as it stood before the call; on any other
// code nothing changed.
//
// The checks of RFC 5041 7.1 are made in this order, for empty segments too, as
// an empty message also uses up a buffer (RFC 5040 5.3):
//
//  1. CodeMSNRange: the MSN is not the expected one.
//  2. CodeNoBuffer: no buffer for it.
//  3. CodeInvalidMO: the MO is not the number of octets received so far.
//  4. CodeTooLong: the payload would end beyond the buffer, or beyond
//     MaxMessage.
//
// The MSN comes first because "no buffer" is only meaningful for the message
// that is due.
func (q *Inbound) Accept(s Segment, room uint64, have bool) Code {
	if s.MSN() != q.msn {
		return CodeMSNRange
	}
	if !have {
		return CodeNoBuffer
	}
	if uint64(s.MO()) != q.mo {
		return CodeInvalidMO
	}
	// The sum is made in 64 bits: neither part passes 2^32.
	end := q.mo + uint64(s.Size())
	if end > room || end > MaxMessage { // R5041-5.2-M3
		return CodeTooLong
	}
	if !s.Last() {
		q.mo = end
		return CodeOK
	}
	q.msn++ // 0xFFFFFFFF is followed by 0 (R5041-4.3-M11)
	q.mo = 0
	return CodeOK
}

// Whole reports whether s is the message that is due, and all of it.
func (q *Inbound) Whole(s Segment) bool {
	return s.MSN() == q.msn && s.Last() && q.mo == 0 && s.MO() == 0
}

// Pass moves on behind a whole message, as Accept does where there is a buffer for it.
func (q *Inbound) Pass() { q.msn++ } // as in Accept

// Outbound numbers the messages sent on one untagged queue of one stream.
// Owned by the transmit side.
type Outbound struct {
	msn uint32
}

// NewOutbound is a queue on which nothing was sent. The first MSN is 1
// (R5041-4.3-M10).
func NewOutbound() Outbound { return OutboundFrom(1) }

// OutboundFrom is a queue on which all messages before msn were sent.
func OutboundFrom(msn uint32) Outbound { return Outbound{msn: msn} }

// Next returns the MSN of the next message and moves on by one, modulo 2^32
// (R5041-4.3-M9).
func (q *Outbound) Next() uint32 {
	n := q.msn
	q.msn++
	return n
}

// MSN is the number Next will return.
func (q *Outbound) MSN() uint32 { return q.msn }
