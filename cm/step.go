package cm

import (
	"strconv"

	"github.com/softrnic/softrnic/mpa"
)

// Doing is what a side was called for that did not get its connection.
type Doing uint8

// What it can be.
const (
	Dialing   Doing = iota + 1 // Dial, Connect
	Awaiting                   // a peer's Request: Await, or a Listener
	Accepting                  // Request.Accept
)

func (d Doing) String() string { return named(d, "connect to", "connection from", "accept") }

// Step is a step of connecting.
type Step uint8

// The steps, in order.
const (
	StepConfig Step = iota + 1
	StepTCP
	StepWriteRequest
	StepReadRequest
	StepBacklog // the Request waits for Accept
	StepWriteReply
	StepReadReply
	StepQP
)

func (s Step) String() string {
	return named(s, "the configuration", "the TCP connection", "writing the MPA Request", "reading the MPA Request",
		"waiting for Accept", "writing the MPA Reply", "reading the MPA Reply", "the queue pair")
}

// steps are the steps of MPA's startup. The Terminate Message answers the Reply.
var steps = [...]Step{
	mpa.StepWriteRequest: StepWriteRequest, mpa.StepReadRequest: StepReadRequest, mpa.StepWriteReply: StepWriteReply,
	mpa.StepReadReply: StepReadReply, mpa.StepWriteTerminate: StepReadReply,
}

// Cause is what kept a connection from coming about.
type Cause uint8

// The causes.
const (
	CauseRejected     Cause = iota + 1 // by the peer's program
	CauseIncompatible                  // the peer is none this side can talk to
	CauseTimeout
	CauseCanceled    // by this side's program: its context ended, or the Listener was shut down
	CauseUnreachable // TCP: nothing listens there, or there is no way
	CauseClosed      // by the peer
	CauseReset       // by the peer
	CauseLost        // TCP failed otherwise
	CauseCrowded     // the Listener gave it up for others: ErrCrowded
	CauseLocal       // this side's configuration, queue pair or RNIC
)

func (c Cause) String() string {
	return named(c, "rejected", "incompatible", "timeout", "canceled", "unreachable", "closed", "reset", "lost", "crowded", "local")
}

// named is the name of a constant, which count from 1.
func named[T ~uint8](v T, names ...string) string {
	if v >= 1 && int(v) <= len(names) {
		return names[v-1]
	}
	return strconv.Itoa(int(v))
}
