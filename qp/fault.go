package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
)

// streamFault is something that ends a stream. What follows from it, which status,
// event, Terminate code and trigger of the state machine, is in one table
// (faulttable.go) and nowhere else.
type streamFault uint8

// The faults, grouped as in figures 23 and 24 of the verbs draft.
const (
	noFault streamFault = iota

	// A work request on the Send Queue cannot be done.
	faultSQSTag
	faultSQBounds
	faultSQAccess
	faultSQPD
	faultSQWrap
	faultSQLength
	faultSQNotAgreed
	faultZeroORD

	// A Fast-Register cannot be done.
	faultFastPrivilege
	faultFastSTag
	faultFastPD
	faultFastNotInvalid
	faultFastPageSize
	faultFastBlockSize
	faultFastEntry
	faultFastList
	faultFastRights
	faultFastVA
	faultFastFBO
	faultFastLength

	// A Bind Memory Window cannot be done.
	faultBindRegion
	faultBindWindow
	faultBindNotInvalid
	faultBindPD
	faultBindAccess
	faultBindBounds
	faultBindWrap

	// An Invalidate Local STag, or the one of an RDMA Read with Invalidate,
	// cannot be done.
	faultInvalidateLocalSTag
	faultInvalidateLocalPD
	faultInvalidateLocalWindows

	// The buffers of a Receive cannot be used.
	faultRQSTag
	faultRQBounds
	faultRQAccess
	faultRQPD
	faultRQWrap

	// An inbound Send cannot be received.
	faultSendInvSTag
	faultSendInvGone
	faultSendInvAccess
	faultSendInvPD
	faultSendInvWindows
	faultSendTooLong
	faultNoReceive
	faultSendMSNGap
	faultSendMSNRange
	faultSendMO

	// The LLP failed, or what it brought is not an FPDU.
	faultLLPLost
	faultLLPReset
	faultCRC
	faultFPDU
	faultSegmentSize

	// An inbound segment breaks the protocol.
	faultDDPVersionTagged
	faultDDPVersionUntagged
	faultRDMAPVersion
	faultOpcode
	faultQN
	faultNoLBit
	faultUntaggedMO
	faultUntaggedLength
	faultImmediateLength
	faultTerminateMSN
	faultReadRequest
	faultReadRequestShort
	faultReadRequestMO
	faultReadNotEnabled
	faultAtomicShort
	faultAtomicLength
	faultAtomicMO
	faultAtomicOpcode
	faultAtomicMisaligned
	faultAtomicNotEnabled
	faultAtomicAnswer
	faultAtomicAnswerMSN
	faultAtomicAnswerID
	faultWriteNotEnabled

	// An inbound tagged segment may not be placed.
	faultTagSTag
	faultTagBounds
	faultTagAccess
	faultTagPD
	faultTagWrap
	faultUnexpectedResponse

	// The answer to an RDMA Read is as it was asked for, and its sink may not be
	// written to.
	faultSinkSTag
	faultSinkBounds
	faultSinkAccess
	faultSinkPD

	// An inbound RDMA Read Request cannot be answered.
	faultReadTooMany
	faultReadMSNGap
	faultReadMSNRange
	faultReadSTag
	faultReadBounds
	faultReadAccess
	faultReadPD
	faultReadWrap

	// The end was asked for, by either side.
	faultModifyClosing
	faultModifyTerminate
	faultModifyError
	faultTerminateReceived
	faultPeerClosed
	faultPeerClosedBusy

	// What comes while the LLP stream closes; faultClosed is the good end.
	faultClosed
	faultClosingWork
	faultClosingSegment
	faultClosingTerminate
	faultClosingReset
	faultLLPTerminating

	// This side's own failure.
	faultSQCompletion
	faultRQCompletion
	faultSRQ
	faultStalled
	faultLocal
	faultGlobal
	numFaults
)

// What other packages refuse, as rows of the fault table.

// side is where the STag table found a fault.
type side uint8

const (
	sideSQ side = iota
	sideRQ
	sideTagged
	sideSink
	sideRead
	sideFastRegister
	sideBind
	sideInvalidate
	sideInvalidateRemote
	numSides
)

