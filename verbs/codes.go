package verbs

import "github.com/softrnic/softrnic/wr"

// Operation types.
const (
	OpSend             = wr.OpSend
	OpSendSE           = wr.OpSendSE
	OpSendInvalidate   = wr.OpSendInvalidate
	OpSendSEInvalidate = wr.OpSendSEInvalidate
	OpWrite            = wr.OpWrite
	OpRead             = wr.OpRead
	OpReadInvalidate   = wr.OpReadInvalidate
	OpBind             = wr.OpBind
	OpFastRegister     = wr.OpFastRegister
	OpInvalidate       = wr.OpInvalidate
	OpRecv             = wr.OpRecv
)

// Flags of a Send.
const (
	Unsignaled = wr.Unsignaled
	ReadFence  = wr.ReadFence
	LocalFence = wr.LocalFence
)

// Access rights.
const (
	LocalRead   = wr.LocalRead
	LocalWrite  = wr.LocalWrite
	RemoteRead  = wr.RemoteRead
	RemoteWrite = wr.RemoteWrite
	BindWindow  = wr.BindWindow
)

// Addressing types.
const (
	VABased   = wr.VABased
	ZeroBased = wr.ZeroBased
)

// Completion Statuses (verbs draft 9.5.2).
const (
	StatusSuccess                = wr.StatusSuccess
	StatusFlushed                = wr.StatusFlushed
	StatusInvalidWQE             = wr.StatusInvalidWQE
	StatusLocalQPCatastrophic    = wr.StatusLocalQPCatastrophic
	StatusRemoteTermination      = wr.StatusRemoteTermination
	StatusInvalidSTag            = wr.StatusInvalidSTag
	StatusBaseBounds             = wr.StatusBaseBounds
	StatusAccess                 = wr.StatusAccess
	StatusInvalidPD              = wr.StatusInvalidPD
	StatusWrap                   = wr.StatusWrap
	StatusInvalidateSTag         = wr.StatusInvalidateSTag
	StatusZeroReadResources      = wr.StatusZeroReadResources
	StatusNotPrivileged          = wr.StatusNotPrivileged
	StatusSTagNotInvalid         = wr.StatusSTagNotInvalid
	StatusInvalidPageSize        = wr.StatusInvalidPageSize
	StatusInvalidPhysBufferSize  = wr.StatusInvalidPhysBufferSize
	StatusInvalidPhysBufferEntry = wr.StatusInvalidPhysBufferEntry
	StatusInvalidFBO             = wr.StatusInvalidFBO
	StatusInvalidFastRegLength   = wr.StatusInvalidFastRegLength
	StatusInvalidAccessRights    = wr.StatusInvalidAccessRights
	StatusPhysBufferListTooLong  = wr.StatusPhysBufferListTooLong
	StatusInvalidVA              = wr.StatusInvalidVA
	StatusInvalidRegion          = wr.StatusInvalidRegion
	StatusInvalidWindow          = wr.StatusInvalidWindow
	StatusInvalidLength          = wr.StatusInvalidLength
)

// Asynchronous events (verbs draft 9.5.3).
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
	EventIRRQMSNGap          = wr.EventIRRQMSNGap
	EventIRRQMSNRange        = wr.EventIRRQMSNRange
	EventIRRQSTag            = wr.EventIRRQSTag
	EventIRRQBounds          = wr.EventIRRQBounds
	EventIRRQAccess          = wr.EventIRRQAccess
	EventIRRQPD              = wr.EventIRRQPD
	EventIRRQWrap            = wr.EventIRRQWrap
	EventCQSQOverflow        = wr.EventCQSQOverflow
	EventCQRQError           = wr.EventCQRQError
	EventSRQError            = wr.EventSRQError
	EventSRQStalled          = wr.EventSRQStalled
	EventLocalQPCatastrophic = wr.EventLocalQPCatastrophic
	EventCQOverflow          = wr.EventCQOverflow
	EventCQOperation         = wr.EventCQOperation
	EventSRQLimit            = wr.EventSRQLimit
	EventRQLimit             = wr.EventRQLimit
	EventSRQCatastrophic     = wr.EventSRQCatastrophic
	EventRNICCatastrophic    = wr.EventRNICCatastrophic
)

// Immediate Errors (verbs draft 9.5.1).
const (
	ErrInsufficientResources  = wr.ErrInsufficientResources
	ErrInvalidModifier        = wr.ErrInvalidModifier
	ErrBlockListNotSupported  = wr.ErrBlockListNotSupported
	ErrRNICInUse              = wr.ErrRNICInUse
	ErrInvalidRNIC            = wr.ErrInvalidRNIC
	ErrInvalidPD              = wr.ErrInvalidPD
	ErrPDInUse                = wr.ErrPDInUse
	ErrTooManyCQE             = wr.ErrTooManyCQE
	ErrShrinkFailed           = wr.ErrShrinkFailed
	ErrInvalidCQ              = wr.ErrInvalidCQ
	ErrCQInUse                = wr.ErrCQInUse
	ErrInvalidEventHandler    = wr.ErrInvalidEventHandler
	ErrTooManyWR              = wr.ErrTooManyWR
	ErrTooManySGE             = wr.ErrTooManySGE
	ErrSRQLimitRange          = wr.ErrSRQLimitRange
	ErrInvalidSRQ             = wr.ErrInvalidSRQ
	ErrSRQInUse               = wr.ErrSRQInUse
	ErrORDExceeded            = wr.ErrORDExceeded
	ErrIRDExceeded            = wr.ErrIRDExceeded
	ErrInvalidQP              = wr.ErrInvalidQP
	ErrCannotChangeAttribute  = wr.ErrCannotChangeAttribute
	ErrInvalidState           = wr.ErrInvalidState
	ErrInvalidLLPStream       = wr.ErrInvalidLLPStream
	ErrStillFlushing          = wr.ErrStillFlushing
	ErrRQLimitRange           = wr.ErrRQLimitRange
	ErrWindowsBound           = wr.ErrWindowsBound
	ErrInvalidVA              = wr.ErrInvalidVA
	ErrInvalidLength          = wr.ErrInvalidLength
	ErrInvalidAccess          = wr.ErrInvalidAccess
	ErrInvalidPhysBufferEntry = wr.ErrInvalidPhysBufferEntry
	ErrInvalidPhysBufferSize  = wr.ErrInvalidPhysBufferSize
	ErrInvalidSTag            = wr.ErrInvalidSTag
	ErrInvalidFBO             = wr.ErrInvalidFBO
	ErrQueueFull              = wr.ErrQueueFull
	ErrInvalidOp              = wr.ErrInvalidOp
	ErrInvalidSGLFormat       = wr.ErrInvalidSGLFormat
	ErrInvalidSGLLength       = wr.ErrInvalidSGLLength
	ErrRQUsesSRQ              = wr.ErrRQUsesSRQ
	ErrInvalidNotifyType      = wr.ErrInvalidNotifyType
	ErrCQEmpty                = wr.ErrCQEmpty
)
