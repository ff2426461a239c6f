// Package trace keeps what an RNIC did, as records: verbs.Config.Trace is called for each. A program keeps them in
// a Ring, which is dumped when something fails, writes them to a file that `rnic trace` shows, or gives them to
// log/slog.
//
//	record.go    a record, and its line in a file   ring.go  the last N
//	file.go      to a file, and from one            slog.go  to log/slog
//	timeline.go  as text                            html.go  as a page, a lane a queue pair
//	ends.go      of several ends, by the clock
//
// No record has an octet of the program's: not of payload, private, immediate or atomic data.
package trace

import (
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// Record is one thing that an RNIC did: its time, its Kind, the queue pair (QP), the completion queue (CQ), and
// what else the kind has: Name (of a verb, an operation, an opcode, a trigger), ID, STag, TO, MSN, MO, Octets,
// Last, From and Next (states), Code (of a Terminate Message) and Note.
type Record = wr.Record

// Kind says what a Record is of.
type Kind = wr.RecordKind

// The kinds.
const (
	Verb       = wr.RecordVerb       // a verb that changes something was called; Note says why it refused
	Posted     = wr.RecordPosted     // a request was put on a queue
	Sent       = wr.RecordSent       // a segment was framed
	Received   = wr.RecordReceived   // a segment came that is well formed
	Placed     = wr.RecordPlaced     // its payload is in memory
	Completed  = wr.RecordCompleted  // a completion is in CQ; Note is the status
	State      = wr.RecordState      // the queue pair went From a state to the Next
	Notified   = wr.RecordNotified   // a notification was given, or an asynchronous event raised
	Connection = wr.RecordConnection // a step of connecting; Note says what came of it
	Fault      = wr.RecordFault      // a rule of a fault plan struck
	Lost       = wr.RecordLost       // a Writer had no room for records that belong here; Name says how many
)

// line is a Record as a file has it, and a page.
type line struct {
	Time   int64   `json:"time"`
	Kind   Kind    `json:"kind"`
	QP     wr.QPID `json:"qp,omitempty"`
	CQ     wr.CQID `json:"cq,omitempty"`
	Name   string  `json:"name,omitempty"`
	ID     uint64  `json:"id,omitempty"`
	STag   wr.STag `json:"stag,omitempty"`
	TO     uint64  `json:"to,omitempty"`
	MSN    uint32  `json:"msn,omitempty"`
	MO     uint32  `json:"mo,omitempty"`
	Octets uint64  `json:"octets,omitempty"`
	Last   bool    `json:"last,omitempty"`
	From   string  `json:"from,omitempty"`
	Next   string  `json:"next,omitempty"`
	Code   uint16  `json:"code,omitempty"`
	Note   string  `json:"note,omitempty"`
}

func lineOf(r *Record) line {
	l := line{
		Time: r.Time, Kind: r.Kind, QP: r.QP, CQ: r.CQ, Name: r.Name, ID: r.ID, STag: r.STag, TO: r.TO, MSN: r.MSN, MO: r.MO,
		Octets: r.Octets, Last: r.Last, Code: r.Code, Note: r.Note,
	}
	if r.Kind == State {
		l.From, l.Next = r.From.String(), r.Next.String()
	}
	return l
}

func (l *line) record() (r Record, err error) {
	r = Record{
		Time: l.Time, Kind: l.Kind, QP: l.QP, CQ: l.CQ, Name: l.Name, ID: l.ID, STag: l.STag, TO: l.TO, MSN: l.MSN, MO: l.MO,
		Octets: l.Octets, Last: l.Last, Code: l.Code, Note: l.Note,
	}
	if r.Kind == State {
		if r.From, err = stateOf(l.From); err == nil {
			r.Next, err = stateOf(l.Next)
		}
	}
	return r, err
}

func stateOf(name string) (wr.State, error) {
	for s := wr.StateIdle; s <= wr.StateError; s++ {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("no state %q", name)
}