// memoryFaults maps what the STag table refuses.
var memoryFaults = [numSides]map[stag.AccessFault]streamFault{
	sideSQ:     {stag.FaultSTag: faultSQSTag, stag.FaultBounds: faultSQBounds, stag.FaultAccess: faultSQAccess, stag.FaultPD: faultSQPD, stag.FaultWrap: faultSQWrap},
	sideRQ:     {stag.FaultSTag: faultRQSTag, stag.FaultBounds: faultRQBounds, stag.FaultAccess: faultRQAccess, stag.FaultPD: faultRQPD, stag.FaultWrap: faultRQWrap},
	sideTagged: {stag.FaultSTag: faultTagSTag, stag.FaultBounds: faultTagBounds, stag.FaultAccess: faultTagAccess, stag.FaultPD: faultTagPD, stag.FaultWrap: faultTagWrap},
	// That TO and length wrap was seen when the Read was sent.
	sideSink: {stag.FaultSTag: faultSinkSTag, stag.FaultBounds: faultSinkBounds, stag.FaultAccess: faultSinkAccess, stag.FaultPD: faultSinkPD},
	sideRead: {stag.FaultSTag: faultReadSTag, stag.FaultBounds: faultReadBounds, stag.FaultAccess: faultReadAccess, stag.FaultPD: faultReadPD, stag.FaultWrap: faultReadWrap},
	sideFastRegister: {
		stag.FaultPrivilege: faultFastPrivilege, stag.FaultSTag: faultFastSTag,
		stag.FaultPD: faultFastPD, stag.FaultNotInvalid: faultFastNotInvalid,
		stag.FaultBufferSize:  faultFastPageSize, // in block mode: see fastRegisterFault
		stag.FaultBufferEntry: faultFastEntry, stag.FaultBufferList: faultFastList, stag.FaultRights: faultFastRights,
		stag.FaultVA: faultFastVA, stag.FaultFBO: faultFastFBO, stag.FaultLength: faultFastLength,
	},
	sideBind: {
		stag.FaultRegion: faultBindRegion, stag.FaultWindow: faultBindWindow, stag.FaultNotInvalid: faultBindNotInvalid,
		stag.FaultPD: faultBindPD, stag.FaultAccess: faultBindAccess, stag.FaultBounds: faultBindBounds, stag.FaultWrap: faultBindWrap,
	},
	sideInvalidate: {
		stag.FaultSTag: faultInvalidateLocalSTag, stag.FaultPD: faultInvalidateLocalPD,
		stag.FaultWindowsBound: faultInvalidateLocalWindows,
	},
	sideInvalidateRemote: {
		stag.FaultSTag: faultSendInvSTag, stag.FaultPD: faultSendInvPD, stag.FaultAccess: faultSendInvAccess,
		stag.FaultWindowsBound: faultSendInvWindows,
		stag.FaultGone:         faultSendInvGone, // RV-7.8-M17
	},
}

// memoryFault is the row for what the STag table said. faultLocal stands for what
// it never says there.
func memoryFault(s side, f stag.AccessFault) streamFault {
	if f == stag.OK {
		return noFault
	}
	if row, ok := memoryFaults[s][f]; ok {
		return row
	}
	return faultLocal
}

// checkFault maps what package rdmap refuses of a segment of kind op.
func checkFault(op rdmap.Opcode, c rdmap.TermCode) streamFault {
	read, ask := op == rdmap.ReadRequest, op == rdmap.AtomicRequest
	switch c {
	case rdmap.CodeVersion:
		return faultRDMAPVersion
	case rdmap.CodeOpcode:
		return faultOpcode
	case rdmap.CodeInvalidQN:
		return faultQN
	case rdmap.CodeStream:
		return faultNoLBit
	case rdmap.CodeMSNRange:
		return faultTerminateMSN
	case rdmap.CodeShort:
		if op.IsImmediate() {
			return faultImmediateLength
		}
		if ask {
			return faultAtomicShort
		}
		if read { // PV-9.5.3-M7
			return faultReadRequestShort
		}
		return faultSegmentSize
	case rdmap.CodeInvalidMO:
		if ask {
			return faultAtomicMO
		}
		if read {
			return faultReadRequestMO
		}
		return faultUntaggedMO
	case rdmap.CodeTooLong:
		if ask {
			return faultAtomicLength
		}
		if read {
			return faultReadRequest
		}
		if op.IsImmediate() {
			return faultImmediateLength
		}
		return faultUntaggedLength
	default: // rdmap.Check has no other
		return faultLocal
	}
}

// parseFault maps what package ddp refuses of a ULPDU.
func parseFault(c ddp.Code) streamFault {
	switch c {
	case ddp.CodeTaggedVersion:
		return faultDDPVersionTagged
	case ddp.CodeUntaggedVersion:
		return faultDDPVersionUntagged
	default: // too short: ddp.Parse has no other
		return faultSegmentSize
	}
}
