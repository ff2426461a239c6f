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
//	count.go  when a rule hits   injector.go what of an RNIC it hits
//	stream.go a stream with faults           flow.go   one direction of it: from octets to segments to pieces
//	inside.go what strikes inside an RNIC        provoke.go an object that fails as a whole, without a plan
//	verbs.go  what strikes C programs, by the names that libibverbs has
//
// docs/lab.md has a row for each kind of fault, with what a program sees of it.
package fault

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/rdmap"
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

// When is what a rule counts.
type When uint8

// What rules count: segments, messages (by their first segment) and octets of the FPDU stream (of a stream that is no iWARP,
// from its first octet), in one direction of a connection; time from its beginning; connections; posts and completions of a queue
// pair; registrations of an RNIC; its openings.
const (
	Segment When = iota + 1
	Message
	Octet
	Time
	Connection
	Post
	Completion
	Registration
	Verb
	Open
	seen // completions as a C program sees them, of rules whose What is Status
)

var whens = []string{
	Segment: "segment", Message: "message", Octet: "octet", Time: "time", Connection: "connection", Post: "post", Completion: "completion", Registration: "registration",
	Verb: "verb", Open: "open",
}

// What is what a rule does.
type What uint8

// The faults. Of those on streams Cut ends both directions as if one end had closed, Reset as if the path had,
// HalfClose the one. Stall lets nothing through for a time, so that a sender is held up; Delay delivers later, and what is
// behind it, while the sender goes on. Split delivers a segment, or what is before and behind an octet, in two;
// Coalesce several segments at once. Flip turns a bit, Drop and Double are of whole FPDUs, Terminate sends a Terminate
// Message ahead. InvalidateSTag makes the STag Invalid that the segment or post names and this RNIC has. Refuse refuses a connection,
// IRD takes inbound RDMA Reads away that were agreed on. Fail fails a post or registration for lack of resources. Delay of a
// completion keeps it back, and those behind it; Full has the CQ refuse it, as a full one does. Errno fails a verb of a C
// program, and Status has a completion tell it of another end, behind which its queue pair is in error. NoDevice has an open find no RNIC.
const (
	Cut What = iota + 1
	Reset
	HalfClose
	Stall
	Delay
	Split
	Coalesce
	Flip
	Drop
	Double
	Terminate
	InvalidateSTag
	Refuse
	IRD
	Fail
	Full
	Errno
	Status
	NoDevice
)

var whats = []string{
	Cut: "cut", Reset: "reset", HalfClose: "half-close", Stall: "stall", Delay: "delay", Split: "split", Coalesce: "coalesce",
	Flip: "flip", Drop: "drop", Double: "double", Terminate: "terminate", InvalidateSTag: "invalidate stag", Refuse: "refuse",
	IRD: "ird", Fail: "fail", Full: "full", Errno: "errno", Status: "status", NoDevice: "no device",
}

// fits says what a rule can do when.
var fits = map[When][]What{
	Segment:      {Cut, Reset, HalfClose, Stall, Delay, Split, Coalesce, Flip, Drop, Double, Terminate, InvalidateSTag},
	Message:      {Cut, Reset, HalfClose, Stall, Delay, Split, Coalesce, Flip, Drop, Double, Terminate, InvalidateSTag},
	Octet:        {Cut, Reset, HalfClose, Stall, Delay, Split, Flip},
	Time:         {Cut, Reset, HalfClose, Stall},
	Connection:   {Refuse, IRD},
	Post:         {Fail, InvalidateSTag},
	Completion:   {Delay, Full, Status},
	Registration: {Fail},
	Verb:         {Errno, Delay},
	Open:         {NoDevice},
}

// Direction is one direction of a stream, seen from the RNIC; through a proxy Out is what the client sends.
type Direction uint8

// The directions.
const (
	Both Direction = iota
	In
	Out
)

var directions = []string{In: "in", Out: "out"}

// Op is a kind of operation: of segments and messages by their opcode, of posts and completions by their type.
type Op uint8

