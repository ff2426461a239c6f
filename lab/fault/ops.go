package fault

import (
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// Op is a kind of operation: of segments and messages by their opcode, of posts and completions by their type.
type Op uint8

// The operations. OpRead is a Read Request, and the post of it; OpAtomic likewise.
const (
	AnyOp Op = iota
	OpSend
	OpWrite
	OpRead
	OpResponse
	OpImmediate
	OpAtomic
	OpAtomicResponse
	OpTerminate
	OpRecv
	OpMemory
)

var ops = []string{
	OpSend: "send", OpWrite: "write", OpRead: "read", OpResponse: "response", OpImmediate: "immediate", OpAtomic: "atomic",
	OpAtomicResponse: "atomic-response", OpTerminate: "terminate", OpRecv: "recv", OpMemory: "memory",
}

// opOf is the kind of a request or completion, AnyOp of others.
var opOf = map[wr.Op]Op{
	wr.OpSend: OpSend, wr.OpSendSE: OpSend, wr.OpSendInvalidate: OpSend, wr.OpSendSEInvalidate: OpSend,
	wr.OpWrite: OpWrite, wr.OpWriteImmediate: OpWrite, wr.OpWriteImmediateSE: OpWrite,
	wr.OpRead: OpRead, wr.OpReadInvalidate: OpRead,
	wr.OpImmediate: OpImmediate, wr.OpImmediateSE: OpImmediate,
	wr.OpFetchAdd: OpAtomic, wr.OpSwap: OpAtomic, wr.OpCompareSwap: OpAtomic,
	wr.OpRecv: OpRecv,
	wr.OpBind: OpMemory, wr.OpFastRegister: OpMemory, wr.OpInvalidate: OpMemory,
}

// opOfSegment is the kind of a segment, AnyOp of others.
var opOfSegment = map[rdmap.Opcode]Op{
	rdmap.Send: OpSend, rdmap.SendSE: OpSend, rdmap.SendInvalidate: OpSend, rdmap.SendSEInvalidate: OpSend,
	rdmap.Write: OpWrite, rdmap.ReadRequest: OpRead, rdmap.ReadResponse: OpResponse,
	rdmap.Immediate: OpImmediate, rdmap.ImmediateSE: OpImmediate,
	rdmap.AtomicRequest: OpAtomic, rdmap.AtomicResponse: OpAtomicResponse, rdmap.Terminate: OpTerminate,
}

func (o Op) String() string { return named(ops, int(o)) }

// opsOf are the operations that w can be limited to.
func opsOf(w When) []Op {
	switch w {
	case Segment, Message:
		return []Op{OpSend, OpWrite, OpRead, OpResponse, OpImmediate, OpAtomic, OpAtomicResponse, OpTerminate}
	case Post, Completion:
		return []Op{OpSend, OpWrite, OpRead, OpImmediate, OpAtomic, OpRecv, OpMemory}
	default:
		return nil
	}
}
