// Package fault makes things go wrong on purpose, and again. A Plan says when and what,
// in a text that a person writes or as a value that a test builds; an Injector carries
// it out, inside an RNIC (verbs.Config.Faults) or between two (rnic proxy).
//
//	seed 7
//	segment 5 in of send: flip behind crc     # its CRC is wrong when it arrives
//	message every 3 out: delay 20ms
//	octet 4096 out: cut
//	post 4 of write: fail
//
//	plan.go   the plan           parse.go    its text
//	kinds.go  when and what      ops.go      operations         check.go   which of them go together
//	count.go  when a rule hits   injector.go what of an RNIC it hits
//	stream.go a stream with faults           flow.go   one direction of it: from octets to segments to pieces
//	inside.go what strikes inside an RNIC        provoke.go an object that fails as a whole, without a plan
//	verbs.go  what strikes C programs, by the names that libibverbs has
//
// docs/lab.md has a row for each kind of fault, with what a program sees of it.
package fault

import (
	"fmt"
	"strings"
	"time"

	"github.com/softrnic/softrnic/wr"
)

// Plan is a list of rules. Each has counters and a generator of its own for each connection
// and direction, so that the same plan and seed give the same faults for what is counted in
// messages, octets, posts, completions and connections. Rules by time or by segment are best effort:
// where segments end depends on the path, and on when a request is taken up.
type Plan struct {
	Seed  uint64
	Rules []Rule
}

// Rule says when, and what.
type Rule struct {
	When When
	// Nth is the only one that counts, from 1; 0: each does, or those that Every or Chance
	// choose. Of Octet it is how many octets have gone before the fault.
	Nth uint64
	// Every chooses the Every-th, and each Every-th after it; 0: does not choose.
	Every uint64
	// Chance chooses by the rule's generator: above 0, to 1; 0: does not choose.
	Chance float64
	// At is when a rule of Time strikes, from the beginning of the stream on.
	At time.Duration
	// Times, if not 0, is how often the rule strikes at most, for each of its counters.
	Times uint64

	// Dir is one direction, or Both. Of posts and completions Out is the Send Queue, In the
	// Receive Queue.
	Dir Direction
	// Op is an operation, or AnyOp.
	Op Op
	// QP is a queue pair's identifier; 0: any. Connection counts the streams of the RNIC or
	// proxy, from 1; 0: any.
	QP         wr.QPID
	Connection uint64
	// Verb is the name of a verb, one of Verbs; Device that of a C program's device, "": any.
	Verb, Device string

	What What
	// For is how long, of Stall and Delay, of Errno before it fails, and at most of Coalesce.
	For time.Duration
	// N is, of Split, how many octets of the segment go alone; of Coalesce, how many segments go
	// together; of Flip, which bit of the payload, from 0, or -1 for one that the generator
	// chooses; of IRD, how many inbound RDMA Reads are left.
	N int
	// Behind, of Flip, leaves the CRC as it was; else it is computed anew.
	Behind bool
	// Errno is the name of an errno, Status of a completion's status, without IBV_WC_.
	Errno, Status string
	// Code is that of Terminate: layer<<12|type<<8|code.
	Code uint16

	// Line is where Parse found the rule; 0 if it did not.
	Line int
}

// counts is when the rule counts: a completion that is told otherwise where the program sees it.
func (r *Rule) counts() When {
	if r.What == Status {
		return seen
	}
	return r.When
}

// String is the rule as Parse reads it.
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(r.When.String())
	if r.Verb != "" {
		b.WriteString(" " + r.Verb)
	}
	switch {
	case r.When == Time:
		fmt.Fprintf(&b, " %v", r.At)
	case r.Nth > 0:
		fmt.Fprintf(&b, " %d", r.Nth)
	case r.Every > 0:
		fmt.Fprintf(&b, " every %d", r.Every)
	case r.Chance != 0:
		fmt.Fprintf(&b, " chance %v", r.Chance)
	}
	if r.Dir != Both {
		fmt.Fprintf(&b, " %v", r.Dir)
	}
	if r.Op != AnyOp {
		fmt.Fprintf(&b, " of %v", r.Op)
	}
	if r.QP != 0 {
		fmt.Fprintf(&b, " qp %d", r.QP)
	}
	if r.Connection != 0 {
		fmt.Fprintf(&b, " connection %d", r.Connection)
	}
	if r.Device != "" {
		b.WriteString(" device " + r.Device)
	}
	if r.Times != 0 {
		fmt.Fprintf(&b, " times %d", r.Times)
	}
	fmt.Fprintf(&b, ": %v", r.What)
	switch r.What {
	case Stall, Delay:
		fmt.Fprintf(&b, " %v", r.For)
	case Coalesce:
		fmt.Fprintf(&b, " %d", r.N)
		if r.For != 0 {
			fmt.Fprintf(&b, " %v", r.For)
		}
	case Split:
		if r.When != Octet {
			fmt.Fprintf(&b, " %d", r.N)
		}
	case IRD:
		fmt.Fprintf(&b, " %d", r.N)
	case Flip:
		if r.N >= 0 {
			fmt.Fprintf(&b, " %d", r.N)
		}
		if r.Behind {
			b.WriteString(" behind crc")
		} else {
			b.WriteString(" before crc")
		}
	case Terminate:
		fmt.Fprintf(&b, " 0x%04x", r.Code)
	case Errno:
		b.WriteString(" " + r.Errno)
		if r.For != 0 {
			fmt.Fprintf(&b, " late %v", r.For)
		}
	case Status:
		b.WriteString(" " + r.Status)
	default:
	}
	return b.String()
}

// String is the plan as Parse reads it.
func (p *Plan) String() string {
	var b strings.Builder
	if p.Seed != 0 {
		fmt.Fprintf(&b, "seed %d\n", p.Seed)
	}
	for _, r := range p.Rules {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}
