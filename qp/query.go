package qp

import (
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// Attributes are what Query QP returns (verbs draft 9.2.5.2), as far as they can
// change or differ from Config.
type Attributes struct {
	State                wr.State
	SendDepth, RecvDepth int // as allocated
	SendSGE, RecvSGE     int // with an S-RQ the depth and SGEs of receives are 0
	IRD, ORD             int
	// NoInboundRead, NoInboundWrite and NoInboundAtomic are as Modify has set them last, else as in Config.
	NoInboundRead, NoInboundWrite bool
	// ReadIntoLocal, NoBind, Privileged, WriteSGE and GracefulReceive
	// are as in Config.
	NoInboundAtomic, ReadIntoLocal      bool
	NoBind, Privileged, GracefulReceive bool
	WriteSGE                            int
	// Extensions and PlacedWrites are as in Config; with a stream, as it is there.
	Extensions, PlacedWrites bool
	// RQLimit and RQLimitArmed are defined with an S-RQ only.
	RQLimit      int
	RQLimitArmed bool
	// Stream is the LLP stream; nil in Idle.
	Stream *mpa.Stream
	// Terminate is the Terminate Message of the last session, if one was sent
	// or received; valid in the states Terminate and Error.
	Terminate *TerminateMessage
}

// Query returns the attributes.
func (q *QP) Query() Attributes {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := Attributes{
		State:     q.State(),
		SendDepth: q.sq.slots.depth(), SendSGE: q.sq.sendSGE, WriteSGE: q.sq.writeSGE,
		IRD: q.ird, ORD: q.ord,
		NoInboundRead: q.rights.noRead.Load(), NoInboundWrite: q.rights.noWrite.Load(),
		NoInboundAtomic: q.rights.noAtomic.Load(), ReadIntoLocal: q.cfg.ReadIntoLocal, NoBind: q.cfg.NoBind, Privileged: q.cfg.Privileged, GracefulReceive: q.cfg.GracefulReceive,
		Extensions: q.extensionsUsed(), PlacedWrites: q.cfg.PlacedWrites,
	}
	if q.cfg.SRQ == nil {
		a.RecvDepth, a.RecvSGE = q.rq.slots.depth(), q.rq.sges
	} else {
		a.RQLimit, a.RQLimitArmed = q.rqLimit.get()
	}
	if s := q.session.Load(); s != nil { // as agreed with the peer
		a.Stream, a.IRD, a.ORD = s.given, q.inbound(s), int(s.tx.ord.Load())
		a.PlacedWrites = s.tx.writeAck.granted
	}
	if q.terminate != nil {
		t := *q.terminate
		a.Terminate = &t
	}
	return a
}

// Speaker is the side whose first message a stream waits for.
type Speaker uint8

// The sides.
const (
	EitherSide Speaker = iota
	ThisSide
	PeerSide
)

// FirstToSpeak is the side that the stream waits for, if it has carried nothing yet: a Responder sends nothing before the
// Initiator's first FPDU (RFC 5044 7.1.2 rule 4), which in peer-to-peer mode comes by itself (RFC 6581 9.2).
// EitherSide is also the answer without a stream, and for a Responder that has nothing to send.
func (q *QP) FirstToSpeak() Speaker {
	s := q.LLPStream().s
	switch {
	case s == nil || s.stopping.Load() || s.rx.firstFPDU.Load() > 0:
		return EitherSide
	case s.stream.Role == mpa.Responder:
		if s.gate.Load() && q.sq.tail.Load() != q.sq.done.Load() {
			return PeerSide
		}
	case !s.stream.P2P && s.tx.written.Load() == 0:
		return ThisSide
	}
	return EitherSide
}
