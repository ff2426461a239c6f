package segment

// Segment is a view of one received segment. It borrows the octets given to
// Parse and is valid as long as they are.
type Segment struct {
	Header
	b    []byte // the segment, or what has come of it, without its trailer
	away int    // octets of payload behind b, which are not here
	tail []byte // the trailer, if there is one and it has come
}

// Parse makes a view of b, one whole segment by its own length; it panics if
// b has another. With crc, the connection's agreement, the segment ends in
// a trailer. Segments of establishment say themselves whether they do: crc
// does not matter for them (VT-3.5-O1).
//
// A segment with a fault can be read, if the fault is not Lost: its RDMA header
// is zero and its payload empty if they do not fit in. A CRC mismatch is found
// before all else but Lost, as then nothing that the segment says counts.
func Parse(b []byte, crc bool) (Segment, ParseFault) {
	if len(b) < SegmentHeader {
		return Segment{}, FaultFrame
	}
	n, fault := frame(b)
	if fault != FaultNone {
		return Segment{}, fault
	}
	if n != len(b) {
		panic("vitcp: Parse needs one whole segment")
	}
	s := Segment{b: b}
	s.decode(b)
	if s.Type.IsConnect() {
		fault = s.checkConnect()
		return s, fault
	}
	if crc {
		if n < SegmentHeader+Trailer {
			return s, FaultLength
		}
		s.b, s.tail = b[:n-Trailer], b[n-Trailer:]
		if !CRC(0).Add(s.b).Matches(s.tail) {
			return s, FaultCRC
		}
	}
	fault = s.check()
	return s, fault
}

// ParseHeader reads the header of the segment that begins with b, of which it needs
// SegmentHeader octets. A fault is one that Lost is true of.
func ParseHeader(b []byte) (h Header, fault ParseFault) {
	if _, fault = frame(b); fault == FaultNone {
		h.decode(b)
	}
	return h, fault
}

// frame is the length of the segment that starts with b, of which it needs 4
// octets (VT-3.2-S1).
func frame(b []byte) (int, ParseFault) {
	if b[0] != version {
		return 0, FaultVersion
	}
	n := int(b[2])<<8 | int(b[3])
	if n < SegmentHeader {
		return 0, FaultFrame
	}
	return n, FaultNone
}

// check judges a segment that is not of establishment by the rules of its type.
func (s *Segment) check() ParseFault {
	k := s.Type.kind()
	switch size := s.Size(); {
	case s.Type >= numTypes:
		return FaultType
	case size < 0, size > 0 && !k.payload:
		return FaultLength
	case s.Type == NOP: // which is no message: nothing says how it ends, or where it begins
		return FaultNone
	case !k.payload:
		return s.checkSingle()
	case uint64(s.Offset)+uint64(size) > 1<<32: // 3.2: up to 4 GB
		return FaultOffset
	default:
		return s.checkWrite(size)
	}
}

// checkSingle judges a message that has one segment only.
func (s *Segment) checkSingle() ParseFault {
	if !s.Last() { // VT-3.2-M4
		return FaultEnd
	}
	if s.Offset != 0 { // 3.2: zero in an initial segment
		return FaultOffset
	}
	return FaultNone
}

// checkWrite holds a segment of an RDMA Write against the message's length: 3.4
// calls that the total over all segments. After a transmit length error the end
// may come early.
func (s *Segment) checkWrite(size int) ParseFault {
	if s.Type != RDMAWrite {
		return FaultNone
	}
	end, total := uint64(s.Offset)+uint64(size), uint64(s.RDMA().Length)
	if end > total || s.Last() && end != total && !s.Failed() {
		return FaultRDMALength
	}
	return FaultNone
}

// checkConnect judges a segment of establishment, and finds its trailer.
func (s *Segment) checkConnect() ParseFault {
	trailer, fault := s.connectTrailer()
	var damaged bool
	if trailer {
		n := len(s.b) - Trailer
		s.b, s.tail = s.b[:n], s.b[n:]
		damaged = !CRC(0).Add(s.b).Matches(s.tail)
	} else {
		damaged = fault == FaultNone && s.Type.kind().ce && lostCRC(s.b, SegmentHeader+CEHeader)
	}
	switch {
	case damaged:
		return FaultCRC
	case fault != FaultNone:
		return fault
	}
	return s.checkSingle()
}

// connectTrailer reports whether a segment of establishment has a trailer: with
// a CE header the CRC option says so (VT-3.6-M2), else the length (VT-3.6-O2).
func (s *Segment) connectTrailer() (bool, ParseFault) {
	if !s.Type.kind().ce {
		switch len(s.b) {
		case SegmentHeader:
			return false, FaultNone
		case SegmentHeader + Trailer:
			return true, FaultNone
		default:
			return false, FaultLength
		}
	}
	ce, fault := parseCE(s.b[SegmentHeader:])
	known := fault == FaultNone || fault == FaultDiscriminator
	return known && ce.Options&OptionCRC != 0, fault
}

// RDMA is the RDMA header; zero if the type has none.
func (s *Segment) RDMA() RDMA {
	if !s.Type.HasRDMA() || len(s.b) < SegmentHeader+RDMAHeader {
		return RDMA{}
	}
	return decodeRDMA(s.b[SegmentHeader:])
}

// CE is the connection establishment header; zero if the type has none.
func (s *Segment) CE() CE {
	if !s.Type.kind().ce {
		return CE{}
	}
	b := s.b[SegmentHeader:]
	if s.tail != nil {
		b = b[:len(b)+Trailer] // the option list is read with the trailer behind it
	}
	ce, _ := parseCE(b)
	return ce
}

// Payload is the payload, or, of a diverted segment, what has come of it.
func (s *Segment) Payload() []byte {
	if s.Size() <= 0 || !s.Type.HasPayload() {
		return nil
	}
	return s.b[s.Type.HeaderLen():]
}

// Size is the length of the payload in octets, wherever it is.
func (s *Segment) Size() int { return len(s.b) + s.away - s.Type.HeaderLen() }

// Octets are the whole segment of a stream, header and trailer included.
func (s *Segment) Octets() []byte { return s.b[:len(s.b)+len(s.tail)] }

// HasTrailer reports whether the segment ends in a CRC.
func (s *Segment) HasTrailer() bool { return s.tail != nil }

// String is one line for a dump.
func (s *Segment) String() string {
	str := s.Header.String()
	if s.Type.HasRDMA() {
		str += " " + s.RDMA().String()
	}
	if s.Type.kind().ce {
		ce := s.CE()
		str += " " + ce.String()
	}
	if s.tail != nil {
		str += " crc"
	}
	return str
}
