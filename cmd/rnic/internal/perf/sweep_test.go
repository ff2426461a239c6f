package perf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
)

func TestPerfSweep(t *testing.T) {
	page := filepath.Join(t.TempDir(), "sweep.html")
	r := clitest.Run(t.Context(), "perf", "sweep", "--size", "4K,64,4K", "--duration", "2ms", "--rounds", "2", "--out", page)
	require.Zero(t, r.Status, r.Stderr)
	assert.Contains(t, r.Stdout, "Bandwidth in GB/s")
	assert.Regexp(t, `octets +Send +Send, CRC +Write +Write, CRC +Read +Read, CRC`, r.Stdout)
	assert.Regexp(t, `(?m)^ +4,096( +[\d.]+ ±\d+ %){6} *$`, r.Stdout)
	assert.Regexp(t, `(?m)^ +4,096( +[\d.]+){6} *$`, r.Stdout)
	assert.Regexp(t, `polling +[\d,]+( +\d+\.\d\d){7} +\d+\.\d\d to \d+\.\d\d *\n`, r.Stdout)
	assert.Contains(t, r.Stdout, "Medians of 2 rounds")
	assert.Contains(t, r.Stdout, "Charts: "+page)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(text), "<svg"))
	assert.NotContains(t, string(text), "ZgotmplZ", "html/template has found something unsafe")
}

func TestPerfSweepJSON(t *testing.T) {
	r := clitest.Run(t.Context(), "perf", "sweep", "--size", "100", "--duration", "2ms", "--rounds", "1", "--json")
	require.Zero(t, r.Status, r.Stderr)
	var results []perfResult
	clitest.Decode(t, r.Stdout, &results)
	require.Len(t, results, len(sweepLines)+2)
	for i, line := range sweepLines {
		assert.Equal(t, line.op, results[i].Op)
		assert.Equal(t, line.crc, results[i].CRC)
		assert.Equal(t, 100, results[i].Size)
		assert.Equal(t, spread{1, results[i].GBps, results[i].GBps}, *results[i].Spread)
		assert.Positive(t, results[i].GBps)
	}
	for i, event := range []bool{false, true} {
		l := results[len(sweepLines)+i]
		assert.Equal(t, event, l.Event)
		assert.False(t, l.CRC)
		assert.Equal(t, sweepLatencySize, l.Size)
		checkLatency(t, l)
	}
}

func TestPerfSweepCannotWrite(t *testing.T) {
	r := clitest.Run(t.Context(), "perf", "sweep", "--out", filepath.Join(t.TempDir(), "nowhere", "s.html"))
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, "no such file")
	assert.Empty(t, r.Stdout)
}

// A file that nothing was drawn into does not stay.
func TestSweepFileIsRemoved(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s.svg")
	f, err := createSweepFile(name)
	require.NoError(t, err)
	require.FileExists(t, name)
	require.NoError(t, f.finish(nil, io.ErrUnexpectedEOF), "the caller reports that one")
	assert.NoFileExists(t, name)

	f, err = createSweepFile(name)
	require.NoError(t, err)
	f.write = func(io.Writer, *sweepReport) error { return io.ErrShortWrite }
	assert.ErrorIs(t, f.finish(sampleSweep(), nil), io.ErrShortWrite)
	assert.NoFileExists(t, name)
}

