package qp

import (
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/wr"
)

// State is a queue pair's resource state (verbs draft 6.2).
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
type State uint8

// The five states.
const (
	Idle State = iota
	RTS
	Closing
	Terminate
	Error
	numStates
)

var stateNames = [...]string{Idle: "Idle", RTS: "RTS", Closing: "Closing", Terminate: "Terminate", Error: "Error"}

func (s State) String() string {
	if s < numStates {
		return stateNames[s]
	}
	return "State(" + strconv.Itoa(int(s)) + ")"
}

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
	// TrigSegment is a valid inbound segment that is not a Terminate.
	TrigSegment
	// TrigTerminateReceived is an inbound Terminate Message.
	TrigTerminateReceived
	// TrigFault is an error that leaves the LLP stream, if there is one, able to
	// carry a Terminate Message.
	TrigFault
	// TrigLLPFailure is the loss or reset of the LLP stream, or its final
	// timeout: no Terminate Message can be sent.
	TrigLLPFailure
	// TrigPeerClose is the peer's LLP Close with the SQ and the IRRQ empty.
	TrigPeerClose
	// TrigPeerCloseBusy is the peer's LLP Close with work left in either.
	TrigPeerCloseBusy
	// TrigBusy finds work on the SQ or the IRRQ while closing.
	TrigBusy
	// TrigClosed is the end of the LLP Close, everything flushed.
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
	// ActIgnore does nothing, on purpose.
	ActIgnore
	numActions = iota
)

