package verbs

import (
	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/wr"
)

// The nouns a program uses, so that it imports this package and cm alone.
type (
	// STag is a Steering Tag.
	STag = wr.STag
	// SGE is a scatter/gather element.
	SGE = wr.SGE
	// Remote is the address of a buffer at the peer.
	Remote = wr.Remote
	// Send is a work request for the Send Queue, of any operation type.
	Send = wr.Send
	// Recv is a work request for the Receive Queue.
	Recv = wr.Recv
	// Completion is a Work Completion.
	Completion = wr.Completion
	// Op is an operation type.
	Op = wr.Op
	// Flags modify a work request.
	Flags = wr.Flags
	// Access is a set of access rights.
	Access = wr.Access
	// Status is a Completion Status.
	Status = wr.Status
	// StatusError is a Completion Status as an error.
	StatusError = wr.StatusError
	// ImmediateError is the result of a verb that refused.
	ImmediateError = wr.ImmediateError
	// Event is an Asynchronous Event Record.
	Event = wr.Event
	// EventID is an Asynchronous Event identifier.
	EventID = wr.EventID
	// PDID names a protection domain.
	PDID = wr.PDID
	// QPID names a queue pair.
	QPID = wr.QPID
	// CQID names a completion queue.
	CQID = wr.CQID
	// State is the state of a queue pair.
	State = qp.State
	// QPAttributes are what Query QP returns.
	QPAttributes = qp.Attributes
	// ModifyQP are the input modifiers of Modify QP.
	ModifyQP = qp.Modify
	// TerminateMessage is a Terminate Message as Query QP returns it.
	TerminateMessage = qp.TerminateMessage
	// Stream is an LLP stream that finished its MPA startup.
	Stream = mpa.Stream
	// NotifyType says which completion a notification waits for.
	NotifyType = cq.NotifyType
)

// Operation types.
const (
	OpSend             = wr.OpSend
	OpSendSE           = wr.OpSendSE
	OpSendInvalidate   = wr.OpSendInvalidate
	OpSendSEInvalidate = wr.OpSendSEInvalidate
	OpWrite            = wr.OpWrite
	OpRead             = wr.OpRead
	OpRecv             = wr.OpRecv
)

// Flags of a Send.
const (
	Unsignaled = wr.Unsignaled
	ReadFence  = wr.ReadFence
)

// Access rights.
const (
	LocalRead   = wr.LocalRead
	LocalWrite  = wr.LocalWrite
	RemoteRead  = wr.RemoteRead
	RemoteWrite = wr.RemoteWrite
)

// States of a queue pair.
const (
	Idle      = qp.Idle
	RTS       = qp.RTS
	Closing   = qp.Closing
	Terminate = qp.Terminate
	Error     = qp.Error
)

// Notification types.
const (
	NotifyNext      = cq.NotifyNext
	NotifySolicited = cq.NotifySolicited
)

// Completion Statuses.
const (
	StatusSuccess             = wr.StatusSuccess
	StatusFlushed             = wr.StatusFlushed
	StatusInvalidWQE          = wr.StatusInvalidWQE
	StatusLocalQPCatastrophic = wr.StatusLocalQPCatastrophic
	StatusRemoteTermination   = wr.StatusRemoteTermination
	StatusInvalidSTag         = wr.StatusInvalidSTag
	StatusBaseBounds          = wr.StatusBaseBounds
	StatusAccess              = wr.StatusAccess
	StatusInvalidPD           = wr.StatusInvalidPD
	StatusWrap                = wr.StatusWrap
	StatusInvalidateSTag      = wr.StatusInvalidateSTag
	StatusZeroReadResources   = wr.StatusZeroReadResources
	StatusInvalidLength       = wr.StatusInvalidLength
)

// Asynchronous events.
const (
	EventLLPCloseComplete    = wr.EventLLPCloseComplete
	EventTerminateReceived   = wr.EventTerminateReceived
	EventLLPReset            = wr.EventLLPReset
	EventLLPLost             = wr.EventLLPLost
	EventSegmentSize         = wr.EventSegmentSize
	EventBadCRC              = wr.EventBadCRC
	EventBadFPDU             = wr.EventBadFPDU
	EventDDPVersion          = wr.EventDDPVersion
	EventRDMAPVersion        = wr.EventRDMAPVersion
	EventUnexpectedOpcode    = wr.EventUnexpectedOpcode
	EventInvalidQN           = wr.EventInvalidQN
	EventReadNotEnabled      = wr.EventReadNotEnabled
	EventWriteNotEnabled     = wr.EventWriteNotEnabled
	EventInvalidReadRequest  = wr.EventInvalidReadRequest
	EventNoLBit              = wr.EventNoLBit
	EventProtSTag            = wr.EventProtSTag
	EventProtBounds          = wr.EventProtBounds
	EventProtAccess          = wr.EventProtAccess
	EventProtPD              = wr.EventProtPD
	EventProtWrap            = wr.EventProtWrap
	EventBadClose            = wr.EventBadClose
	EventBadLLPClose         = wr.EventBadLLPClose
	EventRQMSNRange          = wr.EventRQMSNRange
	EventRQMSNGap            = wr.EventRQMSNGap
	EventIRRQTooMany         = wr.EventIRRQTooMany
	EventIRRQMSNRange        = wr.EventIRRQMSNRange
	EventIRRQSTag            = wr.EventIRRQSTag
	EventIRRQBounds          = wr.EventIRRQBounds
	EventIRRQAccess          = wr.EventIRRQAccess
	EventIRRQPD              = wr.EventIRRQPD
	EventIRRQWrap            = wr.EventIRRQWrap
	EventCQSQOverflow        = wr.EventCQSQOverflow
	EventCQRQError           = wr.EventCQRQError
	EventLocalQPCatastrophic = wr.EventLocalQPCatastrophic
)

// Immediate Errors.
const (
	ErrInsufficientResources = wr.ErrInsufficientResources
	ErrInvalidModifier       = wr.ErrInvalidModifier
	ErrInvalidRNIC           = wr.ErrInvalidRNIC
	ErrInvalidPD             = wr.ErrInvalidPD
	ErrPDInUse               = wr.ErrPDInUse
	ErrTooManyCQE            = wr.ErrTooManyCQE
	ErrInvalidCQ             = wr.ErrInvalidCQ
	ErrCQInUse               = wr.ErrCQInUse
	ErrTooManyWR             = wr.ErrTooManyWR
	ErrTooManySGE            = wr.ErrTooManySGE
	ErrORDExceeded           = wr.ErrORDExceeded
	ErrIRDExceeded           = wr.ErrIRDExceeded
	ErrInvalidQP             = wr.ErrInvalidQP
	ErrInvalidState          = wr.ErrInvalidState
	ErrInvalidLLPStream      = wr.ErrInvalidLLPStream
	ErrStillFlushing         = wr.ErrStillFlushing
	ErrInvalidVA             = wr.ErrInvalidVA
	ErrInvalidLength         = wr.ErrInvalidLength
	ErrInvalidAccess         = wr.ErrInvalidAccess
	ErrInvalidSTag           = wr.ErrInvalidSTag
	ErrQueueFull             = wr.ErrQueueFull
	ErrInvalidOp             = wr.ErrInvalidOp
	ErrInvalidSGLLength      = wr.ErrInvalidSGLLength
	ErrInvalidNotifyType     = wr.ErrInvalidNotifyType
)
