// Package verbsinternal is how other packages of this module reach what package verbs keeps from programs: package cm reports its
// steps, the conformance suite begins streams late, the devices of C programs wait in their own way. Package verbs sets
// each function when it is initialised; no program can reach them.
package verbsinternal

import (
	"context"
	"time"

	"github.com/softrnic/softrnic/wr"
)

// The objects are those of package verbs, which imports this one: each interface has one implementer there.
type (
	// RNIC is a *verbs.RNIC.
	RNIC interface {
		SetEventHandler(h func(wr.Event)) error
	}
	// QP is a *verbs.QP.
	QP interface {
		PostSend(requests ...wr.Request) (int, error)
	}
	// CQ is a *verbs.CQ.
	CQ interface {
		WaitOne(ctx context.Context) (wr.Completion, error)
	}
	// LLPStream is a *verbs.LLPStream.
	LLPStream interface {
		Drain(ctx context.Context) error
	}
	// MW is a *verbs.MW.
	MW interface {
		STag(key uint8) wr.STag
	}
	// SRQ is a *verbs.SRQ.
	SRQ interface {
		Stats() wr.SRQStats
	}
)

// For package cm.

// Attempt is how an attempt to connect has failed.
type Attempt uint8

// The attempts.
const (
	Refused Attempt = iota // by the peer's program
	Failed                 // for anything else
)

var (
	// Step records in the RNIC's trace, if it has one, a step of connecting and its error.
	Step func(q QP, step string, err error)
	// CountAttempt counts a failed attempt among those of the RNIC.
	CountAttempt func(q QP, a Attempt)
	// WhenOver calls f once, when the stream is over, or at once if it is. It is for one caller a stream; f does not
	// block.
	WhenOver func(s LLPStream, f func())
)

// For the conformance suite.

// Counts are what a stream has carried, each way.
type Counts struct {
	// Sends and Reads are messages of queue 0 and of queue 1: the next MSN is one
	// more, modulo 2^32.
	Sends, Reads uint32
	// Octets are those of the FPDU stream, markers included. An FPDU begins behind them.
	Octets uint64
}

// Begin has the streams of the queue pairs that the RNIC creates from here on begin as if they had carried c: counters
// wrap where no test gets by sending.
var Begin func(r RNIC, c Counts)

// Link is the state of an RNIC's port: fault.Link.
type Link struct {
	Down  bool
	Rate  int64 // octets a second, each way; 0: as fast as it goes
	Delay time.Duration
	Loss  float64
}

// Heard is what TCP knows of a peer: tcpsock.Heard.
type Heard struct {
	Owes    bool // something is not acknowledged
	Tries   int  // since anything has come that acknowledges
	Answers uint64
	Closed  bool // the peer has, maybe behind octets that nobody has read
}

// For package fault: see fault.Provoke, fault.SetLink.
var (
	// SetLink has the streams of the RNIC fare so from now on.
	SetLink func(r RNIC, l Link)
	// LinkOf is what SetLink has said last.
	LinkOf func(r RNIC) Link
	// TellFault records in the trace of the RNIC, and counts by its kind, that a fault has struck.
	TellFault func(r RNIC, kind, what string)
	FailRNIC  func(r RNIC)
	FailQP    func(q QP)
	FailCQ    func(c CQ)
	FailSRQ   func(s SRQ)
)