// The operations. OpRead is a Read Request, and the post of it; OpAtomic likewise.
const (
	AnyOp Op = iota
	OpSend
	OpWrite
	OpRead
	OpResponse
	OpImmediate
	OpAtomic
	OpAtomicResponse
	OpTerminate
	OpRecv
	OpMemory
)

var ops = []string{
	OpSend: "send", OpWrite: "write", OpRead: "read", OpResponse: "response", OpImmediate: "immediate", OpAtomic: "atomic",
	OpAtomicResponse: "atomic-response", OpTerminate: "terminate", OpRecv: "recv", OpMemory: "memory",
}

// opOf is the kind of a request or completion.
func opOf(op wr.Op) Op {
	switch op {
	case wr.OpSend, wr.OpSendSE, wr.OpSendInvalidate, wr.OpSendSEInvalidate:
		return OpSend
	case wr.OpWrite, wr.OpWriteImmediate, wr.OpWriteImmediateSE:
		return OpWrite
	case wr.OpRead, wr.OpReadInvalidate:
		return OpRead
	case wr.OpImmediate, wr.OpImmediateSE:
		return OpImmediate
	case wr.OpFetchAdd, wr.OpSwap, wr.OpCompareSwap:
		return OpAtomic
	case wr.OpRecv:
		return OpRecv
	case wr.OpBind, wr.OpFastRegister, wr.OpInvalidate:
		return OpMemory
	}
	return AnyOp
}

// opOfSegment is the kind of a segment.
func opOfSegment(op rdmap.Opcode) Op {
	switch op {
	case rdmap.Send, rdmap.SendSE, rdmap.SendInvalidate, rdmap.SendSEInvalidate:
		return OpSend
	case rdmap.Write:
		return OpWrite
	case rdmap.ReadRequest:
		return OpRead
	case rdmap.ReadResponse:
		return OpResponse
	case rdmap.Immediate, rdmap.ImmediateSE:
		return OpImmediate
	case rdmap.AtomicRequest:
		return OpAtomic
	case rdmap.AtomicResponse:
		return OpAtomicResponse
	case rdmap.Terminate:
		return OpTerminate
	}
	return AnyOp
}

func (w When) String() string      { return named(whens, int(w)) }
func (w What) String() string      { return named(whats, int(w)) }
func (d Direction) String() string { return named(directions, int(d)) }
func (o Op) String() string        { return named(ops, int(o)) }

func named(names []string, i int) string {
	if i > 0 && i < len(names) {
		return names[i]
	}
	return strconv.Itoa(i)
}

// counts is when the rule counts: a completion that is told otherwise where the program sees it.
func (r *Rule) counts() When {
	if r.What == Status {
		return seen
	}
	return r.When
}

// onStream reports whether streams are where w is counted.
func (w When) onStream() bool { return w >= Segment && w <= Time }

// opsOf are the operations that w can be limited to.
func opsOf(w When) []Op {
	switch w {
	case Segment, Message:
		return []Op{OpSend, OpWrite, OpRead, OpResponse, OpImmediate, OpAtomic, OpAtomicResponse, OpTerminate}
	case Post, Completion:
		return []Op{OpSend, OpWrite, OpRead, OpImmediate, OpAtomic, OpRecv, OpMemory}
	default:
		return nil
	}
}

// MaxFor bounds Rule.For and Rule.At.
const MaxFor = 24 * time.Hour

