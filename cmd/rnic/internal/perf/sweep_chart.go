package perf

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// The size of one chart.
const (
	chartWidth  = 9 * vg.Inch
	chartHeight = 4.6 * vg.Inch
)

// Colours that people with any colour vision can tell apart (Okabe and Ito).
var (
	chartBlue   = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	chartOrange = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	chartGreen  = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	chartGrid   = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}

	opColours = map[string]color.RGBA{"send": chartBlue, "write": chartOrange, "read": chartGreen}
)

// charts are all charts of a report.
func (r *sweepReport) charts() ([]*plot.Plot, error) {
	bandwidth, err := r.bandwidthChart()
	if err != nil {
		return nil, err
	}
	rate, err := r.rateChart()
	if err != nil {
		return nil, err
	}
	latency, err := r.latencyChart()
	if err != nil {
		return nil, err
	}
	return []*plot.Plot{bandwidth, rate, latency}, nil
}

// bandwidthChart has a linear scale: what counts is how high it gets.
func (r *sweepReport) bandwidthChart() (*plot.Plot, error) {
	p := newChart("Bandwidth by message size", sizeLabel, "bandwidth (GB/s)")
	p.X.Tick.Marker = sizeTicks{}
	p.Y.Min = 0
	p.Y.Tick.Marker = roundTicks{}
	return p, r.addStreams(p, func(s perfResult) float64 { return s.GBps })
}

// rateChart has a logarithmic scale: rates differ by a factor of thousands.
func (r *sweepReport) rateChart() (*plot.Plot, error) {
	p := newChart("Message rate by message size", sizeLabel, "messages (millions a second)")
	p.X.Tick.Marker = sizeTicks{}
	p.Y.Tick.Marker = decadeTicks{}
	p.Legend.Top = false // where a falling line leaves room
	return p, r.addStreams(p, func(s perfResult) float64 { return math.Log10(s.Mps) })
}

const sizeLabel = "message size (octets; K = 1024)"

func (r *sweepReport) addStreams(p *plot.Plot, value func(perfResult) float64) error {
	for _, s := range sweepLines {
		var points plotter.XYs
		for _, result := range r.series(s.op, s.crc) {
			points = append(points, plotter.XY{X: math.Log2(float64(result.Size)), Y: value(result)})
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		line.Color, line.Width = opColours[s.op], vg.Points(1.6)
		dots.GlyphStyle = draw.GlyphStyle{Color: line.Color, Radius: vg.Points(2.4), Shape: draw.CircleGlyph{}}
		if s.crc {
			line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
			dots.Shape = draw.RingGlyph{}
		}
		p.Add(line, dots)
		p.Legend.Add(s.name, line, dots)
	}
	return nil
}

// latencyChart shows for each time what share of the messages did not take
// longer, up to the time that 99.9 % stay below.
func (r *sweepReport) latencyChart() (*plot.Plot, error) {
	title := fmt.Sprintf("Latency of a Send of %d octets, CRC off: cumulative distribution", sweepLatencySize)
	p := newChart(title, "half a round trip (µs, logarithmic)", "messages that take no longer (%)")
	p.X.Tick.Marker = decadeTicks{}
	p.Y.Tick.Marker = percentTicks()
	p.Y.Min, p.Y.Max = 0, 100
	p.Legend.Top, p.Legend.XOffs, p.Legend.YOffs = false, chartWidth*0.4, vg.Points(10)
	for i, l := range r.Latency {
		var points plotter.XYs
		l.times.Shares(func(d time.Duration, share float64) {
			us := max(float64(d), 1) / 2 / float64(time.Microsecond)
			if share <= 0.999 || len(points) == 0 {
				points = append(points, plotter.XY{X: math.Log10(us), Y: 100 * share})
			}
		})
		points = append(plotter.XYs{{X: points[0].X, Y: 0}}, points...)
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color = []color.Color{chartBlue, chartOrange}[i]
		line.Width = vg.Points(1.8)
		p.Add(line)
		p.Legend.Add(fmt.Sprintf("%s, p50 %.1f µs, p99 %.1f µs", latencyName(l), l.Latency.P50, l.Latency.P99), line)
	}
	return p, nil
}

// newChart is an empty chart with a grid.
func newChart(title, x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	p.Title.TextStyle.Font = font.From(sans, 15)
	p.Title.Padding = vg.Points(8)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = font.From(sans, 12)
		a.Label.Padding = vg.Points(5)
		a.Tick.Label.Font = font.From(sans, 11)
	}
	p.Legend.TextStyle.Font = font.From(sans, 11)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Points(3)
	p.Legend.ThumbnailWidth = vg.Points(30)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = chartGrid, chartGrid
	p.Add(grid)
	return p
}

