package vipl

import (
	"strings"

	"github.com/softrnic/softrnic/internal/names"
)

// Event is what may happen to a VI.
//
//	          ConnectRequest,                    established
//	+------+  ConnectAccept    +-----------------+ ----------> +-----------+
//	| Idle | ----------------> | Pending Connect |             | Connected |
//	+------+ <---------------- +-----------------+             +-----------+
//	 ^  ^ ^    failed, Disconnect      | transport error         |      |
//	 |  | |                            v                         |      |
//	 |  | |      Disconnect       +-------+   error that breaks, |      |
//	 |  | +---------------------- | Error | <--------------------+      |
//	 |  |                         +-------+   connection lost           |
//	 |  +---------------------------------------------------------------+
//	 |                             Disconnect
//	created
type Event uint8

// The events: calls first, then what the connection brings.
const (
	// EventConnectRequest is ConnectRequest, and ConnectPeerRequest.
	EventConnectRequest Event = iota
	EventConnectAccept
	EventDisconnect
	EventDestroyVi
	EventSetViAttributes
	EventPostSend
	EventPostRecv
	// EventEstablished: both ends agreed.
	EventEstablished
	// EventConnectFailed: rejected, no match, unreachable, timed out or given up.
	EventConnectFailed
	// EventReported is an error of an Unreliable VI that status bits or return codes
	// tell, and nothing else follows from.
	EventReported
	// EventBreaking is any error of a Reliable Delivery or Reliable Reception VI.
	EventBreaking
	// EventConnLost: the remote end has gone, or what it sends makes no sense.
	EventConnLost
	numEvents
)

var eventNames = [numEvents]string{
	"ConnectRequest", "ConnectAccept", "Disconnect", "DestroyVi", "SetViAttributes",
	"PostSend", "PostRecv", "established", "connect failed", "error reported",
	"error that breaks", "connection lost",
}

func (e Event) String() string { return names.Of("Event", eventNames[:], e) }

// Action is a set of things to do on a transition.
type Action uint8

// The actions.
const (
	// ActConnect begins to establish a connection.
	ActConnect Action = 1 << iota
	// ActAbandon gives up the attempt to establish one.
	ActAbandon
	// ActClose closes the connection.
	ActClose
	// ActEnqueue puts the Descriptor on its queue.
	ActEnqueue
	// ActProcess processes what is on the queues.
	ActProcess
	// ActFlush completes all posted Descriptors as flushed, the one of the event too.
	ActFlush
	// ActReport calls the error handler.
	ActReport
	// ActDefer keeps the error for the next attempt to connect, which reports it.
	ActDefer
	numActions = iota
)

var actionNames = [numActions]string{
	"connect", "abandon the attempt", "close", "enqueue", "process", "flush", "report", "report later",
}

func (a Action) String() string { return strings.Join(names.Set(actionNames[:], a), ", ") }

// Transition is one cell of the table: what an event does in a state. If Code is not
// Success the event is a call that is refused with it, and nothing changes.
type Transition struct {
	Next    ViState
	Actions Action
	Code    Return
}

func to(s ViState, a Action) Transition { return Transition{Next: s, Actions: a} }

func refuse(s ViState, code Return) Transition { return Transition{Next: s, Code: code} }

// table decides every pair (VI Architecture 5). Where an error cannot come because there
// is no connection, the pair says that nothing happens: what an earlier connection
// still has to tell is not for the VI any more (VA-4.2-M1).
var table = [numStates][numEvents]Transition{
	StateIdle: { // 5.1
		EventConnectRequest:  to(StateConnectPending, ActConnect),
		EventConnectAccept:   to(StateConnectPending, ActConnect),
		EventDisconnect:      to(StateIdle, ActFlush), // ends the wait of the Receive Queue
		EventDestroyVi:       to(StateIdle, 0),
		EventSetViAttributes: to(StateIdle, 0),
		EventPostSend:        to(StateIdle, ActEnqueue|ActFlush), // VA-6.2-M1
		EventPostRecv:        to(StateIdle, ActEnqueue),
		EventEstablished:     to(StateIdle, ActClose), // Disconnect came first
		EventConnectFailed:   to(StateIdle, 0),
		EventReported:        to(StateIdle, 0),
		EventBreaking:        to(StateIdle, ActDefer), // 5.1, last paragraph
		EventConnLost:        to(StateIdle, 0),
	},
	StateConnectPending: { // 5.2
		EventConnectRequest:  refuse(StateConnectPending, ErrInvalidParameter), // VA-5-M1
		EventConnectAccept:   refuse(StateConnectPending, ErrInvalidParameter),
		EventDisconnect:      to(StateIdle, ActAbandon|ActFlush),
		EventDestroyVi:       refuse(StateConnectPending, ErrResource),
		EventSetViAttributes: refuse(StateConnectPending, ErrInvalidParameter),
		EventPostSend:        to(StateConnectPending, ActEnqueue|ActFlush),
		EventPostRecv:        to(StateConnectPending, ActEnqueue),
		EventEstablished:     to(StateConnected, ActProcess),
		EventConnectFailed:   to(StateIdle, 0), // the Receive Queue waits on
		EventReported:        to(StateConnectPending, 0),
		EventBreaking:        to(StateConnectPending, ActReport), // breaks nothing yet
		EventConnLost:        to(StateError, ActAbandon|ActFlush|ActReport),
	},
	StateConnected: { // 5.3
		EventConnectRequest:  refuse(StateConnected, ErrInvalidParameter), // VA-4.1-M2
		EventConnectAccept:   refuse(StateConnected, ErrInvalidParameter),
		EventDisconnect:      to(StateIdle, ActClose|ActFlush),
		EventDestroyVi:       refuse(StateConnected, ErrResource),
		EventSetViAttributes: refuse(StateConnected, ErrInvalidParameter),
		EventPostSend:        to(StateConnected, ActEnqueue|ActProcess),
		EventPostRecv:        to(StateConnected, ActEnqueue|ActProcess),
		EventEstablished:     to(StateConnected, 0),
		EventConnectFailed:   to(StateConnected, 0),
		EventReported:        to(StateConnected, ActProcess), // table 1: not broken
		EventBreaking:        to(StateError, ActClose|ActFlush|ActReport),
		EventConnLost:        to(StateError, ActClose|ActFlush|ActReport),
	},
	StateError: { // 5.4
		EventConnectRequest:  refuse(StateError, ErrInvalidParameter),
		EventConnectAccept:   refuse(StateError, ErrInvalidParameter),
		EventDisconnect:      to(StateIdle, ActFlush),
		EventDestroyVi:       refuse(StateError, ErrResource),
		EventSetViAttributes: refuse(StateError, ErrInvalidParameter),
		EventPostSend:        to(StateError, ActEnqueue|ActFlush),
		EventPostRecv:        to(StateError, ActEnqueue|ActFlush),
		EventEstablished:     to(StateError, ActClose),
		EventConnectFailed:   to(StateError, 0),
		EventReported:        to(StateError, 0),
		EventBreaking:        to(StateError, 0), // broken and told already
		EventConnLost:        to(StateError, 0),
	},
}

// On is the transition that event e makes in state s.
func On(s ViState, e Event) Transition { return table[s][e] }
