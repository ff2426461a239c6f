package qp

import (
	"strconv"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// Fault is something that ends a stream. What follows from it, which status,
// event, Terminate code and next state, is in one table and nowhere else.
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

	// The buffers of a Receive cannot be used.
	FaultRQSTag
	FaultRQBounds
	FaultRQAccess
	FaultRQPD
	FaultRQWrap

	// An inbound Send cannot be received.
	FaultInvalidate
	FaultSendTooLong
	FaultNoReceive
	FaultSendMSN
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

	// An inbound RDMA Read Request cannot be answered.
	FaultReadTooMany
	FaultReadMSN
	FaultReadSTag
	FaultReadBounds
	FaultReadAccess
	FaultReadPD
	FaultReadWrap

	// The end of a stream was not a good one.
	FaultBadClose
	FaultPeerClosedBusy
	FaultTerminateReceived

	// This side's own doing.
	FaultSQCompletion
	FaultRQCompletion
	FaultModifyTerminate
	FaultLocal
	numFaults
)

// Consequence is a row of the fault table.
type Consequence struct {
	// Name says what happened.
	Name string
	// Status is that of the work request at fault, if there is one; the
	// others complete as Flushed.
	Status wr.Status
	// Event is raised, unless it is zero or a completion reports the fault
	// (verbs draft 6.2.3).
	Event wr.EventID
	// Sends says whether a Terminate Message goes out, and Code with what.
	Sends bool
	Code  rdmap.TermCode
	// Trigger is what the state machine sees.
	Trigger Trigger
	// Source is the text that decided the code.
	Source string
}

func local(name string, s wr.Status) Consequence {
	return Consequence{name, s, 0, true, rdmap.CodeLocalCatastrophic, TrigFault, "draft fig. 23"}
}

func remote(name string, e wr.EventID, c rdmap.TermCode, source string) Consequence {
	return Consequence{name, wr.StatusFlushed, e, true, c, TrigFault, source}
}

func silent(name string, e wr.EventID, t Trigger, source string) Consequence {
	return Consequence{Name: name, Status: wr.StatusFlushed, Event: e, Trigger: t, Source: source}
}

