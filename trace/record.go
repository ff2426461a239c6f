// Package trace has what an RNIC did, as records: verbs.Config.Trace is told of each. A program keeps them in a Ring, which is
// dumped when something fails, writes them to a file that `rnic trace` shows, or gives them to log/slog.
//
//	record.go    a record                       ring.go  the last N
//	file.go      to a file, and from one        slog.go  to log/slog
//	timeline.go  as text                        html.go  as a page, a lane a queue pair
//
// No record has an octet of the program's: not of payload, private, immediate or atomic data.
package trace

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind says what a record is of.
type Kind uint8

// The kinds.
const (
	// Verb: a verb that changes something was called. Name is the verb, Note why it refused.
	Verb Kind = iota + 1
	// Posted: a request was put on a queue. Name is the operation; ID, Octets, STag and TO are the request's.
	Posted
	// Sent: a segment was framed. Name is the RDMAP opcode.
	Sent
	// Received: a segment came that is well formed.
	Received
	// Placed: its payload, Octets, is in memory.
	Placed
	// Completed: a completion is in CQ. Name is the operation, Note the status.
	Completed
	// State: the queue pair went From a state To another. Name is the trigger, Code what a Terminate Message with it says.
	State
	// Notified: a notification of CQ that was armed was given; or, with its Name, an asynchronous event of QP or CQ was raised.
	Notified
	// Connection: a step of connecting. Name is the step, Note what came of it.
	Connection
	// Fault: a fault of a plan struck. Name is the rule and where.
	Fault
	// Lost: a Writer had no room for records that belong here. Name says how many.
	Lost
)

var kindNames = [...]string{
	Verb: "verb", Posted: "posted", Sent: "sent", Received: "received", Placed: "placed", Completed: "completed", State: "state",
	Notified: "notified", Connection: "connection", Fault: "fault", Lost: "lost",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// MarshalText makes JSON show the name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, n := range kindNames {
		if n != "" && n == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("trace: no kind %q", text)
}

// Record is one thing that an RNIC did. Fields that its Kind does not have are zero. Its strings are constants, but for Note of
// what was refused and Name of a Fault and of Lost, so that making one allocates nothing.
type Record struct {
	// Time is nanoseconds since 1970, of the machine's clock; records of one queue pair and direction are in order.
	Time int64  `json:"time"`
	Kind Kind   `json:"kind"`
	QP   uint32 `json:"qp,omitempty"` // identifier of the queue pair; 0: none
	CQ   uint32 `json:"cq,omitempty"`
	Name string `json:"name,omitempty"`
	// ID is that of the work request.
	ID     uint64 `json:"id,omitempty"`
	STag   uint32 `json:"stag,omitempty"` // of a tagged segment, or the remote one of a request
	TO     uint64 `json:"to,omitempty"`
	MSN    uint32 `json:"msn,omitempty"` // of an untagged segment, as MO
	MO     uint32 `json:"mo,omitempty"`
	Octets uint64 `json:"octets,omitempty"` // of payload
	Last   bool   `json:"last,omitempty"`   // the segment has the L bit
	From   string `json:"from,omitempty"`   // a state
	Next   string `json:"next,omitempty"`   // the state after it
	Code   uint16 `json:"code,omitempty"`   // of a Terminate Message: layer<<12 | type<<8 | code
	Note   string `json:"note,omitempty"`
}

// When is Time as a time.
func (r *Record) When() time.Time { return time.Unix(0, r.Time) }

// String is the record without its time and queue pair, as a person reads it.
func (r *Record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %s", r.Kind, r.Name)
	if r.Kind == State {
		fmt.Fprintf(&b, ": %s -> %s", r.From, r.Next)
	}
	field := func(format string, there bool, v any) {
		if there {
			fmt.Fprintf(&b, format, v)
		}
	}
	tagged := r.STag != 0 || r.TO != 0
	field(" id=%d", r.Kind == Posted || r.Kind == Completed, r.ID)
	field(" cq=%d", r.CQ != 0, r.CQ)
	field(" stag=0x%08x", tagged, r.STag)
	field(" to=0x%x", tagged, r.TO)
	field(" msn=%d", r.MSN != 0, r.MSN)
	field(" mo=%d", r.MO != 0, r.MO)
	field(" octets=%d", r.Octets != 0 || r.Kind == Sent || r.Kind == Received, r.Octets)
	field(" last", r.Last, nil)
	field(" terminate=0x%04x", r.Code != 0, r.Code)
	field(": %s", r.Note != "", r.Note)
	return strings.ReplaceAll(b.String(), "%!(EXTRA <nil>)", "")
}
