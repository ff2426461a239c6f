package vitcp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/internal/names"
)

// state is a state of connection establishment (section 4).
type state uint8

// The states. The active machine (figure 4.2) has Disconnected, Connecting,
// PendingAccept and Connected; the passive one (figure 4.3) begins in Listening
// for each connection that comes in, and has no Connecting.
const (
	stateDisconnected state = iota
	stateConnecting
	stateListening
	stateIncoming
	stateMatching
	statePendingAccept
	stateConnected
	numStates
)

var stateNames = [numStates]string{
	stateDisconnected: "Disconnected", stateConnecting: "Connecting", stateListening: "Listening", stateIncoming: "Incoming",
	stateMatching: "Matching", statePendingAccept: "Pending Accept", stateConnected: "Connected",
}

func (s state) String() string { return names.Of("State", stateNames[:], s) }

// trigger is what may happen to a connection.
type trigger uint8

// The events: of the VI Consumer, of TCP, of the peer's segments, of the lookup
// of a discriminator, and of time.
const (
	// trigVipRequest is VipConnectRequest.
	trigVipRequest trigger = iota
	// trigVipAccept is VipConnectAccept with attributes that fit.
	trigVipAccept
	trigVipReject
	// trigVipDisconnect is VipDisconnect, or the Listener's close.
	trigVipDisconnect
	// trigTCPUp is a TCP connection: established, or come in and accepted.
	trigTCPUp
	trigTCPFailed
	trigTCPClosed
	// trigRequest to trigNoMatch are well-formed segments.
	trigRequest
	trigAccept
	trigReject
	trigNoMatch
	// trigViolation is any other segment, or a malformed one.
	trigViolation
	// trigMisfit is a segment, or a VipConnectAccept, with attributes that
	// cannot be agreed to.
	trigMisfit
	// trigFound and trigNotFound end the search for a discriminator.
	trigFound
	trigNotFound
	trigTimeout
	numTriggers
)

var triggerNames = [...]string{
	trigVipRequest: "VipConnectRequest", trigVipAccept: "VipConnectAccept", trigVipReject: "VipConnectReject",
	trigVipDisconnect: "VipDisconnect", trigTCPUp: "TCP connected", trigTCPFailed: "TCP setup fails",
	trigTCPClosed: "TCP closes", trigRequest: "ConnectRequest", trigAccept: "ConnectAccept",
	trigReject: "ConnectReject", trigNoMatch: "ConnectNoMatch", trigViolation: "protocol violation",
	trigMisfit: "attributes do not fit", trigFound: "discriminator match",
	trigNotFound: "no matching discriminator", trigTimeout: "timeout",
}

func (e trigger) String() string { return names.Of("Trigger", triggerNames[:], e) }

// action is a set of things to do on a transition.
type action uint8

// The actions, in the order in which they are done.
const (
	// actSearch looks for a waiter for the called discriminator.
	actSearch action = 1 << iota
	// actOffer hands the request to the waiter.
	actOffer
	actSendRequest
	actSendAccept
	actSendReject
	actSendNoMatch
	actCloseTCP
	// actSetupTCP sets a TCP connection up, possibly another one.
	actSetupTCP
	numActions = iota
)

var actionNames = [numActions]string{
	"search", "offer", "ConnectRequest", "ConnectAccept", "ConnectReject", "ConnectNoMatch", "close TCP", "set up TCP",
}

func (a action) String() string { return strings.Join(names.Set(actionNames[:], a), ", ") }

// errRefused is wrapped by machine.step for an event that the state refuses.
var errRefused = errors.New("vitcp: refused")

// machine is one of the two machines of section 4: a pure function of its table.
type machine struct {
	name   string
	states []state // in the order of its figure
	table  map[state]*[numTriggers]cell
}

// cell is what an event does in a state. The zero cell refuses it.
type cell struct {
	next    state
	actions action
	moves   bool
}

func (m *machine) String() string { return m.name }

// step returns what an event does in a state. The error wraps errRefused if
// the event cannot be used, or cannot be, in that state: nothing changes then.
func (m *machine) step(s state, e trigger) (state, action, error) {
	row, ok := m.table[s]
	if !ok || e >= numTriggers || !row[e].moves {
		return s, 0, fmt.Errorf("%w: %v in state %v of the %v machine", errRefused, e, s, m.name)
	}
	return row[e].next, row[e].actions, nil
}

// progress is a connection's place in a machine. Whoever runs the connection's
// establishment owns it.
type progress struct {
	machine *machine
	state   state
}

// on takes an event that the runner knows to be possible.
func (p *progress) on(e trigger) action {
	next, actions, err := p.machine.step(p.state, e)
	if err != nil {
		panic(err)
	}
	p.state = next
	return actions
}