// sizeTicks marks powers of two on an axis of their logarithms, and names every
// other one.
type sizeTicks struct{}

func (sizeTicks) Ticks(from, to float64) (ticks []plot.Tick) {
	for exp := math.Ceil(from); exp <= to; exp++ {
		t := plot.Tick{Value: exp}
		if int(exp)%2 == 0 {
			t.Label = cli.FormatSize(1 << uint(exp))
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// decadeTicks marks 1, 2 and 5 and their multiples by powers of ten on an axis of
// decimal logarithms.
type decadeTicks struct{}

func (decadeTicks) Ticks(from, to float64) (ticks []plot.Tick) {
	for decade := math.Floor(from); decade <= to; decade++ {
		for _, digit := range []float64{1, 2, 5} {
			value := digit * math.Pow(10, decade)
			if at := math.Log10(value); at >= from && at <= to {
				label := strconv.FormatFloat(value, 'f', int(max(0, -decade)), 64)
				ticks = append(ticks, plot.Tick{Value: at, Label: label})
			}
		}
	}
	return ticks
}

// roundTicks marks four to ten round values on a linear axis.
type roundTicks struct{}

func (roundTicks) Ticks(from, to float64) (ticks []plot.Tick) {
	if !(to > from) {
		return []plot.Tick{{Value: from, Label: strconv.FormatFloat(from, 'g', 3, 64)}}
	}
	decade := math.Floor(math.Log10(to - from))
	step := math.Pow(10, decade)
	switch n := (to - from) / step; {
	case n < 2:
		step, decade = step/5, decade-1
	case n < 5:
		step, decade = step/2, decade-1
	}
	for i := math.Ceil(from / step); i*step <= to; i++ {
		label := strconv.FormatFloat(i*step, 'f', int(max(0, -decade)), 64)
		ticks = append(ticks, plot.Tick{Value: i * step, Label: label})
	}
	return ticks
}

func percentTicks() (ticks plot.ConstantTicks) {
	for v := 0; v <= 100; v += 10 {
		ticks = append(ticks, plot.Tick{Value: float64(v), Label: strconv.Itoa(v)})
	}
	return ticks
}

// drawSVG draws charts below one another.
func drawSVG(w io.Writer, charts ...*plot.Plot) error {
	canvas := vgsvg.New(chartWidth, chartHeight*vg.Length(len(charts)))
	tiles := draw.Tiles{Rows: len(charts), Cols: 1, PadTop: 6, PadBottom: 6, PadLeft: 6, PadRight: 14, PadY: 14}
	column := make([][]*plot.Plot, len(charts))
	for i, c := range charts {
		column[i] = []*plot.Plot{c}
	}
	areas := plot.Align(column, tiles, draw.New(canvas))
	for i, c := range charts {
		c.Draw(areas[i][0])
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	// The font need not be there: Arial has the same widths.
	const family = "font-family:Liberation Sans"
	_, err := io.WriteString(w, strings.ReplaceAll(svg.String(), family, family+",Arial,Helvetica,sans-serif"))
	return err
}

// writeSweepSVG writes all charts as one SVG file.
func writeSweepSVG(w io.Writer, r *sweepReport) error {
	charts, err := r.charts()
	if err != nil {
		return err
	}
	return drawSVG(w, charts...)
}
