package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

func local(name string, s wr.Status) Consequence {
	return Consequence{
		Name: name, Status: s, Code: rdmap.CodeLocalCatastrophic, Trigger: TrigFault, In: RTS, Source: "draft fig. 23",
	}
}

func remote(name string, e wr.EventID, c rdmap.TermCode, source string) Consequence {
	return Consequence{
		Name: name, Status: wr.StatusFlushed, Event: e, Code: c, Trigger: TrigFault, In: RTS, Source: source,
	}
}

// reported is a fault found in what the peer sent that the completion of a receive, or
// of an RDMA Read, reports.
func reported(name string, s wr.Status, c rdmap.TermCode, source string) Consequence {
	return Consequence{Name: name, Status: s, Code: c, Trigger: TrigFault, In: RTS, Source: source}
}

func silent(name string, e wr.EventID, t Trigger, source string) Consequence {
	return Consequence{Name: name, Status: wr.StatusFlushed, Event: e, Trigger: t, In: RTS, Source: source}
}

func closing(name string, e wr.EventID, t Trigger, source string) Consequence {
	return Consequence{Name: name, Status: wr.StatusFlushed, Event: e, Trigger: t, In: Closing, Source: source}
}

// faults is the table. Where an RFC names a code it wins over the draft's
// figures (the draft has other numbers for bad CRC, bad FPDU, tagged DDP
// version, MSN gaps, too many Reads, Send too long and refused invalidation).
var faults = [numFaults]Consequence{
	NoFault: {Name: "none"},

	FaultSQSTag:   local("SQ: invalid STag in an SGE or address", wr.StatusInvalidSTag),
	FaultSQBounds: local("SQ: base and bounds violation", wr.StatusBaseBounds),
	FaultSQAccess: local("SQ: access rights violation", wr.StatusAccess),
	FaultSQPD:     local("SQ: region of another PD", wr.StatusInvalidPD),
	FaultSQWrap:   local("SQ: TO and length wrap", wr.StatusWrap),
	FaultSQLength: local("SQ: message longer than 2^32-1 octets", wr.StatusInvalidLength),
	FaultZeroORD:  local("SQ: RDMA Read with ORD 0", wr.StatusZeroReadResources),

	FaultFastPrivilege:  local("Fast-Register: queue pair without privileges", wr.StatusNotPrivileged),
	FaultFastSTag:       local("Fast-Register: STag of no non-shared region", wr.StatusInvalidSTag),
	FaultFastPD:         local("Fast-Register: region of another PD", wr.StatusInvalidPD),
	FaultFastNotInvalid: local("Fast-Register: STag in the Valid state", wr.StatusSTagNotInvalid),
	FaultFastPageSize:   local("Fast-Register: page size not supported", wr.StatusInvalidPageSize),
	FaultFastBlockSize:  local("Fast-Register: block size not supported", wr.StatusInvalidPhysBufferSize),
	FaultFastEntry:      local("Fast-Register: address of no buffer", wr.StatusInvalidPhysBufferEntry),
	FaultFastList:       local("Fast-Register: buffer list longer than the region's", wr.StatusPhysBufferListTooLong),
	FaultFastRights:     local("Fast-Register: access rights not allowed", wr.StatusInvalidAccessRights),
	FaultFastVA:         local("Fast-Register: VA zero, too high, or not of this FBO", wr.StatusInvalidVA),
	FaultFastFBO:        local("Fast-Register: FBO beyond the first buffer", wr.StatusInvalidFBO),
	FaultFastLength:     local("Fast-Register: length beyond the buffers", wr.StatusInvalidFastRegLength),

	FaultBindRegion:     local("Bind: STag of no region that takes windows", wr.StatusInvalidRegion),
	FaultBindWindow:     local("Bind: STag of no window", wr.StatusInvalidWindow),
	FaultBindNotInvalid: local("Bind: window in the Valid state", wr.StatusSTagNotInvalid),
	FaultBindPD:         local("Bind: window or region of another PD", wr.StatusInvalidPD),
	FaultBindAccess:     local("Bind: rights of queue pair, region and window disagree", wr.StatusAccess),
	FaultBindBounds:     local("Bind: window not within its region", wr.StatusBaseBounds),
	FaultBindWrap:       local("Bind: VA and length wrap", wr.StatusWrap),

	FaultInvalidateLocalSTag: local("Invalidate: STag that cannot be invalidated", wr.StatusInvalidSTag),
	FaultInvalidateLocalPD:   local("Invalidate: STag of another PD or QP", wr.StatusInvalidPD),
	// Figure 36 has no status for it: the STag was not allowed in this operation.
	FaultInvalidateLocalWindows: local("Invalidate: windows are bound to the region", wr.StatusInvalidSTag),

	FaultRQSTag:   local("RQ: invalid STag in an SGE", wr.StatusInvalidSTag),
	FaultRQBounds: local("RQ: base and bounds violation", wr.StatusBaseBounds),
	FaultRQAccess: local("RQ: access rights violation", wr.StatusAccess),
	FaultRQPD:     local("RQ: region of another PD", wr.StatusInvalidPD),
	FaultRQWrap:   local("RQ: TO and length wrap", wr.StatusWrap),

	FaultSendInvSTag: reported("Send with Invalidate: invalid STag", wr.StatusInvalidSTag,
		rdmap.CodeProtInvalidate, "RFC 5040 4.8 fig. 9"),
	FaultSendInvGone: reported("Send with Invalidate: the STag is deallocated", wr.StatusInvalidSTag,
		rdmap.CodeOpInvalidate, "draft 7.8, RFC 5040 4.8 fig. 9"),
	FaultSendInvAccess: reported("Send with Invalidate: no remote access right on the STag or the QP", wr.StatusInvalidateSTag,
		rdmap.CodeProtInvalidate, "RFC 5040 4.8 fig. 9"),
	FaultSendInvPD: reported("Send with Invalidate: STag of another PD or QP", wr.StatusInvalidateSTag,
		rdmap.CodeProtInvalidate, "RFC 5040 4.8 fig. 9"),
	FaultSendInvWindows: reported("Send with Invalidate: windows are bound to the region", wr.StatusInvalidateSTag,
		rdmap.CodeProtInvalidate, "RFC 5040 4.8 fig. 9"),
	FaultSendTooLong: reported("Send longer than the receive posted for it", wr.StatusBaseBounds,
		rdmap.CodeTooLong, "RFC 5041 7.2"),
	FaultNoReceive: remote("Send with no receive posted", wr.EventRQMSNRange,
		rdmap.TermCode(ddp.CodeNoBuffer), "RFC 5041 7.2"),
	FaultSendMSNGap: remote("Send ahead of its MSN order, within the receives posted", wr.EventRQMSNGap,
		rdmap.CodeMSNRange, "RFC 5041 7.2"),
	FaultSendMSNRange: remote("Send behind its MSN order, or beyond the receives posted", wr.EventRQMSNRange,
		rdmap.CodeMSNRange, "RFC 5041 7.2"),
	FaultSendMO: remote("Send segment out of MO order", wr.EventRQMSNGap, rdmap.CodeInvalidMO, "RFC 5041 7.2"),

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

	// Draft 7.5.2: the rights on the sink are looked at now. Figure 23 has their lack
	// among the errors of the request, so a completion tells and no event
	// (RV-6.2.2.3-M4, RV-6.2.3-M14); the checks, and so the codes, are those of the
	// tagged segment.
	FaultSinkSTag: reported("Read Response: the sink's STag is invalid by now", wr.StatusInvalidSTag,
		rdmap.TermCode(ddp.CodeInvalidSTag), "RFC 5041 7.2"),
	FaultSinkBounds: reported("Read Response: the sink is not within its region or window by now", wr.StatusBaseBounds,
		rdmap.TermCode(ddp.CodeBounds), "RFC 5041 7.2"),
	FaultSinkAccess: reported("Read Response: no remote write right on the sink", wr.StatusAccess,
		rdmap.TermCode(ddp.CodeInvalidSTag), "RFC 5041 7.1, 7.2"),
	FaultSinkPD: reported("Read Response: the sink is of another PD or QP by now", wr.StatusInvalidPD,
		rdmap.TermCode(ddp.CodeNotAssociated), "RFC 5041 7.2"),

	FaultReadTooMany: remote("more RDMA Read Requests than IRD", wr.EventIRRQTooMany,
		rdmap.TermCode(ddp.CodeNoBuffer), "RFC 5041 7.2"),
	FaultReadMSNGap: remote("RDMA Read Request ahead of its MSN order, within the IRRQ", wr.EventIRRQMSNGap,
		rdmap.CodeMSNRange, "RFC 5041 7.2"),
	FaultReadMSNRange: remote("RDMA Read Request behind its MSN order, or beyond the IRRQ", wr.EventIRRQMSNRange,
		rdmap.CodeMSNRange, "RFC 5041 7.2"),
	FaultReadSTag:   remote("RDMA Read: invalid source STag", wr.EventIRRQSTag, rdmap.CodeProtSTag, "RFC 5040 4.8 fig. 9"),
	FaultReadBounds: remote("RDMA Read: base or bounds violation", wr.EventIRRQBounds, rdmap.CodeProtBounds, "RFC 5040 4.8 fig. 9"),
	FaultReadAccess: remote("RDMA Read: no remote read right", wr.EventIRRQAccess, rdmap.CodeProtAccess, "RFC 5040 4.8 fig. 9"),
	FaultReadPD:     remote("RDMA Read: STag of another PD or QP", wr.EventIRRQPD, rdmap.CodeProtNotAssociated, "RFC 5040 4.8 fig. 9"),
	FaultReadWrap:   remote("RDMA Read: TO and length wrap", wr.EventIRRQWrap, rdmap.CodeProtWrap, "RFC 5040 4.8 fig. 9"),

	FaultModifyClosing: silent("Modify QP to Closing", 0, TrigModifyClosing, "draft 6.2.2.2"),
	FaultModifyTerminate: {
		Name: "Modify QP to Terminate", Status: wr.StatusFlushed, Code: rdmap.CodeLocalCatastrophic,
		Trigger: TrigModifyTerminate, In: RTS, Source: "draft fig. 12",
	},
	FaultModifyError: silent("Modify QP to Error", 0, TrigModifyError, "draft fig. 12"),
	// The Send Queue element that the peer complains about has the status.
	FaultTerminateReceived: {
		Name: "Terminate Message received", Status: wr.StatusRemoteTermination, Event: wr.EventTerminateReceived,
		Trigger: TrigTerminateReceived, In: RTS, Source: "draft 6.2.2.3",
	},
	// Its event comes with the end of the LLP Close.
	FaultPeerClosed: silent("peer closed, nothing on the SQ or IRRQ", 0, TrigPeerClose, "draft 6.2.2.2"),
	FaultPeerClosedBusy: {
		Name: "peer closed with work on the SQ or IRRQ", Status: wr.StatusFlushed, Event: wr.EventBadLLPClose,
		Code: rdmap.CodeStream, Trigger: TrigPeerCloseBusy, In: RTS, Source: "draft fig. 24",
	},

	FaultClosed:           closing("LLP Close complete", wr.EventLLPCloseComplete, TrigClosed, "draft 6.2.5"),
	FaultClosingWork:      closing("work left while closing", wr.EventBadClose, TrigBusy, "draft fig. 11, 24"),
	FaultClosingSegment:   closing("segment, or part of one, while closing", wr.EventBadClose, TrigSegment, "draft fig. 11, 24"),
	FaultClosingTerminate: closing("Terminate Message while closing", wr.EventBadClose, TrigTerminateReceived, "draft fig. 11"),
	// Its event is for who has not been told of the end by another one.
	FaultLLPTerminating: {
		Name: "LLP failure behind, or instead of, a Terminate Message", Status: wr.StatusFlushed, Event: wr.EventBadClose,
		Trigger: TrigLLPFailure, In: Terminate, Source: "draft 6.2.3",
	},

	FaultSQCompletion: remote("no room on the CQ for an SQ completion", wr.EventCQSQOverflow, rdmap.CodeStream, "draft fig. 24"),
	FaultRQCompletion: remote("no room on the CQ for an RQ completion", wr.EventCQRQError, rdmap.CodeStream, "draft fig. 24"),
	FaultSRQ:          remote("S-RQ error on a QP", wr.EventSRQError, rdmap.CodeStream, "draft fig. 24"),
	// RFC 5041 and the draft have nothing for a message that does not end: the stream is
	// what is given up, as for any other failure that is its own (RFC 5040 4.8).
	FaultStalled: remote("message without progress in a receive of an S-RQ that others use", wr.EventSRQStalled,
		rdmap.CodeStream, "RFC 5040 4.8 fig. 9"),
	// The event, or a completion if a request is under way: see session.blame.
	FaultLocal: {
		Name: "local QP catastrophic error", Status: wr.StatusLocalQPCatastrophic, Event: wr.EventLocalQPCatastrophic,
		Code: rdmap.CodeStream, Trigger: TrigFault, In: RTS, Source: "draft fig. 24",
	},
	// The event is the RNIC's, raised once for all queue pairs (figure 25).
	FaultGlobal: remote("RNIC catastrophic failure", 0, rdmap.CodeGlobal, "draft fig. 25"),
}
