package vitcp

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/internal/admission"
	"github.com/softrnic/softrnic/internal/names"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// Errors of establishment, to compare with errors.Is.
var (
	// ErrNoMatch: nothing at the peer waits for the called discriminator;
	// of Await, the request is not for the filter.
	ErrNoMatch = errors.New("vitcp: no matching discriminator")
	// ErrUnexpected: the peer sent a segment that has no place there.
	ErrUnexpected = errors.New("vitcp: unexpected segment")
	// ErrInvalid: an argument is out of range.
	ErrInvalid = errors.New("vitcp: invalid argument")
	// ErrAnswered: the request has been accepted or rejected already, or has
	// ended.
	ErrAnswered = errors.New("vitcp: the request has been answered already")
	// ErrCrowded: a Listener reset the connection, because too many others from
	// the same host had not said enough either; or it did not hold a request,
	// because too many of that host were held already.
	ErrCrowded = admission.ErrCrowded
)

// Reason is why a connection is refused. In a ConnectReject it is the
// implementation specific error code, about the request that Message ACK names
// (VT-3.2-M14); of another implementation's it says nothing certain.
type Reason uint8

// The reasons.
const (
	// ReasonConsumer: the peer's VI Consumer did not want it.
	ReasonConsumer Reason = iota
	// ReasonLevel: the reliability levels differ, or there is not exactly one
	// (VT-3.3-M1).
	ReasonLevel
	// ReasonPeerToPeer: one end connects peer to peer and the other does not
	// (VT-3.3-M2).
	ReasonPeerToPeer
	// ReasonMTU: the MTU is zero, or what was agreed to is above what was
	// proposed (VT-3.3-M4).
	ReasonMTU
	// ReasonCRC: a ConnectAccept agrees to a CRC that was not offered
	// (VT-3.6-O1), or one end requires a CRC and the other does not offer it.
	ReasonCRC
	// ReasonDiscriminator: a ConnectAccept names other VIs than the request
	// (VT-2.2.2.2.2-M4).
	ReasonDiscriminator
)

var reasonNames = [...]string{
	ReasonConsumer: "not wanted", ReasonLevel: "reliability level", ReasonPeerToPeer: "peer-to-peer bit",
	ReasonMTU: "MTU", ReasonCRC: "CRC", ReasonDiscriminator: "discriminator",
}

func (r Reason) String() string { return names.Of("Reason", reasonNames[:], r) }

// RejectedError is the active end's error when the peer sent a ConnectReject.
type RejectedError struct {
	// Reason is what this implementation sends; anything of another's.
	Reason Reason
	// Code is the whole Remote Error Code.
	Code segment.ErrorCode
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("vitcp: rejected by the peer: %v", e.Reason)
}

// MismatchError says which attribute of the two ends does not fit.
type MismatchError struct {
	Reason      Reason
	Local, Peer segment.CE // Local is zero if nothing local was compared
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("vitcp: attributes do not fit: %v (peer has %v)", e.Reason, &e.Peer)
}
