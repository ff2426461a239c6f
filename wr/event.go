package wr

import "fmt"

// EventID is an Asynchronous Event identifier (verbs draft 9.5.3, figure 37).
type EventID uint8

// The events. Most carry a QP ID; those of a CQ, an S-RQ or the RNIC say so.
const (
	EventLLPCloseComplete EventID = iota + 1
	EventTerminateReceived
	EventLLPReset
	EventLLPLost
	EventSegmentSize
	EventBadCRC
	EventBadFPDU
	EventDDPVersion
	EventRDMAPVersion
	EventUnexpectedOpcode
	EventInvalidQN
	EventReadNotEnabled
	EventWriteNotEnabled
	EventInvalidReadRequest
	EventNoLBit
	EventProtSTag
	EventProtBounds
	EventProtAccess
	EventProtPD
	EventProtWrap
	EventBadClose
	EventBadLLPClose
	EventRQMSNRange
	EventRQMSNGap
	EventIRRQTooMany
	EventIRRQMSNGap
	EventIRRQMSNRange
	EventIRRQSTag
	EventIRRQBounds
	EventIRRQAccess
	EventIRRQPD
	EventIRRQWrap
	EventCQSQOverflow
	EventCQRQError
	EventSRQError
	EventLocalQPCatastrophic
	EventCQOverflow  // resource: CQ
	EventCQOperation // resource: CQ
	EventSRQLimit    // resource: S-RQ
	EventRQLimit
	EventSRQCatastrophic  // resource: S-RQ
	EventRNICCatastrophic // resource: RNIC
	// EventSRQStalled is not of the draft: see verbs.SRQConfig.StallTimeout.
	EventSRQStalled
	// EventAtomicNotEnabled and EventInvalidAtomic are not of the draft: see
	// verbs.QPConfig.Extensions.
	EventAtomicNotEnabled
	EventInvalidAtomic
	eventEnd
)

var eventNames = [...]string{
	EventLLPCloseComplete:    "LLP Close Complete",
	EventTerminateReceived:   "Terminate Message Received",
	EventLLPReset:            "LLP Connection Reset",
	EventLLPLost:             "LLP Connection Lost",
	EventSegmentSize:         "LLP Integrity Error: Segment Size Invalid",
	EventBadCRC:              "LLP Integrity Error: Invalid CRC",
	EventBadFPDU:             "LLP Integrity Error: Bad FPDU",
	EventDDPVersion:          "Remote Operation Error: Invalid DDP Version",
	EventRDMAPVersion:        "Remote Operation Error: Invalid RDMA Version",
	EventUnexpectedOpcode:    "Remote Operation Error: Unexpected Opcode",
	EventInvalidQN:           "Remote Operation Error: Invalid DDP Queue Number",
	EventReadNotEnabled:      "Remote Operation Error: RDMA Read Not Enabled",
	EventWriteNotEnabled:     "Remote Operation Error: RDMA Write and Read Response Not Enabled",
	EventInvalidReadRequest:  "Remote Operation Error: Invalid RDMA Read Request",
	EventNoLBit:              "Remote Operation Error: No L Bit When Expected",
	EventProtSTag:            "Protection Error: Invalid STag",
	EventProtBounds:          "Protection Error: Tagged Base and Bounds Violation",
	EventProtAccess:          "Protection Error: Tagged Access Rights Violation",
	EventProtPD:              "Protection Error: Tagged Invalid PD",
	EventProtWrap:            "Protection Error: Wrap Error",
	EventBadClose:            "Bad Close",
	EventBadLLPClose:         "Bad LLP Close",
	EventRQMSNRange:          "RQ Protection Error: MSN Range Not Valid",
	EventRQMSNGap:            "RQ Protection Error: Gap in MSN",
	EventIRRQTooMany:         "IRRQ Protection Error: Too Many RDMA Read Requests",
	EventIRRQMSNGap:          "IRRQ Protection Error: Gap in MSN",
	EventIRRQMSNRange:        "IRRQ Protection Error: MSN Range Not Valid",
	EventIRRQSTag:            "IRRQ Protection Error: Invalid STag",
	EventIRRQBounds:          "IRRQ Protection Error: Tagged Base and Bounds Violation",
	EventIRRQAccess:          "IRRQ Protection Error: Tagged Access Rights Violation",
	EventIRRQPD:              "IRRQ Protection Error: Tagged Invalid PD",
	EventIRRQWrap:            "IRRQ Protection Error: Wrap Error",
	EventCQSQOverflow:        "CQ/SQ Error: CQ Overflow",
	EventCQRQError:           "CQ/RQ Error: CQ Operation Error",
	EventSRQError:            "S-RQ Error on a QP",
	EventSRQStalled:          "S-RQ Error on a QP: Message Stalled",
	EventAtomicNotEnabled:    "Remote Operation Error: Atomic Operation Not Enabled",
	EventInvalidAtomic:       "Remote Operation Error: Invalid Atomic Request",
	EventLocalQPCatastrophic: "Local QP Catastrophic Error",
	EventCQOverflow:          "CQ Overflow Detected",
	EventCQOperation:         "CQ Operation Error",
	EventSRQLimit:            "Shared Receive Queue Limit Reached",
	EventRQLimit:             "QP RQ Limit Reached",
	EventSRQCatastrophic:     "Shared Receive Queue Catastrophic Failure",
	EventRNICCatastrophic:    "RNIC Catastrophic Failure",
}

func (e EventID) String() string { return name(eventNames[:], int(e), "Event") }

// Event is an Asynchronous Event Record. The identifier that goes with ID is
// set, the others are zero, and Why may be set.
type Event struct {
	ID  EventID
	QP  QPID
	CQ  CQID
	SRQ SRQID
	// Why is the reason, of an event that a fault of a queue pair has; else it is nil.
	Why *Reason
}

func (e Event) String() string {
	if e.Why != nil {
		return fmt.Sprintf("%v: %v", e.subject(), e.Why.WithoutQP())
	}
	return e.subject()
}

func (e Event) subject() string {
	switch {
	case e.QP != 0:
		return fmt.Sprintf("%v (QP %d)", e.ID, e.QP)
	case e.CQ != 0:
		return fmt.Sprintf("%v (CQ %d)", e.ID, e.CQ)
	case e.SRQ != 0:
		return fmt.Sprintf("%v (S-RQ %d)", e.ID, e.SRQ)
	}
	return e.ID.String()
}
