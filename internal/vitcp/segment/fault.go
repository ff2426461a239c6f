package segment

import "strconv"

// ParseFault is what is wrong with a segment, judged by itself.
type ParseFault uint8

// The faults.
const (
	// FaultNone: the segment is well formed.
	FaultNone ParseFault = iota
	// FaultVersion: the version is not 1. Where the segment ends is not known.
	FaultVersion
	// FaultFrame: the length is below that of a segment header. Where the
	// segment ends is not known.
	FaultFrame
	// FaultCRC: the trailer is not the segment's CRC, or the CRC option that
	// announced it was damaged. Nothing in the segment can be trusted.
	FaultCRC
	// FaultType: the type is none of those defined.
	FaultType
	// FaultLength: the length does not fit the headers of the type, or there
	// are octets where the type has none.
	FaultLength
	// FaultEnd: a message that has one segment only does not end with it
	// (VT-3.2-M4).
	FaultEnd
	// FaultOffset: the data offset is not zero where it must be, or the message
	// would exceed 4 GiB.
	FaultOffset
	// FaultRDMALength: an RDMA Write goes beyond the length in its RDMA header,
	// or ends short of it without a transmit error.
	FaultRDMALength
	// FaultDiscriminator: a discriminator's length is above 64.
	FaultDiscriminator
	// FaultOption: an option has an impossible length, or the CRC option is
	// there without the end of the option list (VT-3.3-M7).
	FaultOption
)

var faultNames = [...]string{
	FaultNone: "no fault", FaultVersion: "version is not 1", FaultFrame: "length below the segment header",
	FaultCRC: "CRC mismatch", FaultType: "unknown type", FaultLength: "length does not fit the type",
	FaultEnd: "not the end of its message", FaultOffset: "data offset out of range",
	FaultRDMALength: "payload does not fit the RDMA length", FaultDiscriminator: "discriminator longer than 64 octets",
	FaultOption: "malformed option list",
}

func (f ParseFault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return "Fault(" + strconv.Itoa(int(f)) + ")"
}

// Error makes a ParseFault an error: compare with errors.Is(err, FaultCRC).
func (f ParseFault) Error() string { return "vitcp: segment: " + f.String() }

// Lost reports whether the fault leaves it unknown where the next segment
// starts.
func (f ParseFault) Lost() bool { return f == FaultVersion || f == FaultFrame }
