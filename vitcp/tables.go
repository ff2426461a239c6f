package vitcp

func to(s State, a Action) cell { return cell{next: s, actions: a, kind: moves} }

// no is a pair that is refused: the consumer may not, or it cannot come to pass.
var no = cell{kind: refuses}

// end is the way out of everything: the VI connection and the TCP connection end
// together (VT-2.2.2.2.2-M1, VT-2.2.2.2.2-M2).
var end = to(Disconnected, ActCloseTCP)

// connected is the state that both figures end in. Establishment is over: its
// segments have no place in the stream, and its attributes are settled.
var connected = [numTriggers]cell{
	TrigVipRequest:    no,
	TrigVipAccept:     no,
	TrigVipReject:     no,
	TrigVipDisconnect: end,
	TrigTCPUp:         no,
	TrigTCPFailed:     no,
	TrigTCPClosed:     end,
	TrigRequest:       end,
	TrigAccept:        end,
	TrigReject:        end,
	TrigNoMatch:       end,
	TrigViolation:     end,
	TrigMisfit:        no,
	TrigFound:         no,
	TrigNotFound:      no,
	TrigTimeout:       no,
}

// Active is figure 4.2. Of its own it adds what a figure leaves out: a timeout
// or VipDisconnect while TCP is being set up, and what a broken peer may send.
var Active = &Machine{
	name:   "active",
	states: []State{Disconnected, Connecting, PendingAccept, Connected},
	table: map[State]*[numTriggers]cell{
		Disconnected: {
			TrigVipRequest:    to(Connecting, ActSetupTCP),
			TrigVipAccept:     no,
			TrigVipReject:     no,
			TrigVipDisconnect: no,
			TrigTCPUp:         no,
			TrigTCPFailed:     no,
			TrigTCPClosed:     no,
			TrigRequest:       no,
			TrigAccept:        no,
			TrigReject:        no,
			TrigNoMatch:       no,
			TrigViolation:     no,
			TrigMisfit:        no,
			TrigFound:         no,
			TrigNotFound:      no,
			TrigTimeout:       no,
		},
		Connecting: {
			TrigVipRequest:    no, // VI Architecture 5
			TrigVipAccept:     no,
			TrigVipReject:     no,
			TrigVipDisconnect: end, // VI Architecture 5.2
			TrigTCPUp:         to(PendingAccept, ActSendRequest),
			TrigTCPFailed:     to(Disconnected, 0),
			TrigTCPClosed:     no, // setup is one step that fails or succeeds (2.2.2.2.2)
			TrigRequest:       no,
			TrigAccept:        no,
			TrigReject:        no,
			TrigNoMatch:       no,
			TrigViolation:     no,
			TrigMisfit:        no,
			TrigFound:         no,
			TrigNotFound:      no,
			TrigTimeout:       end,
		},
		PendingAccept: {
			TrigVipRequest:    no,
			TrigVipAccept:     no,
			TrigVipReject:     no,
			TrigVipDisconnect: end,
			TrigTCPUp:         no,
			TrigTCPFailed:     no,
			TrigTCPClosed:     to(Connecting, ActCloseTCP|ActSetupTCP),
			TrigRequest:       end, // both ends believe that they are the active one
			TrigAccept:        to(Connected, 0),
			TrigReject:        end,
			TrigNoMatch:       end,
			TrigViolation:     end,
			TrigMisfit:        end, // VT-3.3-M1, VT-3.3-M2
			TrigFound:         no,
			TrigNotFound:      no,
			TrigTimeout:       end,
		},
		Connected: &connected,
	},
}

// Passive is figure 4.3, for one TCP connection.
var Passive = &Machine{
	name:   "passive",
	states: []State{Listening, Incoming, Matching, PendingAccept, Connected, Disconnected},
	table: map[State]*[numTriggers]cell{
		Listening: {
			TrigVipRequest:    no,
			TrigVipAccept:     no, // VT-2.2.2.2.2-M3: TCP first
			TrigVipReject:     no,
			TrigVipDisconnect: no,
			TrigTCPUp:         to(Incoming, 0),
			TrigTCPFailed:     no,
			TrigTCPClosed:     no,
			TrigRequest:       no,
			TrigAccept:        no,
			TrigReject:        no,
			TrigNoMatch:       no,
			TrigViolation:     no,
			TrigMisfit:        no,
			TrigFound:         no,
			TrigNotFound:      no,
			TrigTimeout:       no,
		},
		Incoming: {
			TrigVipRequest:    no,
			TrigVipAccept:     no,
			TrigVipReject:     no,
			TrigVipDisconnect: end,
			TrigTCPUp:         no,
			TrigTCPFailed:     no,
			TrigTCPClosed:     end,
			TrigRequest:       to(Matching, ActSearch),
			TrigAccept:        end,
			TrigReject:        end,
			TrigNoMatch:       end,
			TrigViolation:     end,
			TrigMisfit:        no, // attributes are looked at in Matching
			TrigFound:         no,
			TrigNotFound:      no,
			TrigTimeout:       end,
		},
		Matching: {
			TrigVipRequest:    no,
			TrigVipAccept:     no,
			TrigVipReject:     no,
			TrigVipDisconnect: end,
			TrigTCPUp:         no,
			TrigTCPFailed:     no,
			TrigTCPClosed:     end,
			TrigRequest:       no, // whatever comes before the answer is a violation
			TrigAccept:        no,
			TrigReject:        no,
			TrigNoMatch:       no,
			TrigViolation:     end,
			TrigMisfit:        to(Disconnected, ActSendReject|ActCloseTCP), // VT-2.2.2.2.2-M4: no VI could accept it
			TrigFound:         to(PendingAccept, ActOffer),
			TrigNotFound:      to(Disconnected, ActSendNoMatch|ActCloseTCP),
			TrigTimeout:       end,
		},
		PendingAccept: {
			TrigVipRequest:    no,
			TrigVipAccept:     to(Connected, ActSendAccept),
			TrigVipReject:     to(Disconnected, ActSendReject|ActCloseTCP),
			TrigVipDisconnect: end,
			TrigTCPUp:         no,
			TrigTCPFailed:     no,
			TrigTCPClosed:     end,
			TrigRequest:       no,
			TrigAccept:        no,
			TrigReject:        no,
			TrigNoMatch:       no,
			TrigViolation:     end,
			TrigMisfit:        to(PendingAccept, 0), // the request stands (VI Architecture 4.1)
			TrigFound:         no,
			TrigNotFound:      no,
			TrigTimeout:       end,
		},
		Connected: &connected,
		Disconnected: {
			TrigVipRequest:    no,
			TrigVipAccept:     no,
			TrigVipReject:     no,
			TrigVipDisconnect: no,
			TrigTCPUp:         no,
			TrigTCPFailed:     no,
			TrigTCPClosed:     no,
			TrigRequest:       no,
			TrigAccept:        no,
			TrigReject:        no,
			TrigNoMatch:       no,
			TrigViolation:     no,
			TrigMisfit:        no,
			TrigFound:         no,
			TrigNotFound:      no,
			TrigTimeout:       no,
		},
	},
}
