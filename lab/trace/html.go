package trace

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
	"strconv"
	"time"
)

//go:embed page.html
var page string

var pageTemplate = template.Must(template.New("trace").Parse(page))

// shown is a record as the page has it: a script's numbers hold 53 bits.
type shown struct {
	line
	End   string `json:"end,omitempty"` // of several
	Time  string `json:"time"`
	Since int64  `json:"since"` // the first record, in nanoseconds
	ID    string `json:"id,omitempty"`
	TO    string `json:"to,omitempty"`
}

func show(r of, first int64) shown {
	s := shown{line: lineOf(r.Record), End: r.end, Time: r.When().UTC().Format(time.RFC3339Nano), Since: r.Time - first}
	if r.Kind == Posted || r.Kind == Completed || r.ID != 0 {
		s.ID = strconv.FormatUint(r.ID, 10)
	}
	if r.STag != 0 || r.TO != 0 {
		s.TO = "0x" + strconv.FormatUint(r.TO, 16)
	}
	return s
}

// HTML writes a page that needs nothing else: a lane for each queue pair of each end, gaps in time, a search, filters by queue pair, kind and
// name, and the fields of a record on a click.
func (e Ends) HTML(w io.Writer, title string) error {
	list := e.merged()
	rows := make([]shown, len(list))
	for i, r := range list {
		rows[i] = show(r, list[0].Time)
	}
	data, err := json.Marshal(rows) // escapes <, > and &
	if err != nil {
		return err
	}
	return pageTemplate.Execute(w, struct {
		Title   string
		Records template.JS
	}{title, template.JS(data)}) //nolint:gosec // JSON of our own
}
