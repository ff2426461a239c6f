package endpoint

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/names"
)

// Event is an error that no request and no receive of this end tells about (VI Architecture 9.9.1).
type Event uint8

// The events. They are raised at every level; whether the VI Consumer hears of them depends on it (VI Architecture 7).
const (
	// EventReceiveQueueEmpty: a message that needs a receive found none.
	EventReceiveQueueEmpty Event = iota
	// EventWriteProtection: an inbound RDMA Write named memory it may not write to.
	EventWriteProtection
	// EventWriteData: an inbound RDMA Write was corrupt.
	EventWriteData
	// EventWriteAbort: an inbound RDMA Write was aborted by the peer or cut off.
	EventWriteAbort
	// EventReadProtection: an inbound RDMA Read named memory it may not read from, or which went away meanwhile.
	EventReadProtection
	// EventGuessing: the peer of an Unreliable connection has named so many wrong memory handles that it is slowed down:
	// the 16th, and from there on each time the number has doubled.
	EventGuessing
	numEvents
)

var eventNames = [numEvents]string{
	EventReceiveQueueEmpty: "receive queue empty",
	EventWriteProtection:   "RDMA Write protection error",
	EventWriteData:         "RDMA Write data error",
	EventWriteAbort:        "RDMA Write packet abort",
	EventReadProtection:    "RDMA Read protection error",
	EventGuessing:          "wrong memory handles",
}

func (e Event) String() string { return names.Of("Event", eventNames[:], e) }

// Cause is why the data transfer phase of a connection ended.
type Cause uint8

// The causes.
const (
	// CauseClosed: Close or Abort was called.
	CauseClosed Cause = iota
	// CausePeerClosed: the peer closed the TCP connection between two segments.
	CausePeerClosed
	// CauseLost: the TCP connection was reset, failed, or ended within a segment or a message.
	CauseLost
	// CauseMalformed: the peer broke the protocol: a segment that cannot be, one out of sequence, too many RDMA Reads.
	CauseMalformed
	// CauseCRC: a segment with a wrong CRC, at a reliable level (VT-3.6-M6).
	CauseCRC
	// CauseRequest: a posted request has a flaw of this end.
	CauseRequest
	// CauseInbound: an inbound message could not be taken: no receive, one too small or with wrong memory, or a protection
	// error of an RDMA Write or Read. An Event or a Result came with it.
	CauseInbound
	// CauseAborted: the peer sent a message with the transmit error bit (VT-3.2-M3), or the answer to an RDMA Read that
	// failed there.
	CauseAborted
	// CauseRemote: the peer reported an error of a request (VT-3.2-M15).
	CauseRemote
	numCauses
)

var causeNames = [numCauses]string{
	CauseClosed:     "closed here",
	CausePeerClosed: "closed by the peer",
	CauseLost:       "connection lost",
	CauseMalformed:  "protocol violated by the peer",
	CauseCRC:        "CRC error",
	CauseRequest:    "local error of a request",
	CauseInbound:    "inbound message refused",
	CauseAborted:    "message aborted by the peer",
	CauseRemote:     "error reported by the peer",
}

func (c Cause) String() string { return names.Of("Cause", causeNames[:], c) }

// EndError says why a connection ended. Err is what the net.Conn said, or what the peer did; it may be nil. Op is what
// the request or receive is whose flaw ended it, as its Result will tell; OpSend if there is none.
type EndError struct {
	Cause Cause
	Op    Op
	Err   error
}

func (e *EndError) Error() string {
	if e.Err == nil {
		return "vitcp: " + e.Cause.String()
	}
	return fmt.Sprintf("vitcp: %v: %v", e.Cause, e.Err)
}

// Unwrap returns Err.
func (e *EndError) Unwrap() error { return e.Err }

// Handler is told what becomes of an endpoint's requests and receives. No two calls of one endpoint are at the same time,
// and with no lock of the endpoint held that a post or Abort takes. They are made by the goroutine that drives the endpoint: from its
// goroutines if it has some, else from those that call PostSend, PostReceive or TryTransmit, or serve its group; never from within
// QueueSend, QueueReceive, Start, Abort or Close. A handler may post and Abort; it must not Close, which waits for it. A *Result is
// valid during the call only.
type Handler interface {
	// SendDone is called once for each request of which PostSend returned nil, in the order of posting.
	SendDone(*Result)
	// ReceiveDone is called once for each receive of which PostReceive returned nil, in the order of posting.
	ReceiveDone(*Result)
	// Event tells about an error that no result tells about.
	Event(Event)
	// Ended is called once when the data transfer phase is over, before the results that this brings about: the request
	// or receive whose flaw ended it, and those that are flushed.
	Ended(*EndError)
}
