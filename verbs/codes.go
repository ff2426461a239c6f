package verbs

import "github.com/softrnic/softrnic/wr"

// Operation types. Those from OpImmediate on need QPConfig.Extensions.
const (
	OpSend             Op = wr.OpSend
	OpSendSE           Op = wr.OpSendSE
	OpSendInvalidate   Op = wr.OpSendInvalidate
	OpSendSEInvalidate Op = wr.OpSendSEInvalidate
	OpWrite            Op = wr.OpWrite
	OpRead             Op = wr.OpRead
	OpReadInvalidate   Op = wr.OpReadInvalidate
	OpBind             Op = wr.OpBind
	OpFastRegister     Op = wr.OpFastRegister
	OpInvalidate       Op = wr.OpInvalidate
	OpRecv             Op = wr.OpRecv
	OpImmediate        Op = wr.OpImmediate
	OpImmediateSE      Op = wr.OpImmediateSE
	OpWriteImmediate   Op = wr.OpWriteImmediate
	OpWriteImmediateSE Op = wr.OpWriteImmediateSE
	OpFetchAdd         Op = wr.OpFetchAdd
	OpSwap             Op = wr.OpSwap
	OpCompareSwap      Op = wr.OpCompareSwap
)

// Flags of a request for the Send Queue.
const (
	// Unsignaled asks for no completion if the operation succeeds
	// (verbs draft 8.1.3.1).
	Unsignaled Flags = wr.Unsignaled
	// ReadFence holds a Send or RDMA Write back until all earlier RDMA
	// Reads of this queue have completed (8.2.2.2).
	ReadFence Flags = wr.ReadFence
	// LocalFence holds an Invalidate Local STag back until all earlier
	// operations of this queue have completed (8.2.2.2).
	LocalFence Flags = wr.LocalFence
)

// Access rights.
const (
	// LocalRead lets Send and RDMA Write gather from the region.
	LocalRead Access = wr.LocalRead
	// LocalWrite lets Receives scatter into the region.
	LocalWrite Access = wr.LocalWrite
	// RemoteRead lets an inbound RDMA Read Request read. Needs LocalRead.
	RemoteRead Access = wr.RemoteRead
	// RemoteWrite lets an inbound RDMA Write or RDMA Read Response write.
	// Needs LocalWrite.
	RemoteWrite Access = wr.RemoteWrite
	// BindWindow lets Memory Windows be bound to the region.
	BindWindow Access = wr.BindWindow
	// RemoteAtomic lets an inbound Atomic Operation change the region: see
	// QPConfig.Extensions. Needs LocalRead and LocalWrite.
	RemoteAtomic Access = wr.RemoteAtomic
)

// Addressing types.
const (
	// VABased: the Virtual Address that the Consumer gives (7.6.1.1).
	VABased Addressing = wr.VABased
	// ZeroBased: zero (7.6.1.2).
	ZeroBased Addressing = wr.ZeroBased
)

// Completion Statuses (verbs draft 9.5.2).
const (
	StatusSuccess                Status = wr.StatusSuccess
	StatusFlushed                Status = wr.StatusFlushed
	StatusInvalidWQE             Status = wr.StatusInvalidWQE
	StatusLocalQPCatastrophic    Status = wr.StatusLocalQPCatastrophic
	StatusRemoteTermination      Status = wr.StatusRemoteTermination
	StatusInvalidSTag            Status = wr.StatusInvalidSTag
	StatusBaseBounds             Status = wr.StatusBaseBounds
	StatusAccess                 Status = wr.StatusAccess
	StatusInvalidPD              Status = wr.StatusInvalidPD
	StatusWrap                   Status = wr.StatusWrap
	StatusInvalidateSTag         Status = wr.StatusInvalidateSTag
	StatusZeroReadResources      Status = wr.StatusZeroReadResources
	StatusNotPrivileged          Status = wr.StatusNotPrivileged
	StatusSTagNotInvalid         Status = wr.StatusSTagNotInvalid
	StatusInvalidPageSize        Status = wr.StatusInvalidPageSize
	StatusInvalidPhysBufferSize  Status = wr.StatusInvalidPhysBufferSize
	StatusInvalidPhysBufferEntry Status = wr.StatusInvalidPhysBufferEntry
	StatusInvalidFBO             Status = wr.StatusInvalidFBO
	StatusInvalidFastRegLength   Status = wr.StatusInvalidFastRegLength
	StatusInvalidAccessRights    Status = wr.StatusInvalidAccessRights
	StatusPhysBufferListTooLong  Status = wr.StatusPhysBufferListTooLong
	StatusInvalidVA              Status = wr.StatusInvalidVA
	StatusInvalidRegion          Status = wr.StatusInvalidRegion
	StatusInvalidWindow          Status = wr.StatusInvalidWindow
	StatusInvalidLength          Status = wr.StatusInvalidLength
)

