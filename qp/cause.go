package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// Handlers of segments, and those of requests, find faults. What becomes of a fault is made here, once: the receiver's where
// receiver.handle ends, the transmitter's where a batch does. finish adds the reason, the remedy and the Terminate.

// cause is why a session ends.
type cause struct {
	fault streamFault
	// sq is the position of the Send Queue element at fault, if hasSQ; recv
	// says that the current receive is at fault.
	sq    uint64
	hasSQ bool
	recv  bool
	// seg is the segment at fault, if there is one, without most of its payload. Its DDP header is
	// repeated in the Terminate Message, and so is readReq (RFC 5040 4.8).
	seg     ddp.Segment
	readReq []byte
	// terminate is the Terminate Message, from its control word on: the one
	// that arrived, or the one that finish composes.
	terminate []byte
	// reported says that an event has told of the end before.
	reported bool
	// why is finish's: nil without a reason, and before that.
	why *wr.Reason
}

// keptPayload is how much is kept of a segment's payload: the longest header of a request, and whether there is more.
const keptPayload = rdmap.AtomicRequestSize + 1

// cause is a fault in answering r after sent octets of the answer: the Terminate
// repeats its headers, moved on by as much (RFC 5040 4.8).
func (r *inboundRead) cause(f streamFault, sent uint64) cause {
	header := ddp.AppendUntagged(nil, true, rdmap.Control(r.op), 0, ddp.QNReadRequest, r.msn, 0)
	copy(header, r.head[:])
	c := cause{fault: f}
	if r.op == rdmap.AtomicRequest { // its own header is not repeated (RFC 7306 8.1)
		c.seg, _ = ddp.Parse(r.atomic.Append(header))
		return c
	}
	c.seg, _ = ddp.Parse(r.req.Append(header))
	c.readReq = r.req.Advanced(uint32(sent)).Append(nil)
	return c
}

// trigger is what the state machine sees of c.
func (c *cause) trigger() trigger { return faults[c.fault].Trigger }

// completes reports whether a completion tells of c.
func (c *cause) completes() bool { return c.hasSQ || c.recv }

// event is what c raises: nothing if a completion reports it (RV-6.2.3-M14).
func (c *cause) event() wr.EventID {
	if c.completes() || c.reported {
		return 0
	}
	return faults[c.fault].Event
}

// composeTerminate makes the Terminate Message for c.
func (c *cause) composeTerminate() {
	term := rdmap.TerminateHeader{Code: faults[c.fault].Code, ReadRequest: c.readReq}
	if withDDP, _ := rdmap.Include(term.Code); withDDP && c.seg.Len() > 0 {
		term.SegmentLength, term.DDPHeader = uint16(c.seg.Len()), c.seg.Header()
	}
	c.terminate = term.Append(nil)
}

// TerminateMessage is a Terminate Message as Query QP returns it.
type TerminateMessage struct {
	// Sent says whether this side composed it; else it was received.
	Sent bool
	// Code is layer<<12|type<<8|code.
	Code rdmap.TermCode
	// Raw is the Terminate header, from the control word on (RFC 5040 4.8).
	Raw []byte
}

// End is how a stream ended.
type End struct {
	// cause is why RTS was left. last is what ended Closing or Terminate after it;
	// noFault if the queue pair went to Error at once.
	cause, last streamFault
	// State is the one that followed: Idle or Error.
	State wr.State
	// Terminate is the Terminate Message that was sent or received, if one was.
	Terminate *TerminateMessage
	// Why is the reason: of Closing's end, if the close was wished for. It is nil without
	// one: the end was a wish, or a good close.
	Why *wr.Reason
	// Request is the completion of the work request at fault; its Status is
	// StatusSuccess if none was.
	Request wr.Completion
	// Destroyed says that the end was that of the queue pair.
	Destroyed bool
}

// Reason names what happened.
func (e *End) Reason() string { return faults[e.cause].Name }

// Event is the asynchronous event of what happened; 0 if it has none, or if a
// completion told of it.
func (e *End) Event() wr.EventID {
	if e.Request.Status != wr.StatusSuccess {
		return 0
	}
	return faults[e.cause].Event
}

// Then names what spoilt the close that followed; "" if nothing did.
func (e *End) Then() string {
	if e.last == noFault || e.last == faultClosed {
		return ""
	}
	return faults[e.last].Name
}

// Modified reports whether the program modified the queue pair to Terminate or Error,
// or destroyed it.
func (e *End) Modified() bool { return e.Aborted() || e.cause == faultModifyTerminate }

// Aborted is Modified without Terminate.
func (e *End) Aborted() bool { return e.cause == faultModifyError }

// Reset reports whether the peer reset the stream, in RTS or while it was closing.
func (e *End) Reset() bool { return e.cause == faultLLPReset || e.last == faultClosingReset }
