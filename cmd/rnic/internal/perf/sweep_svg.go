package perf

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// The size of one chart, and of the margins around its lines.
const (
	chartWidth, chartHeight                         = 880, 450
	marginLeft, marginTop, marginRight, marginBelow = 64, 78, 20, 52
)

// chartStyle has colours that people with any colour vision can tell apart (Okabe and Ito), and lighter ones for
// dark pages.
const chartStyle = `
.chart{font:12px "Liberation Sans",Arial,Helvetica,sans-serif}
.chart .paper{fill:#fff}.chart text{fill:#444}.chart .title{font-size:17px;font-weight:bold;fill:#1a1a1a}
.chart .grid{stroke:#e4e4e4}.chart .axis{stroke:#777;fill:none}
.chart .blue{color:#0072b2}.chart .orange{color:#d55e00}.chart .green{color:#009e73}
.chart .line{stroke:currentColor;stroke-width:2;fill:none;stroke-linejoin:round}.chart .dashed{stroke-dasharray:6 4}
.chart .span{stroke:currentColor;stroke-width:1.5;opacity:.45;fill:none}.chart .dot{fill:currentColor}.chart .ring{fill:#fff;stroke:currentColor;stroke-width:1.5}
@media(prefers-color-scheme:dark){
.chart .paper,.chart .ring{fill:#16181c}.chart text{fill:#b8bcc4}.chart .title{fill:#f0f0f0}
.chart .grid{stroke:#2c3037}.chart .axis{stroke:#888}
.chart .blue{color:#56b4e9}.chart .orange{color:#f28444}.chart .green{color:#2fc79b}}
`

// chart is lines above two axes.
type chart struct {
	title string
	x, y  axis
	lines []line
}

// axis goes from the least value that was included to the greatest.
type axis struct {
	label    string
	ticks    func(from, to float64) []tick
	from, to float64
}

type tick struct {
	at    float64
	label string // empty for a tick without a name
}

type line struct {
	name, colour string
	dashed, dots bool
	points       []point
	spans        []span // of values, drawn as upright strokes
}

// span is from one value to another, at x.
type span struct{ x, from, to float64 }

type point struct{ x, y float64 }

func newChart(title string, x, y axis) *chart {
	x.from, x.to, y.from, y.to = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	return &chart{title: title, x: x, y: y}
}

func (a *axis) include(v float64) { a.from, a.to = min(a.from, v), max(a.to, v) }

// share is where v is on the axis, from 0 to 1.
func (a *axis) share(v float64) float64 { return (v - a.from) / (a.to - a.from) }

// settle gives an axis of one value, or of none, a length.
func (a *axis) settle() {
	switch {
	case a.from > a.to:
		a.from, a.to = 0, 1
	case a.from == a.to:
		a.from, a.to = a.from-0.5, a.to+0.5
	}
}

// add adds a line, without the points that no chart can show: the logarithm of zero.
func (c *chart) add(l line) {
	kept := l.points[:0]
	for _, p := range l.points {
		if !math.IsInf(p.x+p.y, 0) && !math.IsNaN(p.x+p.y) {
			c.x.include(p.x)
			c.y.include(p.y)
			kept = append(kept, p)
		}
	}
	l.points = kept
	c.lines = append(c.lines, l)
}

// between draws from one value to another at x, in the colour of a line of c.
func (c *chart) between(l *line, x, from, to float64) {
	c.y.include(from)
	c.y.include(to)
	l.spans = append(l.spans, span{x, from, to})
}

// place is where p is drawn.
func (c *chart) place(p point) (x, y float64) {
	return marginLeft + c.x.share(p.x)*(chartWidth-marginLeft-marginRight),
		chartHeight - marginBelow - c.y.share(p.y)*(chartHeight-marginTop-marginBelow)
}

// drawSVG draws charts below one another.
func drawSVG(w io.Writer, charts ...*chart) error {
	var b bytes.Buffer
	height := chartHeight * len(charts)
	const svg = `<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">`
	fmt.Fprintf(&b, svg, chartWidth, height)
	fmt.Fprintf(&b, "\n<style>%s</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n", chartStyle)
	for i, c := range charts {
		fmt.Fprintf(&b, "<g transform=\"translate(0 %d)\">\n", i*chartHeight)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := b.WriteTo(w)
	return err
}

// text draws s; of the anchors, "middle" centres it at x.
func text(b *bytes.Buffer, x, y float64, anchor, attributes, s string) {
	s = html.EscapeString(s)
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor, attributes, s)
}

func (c *chart) draw(b *bytes.Buffer) {
	c.x.settle()
	c.y.settle()
	const left, right, top, below = marginLeft, chartWidth - marginRight, marginTop, chartHeight - marginBelow
	text(b, left, 30, "start", ` class="title"`, c.title)
	for _, t := range c.x.ticks(c.x.from, c.x.to) {
		x, _ := c.place(point{t.at, c.y.from})
		fmt.Fprintf(b, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", x, top, below)
		text(b, x, below+18, "middle", "", t.label)
	}
	for _, t := range c.y.ticks(c.y.from, c.y.to) {
		_, y := c.place(point{c.x.from, t.at})
		fmt.Fprintf(b, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", left, y, right)
		text(b, left-8, y+4, "end", "", t.label)
	}
	fmt.Fprintf(b, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", left, top, below, right)
	text(b, (left+right)/2, chartHeight-12, "middle", "", c.x.label)
	text(b, 0, 0, "middle", fmt.Sprintf(` transform="translate(18 %d) rotate(-90)"`, (top+below)/2), c.y.label)
	legend := float64(left)
	for _, l := range c.lines {
		c.drawLine(b, l)
		fmt.Fprintf(b, "<g class=\"%s\">", l.colour)
		l.stroke(b, []point{{legend, 54}, {legend + 16, 54}, {legend + 32, 54}}, 1)
		b.WriteString("</g>\n")
		text(b, legend+39, 58, "start", "", l.name)
		legend += 39 + 6.4*float64(len([]rune(l.name))) + 18
	}
}

func (c *chart) drawLine(b *bytes.Buffer, l line) {
	placed := make([]point, len(l.points))
	for i, p := range l.points {
		placed[i].x, placed[i].y = c.place(p)
	}
	fmt.Fprintf(b, "<g class=\"%s\"><title>%s</title>", l.colour, html.EscapeString(l.name))
	for _, s := range l.spans {
		x, from := c.place(point{s.x, s.from})
		_, to := c.place(point{s.x, s.to})
		fmt.Fprintf(b, `<path class="span" d="M%.1f %.1fV%.1f"/>`, x, from, to)
	}
	l.stroke(b, placed, 0)
	b.WriteString("</g>\n")
}

// stroke draws the line through points, and dots from so many points after the first to so many before the last.
func (l *line) stroke(b *bytes.Buffer, points []point, inset int) {
	class, dot, radius := "line", "dot", 3.0
	if l.dashed {
		class, dot = "line dashed", "ring"
	}
	var path strings.Builder
	for i, p := range points {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], p.x, p.y)
	}
	fmt.Fprintf(b, `<path class="%s" d="%s"/>`, class, path.String())
	for i, p := range points {
		if l.dots && i >= inset && i < len(points)-inset {
			fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="%.1f"/>`, dot, p.x, p.y, radius)
		}
	}
}

// writeSweepSVG writes all charts as one SVG file.
func writeSweepSVG(w io.Writer, r *sweepReport) error { return drawSVG(w, r.charts()...) }
