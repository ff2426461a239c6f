// Package ddp is the Direct Data Placement protocol of RFC 5041: the tagged
// and untagged segment headers, the cutting of messages into segments, and the
// queue rules (QN, MSN, MO) a receiver on an in-order stream applies.
//
// It is pure: no I/O, no clock, no memory of its own beyond two counters a
// queue. A received ULPDU enters through [Parse]; what is wrong with it comes
// back as a [Code], which is also the number a Terminate message carries.
// Whether an STag may be used is not decided here: that needs the STag table.
package ddp

// Header sizes in octets (RFC 5041 4.2, 4.3).
const (
	TaggedHeader   = 14
	UntaggedHeader = 18
)

// MaxMessage is the largest message in octets. RFC 5041 5.2 wants a message
// shorter than 2^32 octets, so that its MO fits 32 bits.
const MaxMessage = 1<<32 - 1

// Queue numbers of untagged messages (RFC 5040 3.1, RFC 7306 5).
const (
	QNSend           uint32 = 0
	QNReadRequest    uint32 = 1
	QNTerminate      uint32 = 2
	QNAtomicResponse uint32 = 3
)

// Bits of the control octet, the first of every segment (RFC 5041 4.1).
//
//	 0   1   2   3   4   5   6   7
//	+---+---+---+---+---+---+---+---+
//	| T | L |   Rsvd        |  DV   |
//	+---+---+---+---+---+---+---+---+
const (
	flagTagged  = 0x80
	flagLast    = 0x40
	maskVersion = 0x03
	version     = 1 // RFC 5041 4.1; 0 is the RDMA Consortium's
)
