package wr

import (
	"fmt"
	"strings"
	"time"
)

// RecordKind says what a Record is of.
type RecordKind uint8

// The kinds of records.
const (
	// RecordVerb: a verb that changes something was called. Name is the verb, Note why it refused.
	RecordVerb RecordKind = iota + 1
	// RecordPosted: a request was put on a queue. Name is the operation; ID, Octets, STag and TO are the request's.
	RecordPosted
	// RecordSent: a segment was framed. Name is the RDMAP opcode.
	RecordSent
	// RecordReceived: a segment came that is well formed.
	RecordReceived
	// RecordPlaced: its payload, Octets, is in memory.
	RecordPlaced
	// RecordCompleted: a completion is in CQ. Name is the operation, Note the status.
	RecordCompleted
	// RecordState: the queue pair went From a state to the Next. Name is the trigger, Code what a Terminate Message
	// with it says.
	RecordState
	// RecordNotified: a notification of CQ that was armed was given; or, with its Name, an asynchronous event of QP
	// or CQ was raised.
	RecordNotified
	// RecordConnection: a step of connecting. Name is the step, Note what came of it.
	RecordConnection
	// RecordFault: a rule of a fault plan struck. Name is the rule and where.
	RecordFault
	// RecordLost: a writer had no room for records that belong here. Name says how many.
	RecordLost
)

var recordNames = [...]string{
	RecordVerb: "verb", RecordPosted: "posted", RecordSent: "sent", RecordReceived: "received", RecordPlaced: "placed",
	RecordCompleted: "completed", RecordState: "state", RecordNotified: "notified", RecordConnection: "connection",
	RecordFault: "fault", RecordLost: "lost",
}

func (k RecordKind) String() string { return name(recordNames[:], int(k), "Kind") }

// MarshalText makes JSON show the name.
func (k RecordKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name.
func (k *RecordKind) UnmarshalText(text []byte) error {
	for i, n := range recordNames {
		if n != "" && n == string(text) {
			*k = RecordKind(i)
			return nil
		}
	}
	return fmt.Errorf("no kind of record %q", text)
}

// Record is one thing that an RNIC did, for a trace. Fields that its Kind does not have are zero. Its strings are
// constants, but for Note of what was refused and Name of RecordFault and RecordLost, so that making one allocates
// nothing.
type Record struct {
	// Time is nanoseconds since 1970, of the machine's clock; records of one queue pair and direction are in order.
	Time int64
	Kind RecordKind
	QP   QPID // 0: none
	CQ   CQID // 0: none
	Name string
	// ID is that of the work request.
	ID         uint64
	STag       STag // of a tagged segment, or the remote one of a request
	TO         uint64
	MSN        uint32 // of an untagged segment, as MO
	MO         uint32
	Octets     uint64 // of payload
	Last       bool   // the segment has the L bit
	From, Next State  // of RecordState
	Code       uint16 // of a Terminate Message: layer<<12 | type<<8 | code
	Note       string
}

// When is Time as a time.
func (r *Record) When() time.Time { return time.Unix(0, r.Time) }

// String is the record without its time and queue pair, as a person reads it.
func (r *Record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %s", r.Kind, r.Name)
	if r.Kind == RecordState {
		fmt.Fprintf(&b, ": %s -> %s", r.From, r.Next)
	}
	field := func(format string, there bool, v any) {
		if there {
			fmt.Fprintf(&b, format, v)
		}
	}
	tagged := r.STag != 0 || r.TO != 0
	field(" id=%d", r.Kind == RecordPosted || r.Kind == RecordCompleted, r.ID)
	field(" cq=%d", r.CQ != 0, r.CQ)
	field(" stag=%v", tagged, r.STag)
	field(" to=0x%x", tagged, r.TO)
	field(" msn=%d", r.MSN != 0, r.MSN)
	field(" mo=%d", r.MO != 0, r.MO)
	field(" octets=%d", r.Octets != 0 || r.Kind == RecordSent || r.Kind == RecordReceived, r.Octets)
	field(" last", r.Last, nil)
	field(" terminate=0x%04x", r.Code != 0, r.Code)
	field(": %s", r.Note != "", r.Note)
	return strings.ReplaceAll(b.String(), "%!(EXTRA <nil>)", "")
}
