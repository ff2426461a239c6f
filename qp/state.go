package qp

import (
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/wr"
)

// State is a queue pair's state (verbs draft 6.2).
//
//	          ModifyRTS               ModifyClosing, peer closes
//	+------+ ----------->  +-----+ -------------------------------> +---------+
//	| Idle |               | RTS |                                  | Closing |
//	+------+ <-----------  +-----+                                  +---------+
//	 |   ^    (never)       |   |                                     |     |
//	 |   |                  |   | error, Terminate received,          |     |
//	 |   |    ModifyError,  |   | ModifyTerminate                     |     |
//	 |   |    LLP failure   |   |      +-----------+                  |     |
//	 |   |                  |   +----> | Terminate |                  |     |
//	 |   |                  |          +-----------+                  |     |
//	 |   |                  v             |  LLP closed or reset      |     |
//	 |   |  ModifyIdle  +-------+ <-------+                           |     |
//	 |   +------------- | Error | <-----------------------------------+     |
//	 +----------------> +-------+      bad close, LLP failure               |
//	 ^   ModifyError, own failure                       LLP close complete  |
//	 +----------------------------------------------------------------------+
type State = wr.State

// The five states.
const (
	Idle      = wr.StateIdle
	RTS       = wr.StateRTS
	Closing   = wr.StateClosing
	Terminate = wr.StateTerminate
	Error     = wr.StateError
	numStates = wr.StateError + 1
)

// Trigger is what may happen to a queue pair.
type Trigger uint8

// The triggers: verbs first, then what the wire and the LLP bring.
const (
	TrigPostSQ Trigger = iota
	TrigPostRQ
	TrigModifyIdle
	TrigModifyRTS
	TrigModifyClosing
	TrigModifyTerminate
	TrigModifyError
	// TrigSegment is a valid inbound segment that is not a Terminate; while the
	// LLP stream closes, anything else that comes.
	TrigSegment
	// TrigTerminateReceived is an inbound Terminate Message.
	TrigTerminateReceived
	// TrigFault is an error that leaves the LLP stream, if there is one, able to
	// carry a Terminate Message.
	TrigFault
	// TrigLLPFailure is the loss or reset of the LLP stream, or its final
	// timeout: no Terminate Message can be sent.
	TrigLLPFailure
	// TrigPeerClose is the peer's LLP Close, before this side's, with the SQ and
	// the IRRQ empty.
	TrigPeerClose
	// TrigPeerCloseBusy is the same with work left in either.
	TrigPeerCloseBusy
	// TrigBusy finds work on the SQ or the IRRQ while closing.
	TrigBusy
	// TrigClosed is the end of the LLP Close: both sides have closed.
	TrigClosed
	numTriggers
)

var triggerNames = [...]string{
	TrigPostSQ: "PostSQ", TrigPostRQ: "PostRQ",
	TrigModifyIdle: "Modify QP -> Idle", TrigModifyRTS: "Modify QP -> RTS",
	TrigModifyClosing: "Modify QP -> Closing", TrigModifyTerminate: "Modify QP -> Terminate",
	TrigModifyError: "Modify QP -> Error", TrigSegment: "segment arrives",
	TrigTerminateReceived: "Terminate arrives", TrigFault: "error, LLP usable",
	TrigLLPFailure: "LLP failure", TrigPeerClose: "peer closes, no work left",
	TrigPeerCloseBusy: "peer closes, work left", TrigBusy: "work found while closing",
	TrigClosed: "LLP Close complete",
}

func (t Trigger) String() string {
	if t < numTriggers {
		return triggerNames[t]
	}
	return "Trigger(" + strconv.Itoa(int(t)) + ")"
}

// Action is a set of things to do on a transition.
type Action uint16