// TestOverRounds: of streams the median round counts, and how far the others were off; latencies are counted together.
func TestOverRounds(t *testing.T) {
	var rounds []perfResult
	for _, gb := range []uint64{4, 1, 2} {
		rounds = append(rounds, newStreamResult(perfRun{Op: "send", Size: 1e9}, gb, 1))
	}
	got := overRounds(perfRun{}, rounds)
	assert.Equal(t, uint64(2), got.Messages)
	assert.Equal(t, &spread{Rounds: 3, Least: 1, Most: 4}, got.Spread)
	assert.Equal(t, " ±100 %", plusMinus(got))

	run := perfRun{Op: "send", Latency: true, Size: 64}
	rounds = nil
	for _, us := range []int{8, 2} {
		var times histogram.Histogram
		times.Record(time.Duration(us) * time.Microsecond)
		rounds = append(rounds, newLatencyResult(run, &times, time.Second))
	}
	got = overRounds(run, rounds)
	assert.Equal(t, uint64(2), got.Messages)
	assert.InDelta(t, 2, got.Seconds, 1e-9)
	assert.InDelta(t, 1, got.Latency.Min, 0.1)
	assert.InDelta(t, 4, got.Latency.Max, 0.1)
	assert.InDelta(t, 1, got.Spread.Least, 0.1)
	assert.InDelta(t, 4, got.Spread.Most, 0.1)
}

// TestHowSure: a report says how far its rounds were apart, and who else was busy.
func TestHowSure(t *testing.T) {
	r := sampleSweep()
	assert.Equal(t, "Medians of 3 rounds that took turns; ± is how far the farthest was off: "+
		"at most 10 % for half of the streams, 10 % for the worst.", r.HowSure())
	assert.Empty(t, r.Remark())
	r.Others = 0.25
	assert.Contains(t, r.Remark(), "had 25 % of the processors' time")
	r.Rounds = 1
	assert.Contains(t, r.HowSure(), "nothing says how sure")
}

// TestOthersTime: the time of this process is not counted as that of others.
func TestOthersTime(t *testing.T) {
	before := othersTime()
	if before == nil {
		t.Skip("not known on this system")
	}
	for own := *processorTime(); *processorTime()-own < 100*time.Millisecond; {
	}
	assert.GreaterOrEqual(t, *othersTime(), *before-50*time.Millisecond, "both clocks are exact to a tick or two")
	assert.Zero(t, othersShare(nil, time.Now()))
}

// sampleSweep is a report with made-up figures.
func sampleSweep() *sweepReport {
	r := &sweepReport{Sizes: []uint64{64, 128, 4 << 20}, Rounds: 3, Duration: time.Second, When: time.Unix(1, 0).UTC(), Machine: "a <machine>"}
	for _, line := range sweepLines {
		for i, size := range r.Sizes {
			r.Streams = append(r.Streams, newStreamResult(
				perfRun{Op: line.op, CRC: line.crc, Size: int(size)}, uint64(1e6)>>(4*i), 1))
			p := &r.Streams[len(r.Streams)-1]
			p.Spread = &spread{Rounds: 3, Least: 0.9 * p.GBps, Most: 1.1 * p.GBps}
		}
	}
	for _, event := range []bool{false, true} {
		var times histogram.Histogram
		for us := range 100 {
			times.Record(time.Duration(us) * time.Microsecond)
		}
		r.Latency = append(r.Latency, newLatencyResult(perfRun{Op: "send", Event: event, Size: 64}, &times, time.Second))
		r.Latency[len(r.Latency)-1].Spread = &spread{Rounds: 3, Least: 24, Most: 26}
	}
	return r
}

func TestWriteSweepSVG(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, writeSweepSVG(&out, sampleSweep()))
	texts := svgTexts(t, out.String())
	assert.Equal(t, len(sweepLines)*3, strings.Count(out.String(), `class="span"`), "a stroke for each figure's rounds")
	for _, want := range []string{
		"Bandwidth by message size", "Message rate by message size", "Latency of a Send of 64 octets, CRC off: cumulative distribution",
		"bandwidth (GB/s)", "messages (millions a second)", "message size (octets; K = 1024)",
		"half a round trip (µs, logarithmic)", "messages that take no longer (%)",
		"Send", "Send, CRC", "Write", "Write, CRC", "Read", "Read, CRC",
		"64", "1K", "64K", "4M",
		"polling, p50 25.0 µs, p99 49.4 µs",
	} {
		assert.Contains(t, texts, want)
	}
}