// Asynchronous events (verbs draft 9.5.3).
const (
	EventLLPCloseComplete    EventID = wr.EventLLPCloseComplete
	EventTerminateReceived   EventID = wr.EventTerminateReceived
	EventLLPReset            EventID = wr.EventLLPReset
	EventLLPLost             EventID = wr.EventLLPLost
	EventSegmentSize         EventID = wr.EventSegmentSize
	EventBadCRC              EventID = wr.EventBadCRC
	EventBadFPDU             EventID = wr.EventBadFPDU
	EventDDPVersion          EventID = wr.EventDDPVersion
	EventRDMAPVersion        EventID = wr.EventRDMAPVersion
	EventUnexpectedOpcode    EventID = wr.EventUnexpectedOpcode
	EventInvalidQN           EventID = wr.EventInvalidQN
	EventReadNotEnabled      EventID = wr.EventReadNotEnabled
	EventWriteNotEnabled     EventID = wr.EventWriteNotEnabled
	EventInvalidReadRequest  EventID = wr.EventInvalidReadRequest
	EventNoLBit              EventID = wr.EventNoLBit
	EventProtSTag            EventID = wr.EventProtSTag
	EventProtBounds          EventID = wr.EventProtBounds
	EventProtAccess          EventID = wr.EventProtAccess
	EventProtPD              EventID = wr.EventProtPD
	EventProtWrap            EventID = wr.EventProtWrap
	EventBadClose            EventID = wr.EventBadClose
	EventBadLLPClose         EventID = wr.EventBadLLPClose
	EventRQMSNRange          EventID = wr.EventRQMSNRange
	EventRQMSNGap            EventID = wr.EventRQMSNGap
	EventIRRQTooMany         EventID = wr.EventIRRQTooMany
	EventIRRQMSNGap          EventID = wr.EventIRRQMSNGap
	EventIRRQMSNRange        EventID = wr.EventIRRQMSNRange
	EventIRRQSTag            EventID = wr.EventIRRQSTag
	EventIRRQBounds          EventID = wr.EventIRRQBounds
	EventIRRQAccess          EventID = wr.EventIRRQAccess
	EventIRRQPD              EventID = wr.EventIRRQPD
	EventIRRQWrap            EventID = wr.EventIRRQWrap
	EventCQSQOverflow        EventID = wr.EventCQSQOverflow
	EventCQRQError           EventID = wr.EventCQRQError
	EventSRQError            EventID = wr.EventSRQError
	EventSRQStalled          EventID = wr.EventSRQStalled
	EventAtomicNotEnabled    EventID = wr.EventAtomicNotEnabled
	EventInvalidAtomic       EventID = wr.EventInvalidAtomic
	EventLocalQPCatastrophic EventID = wr.EventLocalQPCatastrophic
	EventCQOverflow          EventID = wr.EventCQOverflow  // resource: CQ
	EventCQOperation         EventID = wr.EventCQOperation // resource: CQ
	EventSRQLimit            EventID = wr.EventSRQLimit    // resource: S-RQ
	EventRQLimit             EventID = wr.EventRQLimit
	EventSRQCatastrophic     EventID = wr.EventSRQCatastrophic  // resource: S-RQ
	EventRNICCatastrophic    EventID = wr.EventRNICCatastrophic // resource: RNIC
)

