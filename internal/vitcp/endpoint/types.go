package endpoint

import (
	"strings"

	"github.com/softrnic/softrnic/internal/names"
	"github.com/softrnic/softrnic/wr"
)

// Op says what a result is of. The values are those of the operation code in a descriptor's status field: odd ones belong
// to the receive queue (VI Architecture 10.2, bits 18:16).
type Op uint8

// The five operations. OpSend, OpWrite and OpRead can be posted; a receive completes as OpReceive, or as
// OpRemoteWrite if an RDMA Write with immediate data consumed it.
const (
	OpSend Op = iota
	OpReceive
	OpWrite
	OpRemoteWrite
	OpRead
	numOps
)

var opNames = [numOps]string{
	OpSend:        "Send",
	OpReceive:     "Receive",
	OpWrite:       "RDMA Write",
	OpRemoteWrite: "Remote RDMA Write",
	OpRead:        "RDMA Read",
}

func (o Op) String() string { return names.Of("Op", opNames[:], o) }

// Flaws is what went wrong with a request or a receive: nothing if zero. Each flaw is the bit that it is in a descriptor's
// status field (VI Architecture 10.2, bits 1 to 8).
type Flaws uint16

// The flaws.
const (
	// FlawFormat: an operation that there is none, or an RDMA Read where the level or the peer has none.
	FlawFormat Flaws = 1 << (iota + 1)
	// FlawProtection: memory of this end that was named is not there, not of this VI's tag, or not for this use.
	FlawProtection
	// FlawLength: more than the maximum transfer size, or more than the receive has room for.
	FlawLength
	// FlawPartial: a part of the message had left when the error came; or it arrived aborted or truncated. On the send
	// queue it is always set with another.
	FlawPartial
	// FlawFlushed: the connection ended first.
	FlawFlushed
	// FlawTransport: lost, corrupt or out of sequence; the connection has ended, except for a CRC error at Unreliable.
	FlawTransport
	// FlawRemoteProtection: the memory named at the peer is not there, or not for this use.
	FlawRemoteProtection
	// FlawRemoteDescriptor: the peer had no receive for it, or one too small or with wrong memory.
	FlawRemoteDescriptor
)

var flawNames = []string{"format", "protection", "length", "partial", "flushed", "transport", "remote protection", "remote descriptor"}

func (f Flaws) String() string {
	if f == 0 {
		return "none"
	}
	return strings.Join(names.Set(flawNames, f>>1), ", ")
}

// Span is one stretch of registered memory of this end: a data segment of a descriptor (VI Architecture 10.4).
type Span struct {
	Addr   uint64  // virtual address, in the address space of the region
	Handle wr.STag // memory handle
	Length uint32  // octets; zero is allowed, and then nothing is checked
}

// Request is what PostSend takes. The endpoint copies it, the spans too.
type Request struct {
	// Op is OpSend, OpWrite or OpRead.
	Op Op
	// Fence delays the request until all requests posted before it have completed (VI Architecture 6.3.1.2).
	Fence bool
	// HasImmediate sends Immediate along. Both are ignored for OpRead.
	HasImmediate bool
	Immediate    uint32
	// RemoteAddr and RemoteHandle name memory of the peer, for OpWrite and OpRead.
	RemoteAddr   uint64
	RemoteHandle wr.STag
	// Spans are the source, or the sink of an OpRead, in this order; none is allowed.
	Spans []Span
	// Flaws, if not zero, are what the poster has found wrong with it. It takes its turn like any other, and then completes
	// with exactly these instead of being carried out.
	Flaws Flaws
	// Context and Index come back in the Result. A pointer in Context allocates nothing.
	Context any
	Index   int
}

// Receive is what PostReceive takes. The endpoint copies it, the spans too.
type Receive struct {
	Spans []Span
	// Flaws, if not zero, are what the poster has found wrong with it. The message that consumes it fails with a descriptor
	// error, and it completes with exactly these.
	Flaws   Flaws
	Context any
	Index   int
}

// Result is the end of one request or receive.
type Result struct {
	Context any
	Index   int
	// Op is that of the request, OpReceive or OpRemoteWrite. A receive that nothing consumed is OpReceive.
	Op Op
	// Flaws is zero for success.
	Flaws Flaws
	// Length is how many octets were sent from or placed into the spans. Zero for an OpRemoteWrite, whose octets went
	// elsewhere, and if there is a flaw (VI Architecture 6.4.1: zero after an overrun).
	Length uint32
	// Immediate is valid if HasImmediate (VT-3.2-M9); only on the receive queue.
	HasImmediate bool
	Immediate    uint32
}