// Check finds what is wrong with the rule, and says what would be right.
func (r *Rule) Check() error {
	allowed, ok := fits[r.When]
	switch {
	case !ok:
		return fmt.Errorf("there is no %q to count: one of %s", r.When, list(whens))
	case !slices.Contains(allowed, r.What):
		return fmt.Errorf("%v goes with one of %s, not with %q", r.When, join(allowed), r.What)
	case r.choices() > 1:
		return fmt.Errorf("a number, every and chance exclude each other")
	case r.Chance < 0 || r.Chance > 1 || r.Chance != r.Chance:
		return fmt.Errorf("a chance is above 0, and 1 at most, not %v", r.Chance)
	case r.When == Time && (r.choices() > 0 || r.Times > 0):
		return fmt.Errorf("time strikes once, at a duration such as 2s")
	case r.When == Octet && (r.Nth == 0 && r.Every == 0 || r.Chance > 0):
		return fmt.Errorf("octet needs a number or every, such as octet 4096")
	case r.Dir > Out:
		return fmt.Errorf("a direction is in, out or neither")
	case r.Dir != Both && (r.When == Connection || r.When >= Registration):
		return fmt.Errorf("%v has no direction", r.When)
	case r.Op != AnyOp && !slices.Contains(opsOf(r.When), r.Op):
		if opsOf(r.When) == nil {
			return fmt.Errorf("%v is of no operation", r.When)
		}
		return fmt.Errorf("%v is of one of %s, not of %q", r.When, join(opsOf(r.When)), r.Op)
	case r.QP != 0 && r.When >= Registration:
		return fmt.Errorf("%v is of no queue pair", r.When)
	case (r.When == Verb) != (r.Verb != "") || r.Verb != "" && !slices.Contains(Verbs, r.Verb):
		return fmt.Errorf("verb is one of %s, not %q", list(Verbs), r.Verb)
	case r.Device != "" && !plainName(r.Device):
		return fmt.Errorf("device takes a name such as softrnic0, not %q", r.Device)
	case r.Connection != 0 && !r.When.onStream():
		return fmt.Errorf("%v is on no connection: only what is counted on streams is (%s)", r.When, join([]When{Segment, Message, Octet, Time}))
	case r.At < 0 || r.At > MaxFor || r.For < 0 || r.For > MaxFor:
		return fmt.Errorf("a time is within 0s to %v", MaxFor)
	}
	return r.checkWhat()
}

func (r *Rule) checkWhat() error {
	switch r.What {
	case Stall, Delay:
		if r.For == 0 {
			return fmt.Errorf("%v needs how long, such as %v 50ms", r.What, r.What)
		}
	case Split:
		if r.When != Octet && r.N < 1 {
			return fmt.Errorf("split needs how many octets of the segment go alone, such as split 3")
		}
	case Coalesce:
		if r.N < 2 || r.N > 1000 {
			return fmt.Errorf("coalesce needs how many segments, 2 to 1000, such as coalesce 4")
		}
	case Flip:
		if r.N < -1 || r.N >= 1<<20 {
			return fmt.Errorf("flip takes a bit from 0 to %d", 1<<20-1)
		}
		if r.When == Octet && !r.Behind {
			return fmt.Errorf("flip at an octet is behind the CRC: flip behind crc")
		}
	case Errno:
		if errnos[r.Errno] == 0 {
			return fmt.Errorf("errno takes one of %s, not %q", list(slices.Sorted(maps.Keys(errnos))), r.Errno)
		}
	case Status:
		if index(statuses, r.Status) < 1 {
			return fmt.Errorf("status takes one of %s, not %q", list(statuses[1:]), r.Status)
		}
	case IRD:
		if r.N < 0 || r.N > 0x3FFE {
			return fmt.Errorf("ird takes 0 to %d", 0x3FFE)
		}
	default:
	}
	return nil
}

func (r *Rule) choices() (n int) {
	for _, set := range []bool{r.Nth > 0, r.Every > 0, r.Chance != 0} {
		if set {
			n++
		}
	}
	return n
}

// Check finds what is wrong with the plan. The error names the rule, by its line if it has one.
func (p *Plan) Check() error {
	for i := range p.Rules {
		r := &p.Rules[i]
		err := r.Check()
		switch {
		case err != nil && r.Line > 0:
			return fmt.Errorf("line %d: %w", r.Line, err)
		case err != nil:
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return nil
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

func list(names []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "" }), ", ")
}

func join[T fmt.Stringer](of []T) string {
	names := make([]string, len(of))
	for i, v := range of {
		names[i] = v.String()
	}
	return list(names)
}