// Immediate Errors (verbs draft 9.5.1).
const (
	ErrInsufficientResources  ImmediateError = wr.ErrInsufficientResources
	ErrInvalidModifier        ImmediateError = wr.ErrInvalidModifier
	ErrBlockListNotSupported  ImmediateError = wr.ErrBlockListNotSupported
	ErrRNICInUse              ImmediateError = wr.ErrRNICInUse
	ErrInvalidRNIC            ImmediateError = wr.ErrInvalidRNIC
	ErrInvalidPD              ImmediateError = wr.ErrInvalidPD
	ErrPDInUse                ImmediateError = wr.ErrPDInUse
	ErrTooManyCQE             ImmediateError = wr.ErrTooManyCQE
	ErrShrinkFailed           ImmediateError = wr.ErrShrinkFailed
	ErrInvalidCQ              ImmediateError = wr.ErrInvalidCQ
	ErrCQInUse                ImmediateError = wr.ErrCQInUse
	ErrInvalidEventHandler    ImmediateError = wr.ErrInvalidEventHandler
	ErrTooManyWR              ImmediateError = wr.ErrTooManyWR
	ErrTooManySGE             ImmediateError = wr.ErrTooManySGE
	ErrSRQLimitRange          ImmediateError = wr.ErrSRQLimitRange
	ErrInvalidSRQ             ImmediateError = wr.ErrInvalidSRQ
	ErrSRQInUse               ImmediateError = wr.ErrSRQInUse
	ErrORDExceeded            ImmediateError = wr.ErrORDExceeded
	ErrIRDExceeded            ImmediateError = wr.ErrIRDExceeded
	ErrInvalidQP              ImmediateError = wr.ErrInvalidQP
	ErrCannotChangeAttribute  ImmediateError = wr.ErrCannotChangeAttribute
	ErrInvalidState           ImmediateError = wr.ErrInvalidState
	ErrInvalidLLPStream       ImmediateError = wr.ErrInvalidLLPStream
	ErrStillFlushing          ImmediateError = wr.ErrStillFlushing
	ErrRQLimitRange           ImmediateError = wr.ErrRQLimitRange
	ErrWindowsBound           ImmediateError = wr.ErrWindowsBound
	ErrInvalidVA              ImmediateError = wr.ErrInvalidVA
	ErrInvalidLength          ImmediateError = wr.ErrInvalidLength
	ErrInvalidAccess          ImmediateError = wr.ErrInvalidAccess
	ErrInvalidPhysBufferEntry ImmediateError = wr.ErrInvalidPhysBufferEntry
	ErrInvalidPhysBufferSize  ImmediateError = wr.ErrInvalidPhysBufferSize
	ErrInvalidSTag            ImmediateError = wr.ErrInvalidSTag
	ErrInvalidFBO             ImmediateError = wr.ErrInvalidFBO
	ErrQueueFull              ImmediateError = wr.ErrQueueFull
	ErrInvalidOp              ImmediateError = wr.ErrInvalidOp
	ErrInvalidSGLFormat       ImmediateError = wr.ErrInvalidSGLFormat
	ErrInvalidSGLLength       ImmediateError = wr.ErrInvalidSGLLength
	ErrRQUsesSRQ              ImmediateError = wr.ErrRQUsesSRQ
	ErrInvalidNotifyType      ImmediateError = wr.ErrInvalidNotifyType
	ErrCQEmpty                ImmediateError = wr.ErrCQEmpty
)

// The states of a queue pair (verbs draft 6.2).
const (
	// StateIdle: without a stream; requests can be posted and wait.
	StateIdle State = wr.StateIdle
	// StateRTS: a stream runs, requests are processed.
	StateRTS State = wr.StateRTS
	// StateClosing: the stream is being closed in order. It leads to StateIdle,
	// or to StateError if something comes in between.
	StateClosing State = wr.StateClosing
	// StateTerminate: an error ended the stream, which is being closed. It leads
	// to StateError.
	StateTerminate State = wr.StateTerminate
	// StateError: the stream is gone, what was posted has completed as flushed.
	// Only a Modify to StateIdle leads on.
	StateError State = wr.StateError
)

// The notification types.
const (
	// NotifyNext: the next completion.
	NotifyNext NotifyType = wr.NotifyNext
	// NotifySolicited: the next that a Solicited Event of the peer asks for, or
	// that is an error.
	NotifySolicited NotifyType = wr.NotifySolicited
)
