package trace

import (
	"cmp"
	"io"
	"slices"
)

// End is the trace of one end of a connection, and a name that tells it from others.
type End struct {
	Name    string
	Records []Record
}

// Ends are traces that are shown together, by the clock: what the ends of a connection did, in the order in which it happened. On one machine
// they have one clock. Of two machines it is as right as their clocks are; the page can move them.
type Ends []End

// of is a Record, and the name of the end that it is of: "" if there is one alone.
type of struct {
	*Record
	end string
}

// merged are the records of all, by their time if there are several ends, else as they are.
func (e Ends) merged() (list []of) {
	for _, end := range e {
		for i := range end.Records {
			list = append(list, of{&end.Records[i], end.Name})
		}
	}
	if len(e) == 1 {
		for i := range list {
			list[i].end = ""
		}
		return list
	}
	slices.SortStableFunc(list, func(a, b of) int { return cmp.Compare(a.Time, b.Time) })
	return list
}

// Timeline is Timeline of a trace.
func Timeline(w io.Writer, list []Record) error { return Ends{{Records: list}}.Timeline(w) }

// HTML is Ends.HTML of a trace.
func HTML(w io.Writer, title string, list []Record) error {
	return Ends{{Records: list}}.HTML(w, title)
}
