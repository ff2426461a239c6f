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

// The operation types of PostSQ (verbs draft 9.3.1.1), and Receive.
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
	opEnd
)

var opNames = [...]string{
	OpSend: "Send", OpSendSE: "SendSE", OpSendInvalidate: "SendInvalidate",
	OpSendSEInvalidate: "SendSEInvalidate", OpWrite: "Write", OpRead: "Read",
	OpReadInvalidate: "ReadInvalidate", OpBind: "Bind", OpFastRegister: "FastRegister",
	OpInvalidate: "Invalidate", OpRecv: "Recv",
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

// Solicited reports whether a Send of type o asks for a Solicited Event.
func (o Op) Solicited() bool { return o == OpSendSE || o == OpSendSEInvalidate }

// Flags modify a work request.
type Flags uint8

// The flags of PostSQ.
const (
	// Unsignaled asks for no completion if the operation succeeds
	// (verbs draft 8.1.3.1).
	Unsignaled Flags = 1 << iota
	// ReadFence holds a Send or RDMA Write back until all earlier RDMA
	// Reads of this queue have completed (8.2.2.2).
	ReadFence
	// LocalFence holds an Invalidate Local STag back until all earlier
	// operations of this queue have completed (8.2.2.2).
	LocalFence
)

// Request is a work request for the Send Queue, of any operation type: the zero
// Op is a plain Send. It is read by PostSend and not kept; the memory that its
// elements name is in use until the request completes (verbs draft 8.2.2).
//
//	Op                      fields used besides ID and Flags
//	OpSend, OpSendSE        SGL
//	OpSend...Invalidate     SGL, Invalidate (the peer's STag)
//	OpWrite                 SGL, Remote
//	OpRead                  Local, Remote
//	OpReadInvalidate        Local (its STag is invalidated at the end), Remote
//	OpBind                  Bind
//	OpFastRegister          FastRegister
//	OpInvalidate            Invalidate (an STag of this side)
type Request struct {
	// ID comes back in the completion.
	ID    uint64
	Op    Op
	Flags Flags
	// Invalidate is the STag that a Send with Invalidate or an Invalidate
	// Local STag names.
	Invalidate STag
	// SGL is the data source of a Send or RDMA Write. Its total may be
	// zero and is at most MaxMessage.
	SGL []SGE
	// Local is the data sink of an RDMA Read, of a region or of a window of this queue
	// pair; its Length is the length read. The sink needs RemoteWrite: it is written to by
	// the peer's answer (verbs draft 7.5.2). Local rights are not looked at. Whether it
	// has that right is looked at when the answer comes: without it the Read completes
	// with StatusAccess then, and the stream ends.
	Local SGE
	// Remote is the data sink of an RDMA Write, the data source of an RDMA
	// Read.
	Remote Remote
	// Bind and FastRegister are the modifiers of the operations of these
	// names. They are copied by PostSend.
	Bind         *BindRequest
	FastRegister *FastRegisterRequest
}

// Recv is a work request for a Receive Queue: the buffers that one inbound
// Send fills.
type Recv struct {
	ID  uint64
	SGL []SGE
}