// faults is the table. Where an RFC names a code it wins over the draft's
// figures (the draft has other numbers for bad CRC, bad FPDU, tagged DDP
// version, MSN gaps, too many Reads, Send too long and refused invalidation).
var faults = [numFaults]Consequence{
	NoFault: {Name: "none", Trigger: TrigSegment},

	FaultSQSTag:   local("SQ: invalid STag in an SGE or address", wr.StatusInvalidSTag),
	FaultSQBounds: local("SQ: base and bounds violation", wr.StatusBaseBounds),
	FaultSQAccess: local("SQ: access rights violation", wr.StatusAccess),
	FaultSQPD:     local("SQ: region of another PD", wr.StatusInvalidPD),
	FaultSQWrap:   local("SQ: TO and length wrap", wr.StatusWrap),
	FaultSQLength: local("SQ: message longer than 2^32-1 octets", wr.StatusInvalidLength),
	FaultZeroORD:  local("SQ: RDMA Read with ORD 0", wr.StatusZeroReadResources),

	FaultRQSTag:   local("RQ: invalid STag in an SGE", wr.StatusInvalidSTag),
	FaultRQBounds: local("RQ: base and bounds violation", wr.StatusBaseBounds),
	FaultRQAccess: local("RQ: access rights violation", wr.StatusAccess),
	FaultRQPD:     local("RQ: region of another PD", wr.StatusInvalidPD),
	FaultRQWrap:   local("RQ: TO and length wrap", wr.StatusWrap),

	FaultInvalidate: {
		"Send with Invalidate: the STag cannot be invalidated", wr.StatusInvalidateSTag, 0, true,
		rdmap.CodeProtInvalidate, TrigFault, "RFC 5040 4.8 fig. 9",
	},
	FaultSendTooLong: {
		"Send longer than the receive posted for it", wr.StatusBaseBounds, 0, true,
		rdmap.CodeTooLong, TrigFault, "RFC 5041 7.2",
	},
	FaultNoReceive: remote("Send with no receive posted", wr.EventRQMSNRange,
		rdmap.TermCode(ddp.CodeNoBuffer), "RFC 5041 7.2"),
	FaultSendMSN: remote("Send out of MSN order", wr.EventRQMSNGap, rdmap.CodeMSNRange, "RFC 5041 7.2"),
	FaultSendMO:  remote("Send segment out of MO order", wr.EventRQMSNGap, rdmap.CodeInvalidMO, "RFC 5041 7.2"),

	FaultLLPLost:  silent("LLP connection lost", wr.EventLLPLost, TrigLLPFailure, "draft fig. 12, 24"),
	FaultLLPReset: silent("LLP connection reset by the peer", wr.EventLLPReset, TrigLLPFailure, "draft fig. 12, 24"),
	FaultCRC:      remote("FPDU with a bad CRC", wr.EventBadCRC, rdmap.TermCode(mpa.CodeCRC), "RFC 5044 8"),
	FaultFPDU: remote("FPDU length and markers disagree, or length above 64768", wr.EventBadFPDU,
		rdmap.TermCode(mpa.CodeFPDU), "RFC 5044 8"),
	FaultSegmentSize: remote("ULPDU too short for its headers", wr.EventSegmentSize,
		rdmap.TermCode(ddp.CodeLocal), "draft fig. 24"),

	FaultDDPVersionTagged: remote("invalid DDP version, tagged", wr.EventDDPVersion,
		rdmap.TermCode(ddp.CodeTaggedVersion), "RFC 5041 7.2"),
	FaultDDPVersionUntagged: remote("invalid DDP version, untagged", wr.EventDDPVersion,
		rdmap.TermCode(ddp.CodeUntaggedVersion), "RFC 5041 7.2"),
	FaultRDMAPVersion: remote("invalid RDMAP version", wr.EventRDMAPVersion, rdmap.CodeVersion, "RFC 5040 4.8 fig. 9"),
	FaultOpcode:       remote("opcode unknown or not expected here", wr.EventUnexpectedOpcode, rdmap.CodeOpcode, "RFC 5040 4.8 fig. 9"),
	FaultQN:           remote("invalid queue number", wr.EventInvalidQN, rdmap.CodeInvalidQN, "RFC 5041 7.2"),
	FaultNoLBit:       remote("no L bit where the message must end", wr.EventNoLBit, rdmap.CodeStream, "draft fig. 24"),
	FaultUntaggedMO:   remote("Terminate with an MO", wr.EventSegmentSize, rdmap.CodeInvalidMO, "RFC 5041 7.2"),
	FaultUntaggedLength: remote("Terminate longer than its headers", wr.EventSegmentSize,
		rdmap.CodeTooLong, "RFC 5041 7.2"),
	FaultTerminateMSN: remote("Terminate with an MSN other than 1", wr.EventUnexpectedOpcode,
		rdmap.CodeMSNRange, "RFC 5041 7.2"),
	FaultReadRequest: remote("RDMA Read Request longer than its header", wr.EventInvalidReadRequest,
		rdmap.CodeTooLong, "RFC 5041 7.2"),
	FaultReadRequestMO: remote("RDMA Read Request with an MO", wr.EventInvalidReadRequest,
		rdmap.CodeInvalidMO, "RFC 5041 7.2"),
	FaultReadNotEnabled: remote("inbound RDMA Read not enabled on the QP", wr.EventReadNotEnabled,
		rdmap.CodeInvalidQN, "draft fig. 24"),
	FaultWriteNotEnabled: remote("inbound RDMA Write and Read Response not enabled on the QP",
		wr.EventWriteNotEnabled, rdmap.TermCode(ddp.CodeInvalidSTag), "RFC 5041 7.1, 7.2"),

	FaultTagSTag:   remote("tagged: invalid STag", wr.EventProtSTag, rdmap.TermCode(ddp.CodeInvalidSTag), "RFC 5041 7.2"),
	FaultTagBounds: remote("tagged: base or bounds violation", wr.EventProtBounds, rdmap.TermCode(ddp.CodeBounds), "RFC 5041 7.2"),
	// RFC 5041 7.1 tagged check 2 wants a buffer that allows Placement; 7.2
	// has no other number for an STag without one.
	FaultTagAccess: remote("tagged: no remote write right", wr.EventProtAccess, rdmap.TermCode(ddp.CodeInvalidSTag), "RFC 5041 7.1, 7.2"),
	FaultTagPD:     remote("tagged: STag of another PD or QP", wr.EventProtPD, rdmap.TermCode(ddp.CodeNotAssociated), "RFC 5041 7.2"),
	FaultTagWrap:   remote("tagged: TO and length wrap", wr.EventProtWrap, rdmap.TermCode(ddp.CodeWrap), "RFC 5041 7.2"),
	FaultUnexpectedResponse: remote("RDMA Read Response that answers no Read", wr.EventUnexpectedOpcode,
		rdmap.CodeOpcode, "RFC 5040 4.8 fig. 9"),

	FaultReadTooMany: remote("more RDMA Read Requests than IRD", wr.EventIRRQTooMany,
		rdmap.TermCode(ddp.CodeNoBuffer), "RFC 5041 7.2"),
	FaultReadMSN:    remote("RDMA Read Request out of MSN order", wr.EventIRRQMSNRange, rdmap.CodeMSNRange, "RFC 5041 7.2"),
	FaultReadSTag:   remote("RDMA Read: invalid source STag", wr.EventIRRQSTag, rdmap.CodeProtSTag, "RFC 5040 4.8 fig. 9"),
	FaultReadBounds: remote("RDMA Read: base or bounds violation", wr.EventIRRQBounds, rdmap.CodeProtBounds, "RFC 5040 4.8 fig. 9"),
	FaultReadAccess: remote("RDMA Read: no remote read right", wr.EventIRRQAccess, rdmap.CodeProtAccess, "RFC 5040 4.8 fig. 9"),
	FaultReadPD:     remote("RDMA Read: STag of another PD or QP", wr.EventIRRQPD, rdmap.CodeProtNotAssociated, "RFC 5040 4.8 fig. 9"),
	FaultReadWrap:   remote("RDMA Read: TO and length wrap", wr.EventIRRQWrap, rdmap.CodeProtWrap, "RFC 5040 4.8 fig. 9"),

	FaultBadClose: silent("work or data while closing", wr.EventBadClose, TrigBusy, "draft fig. 11, 24"),
	FaultPeerClosedBusy: {
		"peer closed with work on the SQ or IRRQ", wr.StatusFlushed, wr.EventBadLLPClose, true,
		rdmap.CodeStream, TrigPeerCloseBusy, "draft fig. 24",
	},
	FaultTerminateReceived: silent("Terminate Message received", wr.EventTerminateReceived,
		TrigTerminateReceived, "draft 6.2.2.3"),

	FaultSQCompletion: remote("no room on the CQ for an SQ completion", wr.EventCQSQOverflow, rdmap.CodeStream, "draft fig. 24"),
	FaultRQCompletion: remote("no room on the CQ for an RQ completion", wr.EventCQRQError, rdmap.CodeStream, "draft fig. 24"),
	FaultModifyTerminate: {
		"Modify QP to Terminate", wr.StatusFlushed, 0, true,
		rdmap.CodeLocalCatastrophic, TrigModifyTerminate, "draft fig. 12",
	},
	FaultLocal: remote("local QP catastrophic error", wr.EventLocalQPCatastrophic, rdmap.CodeStream, "draft fig. 24"),
}

