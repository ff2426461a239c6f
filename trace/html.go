package trace

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
)

//go:embed page.html
var page string

var pageTemplate = template.Must(template.New("trace").Parse(page))

// HTML writes a page that needs nothing else: a lane for each queue pair, filters by queue pair, kind and name, and the
// fields of a record on a click.
func HTML(w io.Writer, title string, list []Record) error {
	data, err := json.Marshal(list) // escapes <, > and &
	if err != nil {
		return err
	}
	return pageTemplate.Execute(w, struct {
		Title   string
		Records template.JS
	}{title, template.JS(data)}) //nolint:gosec // JSON of our own
}
