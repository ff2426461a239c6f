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
	RQLimit                        int
	SendDepth, RecvDepth           int
	SendSGE, WriteSGE, RecvSGE     int
	IRD, ORD                       int
	NoReads                        bool
	NoInboundRead, NoInboundWrite  bool
	NoBind, Privileged             bool
	Extensions, NoInboundAtomic    bool
	GracefulReceive                bool
	CloseTimeout                   time.Duration
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
	// Addr is where to dial.
	Addr           string
	NoCRC, Markers bool
	Rev            uint8
	P2P            bool
	RTR            uint8
	IRD, ORD       int
	PrivateData    []byte
	// Reject (Listen) refuses, with PrivateData.
	Reject bool
	// Timeout bounds the MPA startup.
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
	Rejected              bool
	PrivateData           []byte
	CRC                   bool
	MarkersOut, MarkersIn bool
	P2P                   bool
	Rev                   uint8
	IRD, ORD              int
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
	Stream    bool
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
	PD                 int
	Len                int
	Seed               uint8
	Access             verbs.Access
	RemoteAccess       bool
	Key                uint8
	ZeroBased          bool
	VA                 uint64
	QP                 int // if not 0, its scope
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