// svgTexts are the texts of an SVG, which has to be well-formed XML.
func svgTexts(t *testing.T, svg string) (texts []string) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(svg))
	inText := false
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.CharData:
			if inText {
				texts = append(texts, string(token))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

// The page needs nothing from elsewhere, and what it shows is no markup.
func TestWriteSweepPage(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, writeSweepPage(&out, sampleSweep()))
	page := out.String()
	assert.Contains(t, page, "a &lt;machine&gt;")
	assert.Contains(t, page, "1 January 1970")
	assert.Contains(t, page, "<td>4,194,304</td>")
	assert.NotContains(t, page, "<?xml")
	for _, elsewhere := range []string{"<script", "<link", "src=", "url(", "@import"} {
		assert.NotContains(t, page, elsewhere)
	}
}

func TestSizeTicks(t *testing.T) {
	assert.Equal(t, []tick{{6, "64"}, {at: 7}, {8, "256"}, {at: 9}, {10, "1K"}}, sizeTicks(5.5, 10))
}

func TestDecadeTicks(t *testing.T) {
	var labels []string
	for _, tick := range decadeTicks(-2.1, 3.1) {
		labels = append(labels, tick.label)
	}
	assert.Equal(t, strings.Fields("0.01 0.02 0.05 0.1 0.2 0.5 1 2 5 10 20 50 100 200 500 1000"), labels)
}

func TestThreeDigits(t *testing.T) {
	for want, v := range map[string]float64{
		"0.00": 0, "1.00": 1, "9.99": 9.99, "10.1": 10.12, "1234": 1234.4, "0.0123": 0.01234, "0.0000826": 8.26e-5,
	} {
		assert.Equal(t, want, threeDigits(v))
	}
}

func TestRoundTicks(t *testing.T) {
	for want, upTo := range map[string]float64{
		"0.0 0.5 1.0 1.5 2.0 2.5": 2.58, "0.0 0.2 0.4 0.6 0.8 1.0": 1, "0 1 2 3 4 5": 5.9, "0 1 2 3 4 5 6 7 8 9": 9.9,
		"0 5 10 15 20": 24, "0.000 0.002 0.004 0.006 0.008 0.010": 0.011, "0": 0,
	} {
		var labels []string
		for _, tick := range roundTicks(0, upTo) {
			labels = append(labels, tick.label)
		}
		assert.Equal(t, strings.Fields(want), labels, upTo)
	}
}

// No latency, or one that rounds to nothing, is drawn all the same.
func TestLatencyChartOfOneTime(t *testing.T) {
	r := sampleSweep()
	var times histogram.Histogram
	times.Record(0)
	r.Latency = []perfResult{newLatencyResult(perfRun{Op: "send"}, &times, time.Second)}
	r.Latency[0].Spread = &spread{Rounds: 1}
	assert.NoError(t, writeSweepSVG(io.Discard, r))
}

// What no chart can show, the logarithm of no messages, leaves the other points where they are.
func TestChartWithoutAPoint(t *testing.T) {
	r := sampleSweep()
	for i := range r.Streams {
		if r.Streams[i].Size == 128 {
			r.Streams[i].Mps = 0
		}
	}
	var out bytes.Buffer
	require.NoError(t, drawSVG(&out, r.rateChart()))
	assert.NotContains(t, out.String(), "Inf")
	assert.NotContains(t, out.String(), "NaN")
	assert.Equal(t, 3*len(sweepLines), strings.Count(out.String(), "<circle"), "two points a line, and the legend's")
}

// Dark pages get colours of their own, and names of lines are no markup.
func TestChartColoursAndNames(t *testing.T) {
	c := newChart("a <title>", axis{ticks: roundTicks}, axis{ticks: roundTicks})
	c.add(line{name: "a & b", colour: "blue", points: []point{{1, 1}}})
	var out bytes.Buffer
	require.NoError(t, drawSVG(&out, c))
	assert.Contains(t, out.String(), "@media(prefers-color-scheme:dark)")
	texts := svgTexts(t, out.String())
	assert.Contains(t, texts, "a <title>")
	assert.Contains(t, texts, "a & b")
}
