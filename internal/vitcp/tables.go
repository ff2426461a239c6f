package vitcp

// What a table does not have is refused: the consumer may not, or it cannot come to pass.

func to(s state, a action) cell { return cell{next: s, actions: a, moves: true} }

// end is the way out of everything: the VI connection and the TCP connection end
// together (VT-2.2.2.2.2-M1, VT-2.2.2.2.2-M2).
var end = to(stateDisconnected, actCloseTCP)

// connected is the state that both figures end in. Establishment is over: its
// segments have no place in the stream, and its attributes are settled.
var connected = [numTriggers]cell{
	trigVipDisconnect: end,
	trigTCPClosed:     end,
	trigRequest:       end,
	trigAccept:        end,
	trigReject:        end,
	trigNoMatch:       end,
	trigViolation:     end,
}

// activeMachine is figure 4.2. Of its own it adds what a figure leaves out: a timeout
// or VipDisconnect while TCP is being set up, and what a broken peer may send.
var activeMachine = &machine{
	name:   "active",
	states: []state{stateDisconnected, stateConnecting, statePendingAccept, stateConnected},
	table: map[state]*[numTriggers]cell{
		stateDisconnected: {
			trigVipRequest: to(stateConnecting, actSetupTCP),
		},
		// A second VipConnectRequest is refused (VI Architecture 5), and TCP's setup is one step that fails or succeeds (2.2.2.2.2).
		stateConnecting: {
			trigVipDisconnect: end, // VI Architecture 5.2
			trigTCPUp:         to(statePendingAccept, actSendRequest),
			trigTCPFailed:     to(stateDisconnected, 0),
			trigTimeout:       end,
		},
		statePendingAccept: {
			trigVipDisconnect: end,
			trigTCPClosed:     to(stateConnecting, actCloseTCP|actSetupTCP),
			trigRequest:       end, // both ends believe that they are the active one
			trigAccept:        to(stateConnected, 0),
			trigReject:        end,
			trigNoMatch:       end,
			trigViolation:     end,
			trigMisfit:        end, // VT-3.3-M1, VT-3.3-M2
			trigTimeout:       end,
		},
		stateConnected: &connected,
	},
}

// passiveMachine is figure 4.3, for one TCP connection.
var passiveMachine = &machine{
	name:   "passive",
	states: []state{stateListening, stateIncoming, stateMatching, statePendingAccept, stateConnected, stateDisconnected},
	table: map[state]*[numTriggers]cell{
		stateListening: { // VT-2.2.2.2.2-M3: TCP before VipConnectAccept
			trigTCPUp: to(stateIncoming, 0),
		},
		stateIncoming: {
			trigVipDisconnect: end,
			trigTCPClosed:     end,
			trigRequest:       to(stateMatching, actSearch),
			trigAccept:        end,
			trigReject:        end,
			trigNoMatch:       end,
			trigViolation:     end,
			trigTimeout:       end,
		},
		stateMatching: {
			trigVipDisconnect: end,
			trigTCPClosed:     end,
			trigViolation:     end,
			trigMisfit:        to(stateDisconnected, actSendReject|actCloseTCP), // VT-2.2.2.2.2-M4: no VI could accept it
			trigFound:         to(statePendingAccept, actOffer),
			trigNotFound:      to(stateDisconnected, actSendNoMatch|actCloseTCP),
			trigTimeout:       end,
		},
		statePendingAccept: {
			trigVipAccept:     to(stateConnected, actSendAccept),
			trigVipReject:     to(stateDisconnected, actSendReject|actCloseTCP),
			trigVipDisconnect: end,
			trigTCPClosed:     end,
			trigViolation:     end,                       // whatever comes before the answer is one
			trigMisfit:        to(statePendingAccept, 0), // the request stands (VI Architecture 4.1)
			trigTimeout:       end,
		},
		stateConnected: &connected,
	},
}
