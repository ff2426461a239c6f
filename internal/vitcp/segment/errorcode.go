package segment

import (
	"fmt"
	"strings"
)

// ErrorCode is the Remote Error Code (3.2). It concerns the message that
// Message ACK names. The VI error type counts at Reliable Reception only
// (VT-3.2-M15, VT-3.2-M16).
//
//	 15                            8   7               3   2   1   0
//	+-------------------------------+-------------------+---+---+---+
//	|         IS error code         |     reserved      |UTE|VDE|MPE|
//	+-------------------------------+-------------------+---+---+---+
type ErrorCode uint16

// The bits of the VI error type; none of them is "no error".
const (
	// RDMAProtection: the message met an RDMA memory protection error.
	RDMAProtection ErrorCode = 1 << iota
	// DescriptorError: the receive Descriptor was missing or unfit.
	DescriptorError
	// TransportError: the transport failed for good; for one, a bad CRC.
	TransportError

	viMask ErrorCode = 1<<iota - 1
)

// VI is the VI error type alone.
func (c ErrorCode) VI() ErrorCode { return c & viMask }

// IS is the implementation specific error code. This implementation uses it
// in a ConnectReject, see Reason.
func (c ErrorCode) IS() uint8 { return uint8(c >> 8) }

// WithIS is c with another implementation specific error code.
func (c ErrorCode) WithIS(is uint8) ErrorCode { return c&0xff | ErrorCode(is)<<8 }

func (c ErrorCode) String() string {
	var parts []string
	for _, n := range []struct {
		bit  ErrorCode
		name string
	}{{RDMAProtection, "MPE"}, {DescriptorError, "VDE"}, {TransportError, "UTE"}} {
		if c&n.bit != 0 {
			parts = append(parts, n.name)
		}
	}
	if r := c & 0xff &^ viMask; r != 0 {
		parts = append(parts, fmt.Sprintf("reserved %#x", uint16(r)))
	}
	if is := c.IS(); is != 0 {
		parts = append(parts, fmt.Sprintf("IS %d", is))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, "|")
}