// The actions.
const (
	// ActEnqueue puts the work request on its queue.
	ActEnqueue Action = 1 << iota
	// ActProcess handles the segment.
	ActProcess
	// ActModify changes attributes only.
	ActModify
	// ActStart resets the wire layers, ties the LLP stream to the queue pair
	// and starts iWARP.
	ActStart
	// ActSendTerminate sends a Terminate Message on a segment boundary.
	ActSendTerminate
	// ActKeepTerminate keeps the Terminate Message that arrived.
	ActKeepTerminate
	// ActClose begins an LLP Close.
	ActClose
	// ActReset resets the LLP stream.
	ActReset
	// ActFlushRQ completes what is on the Receive Queue as Flushed.
	ActFlushRQ
	// ActFlush completes what is on both queues as Flushed.
	ActFlush
	// ActRelease unties the LLP stream from the queue pair.
	ActRelease
	// ActEvent raises the asynchronous event that the cause has in the fault
	// table, if it has one.
	ActEvent
	numActions = iota
)

var actionNames = [...]string{
	"enqueue", "process", "change attributes", "start iWARP", "send Terminate", "keep Terminate",
	"LLP Close", "LLP Reset", "flush RQ", "flush SQ and RQ", "release LLP stream", "raise event",
}

func (a Action) String() string {
	var parts []string
	for i := range numActions {
		if a&(1<<i) != 0 {
			parts = append(parts, actionNames[i])
		}
	}
	return strings.Join(parts, ", ")
}

// Transition is one cell of the table: what a trigger does in a state. If Err
// is set the trigger is refused with it, and nothing changes.
type Transition struct {
	Next    State
	Actions Action
	Err     wr.ImmediateError
	// happens tells a cell with content from a pair that cannot happen.
	happens bool
}

func to(s State, a Action) Transition { return Transition{Next: s, Actions: a, happens: true} }

func refuse(err wr.ImmediateError) Transition { return Transition{Err: err, happens: true} }

// badEnd is what the ways out of Closing into Error do. The Receive Queue is
// flushed by then, and work on the Send Queue is one of these ways.
const badEnd = ActReset | ActRelease | ActEvent

