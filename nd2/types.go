package nd2

import (
	"unsafe"

	"github.com/softrnic/softrnic/internal/names"
)

// SGE is a piece of local memory that a request sends from or receives into
// (ND2_SGE).
type SGE struct {
	// Buffer lies in the region that MemoryRegionToken names. With
	// OpFlagInline it may lie anywhere, and the token is not looked at
	// (ND-SGE-M1). With no octets the token is not looked at either.
	Buffer []byte
	// MemoryRegionToken is that of MemoryRegion.GetLocalToken.
	MemoryRegionToken uint32
}

// Address is where b lies in memory: what a program tells its peer as the remote
// address of registered memory, beside a token.
func Address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// OpFlags modify a request (ND_OP_FLAG_...).
type OpFlags uint32

// The flags of requests.
const (
	// OpFlagSilentSuccess: no result if the request succeeds.
	OpFlagSilentSuccess OpFlags = 1 << iota
	// OpFlagReadFence: the request begins once all earlier Reads of the queue
	// pair are complete.
	OpFlagReadFence
	// OpFlagSendAndSolicitEvent: the peer's Receive satisfies a Notify for
	// CQNotifySolicited.
	OpFlagSendAndSolicitEvent
	// OpFlagAllowRead and OpFlagAllowWrite are what the peer may do with a
	// window.
	OpFlagAllowRead
	OpFlagAllowWrite
	// OpFlagInline: the octets are taken during the call.
	OpFlagInline

	sendFlags       = OpFlagSilentSuccess | OpFlagReadFence | OpFlagSendAndSolicitEvent | OpFlagInline
	writeFlags      = OpFlagSilentSuccess | OpFlagReadFence | OpFlagInline
	readFlags       = OpFlagSilentSuccess | OpFlagReadFence
	invalidateFlags = OpFlagSilentSuccess | OpFlagReadFence
	bindRights      = OpFlagAllowRead | OpFlagAllowWrite
	bindFlags       = OpFlagSilentSuccess | OpFlagReadFence | bindRights
)

// MRFlags are the rights of a memory region (ND_MR_FLAG_...). Sending from it is
// always allowed.
type MRFlags uint32

// The flags of MemoryRegion.Register.
const (
	// MRFlagAllowLocalWrite lets Receives write.
	MRFlagAllowLocalWrite MRFlags = 0x1
	// MRFlagAllowRemoteRead lets peers read.
	MRFlagAllowRemoteRead MRFlags = 0x2
	// MRFlagAllowRemoteWrite lets peers write; it includes
	// MRFlagAllowLocalWrite.
	MRFlagAllowRemoteWrite MRFlags = 0x5
	// MRFlagRDMAReadSink lets Reads of this side write, each to the buffers of
	// its list and until its answer is whole. It gives the peer nothing else:
	// what it writes there by itself, with the token that each request tells it,
	// ends the connection.
	MRFlagRDMAReadSink MRFlags = 0x8
	// MRFlagDoNotSecureVM means nothing here.
	MRFlagDoNotSecureVM MRFlags = 0x80000000

	remoteWriteBit = MRFlagAllowRemoteWrite &^ MRFlagAllowLocalWrite
	allMRFlags     = MRFlagAllowLocalWrite | MRFlagAllowRemoteRead | MRFlagAllowRemoteWrite | MRFlagRDMAReadSink | MRFlagDoNotSecureVM
)

// NotifyType says what CompletionQueue.Notify waits for (ND_CQ_NOTIFY_...).
type NotifyType uint32

// The notification types.
const (
	// CQNotifyErrors: an error of the queue, or a result that is no success.
	CQNotifyErrors NotifyType = iota
	// CQNotifyAny: any result.
	CQNotifyAny
	// CQNotifySolicited: a Receive whose Send had OpFlagSendAndSolicitEvent, or
	// a result that is no success.
	CQNotifySolicited
)

// RequestType says what kind of request a result is of (ND2_REQUEST_TYPE).
type RequestType uint32

// The kinds of requests.
const (
	RequestTypeReceive RequestType = iota
	RequestTypeSend
	RequestTypeBind
	RequestTypeInvalidate
	RequestTypeRead
	RequestTypeWrite
)

func (t RequestType) String() string {
	return names.Of("RequestType", []string{"Receive", "Send", "Bind", "Invalidate", "Read", "Write"}, t)
}

// Result says how a request ended (ND2_RESULT).
type Result struct {
	// Status is Success or what went wrong. An error means that the connection
	// has ended (ND-Send-M2).
	Status Status
	// BytesTransferred is how long the message was; of a Receive that
	// succeeded, else 0.
	BytesTransferred uint32
	// QueuePairContext is what CreateQueuePair was given.
	QueuePairContext any
	// RequestContext is what the request was posted with.
	RequestContext any
	RequestType    RequestType
}

// Err is Status as an error; nil for Success.
func (r *Result) Err() error { return r.Status.Err() }

// AdapterFlags say what an adapter can do (ND_ADAPTER_FLAG_...).
type AdapterFlags uint32

// The flags of an adapter.
const (
	AdapterFlagInOrderDMA            AdapterFlags = 0x1
	AdapterFlagCQInterruptModeration AdapterFlags = 0x4
	AdapterFlagMultiEngine           AdapterFlags = 0x8
	AdapterFlagCQResize              AdapterFlags = 0x100
	AdapterFlagLoopbackConnections   AdapterFlags = 0x10000
)

// AdapterInfo is what Adapter.Query tells (ND2_ADAPTER_INFO).
type AdapterInfo struct {
	InfoVersion uint32 // 1
	VendorID    uint16
	DeviceID    uint16
	AdapterID   uint64

	MaxRegistrationSize uint64 // octets of one region
	MaxWindowSize       uint64 // octets

	MaxInitiatorSge int // entries of the list of a Send or Write
	MaxReceiveSge   int // of a Receive
	MaxReadSge      int // of a Read

	MaxTransferLength uint64 // octets of one request
	MaxInlineDataSize int    // octets of one inline request

	MaxInboundReadLimit  int
	MaxOutboundReadLimit int

	MaxReceiveQueueDepth       int
	MaxInitiatorQueueDepth     int
	MaxSharedReceiveQueueDepth int
	MaxCompletionQueueDepth    int

	// InlineRequestThreshold is 0: inline costs a copy here and saves nothing.
	InlineRequestThreshold int
	LargeRequestThreshold  int // octets from where Read and Write pay

	MaxCallerData int // octets of private data of Connect
	MaxCalleeData int // of Accept and Reject

	AdapterFlags AdapterFlags
}
