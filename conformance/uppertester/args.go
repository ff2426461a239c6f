package uppertester

import (
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// None is a reply without contents.
type None struct{}

// OpenArgs describe a queue pair. PDs, CQs and S-RQs are numbers that the caller
// chooses: one that is new is made. The rest is as in verbs.QPConfig.
type OpenArgs struct {
	PD int
	// SendCQ and RecvCQ, if both 0, stand for one of this queue pair's own.
	// Those that are made have CQEntries; 0 stands for 256.
	SendCQ, RecvCQ, CQEntries int
	// SRQ, if not 0, gives the receives; if it is new it has SRQPD, SRQDepth and
	// SRQLimit.
	SRQ, SRQPD, SRQDepth, SRQLimit int
	// RQLimit is the QP RQ Limit; above 0 it is armed (verbs draft 6.3.8).
	RQLimit int
	// SendDepth and RecvDepth are how many work requests may be outstanding. 0 stands
	// for a default, and -2147483648 for none at all; other negative numbers are invalid modifiers.
	SendDepth, RecvDepth int
	// SendSGE, WriteSGE and RecvSGE are how many elements a list may have; 0 stands for a default.
	SendSGE, WriteSGE, RecvSGE int
	// IRD and ORD are how many RDMA Reads may be outstanding, inbound and outbound, as SendDepth. NoReads
	// sets both to none.
	IRD, ORD int
	NoReads  bool
	// NoInboundRead and NoInboundWrite refuse what the peer asks for (figure 21).
	NoInboundRead, NoInboundWrite bool
	// NoBind refuses Bind Memory Window, and Privileged allows the STag of zero and Fast-Register.
	NoBind, Privileged bool
	// Extensions has the queue pair speak RFC 7306; NoInboundAtomic refuses the peer's Atomics then.
	Extensions, NoInboundAtomic bool
	// GracefulReceive has the stream wait where a receive is missing (13.2).
	GracefulReceive bool
	// CloseTimeout bounds the states Closing and Terminate; 0 stands for a default.
	CloseTimeout time.Duration
}

// Opened is a new queue pair, and its CQs.
type Opened struct {
	QP             int
	SendCQ, RecvCQ int
	// ID is what completions and events call it.
	ID verbs.QPID
}

// ConnectArgs are what one side wants of a connection, as in cm.Config.
type ConnectArgs struct {
	QP int
	// Addr is where to dial, host:port.
	Addr string
	// NoCRC and Markers are C and M of this side's startup frame: C unless NoCRC.
	NoCRC, Markers bool
	// Rev is the revision of an Initiator's frame, and the highest that a Responder takes; 0 stands for 2.
	Rev uint8
	// P2P asks for peer-to-peer mode (RFC 6581 9.2), with RTR: 1 an empty Send, 2 an empty RDMA Write, 4 an
	// empty RDMA Read, or a sum; 0 stands for what this side likes.
	P2P bool
	RTR uint8
	// IRD and ORD are those of the enhanced frame; 0 stands for the queue pair's.
	IRD, ORD    int
	PrivateData []byte
	// Reject (Listen) refuses, with PrivateData.
	Reject bool
	// Timeout bounds the MPA startup; 0 stands for a default.
	Timeout time.Duration
}

// Listening is an address that is listened on.
type Listening struct{ Addr string }

// Wait waits for something of an object.
type Wait struct {
	Of      int
	Timeout time.Duration
}

// Connection is what came of Listen or Dial.
type Connection struct {
	// Failed says why there is none; empty if there is.
	Failed string
	// Rejected says that the other program refused.
	Rejected bool
	// PrivateData is the peer's.
	PrivateData []byte
	// CRC and Markers are what was agreed on, P2P and Rev too.
	CRC                   bool
	MarkersOut, MarkersIn bool
	P2P                   bool
	Rev                   uint8
	// IRD and ORD are the queue pair's from now on.
	IRD, ORD int
	// PeerIRD and PeerORD are what the peer's frame says; -1 for nothing.
	PeerIRD, PeerORD int
}

// QPState is what Query QP tells of a queue pair.
type QPState struct {
	State                verbs.State
	IRD, ORD             int
	SendDepth, RecvDepth int
	RQLimit              int
	RQLimitArmed         bool
	// Stream says whether there is an LLP stream.
	Stream bool
	// Terminate is the Terminate Message that was sent or received; null for none.
	Terminate *verbs.TerminateMessage
}

// ModifyArgs are the modifiers of Modify QP; nil leaves an attribute as it is.
type ModifyArgs struct {
	QP                   int
	Next                 verbs.State
	IRD, ORD             *int
	SendDepth, RecvDepth *int
	RQLimit              *int
	ArmRQLimit           bool
}

// RegisterArgs describe a region, as verbs.RegionConfig, but for remote invalidation:
// peers may, as the draft has it (7.8), unless NoRemoteInvalidate is set. Its Len octets
// of memory are filled with Pattern(Seed, Len).
type RegisterArgs struct {
	PD     int
	Len    int
	Seed   uint8
	Access verbs.Access
	// RemoteAccess is the Remote Access Flag; remote rights in Access set it too.
	RemoteAccess bool
	// Key is the low octet of the STag.
	Key uint8
	// ZeroBased has the first octet at tagged offset 0; else it is at VA, and if that is 0 where the tester
	// likes.
	ZeroBased bool
	VA        uint64
	// QP, if not 0, is its scope: the only queue pair whose peer may use it.
	QP                 int
	NoRemoteInvalidate bool
}

// ReregisterArgs describe what becomes of a region.
type ReregisterArgs struct {
	Region int
	RegisterArgs
}

// ShareArgs describe a region over the memory of another.
type ShareArgs struct {
	Region    int
	PD        int
	Access    verbs.Access
	Key       uint8
	ZeroBased bool
	VA        uint64
	QP        int
}

// Region is a region's number and address.
type Region struct {
	Region int
	STag   verbs.STag
	Base   uint64
}

// RegionState is what Query Memory Region tells.
type RegionState struct{ verbs.RegionAttributes }

// Octets are octets.
type Octets struct{ Octets []byte }

// FillArgs put octets into a region's memory.
type FillArgs struct {
	Region, Off int
	Octets      []byte
}

// Window is a window's number, and its STag with key 0.
type Window struct {
	Window int
	STag   verbs.STag
}

// WindowState is what Query Memory Window tells.
type WindowState struct{ verbs.WindowAttributes }

// PostSendArgs are requests for a Send Queue.
type PostSendArgs struct {
	QP    int
	Sends []verbs.Request
}

// PostRecvArgs are requests for the Receive Queue of QP, or for SRQ if that is not
// 0.
type PostRecvArgs struct {
	QP, SRQ int
	Recvs   []verbs.Recv
}

// Posted is how many requests were taken.
type Posted struct{ N int }

// PollArgs ask for N completions; after Timeout for as many as there are.
type PollArgs struct {
	CQ, N   int
	Timeout time.Duration
}

// Completions are completions, oldest first.
type Completions struct{ Completions []verbs.Completion }

// NotifyArgs arm a CQ.
type NotifyArgs struct {
	CQ   int
	Type verbs.NotifyType
}

// Answer is yes or no.
type Answer struct{ Yes bool }

// EventsArgs wait for N events in all since the beginning; after Timeout for as
// many as there are.
type EventsArgs struct {
	N       int
	Timeout time.Duration
}

// Events are all events of the RNIC so far.
type Events struct{ Events []verbs.Event }

// Pattern is n octets that differ from place to place and from seed to seed.
func Pattern(seed uint8, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = seed ^ uint8(i*31+i>>8*17)
	}
	return b
}