// table decides every pair that can happen (verbs draft figures 7 to 11). Posts in
// Terminate and Closing are refused from the moment the state is entered (6.2.3,
// 6.2.5 leave that moment open), and in Error always (figure 10, second arm).
//
// What is not here cannot happen. In Idle and Error there is no LLP stream for
// anything to come from, only this side's own failure (Error may be entered
// before the stream is reset, but by then nobody reads it). In RTS work is what
// the state is for, and this side has not closed. In Closing and Terminate it has,
// so that the peer's close is the end of the LLP Close; Terminate was entered
// with its work queues flushed.
var table = [numStates][numTriggers]Transition{
	Idle: { // figure 7
		TrigPostSQ:          to(Idle, ActEnqueue), // RV-6.2.1-M2: not processed
		TrigPostRQ:          to(Idle, ActEnqueue),
		TrigModifyIdle:      to(Idle, ActModify),
		TrigModifyRTS:       to(RTS, ActStart),
		TrigModifyClosing:   refuse(wr.ErrInvalidState), // 6.2.1
		TrigModifyTerminate: refuse(wr.ErrInvalidState), // 6.2.1
		TrigModifyError:     to(Error, ActFlush),        // 6.2.1.3
		TrigFault:           to(Error, ActFlush|ActEvent),
	},
	RTS: { // figure 8
		TrigPostSQ:            to(RTS, ActEnqueue),
		TrigPostRQ:            to(RTS, ActEnqueue),
		TrigModifyIdle:        refuse(wr.ErrInvalidState), // 6.2.2
		TrigModifyRTS:         to(RTS, ActModify),
		TrigModifyClosing:     to(Closing, ActClose|ActFlushRQ),
		TrigModifyTerminate:   to(Terminate, ActSendTerminate|ActClose|ActFlush),
		TrigModifyError:       to(Error, ActReset|ActFlush|ActRelease), // 6.2.2.4
		TrigSegment:           to(RTS, ActProcess),
		TrigTerminateReceived: to(Terminate, ActKeepTerminate|ActClose|ActFlush|ActEvent), // 6.2.2.3: none is sent back
		TrigFault:             to(Terminate, ActSendTerminate|ActClose|ActFlush|ActEvent),
		TrigLLPFailure:        to(Error, ActReset|ActFlush|ActRelease|ActEvent),
		TrigPeerClose:         to(Closing, ActClose|ActFlushRQ), // 6.2.2.2
		TrigPeerCloseBusy:     to(Terminate, ActSendTerminate|ActClose|ActFlush|ActEvent),
	},
	Closing: { // figure 11
		TrigPostSQ:            refuse(wr.ErrInvalidState),
		TrigPostRQ:            refuse(wr.ErrInvalidState),
		TrigModifyIdle:        refuse(wr.ErrInvalidState), // 6.2.5: any Modify
		TrigModifyRTS:         refuse(wr.ErrInvalidState),
		TrigModifyClosing:     refuse(wr.ErrInvalidState),
		TrigModifyTerminate:   refuse(wr.ErrInvalidState),
		TrigModifyError:       refuse(wr.ErrInvalidState),
		TrigSegment:           to(Error, badEnd),
		TrigTerminateReceived: to(Error, badEnd|ActKeepTerminate), // 6.2.5 lets it be kept
		TrigFault:             to(Error, badEnd),
		TrigLLPFailure:        to(Error, badEnd),
		TrigBusy:              to(Error, badEnd|ActFlush),
		TrigClosed:            to(Idle, ActRelease|ActEvent),
	},
	Terminate: { // figure 9
		TrigPostSQ:            refuse(wr.ErrInvalidState),
		TrigPostRQ:            refuse(wr.ErrInvalidState),
		TrigModifyIdle:        refuse(wr.ErrInvalidState), // 6.2.3: any Modify
		TrigModifyRTS:         refuse(wr.ErrInvalidState),
		TrigModifyClosing:     refuse(wr.ErrInvalidState),
		TrigModifyTerminate:   refuse(wr.ErrInvalidState),
		TrigModifyError:       refuse(wr.ErrInvalidState),
		TrigSegment:           to(Terminate, 0),
		TrigTerminateReceived: to(Terminate, 0), // the two have crossed
		TrigFault:             to(Terminate, 0), // the first error is the one reported
		TrigLLPFailure:        to(Error, ActReset|ActRelease|ActEvent),
		TrigClosed:            to(Error, ActRelease),
	},
	Error: { // figure 10
		TrigPostSQ:          refuse(wr.ErrInvalidState),
		TrigPostRQ:          refuse(wr.ErrInvalidState),
		TrigModifyIdle:      to(Idle, 0), // refused while flushing, see Modify
		TrigModifyRTS:       refuse(wr.ErrInvalidState),
		TrigModifyClosing:   refuse(wr.ErrInvalidState),
		TrigModifyTerminate: refuse(wr.ErrInvalidState),
		TrigModifyError:     refuse(wr.ErrInvalidState), // 6.2.4: only Idle
		TrigFault:           to(Error, 0),
	},
}

// Happens reports whether a trigger can meet a queue pair in a state.
func Happens(s State, t Trigger) bool { return table[s][t].happens }

// Step is the state machine: a pure function of the table. A pair that cannot
// happen is a bug of the caller's, and panics.
func Step(s State, t Trigger) Transition {
	if !Happens(s, t) {
		panic("qp: " + t.String() + " cannot happen in state " + s.String())
	}
	return table[s][t]
}

// States lists the states.
func States() []State { return []State{Idle, RTS, Closing, Terminate, Error} }

// Triggers lists the triggers.
func Triggers() []Trigger {
	all := make([]Trigger, numTriggers)
	for i := range all {
		all[i] = Trigger(i)
	}
	return all
}