// For the devices of C programs.
var (
	// MayVanish has the RNIC expect that Memory of its regions is unmapped, or made read-only, while it is registered. An
	// access to such a page ends as an access violation of that operation; without MayVanish, it ends the process.
	// Payload is always copied. It holds for regions that are registered from here on. What is mapped there instead
	// meanwhile is not told from it.
	MayVanish func(r RNIC)
	// Room is how many requests the queues of q take now, unless others post meanwhile; 0 in a state in which they take
	// none, and for the receives of a shared receive queue.
	Room func(q QP) (send, recv int)
	// OnNotify has f called for each notification that Notify or Arm armed, at once and where the completion is made: by a
	// goroutine of the RNIC, or by one of the program within a verb, maybe several at a time, with locks of the queue
	// pair held. f must not block, and must call no verb. It is set before the first Notify, and wakes a thread that
	// waits outside Go. A Handler costs the start of a goroutine for that.
	OnNotify func(c CQ, f func())
	// Hush has hushes asked of all that flushes, by the Context of its queue pair and its operation, whether the program is not to hear of it: then
	// it fires no notification, and what is armed stays so. It is called as f of OnNotify, with the queue held too, and set before the
	// first Notify.
	Hush func(c CQ, hushes func(context any, op wr.Op) bool)
	// Fire gives the notification that Notify armed, if there is one, for completions that the program finds beside those of c.
	Fire func(c CQ)
	// Entries is how many completions c holds at most, as Query has it, without a lock of the RNIC.
	Entries func(c CQ) int
	// PollQueued is Poll of the completions that are there: unlike Poll it drives no connection when there are none.
	PollQueued func(c CQ, dst []wr.Completion) int
	// NotifyWatched is Notify for a program that goes on to Watch: until then what arrives may have to wait for some
	// milliseconds.
	NotifyWatched func(c CQ, t wr.NotifyType) error
	// Watch is for a thread outside Go that waits by itself in poll(2), for what OnNotify says and for sockets: an arrival
	// wakes that thread then, and no other. Watch receives what has arrived, and reports whether there was
	// anything. If not, it adds to fds descriptors that can be read once there is. They may be closed, or be another file's,
	// at any time, so they are good for nothing else; a thread that finds one ready calls Watch again. A thread
	// that never comes back harms nothing: the RNIC takes over.
	Watch func(c CQ, fds []int) (more []int, got bool)
	// OnReadiness has functions called of a queue pair without a stream, with the receive side held: they may not block, and call no
	// verb. waits hears of a message that begins to wait for a receive, by its MSN; notReady of what the peer says with
	// TellNotReady of a Send that is not known to be placed; arrived of the first message of a stream that is not empty.
	OnReadiness func(q QP, waits, notReady func(msn uint32), arrived func())
	// Unreliable makes a queue pair without a stream one of an unreliable connection (qp/lossy.go, decision 0043). The functions are
	// called with the receive side held: they may not block, and call no verb. dropped hears of each message of the peer's that has no
	// place, and may have the reason made meanwhile; mute, once a stream, of the peer's end, nil for a close in good order; ofWrite is
	// asked whether Immediate Data is the end of an RDMA Write with Immediate Data.
	Unreliable func(q QP, dropped func(why func() *wr.Reason), mute func(why *wr.Reason), ofWrite func(data uint64) bool)
	// PlaceSends has Sends that are posted from here on complete when the peer has placed them, as QPConfig.PlacedWrites has RDMA
	// Writes, and where it does.
	PlaceSends func(q QP, on bool)
	// WaitsForReceive is the MSN of the message that waits for a receive, if one does.
	WaitsForReceive func(q QP) (msn uint32, ok bool)
	// TellNotReady tells the peer that its message of that MSN waits for a receive (docs/wire.md); one that is no softrnic
	// ignores it.
	TellNotReady func(q QP, msn uint32)
	// Unbind makes w invalid, if it is bound, whatever has posted its Bind: a program of InfiniBand's binds a window of
	// type 1 anew, and destroys queue pairs that have windows. When it returns nothing is placed or read through w.
	Unbind func(w MW)
	// HeardOf is what TCP knows of the peer of q. With ask TCP asks it, each second in which nothing else is to be acknowledged, from
	// here on; without, as seldom as at first. ok is false of a queue pair without a stream, and where the system tells nothing.
	HeardOf func(q QP, ask bool) (h Heard, ok bool)
	// Drive receives what has arrived for the queue pairs whose receives complete in c, and reports whether there was
	// anything. It does not block. Poll does so by itself: this is for a thread that polls another queue, and has
	// nothing to do.
	Drive func(c CQ) bool
	// PeerGone reports whether the stream of q has left RTS because the peer's end of it was closed, reset or lost, and q was not modified
	// since it ended. It takes no lock.
	PeerGone func(q QP) bool
	// Idle reports whether nothing that was posted to q is to complete, and it shares no receives.
	Idle func(q QP) bool
	// Yield says that the program does not poll c from here on: what arrives is received all the same.
	Yield func(c CQ)
)