// ConsequenceOf is the row of f.
func ConsequenceOf(f Fault) Consequence { return faults[f] }

func (f Fault) String() string {
	if f < numFaults {
		return faults[f].Name
	}
	return "Fault(" + strconv.Itoa(int(f)) + ")"
}

// side is where the STag table found a fault.
type side uint8

const (
	sideSQ side = iota
	sideRQ
	sideTagged
	sideRead
)

// memoryFaults maps what the STag table refuses.
var memoryFaults = [...][6]Fault{
	sideSQ:     {stag.FaultSTag: FaultSQSTag, stag.FaultBounds: FaultSQBounds, stag.FaultAccess: FaultSQAccess, stag.FaultPD: FaultSQPD, stag.FaultWrap: FaultSQWrap},
	sideRQ:     {stag.FaultSTag: FaultRQSTag, stag.FaultBounds: FaultRQBounds, stag.FaultAccess: FaultRQAccess, stag.FaultPD: FaultRQPD, stag.FaultWrap: FaultRQWrap},
	sideTagged: {stag.FaultSTag: FaultTagSTag, stag.FaultBounds: FaultTagBounds, stag.FaultAccess: FaultTagAccess, stag.FaultPD: FaultTagPD, stag.FaultWrap: FaultTagWrap},
	sideRead:   {stag.FaultSTag: FaultReadSTag, stag.FaultBounds: FaultReadBounds, stag.FaultAccess: FaultReadAccess, stag.FaultPD: FaultReadPD, stag.FaultWrap: FaultReadWrap},
}

func memoryFault(s side, f stag.Fault) Fault { return memoryFaults[s][f] }

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

// Faults lists the faults, without NoFault.
func Faults() []Fault {
	var all []Fault
	for f := NoFault + 1; f < numFaults; f++ {
		all = append(all, f)
	}
	return all
}
