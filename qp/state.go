package qp

import (
	"strings"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/names"
	"github.com/softrnic/softrnic/wr"
)

// How the states follow one another (verbs draft 6.2); numStates is how many there
// are.
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
const numStates = wr.StateError + 1

// trigger is what may happen to a queue pair.
type trigger uint8

// The triggers: verbs first, then what the wire and the LLP bring.
const (
	trigPostSQ trigger = iota
	trigPostRQ
	trigModifyIdle
	trigModifyRTS
	trigModifyClosing
	trigModifyTerminate
	trigModifyError
	// trigSegment is a valid inbound segment that is not a Terminate; while the
	// LLP stream closes, anything else that comes.
	trigSegment
	// trigTerminateReceived is an inbound Terminate Message.
	trigTerminateReceived
	// trigFault is an error that leaves the LLP stream, if there is one, able to
	// carry a Terminate Message.
	trigFault
	// trigLLPFailure is the loss or reset of the LLP stream, or its final
	// timeout: no Terminate Message can be sent.
	trigLLPFailure
	// trigPeerClose is the peer's LLP Close, before this side's, with the SQ and
	// the IRRQ empty.
	trigPeerClose
	// trigPeerCloseBusy is the same with work left in either.
	trigPeerCloseBusy
	// trigBusy finds work on the SQ or the IRRQ while closing.
	trigBusy
	// trigClosed is the end of the LLP Close: both sides have closed.
	trigClosed
	numTriggers
)

var triggerNames = [...]string{
	trigPostSQ: "PostSQ", trigPostRQ: "PostRQ",
	trigModifyIdle: "Modify QP -> Idle", trigModifyRTS: "Modify QP -> RTS",
	trigModifyClosing: "Modify QP -> Closing", trigModifyTerminate: "Modify QP -> Terminate",
	trigModifyError: "Modify QP -> Error", trigSegment: "segment arrives",
	trigTerminateReceived: "Terminate arrives", trigFault: "error, LLP usable",
	trigLLPFailure: "LLP failure", trigPeerClose: "peer closes, no work left",
	trigPeerCloseBusy: "peer closes, work left", trigBusy: "work found while closing",
	trigClosed: "LLP Close complete",
}

func (t trigger) String() string { return names.Of("Trigger", triggerNames[:], t) }

// action is a set of things to do on a transition.
type action uint16

// The actions.
const (
	// actEnqueue puts the work request on its queue.
	actEnqueue action = 1 << iota
	// actProcess handles the segment.
	actProcess
	// actModify changes attributes only.
	actModify
	// actStart resets the wire layers, ties the LLP stream to the queue pair
	// and starts iWARP.
	actStart
	// actSendTerminate sends a Terminate Message on a segment boundary.
	actSendTerminate
	// actKeepTerminate keeps the Terminate Message that arrived.
	actKeepTerminate
	// actClose begins an LLP Close.
	actClose
	// actReset resets the LLP stream.
	actReset
	// actFlushRQ completes what is on the Receive Queue as Flushed.
	actFlushRQ
	// actFlush completes what is on both queues as Flushed.
	actFlush
	// actRelease unties the LLP stream from the queue pair.
	actRelease
	// actEvent raises the asynchronous event that the cause has in the fault
	// table, if it has one.
	actEvent
	numActions = iota
)

var actionNames = [numActions]string{
	"enqueue", "process", "change attributes", "start iWARP", "send Terminate", "keep Terminate",
	"LLP Close", "LLP Reset", "flush RQ", "flush SQ and RQ", "release LLP stream", "raise event",
}

func (a action) String() string { return strings.Join(names.Set(actionNames[:], a), ", ") }

// transition is one cell of the table: what a trigger does in a state. If Err
// is set the trigger is refused with it, and nothing changes.
type transition struct {
	Next    wr.State
	Actions action
	Err     wr.ImmediateError
	// happens tells a cell with content from a pair that cannot happen.
	happens bool
}

func to(s wr.State, a action) transition { return transition{Next: s, Actions: a, happens: true} }

func refuse(err wr.ImmediateError) transition { return transition{Err: err, happens: true} }

