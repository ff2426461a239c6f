package wr

// MaxMessage is the longest RDMAP message, in octets (verbs draft 8.1.3.2).
const MaxMessage = 1<<32 - 1

// SGE is one element of a Scatter/Gather List: Length octets from tagged
// offset TO of the region that STag names. With Length 0 the STag is not
// looked at (verbs draft 8.1.3.2).
type SGE struct {
	STag   STag
	Length uint32
	TO     uint64
}

// Op is the operation type of a work request, and of its completion.
type Op uint8

// The operation types of PostSQ (verbs draft 9.3.1.1), and Receive. Those from
// OpImmediate on are of RFC 7306, for queue pairs that speak it.
const (
	OpSend Op = iota
	OpSendSE
	OpSendInvalidate
	OpSendSEInvalidate
	OpWrite
	OpRead
	OpReadInvalidate
	OpBind
	OpFastRegister
	OpInvalidate
	OpRecv
	// OpImmediate sends Immediate Data alone, OpImmediateSE with a Solicited
	// Event (RFC 7306 6).
	OpImmediate
	OpImmediateSE
	// OpWriteImmediate is an RDMA Write with the Immediate Data behind it, one
	// request with one completion.
	OpWriteImmediate
	OpWriteImmediateSE
	// The Atomic Operations (RFC 7306 5).
	OpFetchAdd
	OpSwap
	OpCompareSwap
	opEnd
)

var opNames = [...]string{
	OpSend: "Send", OpSendSE: "SendSE", OpSendInvalidate: "SendInvalidate",
	OpSendSEInvalidate: "SendSEInvalidate", OpWrite: "Write", OpRead: "Read",
	OpReadInvalidate: "ReadInvalidate", OpBind: "Bind", OpFastRegister: "FastRegister",
	OpInvalidate: "Invalidate", OpRecv: "Recv",
	OpImmediate: "Immediate", OpImmediateSE: "ImmediateSE",
	OpWriteImmediate: "WriteImmediate", OpWriteImmediateSE: "WriteImmediateSE",
	OpFetchAdd: "FetchAdd", OpSwap: "Swap", OpCompareSwap: "CompareSwap",
}

func (o Op) String() string { return name(opNames[:], int(o), "Op") }

// IsSend reports whether o is one of the four Send Operation Types.
func (o Op) IsSend() bool { return o <= OpSendSEInvalidate }

// IsMemory reports whether o is one of the three operations that change an STag
// of this side and send nothing (verbs draft 8.1.2.3).
func (o Op) IsMemory() bool { return o >= OpBind && o <= OpInvalidate }

// IsRead reports whether o is one of the two RDMA Read Types.
func (o Op) IsRead() bool { return o == OpRead || o == OpReadInvalidate }

// Invalidates reports whether a Send of type o names an STag for the peer to
// invalidate.
func (o Op) Invalidates() bool { return o == OpSendInvalidate || o == OpSendSEInvalidate }

// Solicited reports whether a Send or Immediate Data of type o asks for a Solicited
// Event.
func (o Op) Solicited() bool {
	switch o {
	case OpSendSE, OpSendSEInvalidate, OpImmediateSE, OpWriteImmediateSE:
		return true
	default:
		return false
	}
}

// IsExtension reports whether o is an operation of RFC 7306.
func (o Op) IsExtension() bool { return o >= OpImmediate && o < opEnd }

// IsWrite reports whether o is an RDMA Write, with Immediate Data or without.
func (o Op) IsWrite() bool {
	return o == OpWrite || o == OpWriteImmediate || o == OpWriteImmediateSE
}

// IsImmediate reports whether o sends Immediate Data, alone or behind an RDMA Write.
func (o Op) IsImmediate() bool { return o >= OpImmediate && o <= OpWriteImmediateSE }

// Reads reports whether o is answered by the peer, and so counts as an RDMA Read for ORD, IRD
// and fences: an RDMA Read or an Atomic Operation (RFC 7306 5.2).
func (o Op) Reads() bool { return o.IsRead() || o.IsAtomic() }

// IsAtomic reports whether o is one of the three Atomic Operations.
func (o Op) IsAtomic() bool { return o >= OpFetchAdd && o <= OpCompareSwap }

// Flags modify a work request.
type Flags uint8

