package qp

import (
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// consequence is a row of the fault table.
type consequence struct {
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
	Trigger trigger
	In      wr.State
	// Source is the text that decided the code.
	Source string
}

func (f streamFault) String() string {
	if f < numFaults {
		return faults[f].Name
	}
	return "Fault(" + strconv.Itoa(int(f)) + ")"
}

func local(name string, s wr.Status) consequence {
	return consequence{
		Name: name, Status: s, Code: rdmap.CodeLocalCatastrophic, Trigger: trigFault, In: wr.StateRTS, Source: "draft fig. 23",
	}
}

func remote(name string, e wr.EventID, c rdmap.TermCode, source string) consequence {
	return consequence{
		Name: name, Status: wr.StatusFlushed, Event: e, Code: c, Trigger: trigFault, In: wr.StateRTS, Source: source,
	}
}

// reported is a fault found in what the peer sent that the completion of a receive, or
// of an RDMA Read, reports.
func reported(name string, s wr.Status, c rdmap.TermCode, source string) consequence {
	return consequence{Name: name, Status: s, Code: c, Trigger: trigFault, In: wr.StateRTS, Source: source}
}

func silent(name string, e wr.EventID, t trigger, source string) consequence {
	return consequence{Name: name, Status: wr.StatusFlushed, Event: e, Trigger: t, In: wr.StateRTS, Source: source}
}

func closing(name string, e wr.EventID, t trigger, source string) consequence {
	return consequence{Name: name, Status: wr.StatusFlushed, Event: e, Trigger: t, In: wr.StateClosing, Source: source}
}

// faults is the table. Where an RFC names a code it wins over the draft's
// figures (the draft has other numbers for bad CRC, bad FPDU, tagged DDP
// version, MSN gaps, too many Reads, Send too long and refused invalidation).
var faults = [numFaults]consequence{
	noFault: {Name: "none"},

	faultSQSTag:      local("SQ: invalid STag in an SGE or address", wr.StatusInvalidSTag),
	faultSQBounds:    local("SQ: base and bounds violation", wr.StatusBaseBounds),
	faultSQAccess:    local("SQ: access rights violation", wr.StatusAccess),
	faultSQPD:        local("SQ: region of another PD", wr.StatusInvalidPD),
	faultSQWrap:      local("SQ: TO and length wrap", wr.StatusWrap),
	faultSQLength:    local("SQ: message longer than 2^32-1 octets", wr.StatusInvalidLength),
	faultSQNotAgreed: local("SQ: operation of RFC 7306 that was not agreed with the peer", wr.StatusInvalidWQE),
	faultZeroORD:     local("SQ: RDMA Read with ORD 0", wr.StatusZeroReadResources),

	faultFastPrivilege:  local("Fast-Register: queue pair without privileges", wr.StatusNotPrivileged),
	faultFastSTag:       local("Fast-Register: STag of no non-shared region", wr.StatusInvalidSTag),
	faultFastPD:         local("Fast-Register: region of another PD", wr.StatusInvalidPD),
	faultFastNotInvalid: local("Fast-Register: STag in the Valid state", wr.StatusSTagNotInvalid),
	faultFastPageSize:   local("Fast-Register: page size not supported", wr.StatusInvalidPageSize),
	faultFastBlockSize:  local("Fast-Register: block size not supported", wr.StatusInvalidPhysBufferSize),
	faultFastEntry:      local("Fast-Register: address of no buffer", wr.StatusInvalidPhysBufferEntry),
	faultFastList:       local("Fast-Register: buffer list longer than the region's", wr.StatusPhysBufferListTooLong),
	faultFastRights:     local("Fast-Register: access rights not allowed", wr.StatusInvalidAccessRights),
	faultFastVA:         local("Fast-Register: VA zero, too high, or not of this FBO", wr.StatusInvalidVA),
	faultFastFBO:        local("Fast-Register: FBO beyond the first buffer", wr.StatusInvalidFBO),
	faultFastLength:     local("Fast-Register: length beyond the buffers", wr.StatusInvalidFastRegLength),

	faultBindRegion:     local("Bind: STag of no region that takes windows", wr.StatusInvalidRegion),
	faultBindWindow:     local("Bind: STag of no window", wr.StatusInvalidWindow),
	faultBindNotInvalid: local("Bind: window in the Valid state", wr.StatusSTagNotInvalid),
	faultBindPD:         local("Bind: window or region of another PD", wr.StatusInvalidPD),
	faultBindAccess:     local("Bind: rights of queue pair, region and window disagree", wr.StatusAccess),
	faultBindBounds:     local("Bind: window not within its region", wr.StatusBaseBounds),
	faultBindWrap:       local("Bind: VA and length wrap", wr.StatusWrap),

	faultInvalidateLocalSTag: local("Invalidate: STag that cannot be invalidated", wr.StatusInvalidSTag),
	faultInvalidateLocalPD:   local("Invalidate: STag of another PD or QP", wr.StatusInvalidPD),
	// Figure 36 has no status for it: the STag was not allowed in this operation.
	faultInvalidateLocalWindows: local("Invalidate: windows are bound to the region", wr.StatusInvalidSTag),

	faultRQSTag:   local("RQ: invalid STag in an SGE", wr.StatusInvalidSTag),
	faultRQBounds: local("RQ: base and bounds violation", wr.StatusBaseBounds),
	faultRQAccess: local("RQ: access rights violation", wr.StatusAccess),
	faultRQPD:     local("RQ: region of another PD", wr.StatusInvalidPD),
	faultRQWrap:   local("RQ: TO and length wrap", wr.StatusWrap),

	faultSendInvSTag: reported("Send with Invalidate: invalid STag", wr.StatusInvalidSTag,
		rdmap.CodeProtInvalidate, "RFC 5040 4.8 fig. 9"),
	faultSendInvGone: reported("Send with Invalidate: the STag is deallocated", wr.StatusInvalidSTag,
		rdmap.CodeOpInvalidate, "draft 7.8, RFC 5040 4.8 fig. 9"),
	faultSendInvAccess: reported("Send with Invalidate: no remote access right on the STag or the QP", wr.StatusInvalidateSTag,
		rdmap.CodeProtInvalidate, "RFC 5040 4.8 fig. 9"),
	faultSendInvPD: reported("Send with Invalidate: STag of another PD or QP", wr.StatusInvalidateSTag,
		rdmap.CodeProtInvalidate, "RFC 5040 4.8 fig. 9"),
	faultSendInvWindows: reported("Send with Invalidate: windows are bound to the region", wr.StatusInvalidateSTag,
		rdmap.CodeProtInvalidate, "RFC 5040 4.8 fig. 9"),
	faultSendTooLong: reported("Send longer than the receive posted for it", wr.StatusBaseBounds,
		rdmap.CodeTooLong, "RFC 5041 7.2"),
	faultNoReceive: remote("Send with no receive posted", wr.EventRQMSNRange,
		rdmap.TermCode(ddp.CodeNoBuffer), "RFC 5041 7.2"),
	faultSendMSNGap: remote("Send ahead of its MSN order, within the receives posted", wr.EventRQMSNGap,
		rdmap.CodeMSNRange, "RFC 5041 7.2"),
	faultSendMSNRange: remote("Send behind its MSN order, or beyond the receives posted", wr.EventRQMSNRange,
		rdmap.CodeMSNRange, "RFC 5041 7.2"),
	faultSendMO: remote("Send segment out of MO order", wr.EventRQMSNGap, rdmap.CodeInvalidMO, "RFC 5041 7.2"),

	faultLLPLost:  silent("LLP connection lost", wr.EventLLPLost, trigLLPFailure, "draft fig. 12, 24"),
	faultLLPReset: silent("LLP connection reset by the peer", wr.EventLLPReset, trigLLPFailure, "draft fig. 12, 24"),
	faultCRC:      remote("FPDU with a bad CRC", wr.EventBadCRC, rdmap.TermCode(mpa.CodeCRC), "RFC 5044 8"),
	faultFPDU: remote("FPDU length and markers disagree, or length above 64768", wr.EventBadFPDU,
		rdmap.TermCode(mpa.CodeFPDU), "RFC 5044 8"),
	faultSegmentSize: remote("ULPDU too short for its headers", wr.EventSegmentSize,
		rdmap.TermCode(ddp.CodeLocal), "draft fig. 24"),

	faultDDPVersionTagged: remote("invalid DDP version, tagged", wr.EventDDPVersion,
		rdmap.TermCode(ddp.CodeTaggedVersion), "RFC 5041 7.2"),
	faultDDPVersionUntagged: remote("invalid DDP version, untagged", wr.EventDDPVersion,
		rdmap.TermCode(ddp.CodeUntaggedVersion), "RFC 5041 7.2"),
	faultRDMAPVersion: remote("invalid RDMAP version", wr.EventRDMAPVersion, rdmap.CodeVersion, "RFC 5040 4.8 fig. 9"),
	faultOpcode:       remote("opcode unknown or not expected here", wr.EventUnexpectedOpcode, rdmap.CodeOpcode, "RFC 5040 4.8 fig. 9"),
	faultQN:           remote("invalid queue number", wr.EventInvalidQN, rdmap.CodeInvalidQN, "RFC 5041 7.2"),
	faultNoLBit:       remote("no L bit where the message must end", wr.EventNoLBit, rdmap.CodeStream, "draft fig. 24"),
	faultUntaggedMO:   remote("Terminate or Immediate Data with an MO", wr.EventSegmentSize, rdmap.CodeInvalidMO, "RFC 5041 7.2"),
	faultUntaggedLength: remote("Terminate longer than its headers", wr.EventSegmentSize,
		rdmap.CodeTooLong, "RFC 5041 7.2"),
	// RFC 7306 6.3 has RDMAP make the check, and 8.1 the DDP header repeated: so not the code of
	// a ULPDU that is too short, which is of DDP and repeats none.
	faultImmediateLength: remote("Immediate Data of other than 8 octets", wr.EventSegmentSize,
		rdmap.CodeStream, "RFC 7306 6.3, 8.1"),
	faultTerminateMSN: remote("Terminate with an MSN other than 1", wr.EventUnexpectedOpcode,
		rdmap.CodeMSNRange, "RFC 5041 7.2"),
	faultReadRequest: remote("RDMA Read Request longer than its header", wr.EventInvalidReadRequest,
		rdmap.CodeTooLong, "RFC 5041 7.2"),
	faultReadRequestShort: remote("RDMA Read Request shorter than its header", wr.EventInvalidReadRequest,
		rdmap.TermCode(ddp.CodeLocal), "draft fig. 24, 37"),
	faultReadRequestMO: remote("RDMA Read Request with an MO", wr.EventInvalidReadRequest,
		rdmap.CodeInvalidMO, "RFC 5041 7.2"),
	faultReadNotEnabled: remote("inbound RDMA Read not enabled on the QP", wr.EventReadNotEnabled,
		rdmap.CodeInvalidQN, "draft fig. 24"),
	// RFC 7306 8.2 names the code of one of these. The others have that of the same fault of
	// an RDMA Read Request; an operation that is not defined is not expected.
	faultAtomicShort: remote("Atomic Request shorter than its header", wr.EventInvalidAtomic,
		rdmap.TermCode(ddp.CodeLocal), "as draft fig. 24"),
	faultAtomicLength:     remote("Atomic Request longer than its header", wr.EventInvalidAtomic, rdmap.CodeTooLong, "RFC 5041 7.2"),
	faultAtomicMO:         remote("Atomic Request with an MO", wr.EventInvalidAtomic, rdmap.CodeInvalidMO, "RFC 5041 7.2"),
	faultAtomicOpcode:     remote("Atomic Request for an operation that is not defined", wr.EventInvalidAtomic, rdmap.CodeOpcode, "RFC 7306 5.2.1"),
	faultAtomicMisaligned: remote("Atomic Request for memory that is not aligned to 8 octets", wr.EventInvalidAtomic, rdmap.CodeStream, "RFC 7306 8.2"),
	faultAtomicNotEnabled: remote("inbound Atomic not enabled on the QP", wr.EventAtomicNotEnabled, rdmap.CodeInvalidQN, "as draft fig. 24"),
	faultAtomicAnswer: remote("Atomic Response that answers no Atomic", wr.EventUnexpectedOpcode,
		rdmap.TermCode(ddp.CodeNoBuffer), "RFC 5041 7.2"),
	faultAtomicAnswerMSN: remote("Atomic Response out of MSN order", wr.EventUnexpectedOpcode, rdmap.CodeMSNRange, "RFC 5041 7.2"),
	faultAtomicAnswerID: remote("Atomic Response to another Atomic than the oldest", wr.EventUnexpectedOpcode,
		rdmap.CodeOpcode, "RFC 5040 4.8 fig. 9"),
	faultWriteNotEnabled: remote("inbound RDMA Write and Read Response not enabled on the QP",
		wr.EventWriteNotEnabled, rdmap.TermCode(ddp.CodeInvalidSTag), "RFC 5041 7.1, 7.2"),

	faultTagSTag:   remote("tagged: invalid STag", wr.EventProtSTag, rdmap.TermCode(ddp.CodeInvalidSTag), "RFC 5041 7.2"),
	faultTagBounds: remote("tagged: base or bounds violation", wr.EventProtBounds, rdmap.TermCode(ddp.CodeBounds), "RFC 5041 7.2"),
	// RFC 5041 7.1 tagged check 2 wants a buffer that allows Placement; 7.2
	// has no other number for an STag without one.
	faultTagAccess: remote("tagged: no remote write right", wr.EventProtAccess, rdmap.TermCode(ddp.CodeInvalidSTag), "RFC 5041 7.1, 7.2"),
	faultTagPD:     remote("tagged: STag of another PD or QP", wr.EventProtPD, rdmap.TermCode(ddp.CodeNotAssociated), "RFC 5041 7.2"),
	faultTagWrap:   remote("tagged: TO and length wrap", wr.EventProtWrap, rdmap.TermCode(ddp.CodeWrap), "RFC 5041 7.2"),
	faultUnexpectedResponse: remote("RDMA Read Response that answers no Read", wr.EventUnexpectedOpcode,
		rdmap.CodeOpcode, "RFC 5040 4.8 fig. 9"),

	// Draft 7.5.2: the rights on the sink are looked at now. Figure 23 has their lack
	// among the errors of the request, so a completion tells and no event
	// (RV-6.2.2.3-M4, RV-6.2.3-M14); the checks, and so the codes, are those of the
	// tagged segment.
	faultSinkSTag: reported("Read Response: the sink's STag is invalid by now", wr.StatusInvalidSTag,
		rdmap.TermCode(ddp.CodeInvalidSTag), "RFC 5041 7.2"),
	faultSinkBounds: reported("Read Response: the sink is not within its region or window by now", wr.StatusBaseBounds,
		rdmap.TermCode(ddp.CodeBounds), "RFC 5041 7.2"),
	faultSinkAccess: reported("Read Response: no remote write right on the sink", wr.StatusAccess,
		rdmap.TermCode(ddp.CodeInvalidSTag), "RFC 5041 7.1, 7.2"),
	faultSinkPD: reported("Read Response: the sink is of another PD or QP by now", wr.StatusInvalidPD,
		rdmap.TermCode(ddp.CodeNotAssociated), "RFC 5041 7.2"),

	faultReadTooMany: remote("more RDMA Read Requests than IRD", wr.EventIRRQTooMany,
		rdmap.TermCode(ddp.CodeNoBuffer), "RFC 5041 7.2"),
	faultReadMSNGap: remote("RDMA Read Request ahead of its MSN order, within the IRRQ", wr.EventIRRQMSNGap,
		rdmap.CodeMSNRange, "RFC 5041 7.2"),
	faultReadMSNRange: remote("RDMA Read Request behind its MSN order, or beyond the IRRQ", wr.EventIRRQMSNRange,
		rdmap.CodeMSNRange, "RFC 5041 7.2"),
	faultReadSTag:   remote("RDMA Read: invalid source STag", wr.EventIRRQSTag, rdmap.CodeProtSTag, "RFC 5040 4.8 fig. 9"),
	faultReadBounds: remote("RDMA Read: base or bounds violation", wr.EventIRRQBounds, rdmap.CodeProtBounds, "RFC 5040 4.8 fig. 9"),
	faultReadAccess: remote("RDMA Read: no remote read right", wr.EventIRRQAccess, rdmap.CodeProtAccess, "RFC 5040 4.8 fig. 9"),
	faultReadPD:     remote("RDMA Read: STag of another PD or QP", wr.EventIRRQPD, rdmap.CodeProtNotAssociated, "RFC 5040 4.8 fig. 9"),
	faultReadWrap:   remote("RDMA Read: TO and length wrap", wr.EventIRRQWrap, rdmap.CodeProtWrap, "RFC 5040 4.8 fig. 9"),

	faultModifyClosing: silent("Modify QP to Closing", 0, trigModifyClosing, "draft 6.2.2.2"),
	faultModifyTerminate: {
		Name: "Modify QP to Terminate", Status: wr.StatusFlushed, Code: rdmap.CodeLocalCatastrophic,
		Trigger: trigModifyTerminate, In: wr.StateRTS, Source: "draft fig. 12",
	},
	faultModifyError: silent("Modify QP to Error", 0, trigModifyError, "draft fig. 12"),
	// The Send Queue element that the peer complains about has the status.
	faultTerminateReceived: {
		Name: "Terminate Message received", Status: wr.StatusRemoteTermination, Event: wr.EventTerminateReceived,
		Trigger: trigTerminateReceived, In: wr.StateRTS, Source: "draft 6.2.2.3",
	},
	// Its event comes with the end of the LLP Close.
	faultPeerClosed: silent("peer closed, nothing on the SQ or IRRQ", 0, trigPeerClose, "draft 6.2.2.2"),
	faultPeerClosedBusy: {
		Name: "peer closed with work on the SQ or IRRQ", Status: wr.StatusFlushed, Event: wr.EventBadLLPClose,
		Code: rdmap.CodeStream, Trigger: trigPeerCloseBusy, In: wr.StateRTS, Source: "draft fig. 24",
	},

	faultClosed:           closing("LLP Close complete", wr.EventLLPCloseComplete, trigClosed, "draft 6.2.5"),
	faultClosingWork:      closing("work left while closing", wr.EventBadClose, trigBusy, "draft fig. 11, 24"),
	faultClosingSegment:   closing("segment, or part of one, while closing", wr.EventBadClose, trigSegment, "draft fig. 11, 24"),
	faultClosingTerminate: closing("Terminate Message while closing", wr.EventBadClose, trigTerminateReceived, "draft fig. 11"),
	// The event is that of any failure of the LLP in Closing (PV-6.2.5-M1).
	faultClosingReset: closing("LLP connection reset by the peer while closing", wr.EventLLPLost, trigLLPFailure, "draft 6.2.5, fig. 11"),
	// Its event is for an end of which no other has told.
	faultLLPTerminating: {
		Name: "LLP failure behind, or instead of, a Terminate Message", Status: wr.StatusFlushed, Event: wr.EventBadClose,
		Trigger: trigLLPFailure, In: wr.StateTerminate, Source: "draft 6.2.3",
	},

	faultSQCompletion: remote("no room on the CQ for an SQ completion", wr.EventCQSQOverflow, rdmap.CodeStream, "draft fig. 24"),
	faultRQCompletion: remote("no room on the CQ for an RQ completion", wr.EventCQRQError, rdmap.CodeStream, "draft fig. 24"),
	faultSRQ:          remote("S-RQ error on a QP", wr.EventSRQError, rdmap.CodeStream, "draft fig. 24"),
	// RFC 5041 and the draft have nothing for a message that does not end: the stream is
	// what is given up, as for any other failure that is its own (RFC 5040 4.8).
	faultStalled: remote("message without progress in a receive of an S-RQ that others use", wr.EventSRQStalled,
		rdmap.CodeStream, "RFC 5040 4.8 fig. 9"),
	// The event, or a completion if a request is under way: see session.findAtFault.
	faultLocal: {
		Name: "local QP catastrophic error", Status: wr.StatusLocalQPCatastrophic, Event: wr.EventLocalQPCatastrophic,
		Code: rdmap.CodeStream, Trigger: trigFault, In: wr.StateRTS, Source: "draft fig. 24",
	},
	// The event is the RNIC's, raised once for all queue pairs (figure 25).
	faultGlobal: remote("RNIC catastrophic failure", 0, rdmap.CodeGlobal, "draft fig. 25"),
}

// reason is what the table tells of a fault on a queue pair.
func (f streamFault) reason(id wr.QPID) *wr.Reason {
	rule := strings.Replace(faults[f].Source, "draft", "verbs draft", 1)
	return &wr.Reason{QP: id, What: faults[f].Name, Rule: rule}
}
