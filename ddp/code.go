package ddp

import "fmt"

// Code is what is wrong with a segment, in the form layer<<12|type<<8|code
// that the Terminate message's control word has (RFC 5041 7.2, RFC 5040 4.8).
// The layer is always 1. It is a protocol number, not a Go error.
type Code uint16

// The codes of RFC 5041 7.2. CodeOK means nothing is wrong.
const (
	CodeOK Code = 0

	CodeLocal Code = 0x1000 // internal failure; also a segment of a bad size

	CodeInvalidSTag   Code = 0x1100 // STag unknown or not enabled
	CodeBounds        Code = 0x1101 // TO or TO+length outside the STag's range
	CodeNotAssociated Code = 0x1102 // STag of another stream or Protection Domain
	CodeWrap          Code = 0x1103 // TO+length passes 2^64
	CodeTaggedVersion Code = 0x1104 // DV wrong, tagged

	CodeInvalidQN       Code = 0x1201 // no such queue
	CodeNoBuffer        Code = 0x1202 // queue has no buffer for this MSN
	CodeMSNRange        Code = 0x1203 // MSN is not one that may come now
	CodeInvalidMO       Code = 0x1204 // MO is not where the message stands
	CodeTooLong         Code = 0x1205 // message longer than its buffer
	CodeUntaggedVersion Code = 0x1206 // DV wrong, untagged
)

// CodeShort says that a ULPDU is too short for its own header. No RFC gives
// this a number, so it is never sent: figure 24 of the verbs draft has
// CodeLocal for it on the wire, and an event of its own.
const CodeShort Code = 0x10FF

// String is the meaning in words.
func (c Code) String() string {
	switch c {
	case CodeOK:
		return "no DDP error"
	case CodeLocal:
		return "DDP local catastrophic error"
	case CodeShort:
		return "DDP segment shorter than its header"
	case CodeInvalidSTag:
		return "DDP invalid STag"
	case CodeBounds:
		return "DDP base or bounds violation"
	case CodeNotAssociated:
		return "DDP STag not associated with the stream"
	case CodeWrap:
		return "DDP TO wrap"
	case CodeTaggedVersion:
		return "DDP invalid version in a tagged segment"
	case CodeInvalidQN:
		return "DDP invalid queue number"
	case CodeNoBuffer:
		return "DDP invalid MSN: no buffer available"
	case CodeMSNRange:
		return "DDP invalid MSN: out of range"
	case CodeInvalidMO:
		return "DDP invalid MO"
	case CodeTooLong:
		return "DDP message too long for its buffer"
	case CodeUntaggedVersion:
		return "DDP invalid version in an untagged segment"
	}
	return fmt.Sprintf("DDP error 0x%04x", uint16(c))
}