// badEnd is what the ways out of Closing into Error do. The Receive Queue is
// flushed by then, and work on the Send Queue is one of these ways.
const badEnd = actReset | actRelease | actEvent

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
var table = [numStates][numTriggers]transition{
	wr.StateIdle: { // figure 7
		trigPostSQ:          to(wr.StateIdle, actEnqueue), // RV-6.2.1-M2: not processed
		trigPostRQ:          to(wr.StateIdle, actEnqueue),
		trigModifyIdle:      to(wr.StateIdle, actModify),
		trigModifyRTS:       to(wr.StateRTS, actStart),
		trigModifyClosing:   refuse(wr.ErrInvalidState),  // 6.2.1
		trigModifyTerminate: refuse(wr.ErrInvalidState),  // 6.2.1
		trigModifyError:     to(wr.StateError, actFlush), // 6.2.1.3
		trigFault:           to(wr.StateError, actFlush|actEvent),
	},
	wr.StateRTS: { // figure 8
		trigPostSQ:            to(wr.StateRTS, actEnqueue),
		trigPostRQ:            to(wr.StateRTS, actEnqueue),
		trigModifyIdle:        refuse(wr.ErrInvalidState), // 6.2.2
		trigModifyRTS:         to(wr.StateRTS, actModify),
		trigModifyClosing:     to(wr.StateClosing, actClose|actFlushRQ),
		trigModifyTerminate:   to(wr.StateTerminate, actSendTerminate|actClose|actFlush),
		trigModifyError:       to(wr.StateError, actReset|actFlush|actRelease), // 6.2.2.4
		trigSegment:           to(wr.StateRTS, actProcess),
		trigTerminateReceived: to(wr.StateTerminate, actKeepTerminate|actClose|actFlush|actEvent), // 6.2.2.3: none is sent back
		trigFault:             to(wr.StateTerminate, actSendTerminate|actClose|actFlush|actEvent),
		trigLLPFailure:        to(wr.StateError, actReset|actFlush|actRelease|actEvent),
		trigPeerClose:         to(wr.StateClosing, actClose|actFlushRQ), // 6.2.2.2
		trigPeerCloseBusy:     to(wr.StateTerminate, actSendTerminate|actClose|actFlush|actEvent),
	},
	wr.StateClosing: { // figure 11
		trigPostSQ:            refuse(wr.ErrInvalidState),
		trigPostRQ:            refuse(wr.ErrInvalidState),
		trigModifyIdle:        refuse(wr.ErrInvalidState), // 6.2.5: any Modify
		trigModifyRTS:         refuse(wr.ErrInvalidState),
		trigModifyClosing:     refuse(wr.ErrInvalidState),
		trigModifyTerminate:   refuse(wr.ErrInvalidState),
		trigModifyError:       refuse(wr.ErrInvalidState),
		trigSegment:           to(wr.StateError, badEnd),
		trigTerminateReceived: to(wr.StateError, badEnd|actKeepTerminate), // 6.2.5 lets it be kept
		trigFault:             to(wr.StateError, badEnd),
		trigLLPFailure:        to(wr.StateError, badEnd),
		trigBusy:              to(wr.StateError, badEnd|actFlush),
		trigClosed:            to(wr.StateIdle, actRelease|actEvent),
	},
	wr.StateTerminate: { // figure 9
		trigPostSQ:            refuse(wr.ErrInvalidState),
		trigPostRQ:            refuse(wr.ErrInvalidState),
		trigModifyIdle:        refuse(wr.ErrInvalidState), // 6.2.3: any Modify
		trigModifyRTS:         refuse(wr.ErrInvalidState),
		trigModifyClosing:     refuse(wr.ErrInvalidState),
		trigModifyTerminate:   refuse(wr.ErrInvalidState),
		trigModifyError:       refuse(wr.ErrInvalidState),
		trigSegment:           to(wr.StateTerminate, 0),
		trigTerminateReceived: to(wr.StateTerminate, 0), // the two have crossed
		trigFault:             to(wr.StateTerminate, 0), // the first error is the one reported
		trigLLPFailure:        to(wr.StateError, actReset|actRelease|actEvent),
		trigClosed:            to(wr.StateError, actRelease),
	},
	wr.StateError: { // figure 10
		trigPostSQ:          refuse(wr.ErrInvalidState),
		trigPostRQ:          refuse(wr.ErrInvalidState),
		trigModifyIdle:      to(wr.StateIdle, 0), // refused while flushing, see Modify
		trigModifyRTS:       refuse(wr.ErrInvalidState),
		trigModifyClosing:   refuse(wr.ErrInvalidState),
		trigModifyTerminate: refuse(wr.ErrInvalidState),
		trigModifyError:     refuse(wr.ErrInvalidState), // 6.2.4: only Idle
		trigFault:           to(wr.StateError, 0),
	},
}

// happens reports whether a trigger can meet a queue pair in a state.
func happens(s wr.State, t trigger) bool { return table[s][t].happens }

// step is the state machine: a pure function of the table. A pair that cannot
// happen is a bug of the caller's, and panics.
func step(s wr.State, t trigger) transition {
	if !happens(s, t) {
		panic("qp: " + t.String() + " cannot happen in state " + s.String())
	}
	return table[s][t]
}

// stateWord is the state of a queue pair, which any goroutine may ask for.
type stateWord struct{ word atomic.Uint32 }

func (w *stateWord) load() wr.State { return wr.State(w.word.Load()) }

func (w *stateWord) store(s wr.State) { w.word.Store(uint32(s)) }
