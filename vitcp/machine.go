package vitcp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// State is a state of connection establishment (section 4).
type State uint8

// The states. The active machine (figure 4.2) has Disconnected, Connecting,
// PendingAccept and Connected; the passive one (figure 4.3) begins in Listening
// for each connection that comes in, and has no Connecting.
const (
	Disconnected State = iota
	Connecting
	Listening
	Incoming
	Matching
	PendingAccept
	Connected
	numStates
)

var stateNames = [...]string{
	Disconnected: "Disconnected", Connecting: "Connecting", Listening: "Listening", Incoming: "Incoming",
	Matching: "Matching", PendingAccept: "Pending Accept", Connected: "Connected",
}

func (s State) String() string {
	if s < numStates {
		return stateNames[s]
	}
	return "State(" + strconv.Itoa(int(s)) + ")"
}

// Trigger is what may happen to a connection.
type Trigger uint8

// The events: of the VI Consumer, of TCP, of the peer's segments, of the lookup
// of a discriminator, and of time.
const (
	// TrigVipRequest is VipConnectRequest.
	TrigVipRequest Trigger = iota
	// TrigVipAccept is VipConnectAccept with attributes that fit.
	TrigVipAccept
	TrigVipReject
	// TrigVipDisconnect is VipDisconnect, or the Listener's close.
	TrigVipDisconnect
	// TrigTCPUp is a TCP connection: established, or come in and accepted.
	TrigTCPUp
	TrigTCPFailed
	TrigTCPClosed
	// TrigRequest to TrigNoMatch are well-formed segments.
	TrigRequest
	TrigAccept
	TrigReject
	TrigNoMatch
	// TrigViolation is any other segment, or a malformed one.
	TrigViolation
	// TrigMisfit is a segment, or a VipConnectAccept, with attributes that
	// cannot be agreed to.
	TrigMisfit
	// TrigFound and TrigNotFound end the search for a discriminator.
	TrigFound
	TrigNotFound
	TrigTimeout
	numTriggers
)

var triggerNames = [...]string{
	TrigVipRequest: "VipConnectRequest", TrigVipAccept: "VipConnectAccept", TrigVipReject: "VipConnectReject",
	TrigVipDisconnect: "VipDisconnect", TrigTCPUp: "TCP connected", TrigTCPFailed: "TCP setup fails",
	TrigTCPClosed: "TCP closes", TrigRequest: "ConnectRequest", TrigAccept: "ConnectAccept",
	TrigReject: "ConnectReject", TrigNoMatch: "ConnectNoMatch", TrigViolation: "protocol violation",
	TrigMisfit: "attributes do not fit", TrigFound: "discriminator match",
	TrigNotFound: "no matching discriminator", TrigTimeout: "timeout",
}

func (e Trigger) String() string {
	if e < numTriggers {
		return triggerNames[e]
	}
	return "Trigger(" + strconv.Itoa(int(e)) + ")"
}

// Action is a set of things to do on a transition.
type Action uint8

// The actions, in the order in which they are done.
const (
	// ActSearch looks for who waits for the called discriminator.
	ActSearch Action = 1 << iota
	// ActOffer hands the request to who waits for it.
	ActOffer
	ActSendRequest
	ActSendAccept
	ActSendReject
	ActSendNoMatch
	ActCloseTCP
	// ActSetupTCP sets a TCP connection up, possibly another one.
	ActSetupTCP
	numActions = iota
)

var actionNames = [...]string{
	"search", "offer", "ConnectRequest", "ConnectAccept", "ConnectReject", "ConnectNoMatch", "close TCP", "set up TCP",
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

// ErrRefused is wrapped by Machine.Step for an event that the state refuses.
var ErrRefused = errors.New("vitcp: refused")

// Machine is one of the two machines of section 4: a pure function of its table.
type Machine struct {
	name   string
	states []State // in the order of its figure
	table  map[State]*[numTriggers]cell
}

// cell is what an event does in a state; the zero cell is missing.
type cell struct {
	next    State
	actions Action
	kind    cellKind
}

type cellKind uint8

const (
	missing cellKind = iota
	moves
	refuses
)

func (m *Machine) String() string { return m.name }

// States lists the machine's states.
func (m *Machine) States() []State { return append([]State(nil), m.states...) }

// Triggers lists the triggers.
func Triggers() []Trigger {
	all := make([]Trigger, numTriggers)
	for i := range all {
		all[i] = Trigger(i)
	}
	return all
}

// Step returns what an event does in a state. The error wraps ErrRefused if
// the event cannot be used, or cannot be, in that state: nothing changes then.
func (m *Machine) Step(s State, e Trigger) (State, Action, error) {
	row, ok := m.table[s]
	if !ok || e >= numTriggers || row[e].kind != moves {
		return s, 0, fmt.Errorf("%w: %v in state %v of the %v machine", ErrRefused, e, s, m.name)
	}
	return row[e].next, row[e].actions, nil
}

// progress is a connection's place in a machine. Whoever runs the connection's
// establishment owns it.
type progress struct {
	machine *Machine
	state   State
}

// on takes an event that the runner knows to be possible.
func (p *progress) on(e Trigger) Action {
	next, actions, err := p.machine.Step(p.state, e)
	if err != nil {
		panic(err)
	}
	p.state = next
	return actions
}