// The flags of PostSQ.
const (
	// Unsignaled asks for no completion if the operation succeeds
	// (verbs draft 8.1.3.1).
	Unsignaled Flags = 1 << iota
	// ReadFence holds a Send, an RDMA Write or Immediate Data back until all
	// earlier RDMA Reads of this queue have completed (8.2.2.2).
	ReadFence
	// LocalFence holds an Invalidate Local STag back until all earlier
	// operations of this queue have completed (8.2.2.2).
	LocalFence
	// WithImmediate has an OpSend or OpSendSE bring the low half of Immediate with its payload, in one message and one
	// completion. It is of softrnic's own, for queue pairs that speak it at both ends (decision 0039).
	WithImmediate
)

// Request is a work request for the Send Queue, of any operation type: the zero
// Op is a plain Send. It is read by PostSend and not kept; the memory that its
// elements name is in use until the request completes (verbs draft 8.2.2).
//
//	Op                      fields used besides ID and Flags
//	OpSend, OpSendSE        SGL; Immediate, with the flag WithImmediate
//	OpSend...Invalidate     SGL, Invalidate (the peer's STag)
//	OpWrite                 SGL, Remote
//	OpRead                  Local, Remote
//	OpReadInvalidate        Local (its STag is invalidated at the end), Remote
//	OpBind                  Bind
//	OpFastRegister          FastRegister
//	OpInvalidate            Invalidate (an STag of this side)
//	OpImmediate, ...SE      Immediate
//	OpWriteImmediate, ...SE SGL, Remote, Immediate
//	OpFetchAdd and so on    Remote, Atomic
type Request struct {
	// ID comes back in the completion.
	ID    uint64
	Op    Op
	Flags Flags
	// Invalidate is the STag that a Send with Invalidate or an Invalidate
	// Local STag names.
	Invalidate STag
	// SGL is the data source of a Send or RDMA Write. Its total may be
	// zero and is at most MaxMessage. Of an OpRead it is what the octets go to, one element after another, in place
	// of Local, if verbs.QPConfig.ReadSGE allows a list and this is not empty.
	SGL []SGE
	// Local is the data sink of an RDMA Read, of a region or of a window of this queue
	// pair; its Length is the length read. The sink needs RemoteWrite: it is written to by
	// the peer's answer (verbs draft 7.5.2). Local rights are not looked at. Whether it
	// has that right is looked at when the answer comes: without it the Read completes
	// with StatusAccess then, and the stream ends. verbs.QPConfig.ReadIntoLocal has
	// another rule: the sink is of a region and needs LocalWrite.
	Local SGE
	// Remote is the data sink of an RDMA Write, the data source of an RDMA
	// Read, the eight octets that an Atomic Operation is about.
	Remote Remote
	// Immediate are the eight octets of Immediate Data, the first of them the most
	// significant: the peer gets them with a Receive.
	Immediate uint64
	// Bind and FastRegister are the modifiers of the operations of these
	// names. They are copied by PostSend.
	Bind         *BindRequest
	FastRegister *FastRegisterRequest
	// Atomic are the modifiers of an Atomic Operation. They are copied by PostSend.
	Atomic *AtomicRequest
}

// AtomicRequest are the modifiers of an Atomic Operation (RFC 7306 5.2.1 figure 5). Its values
// are numbers: the eight octets at the peer are one in the byte order of the peer's machine.
// FetchAdd, Swap and CompareSwap make the usual ones.
type AtomicRequest struct {
	// Data is what OpFetchAdd adds, and what OpSwap and OpCompareSwap put there.
	Data uint64
	// Mask has the bits of Data that OpSwap and OpCompareSwap put there; the others stay. For
	// OpFetchAdd it has the highest bit of each field, from which nothing is carried on:
	// zero is one field of 64 bits.
	Mask uint64
	// Compare and CompareMask are OpCompareSwap's alone: it changes something if what is
	// there is Compare in all bits of CompareMask.
	Compare, CompareMask uint64
}

const allBits = ^uint64(0)

// FetchAdd adds n to all 64 bits.
func FetchAdd(n uint64) *AtomicRequest { return &AtomicRequest{Data: n} }

// Swap puts v in place of all 64 bits.
func Swap(v uint64) *AtomicRequest { return &AtomicRequest{Data: v, Mask: allBits} }

// CompareSwap puts v in place of all 64 bits if they are old.
func CompareSwap(old, v uint64) *AtomicRequest {
	return &AtomicRequest{Data: v, Mask: allBits, Compare: old, CompareMask: allBits}
}

// Recv is a work request for a Receive Queue: the buffers that one inbound
// Send fills.
type Recv struct {
	ID  uint64
	SGL []SGE
}
