package wr

// ImmediateError is the result of a verb that refused: the object it was
// called on is unchanged (verbs draft 8.3.1). The values are those of 9.5.1,
// one for each distinct result; match them with errors.Is.
type ImmediateError uint8

// The Immediate Errors (figures 28 to 35).
const (
	ErrInsufficientResources ImmediateError = iota + 1
	ErrInvalidModifier
	ErrBlockListNotSupported
	ErrRNICInUse
	ErrInvalidRNIC
	ErrInvalidPD
	ErrPDInUse
	ErrTooManyCQE
	ErrShrinkFailed
	ErrInvalidCQ
	ErrCQInUse
	ErrInvalidEventHandler
	ErrTooManyWR
	ErrTooManySGE
	ErrSRQLimitRange
	ErrInvalidSRQ
	ErrSRQInUse
	ErrORDExceeded
	ErrIRDExceeded
	ErrInvalidQP
	ErrCannotChangeAttribute
	ErrInvalidState
	ErrInvalidLLPStream
	ErrStillFlushing
	ErrRQLimitRange
	ErrWindowsBound
	ErrInvalidVA
	ErrInvalidLength
	ErrInvalidAccess
	ErrInvalidPhysBufferEntry
	ErrInvalidPhysBufferSize
	ErrInvalidSTag
	ErrInvalidFBO
	ErrQueueFull
	ErrInvalidOp
	ErrInvalidSGLFormat
	ErrInvalidSGLLength
	ErrRQUsesSRQ
	ErrInvalidNotifyType
	ErrCQEmpty
	immediateEnd
)

var immediateNames = [...]string{
	ErrInsufficientResources:  "insufficient resources to complete request",
	ErrInvalidModifier:        "invalid modifier",
	ErrBlockListNotSupported:  "block list mode not supported",
	ErrRNICInUse:              "RNIC in use",
	ErrInvalidRNIC:            "invalid RNIC handle",
	ErrInvalidPD:              "invalid PD ID",
	ErrPDInUse:                "protection domain is in use",
	ErrTooManyCQE:             "number of CQ entries exceeds RNIC capability",
	ErrShrinkFailed:           "cannot shrink the queue: too many elements present",
	ErrInvalidCQ:              "invalid CQ handle",
	ErrCQInUse:                "CQ in use by a QP",
	ErrInvalidEventHandler:    "invalid completion event handler identifier",
	ErrTooManyWR:              "number of work requests exceeds RNIC capability",
	ErrTooManySGE:             "number of scatter/gather elements exceeds RNIC capability",
	ErrSRQLimitRange:          "S-RQ limit out of range",
	ErrInvalidSRQ:             "invalid S-RQ handle",
	ErrSRQInUse:               "QPs are still associated with the S-RQ",
	ErrORDExceeded:            "ORD exceeds RNIC capability",
	ErrIRDExceeded:            "IRD exceeds RNIC capability",
	ErrInvalidQP:              "invalid QP handle",
	ErrCannotChangeAttribute:  "cannot change QP attribute",
	ErrInvalidState:           "invalid QP state",
	ErrInvalidLLPStream:       "invalid LLP stream handle",
	ErrStillFlushing:          "still flushing work requests",
	ErrRQLimitRange:           "QP RQ limit out of range",
	ErrWindowsBound:           "memory windows are still bound",
	ErrInvalidVA:              "invalid virtual address",
	ErrInvalidLength:          "invalid length",
	ErrInvalidAccess:          "invalid access rights requested",
	ErrInvalidPhysBufferEntry: "invalid physical buffer list entry",
	ErrInvalidPhysBufferSize:  "invalid physical buffer size",
	ErrInvalidSTag:            "invalid STag index",
	ErrInvalidFBO:             "invalid first byte offset",
	ErrQueueFull:              "too many work requests posted",
	ErrInvalidOp:              "invalid operation type",
	ErrInvalidSGLFormat:       "invalid scatter/gather list format",
	ErrInvalidSGLLength:       "invalid scatter/gather list length",
	ErrRQUsesSRQ:              "this QP's receives come from an S-RQ",
	ErrInvalidNotifyType:      "invalid notify type",
	ErrCQEmpty:                "CQ empty",
}

func (e ImmediateError) Error() string { return name(immediateNames[:], int(e), "ImmediateError") }
