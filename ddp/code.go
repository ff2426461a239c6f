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

var meanings = map[Code]string{
	CodeOK:              "no DDP error",
	CodeLocal:           "DDP local catastrophic error",
	CodeShort:           "DDP segment shorter than its header",
	CodeInvalidSTag:     "DDP invalid STag",
	CodeBounds:          "DDP base or bounds violation",
	CodeNotAssociated:   "DDP STag not associated with the stream",
	CodeWrap:            "DDP TO wrap",
	CodeTaggedVersion:   "DDP invalid version in a tagged segment",
	CodeInvalidQN:       "DDP invalid queue number",
	CodeNoBuffer:        "DDP invalid MSN: no buffer available",
	CodeMSNRange:        "DDP invalid MSN: out of range",
	CodeInvalidMO:       "DDP invalid MO",
	CodeTooLong:         "DDP message too long for its buffer",
	CodeUntaggedVersion: "DDP invalid version in an untagged segment",
}

// String is the meaning in words.
func (c Code) String() string {
	if m, ok := meanings[c]; ok {
		return m
	}
	return fmt.Sprintf("DDP error 0x%04x", uint16(c))
}