var actionNames = [...]string{
	"enqueue", "process", "change attributes", "start iWARP", "send Terminate", "keep Terminate",
	"LLP Close", "LLP Reset", "flush RQ", "flush SQ and RQ", "release LLP stream", "raise event", "ignore",
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
// is set the trigger is refused with it and nothing changes; Next is then the
// state itself.
type Transition struct {
	Next    State
	Actions Action
	Err     wr.ImmediateError
}

func to(s State, a Action) Transition { return Transition{Next: s, Actions: a} }

func refuse(s State, err wr.ImmediateError) Transition { return Transition{Next: s, Err: err} }

// ending is what every way out of Terminate and Closing into Error does.
const ending = ActReset | ActFlush | ActRelease | ActEvent

// table decides every pair (verbs draft figures 7 to 11). Posts in Terminate and
// Closing are refused from the moment the state is entered (6.2.3, 6.2.5 leave
// that moment open), and in Error always (figure 10, second arm).
var table = [numStates][numTriggers]Transition{
	Idle: { // figure 7
		TrigPostSQ:            to(Idle, ActEnqueue), // RV-6.2.1-M2: not processed
		TrigPostRQ:            to(Idle, ActEnqueue),
		TrigModifyIdle:        to(Idle, ActModify),
		TrigModifyRTS:         to(RTS, ActStart),
		TrigModifyClosing:     refuse(Idle, wr.ErrInvalidState), // 6.2.1
		TrigModifyTerminate:   refuse(Idle, wr.ErrInvalidState), // 6.2.1
		TrigModifyError:       to(Error, ActFlush),              // 6.2.1.3
		TrigSegment:           to(Idle, ActIgnore),              // no LLP stream: cannot arrive
		TrigTerminateReceived: to(Idle, ActIgnore),
		TrigFault:             to(Error, ActFlush|ActEvent), // its own failure, figure 24
		TrigLLPFailure:        to(Idle, ActIgnore),
		TrigPeerClose:         to(Idle, ActIgnore),
		TrigPeerCloseBusy:     to(Idle, ActIgnore),
		TrigBusy:              to(Idle, ActIgnore),
		TrigClosed:            to(Idle, ActIgnore),
	},
	RTS: { // figure 8
		TrigPostSQ:            to(RTS, ActEnqueue),
		TrigPostRQ:            to(RTS, ActEnqueue),
		TrigModifyIdle:        refuse(RTS, wr.ErrInvalidState), // 6.2.2
		TrigModifyRTS:         to(RTS, ActModify),
		TrigModifyClosing:     to(Closing, ActClose|ActFlushRQ),
		TrigModifyTerminate:   to(Terminate, ActSendTerminate|ActClose|ActFlush),
		TrigModifyError:       to(Error, ActReset|ActFlush|ActRelease), // 6.2.2.4
		TrigSegment:           to(RTS, ActProcess),
		TrigTerminateReceived: to(Terminate, ActKeepTerminate|ActClose|ActFlush|ActEvent), // 6.2.2.3: none is sent back
		TrigFault:             to(Terminate, ActSendTerminate|ActClose|ActFlush|ActEvent),
		TrigLLPFailure:        to(Error, ending),
		TrigPeerClose:         to(Closing, ActClose|ActFlushRQ), // 6.2.2.2
		TrigPeerCloseBusy:     to(Terminate, ActSendTerminate|ActClose|ActFlush|ActEvent),
		TrigBusy:              to(RTS, ActIgnore), // work is what RTS is for
		TrigClosed:            to(RTS, ActIgnore),
	},
	Closing: { // figure 11
		TrigPostSQ:            refuse(Closing, wr.ErrInvalidState),
		TrigPostRQ:            refuse(Closing, wr.ErrInvalidState),
		TrigModifyIdle:        refuse(Closing, wr.ErrInvalidState), // 6.2.5: any Modify
		TrigModifyRTS:         refuse(Closing, wr.ErrInvalidState),
		TrigModifyClosing:     refuse(Closing, wr.ErrInvalidState),
		TrigModifyTerminate:   refuse(Closing, wr.ErrInvalidState),
		TrigModifyError:       refuse(Closing, wr.ErrInvalidState),
		TrigSegment:           to(Error, ending), // Bad Close
		TrigTerminateReceived: to(Error, ending),
		TrigFault:             to(Error, ending),
		TrigLLPFailure:        to(Error, ending),
		TrigPeerClose:         to(Closing, ActIgnore), // the close that is awaited
		TrigPeerCloseBusy:     to(Error, ending),
		TrigBusy:              to(Error, ending),
		TrigClosed:            to(Idle, ActRelease|ActEvent),
	},
	Terminate: { // figure 9
		TrigPostSQ:            refuse(Terminate, wr.ErrInvalidState),
		TrigPostRQ:            refuse(Terminate, wr.ErrInvalidState),
		TrigModifyIdle:        refuse(Terminate, wr.ErrInvalidState), // 6.2.3: any Modify
		TrigModifyRTS:         refuse(Terminate, wr.ErrInvalidState),
		TrigModifyClosing:     refuse(Terminate, wr.ErrInvalidState),
		TrigModifyTerminate:   refuse(Terminate, wr.ErrInvalidState),
		TrigModifyError:       refuse(Terminate, wr.ErrInvalidState),
		TrigSegment:           to(Terminate, ActIgnore),
		TrigTerminateReceived: to(Terminate, ActIgnore),
		TrigFault:             to(Terminate, ActIgnore), // the first error is the one reported
		TrigLLPFailure:        to(Error, ActReset|ActRelease|ActEvent),
		TrigPeerClose:         to(Terminate, ActIgnore),
		TrigPeerCloseBusy:     to(Terminate, ActIgnore),
		TrigBusy:              to(Terminate, ActIgnore),
		TrigClosed:            to(Error, ActRelease),
	},
	Error: { // figure 10
		TrigPostSQ:            refuse(Error, wr.ErrInvalidState),
		TrigPostRQ:            refuse(Error, wr.ErrInvalidState),
		TrigModifyIdle:        to(Idle, ActModify), // refused while flushing, see Modify
		TrigModifyRTS:         refuse(Error, wr.ErrInvalidState),
		TrigModifyClosing:     refuse(Error, wr.ErrInvalidState),
		TrigModifyTerminate:   refuse(Error, wr.ErrInvalidState),
		TrigModifyError:       refuse(Error, wr.ErrInvalidState), // 6.2.4: only Idle
		TrigSegment:           to(Error, ActIgnore),              // no LLP stream: cannot arrive
		TrigTerminateReceived: to(Error, ActIgnore),
		TrigFault:             to(Error, ActIgnore),
		TrigLLPFailure:        to(Error, ActIgnore),
		TrigPeerClose:         to(Error, ActIgnore),
		TrigPeerCloseBusy:     to(Error, ActIgnore),
		TrigBusy:              to(Error, ActIgnore),
		TrigClosed:            to(Error, ActIgnore),
	},
}

// Step is the state machine: a pure function of the table.
func Step(s State, t Trigger) Transition { return table[s][t] }

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
