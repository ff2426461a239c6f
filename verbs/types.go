package verbs

import "github.com/softrnic/softrnic/wr"

// The nouns a program uses, so that it imports this package and cm alone.
type (
	// STag is a Steering Tag.
	STag = wr.STag
	// SGE is a scatter/gather element.
	SGE = wr.SGE
	// Remote is the address of a buffer at the peer.
	Remote = wr.Remote
	// Request is a work request for the Send Queue, of any operation type: Op says
	// which, see wr.Request.
	Request = wr.Request
	// Recv is a work request for a Receive Queue.
	Recv = wr.Recv
	// BindRequest are the modifiers of a Bind Memory Window.
	BindRequest = wr.BindRequest
	// FastRegisterRequest are the modifiers of a Fast-Register Non-Shared Memory Region.
	FastRegisterRequest = wr.FastRegisterRequest
	// AtomicRequest are the modifiers of an Atomic Operation.
	AtomicRequest = wr.AtomicRequest
	// PhysicalBuffers is a Physical Buffer List.
	PhysicalBuffers = wr.PhysicalBuffers
	// Addressing says where the tagged offsets of a region or window begin.
	Addressing = wr.Addressing
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
	// CompletionError is a request that failed, as an error.
	CompletionError = wr.CompletionError
	// Reason says why something was refused, as data: errors.As finds it in the errors of
	// this package.
	Reason = wr.Reason
	// Octets are those that a Reason tells of.
	Octets = wr.Octets
	// TerminateReason is the cause in a Terminate Message, decoded.
	TerminateReason = wr.TerminateReason
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
	// SRQID names a shared receive queue.
	SRQID = wr.SRQID
	// HandlerID names a completion event handler.
	HandlerID = wr.HandlerID
	// State is the state of a queue pair.
	State = wr.State
	// QPStats are the counters of a queue pair.
	QPStats = wr.QPStats
	// CQStats are the counters of a completion queue.
	CQStats = wr.CQStats
	// SRQStats are the counters of a shared receive queue.
	SRQStats = wr.SRQStats
	// Flow is what has gone one way in messages of one opcode.
	Flow = wr.Flow
	// Flows are those of all opcodes, one way.
	Flows = wr.Flows
	// Depth is how full a queue is, and has been at most.
	Depth = wr.Depth
	// NotifyType says which completion a notification waits for.
	NotifyType = wr.NotifyType
)

// MakeSTag joins an STag index and a key.
func MakeSTag(index uint32, key uint8) STag { return wr.MakeSTag(index, key) }

// MaxMessage is the longest message, in octets.
const MaxMessage = wr.MaxMessage

// RemoteLen is how many octets the address of a buffer is, as programs send it to
// one another: see Remote.AppendBinary.
const RemoteLen = wr.RemoteLen

// ParseRemote reads the address of a buffer that the peer's program has written
// with Remote.AppendBinary, from the beginning of b. It fails if b is shorter than
// RemoteLen.
func ParseRemote(b []byte) (Remote, error) { return wr.ParseRemote(b) }
