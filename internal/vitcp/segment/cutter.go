package segment

// Cutter finds the segments in the octets received on a stream, by their lengths
// alone. It does no I/O: the caller reads into Space, says how much with
// Advance, and takes segments with Next until there is none. Its buffer grows
// to MaxSegment if a segment needs it and never beyond.
type Cutter struct {
	crc  bool
	buf  []byte
	r, w int        // buf[r:w] is received and not yet delivered
	lost ParseFault // sticky: where the next segment starts is not known
}

// minBuffer is the smallest buffer of a Cutter: it holds all headers with room
// to spare.
const minBuffer = 512

// NewCutter returns a Cutter with a buffer of about size octets. With crc, what
// the connection agreed, segments end in trailers, which are checked.
func NewCutter(size int, crc bool) *Cutter {
	return &Cutter{crc: crc, buf: make([]byte, min(max(size, minBuffer), 16*MaxSegment))}
}

// Space returns where to put the octets received next. It ends the life of the
// segments that Next and Divert returned. It is never empty once Next has
// reported that it needs more. After a Lost fault what is put there is dropped.
func (c *Cutter) Space() []byte {
	held := c.w - c.r
	switch need := c.need(); {
	case held == 0 || c.lost != FaultNone:
		c.r, c.w = 0, 0
	case need > len(c.buf):
		grown := make([]byte, MaxSegment)
		c.r, c.w, c.buf = 0, copy(grown, c.buf[c.r:c.w]), grown
	case need > len(c.buf)-c.r || len(c.buf)-c.w < len(c.buf)/4 && held <= c.r:
		// Each octet is moved for a segment that does not fit once at most, and
		// to gain a worthwhile read only if as many have been delivered.
		c.r, c.w = 0, copy(c.buf, c.buf[c.r:c.w])
	}
	return c.buf[c.w:]
}

// need is how many octets the segment begun has, as far as that is known.
func (c *Cutter) need() int {
	if c.w-c.r < 4 {
		return SegmentHeader
	}
	n, _ := frame(c.buf[c.r:c.w])
	return n
}

// Advance says that n octets have been put at the start of Space. An n outside
// 0..len(Space()) counts as the nearer bound.
func (c *Cutter) Advance(n int) {
	if c.lost == FaultNone {
		c.w += min(max(n, 0), len(c.buf)-c.w)
	}
}

// Missing is how many octets of the segment begun have not come, as far as that is
// known.
func (c *Cutter) Missing() int { return c.need() - c.Buffered() }

// Buffered is how many received octets have not been delivered.
func (c *Cutter) Buffered() int { return c.w - c.r }

// Next returns the next segment; ok is false if it needs more octets. It is
// valid until Space is called. With ok the fault concerns this segment alone
// and the next one can be had; without, it is Lost and stays.
func (c *Cutter) Next() (s Segment, ok bool, fault ParseFault) {
	if c.lost != FaultNone || c.w-c.r < 4 {
		return Segment{}, false, c.lost
	}
	n, fault := frame(c.buf[c.r:c.w])
	if fault != FaultNone {
		c.lost = fault
		return Segment{}, false, fault
	}
	if c.w-c.r < n {
		return Segment{}, false, FaultNone
	}
	b := c.buf[c.r : c.r+n : c.r+n]
	c.r += n
	s, fault = Parse(b, c.crc)
	return s, true, fault
}

// Divert hands out a segment that has begun, so that the rest of its payload
// can be received where it belongs instead of in the buffer. It may do so after
// Next has asked for more octets; ok is false if there is nothing to divert: the
// segment's headers are not here, it has no payload on its way, or it has a
// fault, which Next reports when all of it is here.
//
// Payload is what is here, Size the whole. The caller takes s.Missing() octets
// of payload from the stream itself, and then, if the connection has CRCs, the 4
// of the trailer, before it uses the Cutter again; it checks the CRC itself,
// beginning with that of what is here.
func (c *Cutter) Divert() (s Segment, ok bool) {
	have := c.buf[c.r:c.w]
	if c.lost != FaultNone || len(have) < SegmentHeader {
		return Segment{}, false
	}
	n, fault := frame(have)
	s.decode(have)
	body := n - trailerLen(c.crc) // where the trailer starts
	if fault != FaultNone || !s.Type.HasPayload() || len(have) < s.Type.HeaderLen() || body <= len(have) {
		return Segment{}, false
	}
	s.b, s.away = have[:len(have):len(have)], body-len(have)
	if s.check() != FaultNone {
		return Segment{}, false
	}
	c.r = c.w
	return s, true
}

// Missing is how many octets of the payload have not come; not zero in a
// diverted segment only.
func (s *Segment) Missing() int { return s.away }
