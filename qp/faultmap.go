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
var memoryFaults = [numSides]map[stag.Fault]Fault{
	sideSQ:     {stag.FaultSTag: FaultSQSTag, stag.FaultBounds: FaultSQBounds, stag.FaultAccess: FaultSQAccess, stag.FaultPD: FaultSQPD, stag.FaultWrap: FaultSQWrap},
	sideRQ:     {stag.FaultSTag: FaultRQSTag, stag.FaultBounds: FaultRQBounds, stag.FaultAccess: FaultRQAccess, stag.FaultPD: FaultRQPD, stag.FaultWrap: FaultRQWrap},
	sideTagged: {stag.FaultSTag: FaultTagSTag, stag.FaultBounds: FaultTagBounds, stag.FaultAccess: FaultTagAccess, stag.FaultPD: FaultTagPD, stag.FaultWrap: FaultTagWrap},
	// That TO and length wrap was seen when the Read was sent.
	sideSink: {stag.FaultSTag: FaultSinkSTag, stag.FaultBounds: FaultSinkBounds, stag.FaultAccess: FaultSinkAccess, stag.FaultPD: FaultSinkPD},
	sideRead: {stag.FaultSTag: FaultReadSTag, stag.FaultBounds: FaultReadBounds, stag.FaultAccess: FaultReadAccess, stag.FaultPD: FaultReadPD, stag.FaultWrap: FaultReadWrap},
	sideFastRegister: {
		stag.FaultPrivilege: FaultFastPrivilege, stag.FaultSTag: FaultFastSTag,
		stag.FaultPD: FaultFastPD, stag.FaultNotInvalid: FaultFastNotInvalid,
		stag.FaultBufferSize:  FaultFastPageSize, // in block mode: see fastRegisterFault
		stag.FaultBufferEntry: FaultFastEntry, stag.FaultBufferList: FaultFastList, stag.FaultRights: FaultFastRights,
		stag.FaultVA: FaultFastVA, stag.FaultFBO: FaultFastFBO, stag.FaultLength: FaultFastLength,
	},
	sideBind: {
		stag.FaultRegion: FaultBindRegion, stag.FaultWindow: FaultBindWindow, stag.FaultNotInvalid: FaultBindNotInvalid,
		stag.FaultPD: FaultBindPD, stag.FaultAccess: FaultBindAccess, stag.FaultBounds: FaultBindBounds, stag.FaultWrap: FaultBindWrap,
	},
	sideInvalidate: {
		stag.FaultSTag: FaultInvalidateLocalSTag, stag.FaultPD: FaultInvalidateLocalPD,
		stag.FaultWindowsBound: FaultInvalidateLocalWindows,
	},
	sideInvalidateRemote: {
		stag.FaultSTag: FaultSendInvSTag, stag.FaultPD: FaultSendInvPD, stag.FaultAccess: FaultSendInvAccess,
		stag.FaultWindowsBound: FaultSendInvWindows,
		stag.FaultGone:         FaultSendInvGone, // RV-7.8-M17
	},
}

// memoryFault is the row for what the STag table said. FaultLocal stands for what
// it never says there.
func memoryFault(s side, f stag.Fault) Fault {
	if f == stag.OK {
		return NoFault
	}
	if row, ok := memoryFaults[s][f]; ok {
		return row
	}
	return FaultLocal
}

// checkFault maps what package rdmap refuses of a segment of kind op.
func checkFault(op rdmap.Opcode, c rdmap.TermCode) Fault {
	read := op == rdmap.ReadRequest
	switch c {
	case rdmap.CodeVersion:
		return FaultRDMAPVersion
	case rdmap.CodeOpcode:
		return FaultOpcode
	case rdmap.CodeInvalidQN:
		return FaultQN
	case rdmap.CodeStream:
		return FaultNoLBit
	case rdmap.CodeMSNRange:
		return FaultTerminateMSN
	case rdmap.CodeShort:
		return FaultSegmentSize
	case rdmap.CodeInvalidMO:
		if read {
			return FaultReadRequestMO
		}
		return FaultUntaggedMO
	case rdmap.CodeTooLong:
		if read {
			return FaultReadRequest
		}
		return FaultUntaggedLength
	default: // rdmap.Check has no other
		return FaultLocal
	}
}

// parseFault maps what package ddp refuses of a ULPDU.
func parseFault(c ddp.Code) Fault {
	switch c {
	case ddp.CodeTaggedVersion:
		return FaultDDPVersionTagged
	case ddp.CodeUntaggedVersion:
		return FaultDDPVersionUntagged
	default: // too short: ddp.Parse has no other
		return FaultSegmentSize
	}
}
