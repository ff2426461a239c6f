package mpa

// depths are the Read depths of one side: IRD is how many Reads it lets the
// peer have outstanding, ORD how many it has outstanding itself.
type depths struct{ ird, ord int }

// answerDepths is the Responder's part of RFC 6581 9.1. own is what it is
// willing to have, reqIRD and reqORD stand in the Request. It returns the
// depths it uses and those it states in the Reply.
func answerDepths(own depths, reqIRD, reqORD uint16) (local depths, repIRD, repORD uint16) {
	local = own
	repIRD, repORD = NotNegotiated, NotNegotiated // R6581-9.1-M8, M10
	if reqORD != NotNegotiated {
		repIRD = uint16(own.ird)
	}
	if reqIRD != NotNegotiated {
		local.ord = min(own.ord, int(reqIRD)) // R6581-9.1-M2
		repORD = uint16(local.ord)
	}
	return local, repIRD, repORD
}

// settleDepths is the Initiator's part of RFC 6581 9.1, on an accepting Reply.
// It is not ok if the Responder's ORD needs more IRD than own has.
func settleDepths(own depths, repIRD, repORD uint16) (local depths, ok bool) {
	local = own
	if repIRD != NotNegotiated { // R6581-9.1-M9
		local.ord = min(own.ord, int(repIRD)) // R6581-9.1-M4
	}
	if repORD != NotNegotiated && int(repORD) > own.ird { // R6581-9.1-M11, M5
		return own, false
	}
	return local, true
}

// answerRTR returns the RTR messages that the Responder marks in the Reply to a
// peer-to-peer Request: those both have, else all its own (R6581-9.2-M5, M6).
func answerRTR(own, offered RTR) RTR {
	if shared := own & offered; shared != 0 {
		return shared
	}
	return own
}

// pickRTR returns the RTR message that the Initiator sends, 0 if there is none
// it can. A Write needs nothing of either side, a Read one place in both read
// queues, a Send a Receive, so they are preferred in this order; but if an answer
// is worth having, which a Read alone gets, that comes first.
func pickRTR(own, accepted RTR, ord int, answered bool) RTR {
	usable := own & accepted
	if ord == 0 {
		usable &^= RTRRead
	}
	if answered && usable&RTRRead != 0 {
		return RTRRead
	}
	for _, r := range [...]RTR{RTRWrite, RTRRead, RTRSend} {
		if usable&r != 0 {
			return r
		}
	}
	return 0
}

// stated is a depth as Stream and RejectedError give it.
func stated(depth uint16) int {
	if depth == NotNegotiated {
		return -1
	}
	return int(depth)
}
