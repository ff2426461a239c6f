package verbs

import (
	"net"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/qp"
)

// ModifyQP are the input modifiers of Modify QP (verbs draft 9.2.5.3). Which of
// them may be supplied depends on the transition:
//
//	Idle to Idle   ORD, IRD, SendDepth, RecvDepth, RQLimit, the rights
//	Idle to RTS    the same, Stream (needed), LastMessage, Extensions
//	RTS to RTS     ORD, IRD, SendDepth, RecvDepth, the rights
//	any other      none
type ModifyQP struct {
	// Next is the state to enter; it may be the current one.
	Next State
	// Stream is the LLP stream. The queue pair owns its connection once Modify
	// has succeeded.
	Stream *StreamConfig
	// LastMessage is sent in streaming mode before iWARP starts (6.6.1.1).
	LastMessage []byte
	// ORD, if not nil, is the new limit on outbound RDMA Reads, at least 0; on
	// a stream with negotiated limits at most what was agreed with the peer. A
	// smaller one counts as Reads complete.
	ORD *int
	// IRD, if not nil, is the new limit on inbound RDMA Reads, at least 0, and
	// at least as many as wait for their answer.
	IRD *int
	// SendDepth and RecvDepth, if not nil, resize the queues; at least 1, and at
	// least as many as are outstanding. RecvDepth is refused with an S-RQ.
	SendDepth, RecvDepth *int
	// RQLimit, if not nil, is the new QP RQ Limit, and ArmRQLimit arms it; with
	// an S-RQ only.
	RQLimit    *int
	ArmRQLimit bool
	// Extensions, if not nil, says whether RFC 7306 is spoken on this stream, as was agreed
	// with the peer; else QPConfig.Extensions does. A request for what is not spoken,
	// posted in Idle, completes with StatusInvalidWQE then, and the stream ends.
	Extensions *bool
	// NoInboundRead, NoInboundWrite and NoInboundAtomic are the rights, which the draft fixes at creation and InfiniBand
	// lets change: if not nil, they hold in place of QPConfig's for each segment of the peer that is taken from the stream
	// afterwards. A Read or an Atomic that waits for its answer gets it; of an RDMA Write under way what has come
	// stays, and the rest is refused and ends the stream. Without QPConfig.ReadIntoLocal NoInboundWrite so ends this
	// side's own Reads. What cm offers the peer as IRD is by the rights at that time.
	NoInboundRead, NoInboundWrite, NoInboundAtomic *bool
}

// StreamConfig is what a queue pair needs to run on a connection: the connection, after its
// MPA startup, and what was agreed there. Package cm makes them; a program that does
// without cm makes one itself. [LLPStream] is the stream once it runs.
type StreamConfig struct {
	// Conn stands at the first octet of the FPDU stream, both ways, except for
	// Early.
	Conn net.Conn
	// Role is mpa.Initiator, which sends the first FPDU, or mpa.Responder.
	Role mpa.Role
	// CRC: CRCs are made and checked, both ways. MarkersOut: this side inserts
	// markers. MarkersIn: the peer does.
	CRC, MarkersOut, MarkersIn bool
	// Enhanced: this side's IRD and ORD were negotiated (RFC 6581); else the
	// queue pair's count.
	Enhanced bool
	IRD, ORD int
	// PeerIRD and PeerORD are the peer's, as it stated them; -1 if it did not. They
	// are for Query.
	PeerIRD, PeerORD int
	// P2P: the Initiator sends a ready-to-receive frame, of the kind RTR, by
	// itself; the Responder takes those in RTR.
	P2P bool
	RTR mpa.RTR
	// Nudge lets an Initiator send empty RDMA Writes to a peer that seems to have
	// missed its first FPDU (docs/decisions/0014-first-fpdu.md).
	Nudge bool
	// EMSS is in octets; 0 stands for what Conn states.
	EMSS int
	// Early are octets of the FPDU stream that have been read from Conn already.
	Early []byte
	// Request and Reply are the MPA startup frames, for a Tap; nil: unknown.
	Request, Reply *mpa.Startup
}

// mpa is the stream as package qp takes it.
func (s *StreamConfig) mpa() *mpa.Stream {
	if s == nil {
		return nil
	}
	return &mpa.Stream{
		Conn: s.Conn, Role: s.Role, CRC: s.CRC, MarkersOut: s.MarkersOut, MarkersIn: s.MarkersIn,
		Enhanced: s.Enhanced, IRD: s.IRD, ORD: s.ORD, PeerIRD: s.PeerIRD, PeerORD: s.PeerORD,
		P2P: s.P2P, RTR: s.RTR, Nudge: s.Nudge, EMSS: s.EMSS, Early: s.Early,
		Request: s.Request, Reply: s.Reply,
	}
}

// streamOf is the stream that package qp runs.
func streamOf(s *mpa.Stream) *StreamConfig {
	if s == nil {
		return nil
	}
	return &StreamConfig{
		Conn: s.Conn, Role: s.Role, CRC: s.CRC, MarkersOut: s.MarkersOut, MarkersIn: s.MarkersIn,
		Enhanced: s.Enhanced, IRD: s.IRD, ORD: s.ORD, PeerIRD: s.PeerIRD, PeerORD: s.PeerORD,
		P2P: s.P2P, RTR: s.RTR, Nudge: s.Nudge, EMSS: s.EMSS, Early: s.Early,
		Request: s.Request, Reply: s.Reply,
	}
}

// qp is m, on the stream s, as package qp takes it.
func (m *ModifyQP) qp(s *mpa.Stream) qp.Modify {
	return qp.Modify{
		Next: m.Next, Stream: s, LastMessage: m.LastMessage, ORD: m.ORD, IRD: m.IRD,
		SendDepth: m.SendDepth, RecvDepth: m.RecvDepth, RQLimit: m.RQLimit, ArmRQLimit: m.ArmRQLimit,
		Extensions: m.Extensions, NoInboundRead: m.NoInboundRead, NoInboundWrite: m.NoInboundWrite, NoInboundAtomic: m.NoInboundAtomic,
	}
}

// ModifySRQ are the input modifiers of Modify S-RQ (verbs draft 9.2.4.3); nil leaves
// an attribute as it is.
type ModifySRQ struct {
	// Depth is how many receives may be outstanding, at least 1.
	Depth *int
	// Limit is the S-RQ Limit, 0 to the Depth that holds afterwards. Setting it
	// does not arm it; 0 disarms.
	Limit *int
	// Rearm arms the S-RQ Limit, armed or not; a Limit of 0 has nothing to arm.
	// If fewer receives than the Limit are posted, the next message that takes
	// one raises the event.
	Rearm bool
}
