package vitcp

func to(s state, a action) cell { return cell{next: s, actions: a, kind: moves} }

// no is a pair that is refused: the consumer may not, or it cannot come to pass.
var no = cell{kind: refuses}

// end is the way out of everything: the VI connection and the TCP connection end
// together (VT-2.2.2.2.2-M1, VT-2.2.2.2.2-M2).
var end = to(stateDisconnected, actCloseTCP)

// connected is the state that both figures end in. Establishment is over: its
// segments have no place in the stream, and its attributes are settled.
var connected = [numTriggers]cell{
	trigVipRequest:    no,
	trigVipAccept:     no,
	trigVipReject:     no,
	trigVipDisconnect: end,
	trigTCPUp:         no,
	trigTCPFailed:     no,
	trigTCPClosed:     end,
	trigRequest:       end,
	trigAccept:        end,
	trigReject:        end,
	trigNoMatch:       end,
	trigViolation:     end,
	trigMisfit:        no,
	trigFound:         no,
	trigNotFound:      no,
	trigTimeout:       no,
}

// activeMachine is figure 4.2. Of its own it adds what a figure leaves out: a timeout
// or VipDisconnect while TCP is being set up, and what a broken peer may send.
var activeMachine = &machine{
	name:   "active",
	states: []state{stateDisconnected, stateConnecting, statePendingAccept, stateConnected},
	table: map[state]*[numTriggers]cell{
		stateDisconnected: {
			trigVipRequest:    to(stateConnecting, actSetupTCP),
			trigVipAccept:     no,
			trigVipReject:     no,
			trigVipDisconnect: no,
			trigTCPUp:         no,
			trigTCPFailed:     no,
			trigTCPClosed:     no,
			trigRequest:       no,
			trigAccept:        no,
			trigReject:        no,
			trigNoMatch:       no,
			trigViolation:     no,
			trigMisfit:        no,
			trigFound:         no,
			trigNotFound:      no,
			trigTimeout:       no,
		},
		stateConnecting: {
			trigVipRequest:    no, // VI Architecture 5
			trigVipAccept:     no,
			trigVipReject:     no,
			trigVipDisconnect: end, // VI Architecture 5.2
			trigTCPUp:         to(statePendingAccept, actSendRequest),
			trigTCPFailed:     to(stateDisconnected, 0),
			trigTCPClosed:     no, // setup is one step that fails or succeeds (2.2.2.2.2)
			trigRequest:       no,
			trigAccept:        no,
			trigReject:        no,
			trigNoMatch:       no,
			trigViolation:     no,
			trigMisfit:        no,
			trigFound:         no,
			trigNotFound:      no,
			trigTimeout:       end,
		},
		statePendingAccept: {
			trigVipRequest:    no,
			trigVipAccept:     no,
			trigVipReject:     no,
			trigVipDisconnect: end,
			trigTCPUp:         no,
			trigTCPFailed:     no,
			trigTCPClosed:     to(stateConnecting, actCloseTCP|actSetupTCP),
			trigRequest:       end, // both ends believe that they are the active one
			trigAccept:        to(stateConnected, 0),
			trigReject:        end,
			trigNoMatch:       end,
			trigViolation:     end,
			trigMisfit:        end, // VT-3.3-M1, VT-3.3-M2
			trigFound:         no,
			trigNotFound:      no,
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
		stateListening: {
			trigVipRequest:    no,
			trigVipAccept:     no, // VT-2.2.2.2.2-M3: TCP first
			trigVipReject:     no,
			trigVipDisconnect: no,
			trigTCPUp:         to(stateIncoming, 0),
			trigTCPFailed:     no,
			trigTCPClosed:     no,
			trigRequest:       no,
			trigAccept:        no,
			trigReject:        no,
			trigNoMatch:       no,
			trigViolation:     no,
			trigMisfit:        no,
			trigFound:         no,
			trigNotFound:      no,
			trigTimeout:       no,
		},
		stateIncoming: {
			trigVipRequest:    no,
			trigVipAccept:     no,
			trigVipReject:     no,
			trigVipDisconnect: end,
			trigTCPUp:         no,
			trigTCPFailed:     no,
			trigTCPClosed:     end,
			trigRequest:       to(stateMatching, actSearch),
			trigAccept:        end,
			trigReject:        end,
			trigNoMatch:       end,
			trigViolation:     end,
			trigMisfit:        no, // attributes are looked at in Matching
			trigFound:         no,
			trigNotFound:      no,
			trigTimeout:       end,
		},
		stateMatching: {
			trigVipRequest:    no,
			trigVipAccept:     no,
			trigVipReject:     no,
			trigVipDisconnect: end,
			trigTCPUp:         no,
			trigTCPFailed:     no,
			trigTCPClosed:     end,
			trigRequest:       no, // whatever comes before the answer is a violation
			trigAccept:        no,
			trigReject:        no,
			trigNoMatch:       no,
			trigViolation:     end,
			trigMisfit:        to(stateDisconnected, actSendReject|actCloseTCP), // VT-2.2.2.2.2-M4: no VI could accept it
			trigFound:         to(statePendingAccept, actOffer),
			trigNotFound:      to(stateDisconnected, actSendNoMatch|actCloseTCP),
			trigTimeout:       end,
		},
		statePendingAccept: {
			trigVipRequest:    no,
			trigVipAccept:     to(stateConnected, actSendAccept),
			trigVipReject:     to(stateDisconnected, actSendReject|actCloseTCP),
			trigVipDisconnect: end,
			trigTCPUp:         no,
			trigTCPFailed:     no,
			trigTCPClosed:     end,
			trigRequest:       no,
			trigAccept:        no,
			trigReject:        no,
			trigNoMatch:       no,
			trigViolation:     end,
			trigMisfit:        to(statePendingAccept, 0), // the request stands (VI Architecture 4.1)
			trigFound:         no,
			trigNotFound:      no,
			trigTimeout:       end,
		},
		stateConnected: &connected,
		stateDisconnected: {
			trigVipRequest:    no,
			trigVipAccept:     no,
			trigVipReject:     no,
			trigVipDisconnect: no,
			trigTCPUp:         no,
			trigTCPFailed:     no,
			trigTCPClosed:     no,
			trigRequest:       no,
			trigAccept:        no,
			trigReject:        no,
			trigNoMatch:       no,
			trigViolation:     no,
			trigMisfit:        no,
			trigFound:         no,
			trigNotFound:      no,
			trigTimeout:       no,
		},
	},
}
