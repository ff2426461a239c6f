package wr

// State is the state of a Queue Pair (verbs draft 6.2).
type State uint8

// The five states.
const (
	// StateIdle: without a stream; requests can be posted and wait.
	StateIdle State = iota
	// StateRTS: a stream runs, requests are processed.
	StateRTS
	// StateClosing: the stream is being closed in order. It leads to StateIdle,
	// or to StateError if something comes in between.
	StateClosing
	// StateTerminate: an error ended the stream, which is being closed. It leads
	// to StateError.
	StateTerminate
	// StateError: the stream is gone, what was posted has completed as flushed.
	// Only a Modify to StateIdle leads on.
	StateError
	stateEnd
)

var stateNames = [...]string{
	StateIdle: "Idle", StateRTS: "RTS", StateClosing: "Closing", StateTerminate: "Terminate", StateError: "Error",
}

func (s State) String() string { return name(stateNames[:], int(s), "State") }

// NotifyType says which completion a notification of a Completion Queue waits
// for (verbs draft 9.3.2.2).
type NotifyType uint8

// The notification types.
const (
	// NotifyNext: the next completion.
	NotifyNext NotifyType = iota + 1
	// NotifySolicited: the next that a Solicited Event of the peer asks for, or
	// that is an error.
	NotifySolicited
	notifyEnd
)

var notifyNames = [...]string{NotifyNext: "next", NotifySolicited: "solicited"}

func (t NotifyType) String() string { return name(notifyNames[:], int(t), "NotifyType") }
