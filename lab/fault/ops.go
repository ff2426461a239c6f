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

// opOf is the kind of a request or completion.
func opOf(op wr.Op) Op {
	switch op {
	case wr.OpSend, wr.OpSendSE, wr.OpSendInvalidate, wr.OpSendSEInvalidate:
		return OpSend
	case wr.OpWrite, wr.OpWriteImmediate, wr.OpWriteImmediateSE:
		return OpWrite
	case wr.OpRead, wr.OpReadInvalidate:
		return OpRead
	case wr.OpImmediate, wr.OpImmediateSE:
		return OpImmediate
	case wr.OpFetchAdd, wr.OpSwap, wr.OpCompareSwap:
		return OpAtomic
	case wr.OpRecv:
		return OpRecv
	case wr.OpBind, wr.OpFastRegister, wr.OpInvalidate:
		return OpMemory
	}
	return AnyOp
}

// opOfSegment is the kind of a segment.
func opOfSegment(op rdmap.Opcode) Op {
	switch op {
	case rdmap.Send, rdmap.SendSE, rdmap.SendInvalidate, rdmap.SendSEInvalidate:
		return OpSend
	case rdmap.Write:
		return OpWrite
	case rdmap.ReadRequest:
		return OpRead
	case rdmap.ReadResponse:
		return OpResponse
	case rdmap.Immediate, rdmap.ImmediateSE:
		return OpImmediate
	case rdmap.AtomicRequest:
		return OpAtomic
	case rdmap.AtomicResponse:
		return OpAtomicResponse
	case rdmap.Terminate:
		return OpTerminate
	}
	return AnyOp
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
