package perf

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"
)

//go:embed sweep.html
var sweepPageText string

var sweepPage = template.Must(template.New("sweep").Parse(sweepPageText))

// sweepPageData is what the page shows.
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
	charts, err := r.charts()
	if err != nil {
		return err
	}
	data := sweepPageData{sweepReport: r, Tables: r.tables()}
	for _, c := range charts {
		var svg bytes.Buffer
		title := c.Title.Text
		if err := drawSVG(&svg, c); err != nil {
			return err
		}
		// An XML declaration has no place within HTML.
		_, rest, _ := strings.Cut(svg.String(), "<svg")
		data.Charts = append(data.Charts, sweepPageChart{title, template.HTML("<svg" + rest)})
	}
	return sweepPage.Execute(w, data)
}
