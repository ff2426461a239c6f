package rawpeer

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
)

// Segment is a DDP segment with every field free, as it is to be sent:
//
//	tagged    T=1  L  DV  RV|Opcode  STag  TO               Payload
//	untagged  T=0  L  DV  RV|Opcode  Inv   QN   MSN   MO    Payload
//
// The functions below make good ones; a test then spoils what it wants to.
type Segment struct {
	Tagged bool
	More   bool // L clear
	Op     rdmap.Opcode
	STag   uint32
	TO     uint64
	Inv    uint32 // the Invalidate STag
	QN     uint32
	MSN    uint32
	MO     uint32

	Payload []byte
}

// Octets are those of the ULPDU.
func (s Segment) Octets() []byte {
	var b []byte
	if s.Tagged {
		b = ddp.AppendTagged(nil, !s.More, rdmap.Control(s.Op), s.STag, s.TO)
	} else {
		b = ddp.AppendUntagged(nil, !s.More, rdmap.Control(s.Op), s.Inv, s.QN, s.MSN, s.MO)
	}
	return append(b, s.Payload...)
}

// Write is a whole RDMA Write.
func Write(stag uint32, to uint64, payload []byte) Segment {
	return Segment{Tagged: true, Op: rdmap.Write, STag: stag, TO: to, Payload: payload}
}

// ReadResponse is a whole RDMA Read Response.
func ReadResponse(stag uint32, to uint64, payload []byte) Segment {
	return Segment{Tagged: true, Op: rdmap.ReadResponse, STag: stag, TO: to, Payload: payload}
}

// Send is a whole Send, number msn of its direction, from 1 on.
func Send(msn uint32, payload []byte) Segment {
	return Segment{Op: rdmap.Send, QN: ddp.QNSend, MSN: msn, Payload: payload}
}

// Immediate is Immediate Data, which shares the numbers of the Sends.
func Immediate(msn uint32, data uint64) Segment {
	return Segment{Op: rdmap.Immediate, QN: ddp.QNSend, MSN: msn, Payload: rdmap.AppendImmediate(nil, data)}
}

// ReadRequest is an RDMA Read Request, number msn of its direction.
func ReadRequest(msn uint32, h rdmap.ReadRequestHeader) Segment {
	return Segment{Op: rdmap.ReadRequest, QN: ddp.QNReadRequest, MSN: msn, Payload: h.Append(nil)}
}

// Terminate is a Terminate Message.
func Terminate(h rdmap.TerminateHeader) Segment {
	return Segment{Op: rdmap.Terminate, QN: ddp.QNTerminate, MSN: 1, Payload: h.Append(nil)}
}
