package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
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
var memoryFaults = [numSides]map[stag.Fault]fault{
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
func memoryFault(s side, f stag.Fault) fault {
	if f == stag.OK {
		return noFault
	}
	if row, ok := memoryFaults[s][f]; ok {
		return row
	}
	return faultLocal
}

// checkFault maps what package rdmap refuses of a segment of kind op.
func checkFault(op rdmap.Opcode, c rdmap.TermCode) fault {
	read := op == rdmap.ReadRequest
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
		return faultSegmentSize
	case rdmap.CodeInvalidMO:
		if read {
			return faultReadRequestMO
		}
		return faultUntaggedMO
	case rdmap.CodeTooLong:
		if read {
			return faultReadRequest
		}
		return faultUntaggedLength
	default: // rdmap.Check has no other
		return faultLocal
	}
}

// parseFault maps what package ddp refuses of a ULPDU.
func parseFault(c ddp.Code) fault {
	switch c {
	case ddp.CodeTaggedVersion:
		return faultDDPVersionTagged
	case ddp.CodeUntaggedVersion:
		return faultDDPVersionUntagged
	default: // too short: ddp.Parse has no other
		return faultSegmentSize
	}
}
