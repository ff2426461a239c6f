package perf

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
)

//go:embed sweep.html
var sweepPageText string

var sweepPage = template.Must(template.New("sweep").Parse(sweepPageText))

// sweepPageData are the contents of the page.
type sweepPageData struct {
	*sweepReport
	Charts []sweepPageChart
	Tables []sweepTable
}

type sweepPageChart struct {
	Title string
	SVG   template.HTML // ours
}

// writeSweepPage writes a page of HTML, which needs no other file.
func writeSweepPage(w io.Writer, r *sweepReport) error {
	data := sweepPageData{sweepReport: r, Tables: r.tables()}
	for _, c := range r.charts() {
		var svg bytes.Buffer
		if err := drawSVG(&svg, c); err != nil {
			return err
		}
		data.Charts = append(data.Charts, sweepPageChart{c.title, template.HTML(svg.String())})
	}
	return sweepPage.Execute(w, data)
}
