package qp

import (
	"strconv"

	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// Fault is something that ends a stream. What follows from it, which status,
// event, Terminate code and trigger of the state machine, is in one table
// (faulttable.go) and nowhere else.
type Fault uint8

// The faults, grouped as in figures 23 and 24 of the verbs draft.
const (
	NoFault Fault = iota

	// A work request on the Send Queue cannot be done.
	FaultSQSTag
	FaultSQBounds
	FaultSQAccess
	FaultSQPD
	FaultSQWrap
	FaultSQLength
	FaultZeroORD

	// A Fast-Register cannot be done.
	FaultFastPrivilege
	FaultFastSTag
	FaultFastPD
	FaultFastNotInvalid
	FaultFastPageSize
	FaultFastBlockSize
	FaultFastEntry
	FaultFastList
	FaultFastRights
	FaultFastVA
	FaultFastFBO
	FaultFastLength

	// A Bind Memory Window cannot be done.
	FaultBindRegion
	FaultBindWindow
	FaultBindNotInvalid
	FaultBindPD
	FaultBindAccess
	FaultBindBounds
	FaultBindWrap

	// An Invalidate Local STag, or the one of an RDMA Read with Invalidate,
	// cannot be done.
	FaultInvalidateLocalSTag
	FaultInvalidateLocalPD
	FaultInvalidateLocalWindows

	// The buffers of a Receive cannot be used.
	FaultRQSTag
	FaultRQBounds
	FaultRQAccess
	FaultRQPD
	FaultRQWrap

	// An inbound Send cannot be received.
	FaultSendInvSTag
	FaultSendInvGone
	FaultSendInvAccess
	FaultSendInvPD
	FaultSendInvWindows
	FaultSendTooLong
	FaultNoReceive
	FaultSendMSNGap
	FaultSendMSNRange
	FaultSendMO

	// The LLP failed, or what it brought is not an FPDU.
	FaultLLPLost
	FaultLLPReset
	FaultCRC
	FaultFPDU
	FaultSegmentSize

	// An inbound segment breaks the protocol.
	FaultDDPVersionTagged
	FaultDDPVersionUntagged
	FaultRDMAPVersion
	FaultOpcode
	FaultQN
	FaultNoLBit
	FaultUntaggedMO
	FaultUntaggedLength
	FaultTerminateMSN
	FaultReadRequest
	FaultReadRequestMO
	FaultReadNotEnabled
	FaultWriteNotEnabled

	// An inbound tagged segment may not be placed.
	FaultTagSTag
	FaultTagBounds
	FaultTagAccess
	FaultTagPD
	FaultTagWrap
	FaultUnexpectedResponse

	// The answer to an RDMA Read is as it was asked for, and its sink may not be
	// written to.
	FaultSinkSTag
	FaultSinkBounds
	FaultSinkAccess
	FaultSinkPD

	// An inbound RDMA Read Request cannot be answered.
	FaultReadTooMany
	FaultReadMSNGap
	FaultReadMSNRange
	FaultReadSTag
	FaultReadBounds
	FaultReadAccess
	FaultReadPD
	FaultReadWrap

	// The end was asked for, by either side.
	FaultModifyClosing
	FaultModifyTerminate
	FaultModifyError
	FaultTerminateReceived
	FaultPeerClosed
	FaultPeerClosedBusy

	// What comes while the LLP stream closes; FaultClosed is the good end.
	FaultClosed
	FaultClosingWork
	FaultClosingSegment
	FaultClosingTerminate
	FaultLLPTerminating

	// This side's own failure.
	FaultSQCompletion
	FaultRQCompletion
	FaultSRQ
	FaultStalled
	FaultLocal
	FaultGlobal
	numFaults
)

// Consequence is a row of the fault table.
type Consequence struct {
	// Name says what happened.
	Name string
	// Status is that of the work request at fault; the others complete as
	// Flushed. It is Flushed itself if none ever is at fault.
	Status wr.Status
	// Event is raised, unless it is zero or a completion reports the fault
	// (verbs draft 6.2.3).
	Event wr.EventID
	// Code is that of the Terminate Message, if one goes out: see Sends.
	Code rdmap.TermCode
	// Trigger is what the state machine sees, and In the state in which it does.
	Trigger Trigger
	In      State
	// Source is the text that decided the code.
	Source string
}

// Sends says whether a Terminate Message goes out. The state machine decides.
func (c Consequence) Sends() bool { return Step(c.In, c.Trigger).Actions&ActSendTerminate != 0 }

// ConsequenceOf is the row of f.
func ConsequenceOf(f Fault) Consequence { return faults[f] }

func (f Fault) String() string {
	if f < numFaults {
		return faults[f].Name
	}
	return "Fault(" + strconv.Itoa(int(f)) + ")"
}

// Faults lists the faults, without NoFault.
func Faults() []Fault {
	var all []Fault
	for f := NoFault + 1; f < numFaults; f++ {
		all = append(all, f)
	}
	return all
}
