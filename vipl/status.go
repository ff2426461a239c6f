package vipl

import (
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/internal/names"
)

// Control is the Control Field of a Descriptor (VI Architecture 10.2).
type Control uint16

// The values of the Control Field (9.10.2). The operations are its low two bits.
const (
	ControlOpSendRecv  Control = 0x0000
	ControlOpRdmaWrite Control = 0x0001
	ControlOpRdmaRead  Control = 0x0002
	// ControlImmediate: the Immediate Data field is valid. On the receive queue the
	// provider sets it, or clears it, as it completes the Descriptor.
	ControlImmediate Control = 0x0004
	// ControlQFence: all that was posted to the queue before completes before this
	// Descriptor is begun (6.3.1.2).
	ControlQFence Control = 0x0008

	controlOpMask Control = 0x0003
	controlAll    Control = 0x000F
)

// op is the operation, 0 to 3.
func (c Control) op() Control { return c & controlOpMask }

// Status is the Status field of a Descriptor (VI Architecture 10.2): the provider writes
// it once, as the last of what it writes.
type Status uint32

// The values of the Status field (9.10.2).
const (
	StatusDone Status = 0x00000001

	// StatusFormatError: the Descriptor has a wrong operation, segment count or
	// reserved field.
	StatusFormatError Status = 0x00000002
	// StatusProtectionError: a data segment names memory that is not registered, is
	// of another protection tag, or too short.
	StatusProtectionError Status = 0x00000004
	// StatusLengthError: on the send queue, more than the maximum transfer size or
	// not what the Length field says; on the receive queue, too little for the
	// message.
	StatusLengthError Status = 0x00000008
	// StatusPartialError: part of the message was sent, or received, before the
	// error that another bit tells.
	StatusPartialError Status = 0x00000010
	// StatusDescFlushedError: the connection ended first, or there was none.
	StatusDescFlushedError Status = 0x00000020
	// StatusTransportError: data was lost or damaged on its way.
	StatusTransportError Status = 0x00000040
	// StatusRdmaProtError: the remote end found a protection error in the memory that
	// the Address Segment names.
	StatusRdmaProtError Status = 0x00000080
	// StatusRemoteDescError: the remote Receive Descriptor was faulty or missing.
	StatusRemoteDescError Status = 0x00000100
	// StatusErrorMask is all of the error bits.
	StatusErrorMask Status = 0x000001FE

	// The completed operation.

	StatusOpSend            Status = 0x00000000
	StatusOpReceive         Status = 0x00010000
	StatusOpRdmaWrite       Status = 0x00020000
	StatusOpRemoteRdmaWrite Status = 0x00030000
	StatusOpRdmaRead        Status = 0x00040000
	StatusOpMask            Status = 0x00070000

	// StatusImmediate: the Immediate Data field of a Receive Descriptor is valid.
	StatusImmediate Status = 0x00080000
)

// Op is the completed operation: one of StatusOpSend to StatusOpRdmaRead.
func (s Status) Op() Status { return s & StatusOpMask }

// Errors are the error bits, none if the Descriptor completed successfully.
func (s Status) Errors() Status { return s & StatusErrorMask }

var errorNames = [...]string{
	"format error", "protection error", "length error", "partial", "flushed", "transport error",
	"RDMA protection error", "remote descriptor error",
}

var opNames = [...]string{"Send", "Receive", "RDMA Write", "remote RDMA Write", "RDMA Read"}

func (s Status) String() string {
	var parts []string
	if op := int(s.Op() >> 16); op < len(opNames) {
		parts = append(parts, opNames[op])
	}
	if s&StatusDone != 0 {
		parts = append(parts, "done")
	}
	parts = append(parts, names.Set(errorNames[:], s/StatusFormatError)...)
	if s&StatusImmediate != 0 {
		parts = append(parts, "immediate data")
	}
	if rest := s &^ (StatusDone | StatusErrorMask | StatusOpMask | StatusImmediate); rest != 0 {
		parts = append(parts, fmt.Sprintf("reserved %#x", uint32(rest)))
	}
	return strings.Join(parts, ", ")
}

// sendOps is the completed operation for each operation of the send queue. The fourth
// value names none.
var sendOps = [...]Status{
	ControlOpSendRecv: StatusOpSend, ControlOpRdmaWrite: StatusOpRdmaWrite,
	ControlOpRdmaRead: StatusOpRdmaRead, controlOpMask: StatusOpSend,
}
