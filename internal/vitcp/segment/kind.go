package segment

import "strconv"

// Type is the kind of a segment, the lower five bits of its Type/Flags octet
// (3.2).
type Type uint8

// The types.
const (
	Send Type = iota
	RDMAWrite
	RDMAReadRequest
	RDMAReadResponse
	NOP
	ConnectRequest
	ConnectAccept
	ConnectReject
	ConnectNoMatch
	numTypes
)

// kind is what the draft says of a type.
type kind struct {
	name    string
	rdma    bool // has an RDMA header
	ce      bool // has a CE header
	payload bool // has payload, in one or more segments
	idata   bool // can have immediate data
}

// kinds follows figure 3.1. An RDMA Read Response has no RDMA header: the
// figure gives one to RdmaRead and RdmaWrite and, just below, names the response
// where it is meant. It finds its request by the message number (3.2).
var kinds = [numTypes]kind{
	Send:             {name: "Send", payload: true, idata: true},
	RDMAWrite:        {name: "RdmaWrite", rdma: true, payload: true, idata: true}, // VT-3-M1
	RDMAReadRequest:  {name: "RdmaReadRequest", rdma: true},
	RDMAReadResponse: {name: "RdmaReadResponse", payload: true},
	NOP:              {name: "NOP"},
	ConnectRequest:   {name: "ConnectRequest", ce: true}, // VT-3-M2
	ConnectAccept:    {name: "ConnectAccept", ce: true},
	ConnectReject:    {name: "ConnectReject"},
	ConnectNoMatch:   {name: "ConnectNoMatch"},
}

// kind is a type's entry; an unknown type has nothing.
func (t Type) kind() kind {
	if t < numTypes {
		return kinds[t]
	}
	return kind{}
}

func (t Type) String() string {
	if t < numTypes {
		return kinds[t].name
	}
	return "Type(" + strconv.Itoa(int(t)) + ")"
}

// HasPayload reports whether segments of the type carry payload, so that a
// message may have several.
func (t Type) HasPayload() bool { return t.kind().payload }

// HasRDMA reports whether segments of the type have an RDMA header.
func (t Type) HasRDMA() bool { return t.kind().rdma }

// HasImmediate reports whether messages of the type may have immediate data:
// Send and RDMA Write, as in the VI Architecture.
func (t Type) HasImmediate() bool { return t.kind().idata }

// IsConnect reports whether the type belongs to connection establishment.
func (t Type) IsConnect() bool { return t >= ConnectRequest && t < numTypes }

// HeaderLen is the length in octets of all headers of the type's segments,
// options not counted.
func (t Type) HeaderLen() int {
	k := t.kind()
	switch {
	case k.rdma:
		return SegmentHeader + RDMAHeader
	case k.ce:
		return SegmentHeader + CEHeader
	default:
		return SegmentHeader
	}
}

// MaxPayload is how many octets of payload fit into a segment of the type: what
// the 16 bits of Segment Length leave beside headers and trailer.
func (t Type) MaxPayload(crc bool) int {
	if !t.HasPayload() {
		return 0
	}
	return MaxSegment - t.HeaderLen() - trailerLen(crc)
}

// trailerLen is the length of a segment's trailer.
func trailerLen(crc bool) int {
	if crc {
		return Trailer
	}
	return 0
}

// Flags are the upper three bits of the Type/Flags octet (3.2).
type Flags uint8

// The flags.
const (
	// EndOfMessage marks the last segment of a message.
	EndOfMessage Flags = 0x80
	// ImmediateValid says that the message has immediate data; each of its
	// segments says so (VT-3.2-M1).
	ImmediateValid Flags = 0x40
	// TransmitError says that the sender met a length or protection error: the
	// whole message is in error (VT-3.2-M3).
	TransmitError Flags = 0x20

	typeMask = 0x1f
)

func (f Flags) String() string {
	s := ""
	for _, n := range []struct {
		flag Flags
		name string
	}{{EndOfMessage, "Eom"}, {ImmediateValid, "IdV"}, {TransmitError, "TrE"}} {
		if f&n.flag != 0 {
			s += " " + n.name
		}
	}
	if s == "" {
		return ""
	}
	return s[1:]
}
