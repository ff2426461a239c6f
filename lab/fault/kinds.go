package fault

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

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

// onStream reports whether streams are where w is counted.
func (w When) onStream() bool { return w >= Segment && w <= Time }

func (w When) String() string      { return named(whens, int(w)) }
func (w What) String() string      { return named(whats, int(w)) }
func (d Direction) String() string { return named(directions, int(d)) }

func named(names []string, i int) string {
	if i > 0 && i < len(names) {
		return names[i]
	}
	return strconv.Itoa(i)
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
