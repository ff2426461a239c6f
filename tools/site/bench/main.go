// Command bench keeps docs/benchmarks.md: it records runs, and makes the page of what was recorded.
//
//	go run -C tools/site ./bench -root ../..              # what `make bench-page` does
//	go run -C tools/site ./bench -root ../.. -record 10   # what `make bench-record` does: ten runs more, then the page
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	turnsFile = "docs/bench/turns.json" // runs of rnic perf baseline, an object a line
	goFile    = "docs/bench.txt"        // what make bench printed
	pageFile  = "docs/benchmarks.md"
)

// turns is one run of `rnic perf baseline`, and what the machine was doing when it began.
type turns struct {
	When       time.Time `json:"when"`
	CPU        string    `json:"cpu"`
	Processors int       `json:"processors"`
	Busy       float64   `json:"busy"` // the share of the processors that others used just before, 0 to 1
	Rows       []turnRow `json:"rows"`
}

// turnRow is a row of that command's.
type turnRow struct {
	What  string  `json:"what"`
	CRC   bool    `json:"crc"`
	Ours  float64 `json:"ours"`
	Plain float64 `json:"net_conn"`
	Unit  string  `json:"unit"`
	Ratio float64 `json:"ratio"`
}

func main() {
	root := flag.String("root", ".", "the project's `folder`")
	record := flag.Int("record", 0, "first record so many `runs` of bin/rnic perf baseline")
	flag.Parse()
	if err := run(*root, *record); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(root string, record int) error {
	in := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	for i := range record {
		fmt.Fprintf(os.Stderr, "bench: run %d of %d\n", i+1, record)
		if err := recordTurns(in("bin/rnic"), in(turnsFile)); err != nil {
			return err
		}
	}
	runs, err := readTurns(in(turnsFile))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(in(goFile))
	if err != nil {
		return err
	}
	marks, err := readGo(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", goFile, err)
	}
	page, err := os.ReadFile(in(pageFile))
	if err != nil {
		return err
	}
	next, err := between(string(page), tables(runs, marks))
	if err != nil {
		return fmt.Errorf("%s: %w", pageFile, err)
	}
	return os.WriteFile(in(pageFile), []byte(next), 0o644)
}

// recordTurns appends a run to the file.
func recordTurns(rnic, file string) error {
	t := turns{When: time.Now().UTC().Truncate(time.Second), CPU: cpu(), Processors: runtime.NumCPU()}
	var err error
	if t.Busy, err = busy(); err != nil {
		return err
	}
	cmd := exec.Command(rnic, "perf", "baseline", "--json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("rnic perf baseline: %w", err)
	}
	if err := json.Unmarshal(out, &t.Rows); err != nil {
		return fmt.Errorf("rnic perf baseline: %w", err)
	}
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// cpu is the name of the processor, as Linux has it.
func cpu() string {
	raw, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// watch is how long others are watched before a run.
const watch = 2 * time.Second

// busy is the share of the processors that is in use.
func busy() (float64, error) {
	idle, all, err := ticks()
	if err != nil {
		return 0, err
	}
	time.Sleep(watch)
	idle2, all2, err := ticks()
	if err != nil {
		return 0, err
	}
	share := 1 - (idle2-idle)/(all2-all)
	return float64(int(100*share+0.5)) / 100, nil
}

// ticks are those of the processors since the system started: idle ones, waiting for a disk included, and all.
func ticks() (idle, all float64, err error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("how busy the machine is, which a record needs: %w", err)
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	for i, field := range strings.Fields(first)[1:] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, 0, err
		}
		if i == 3 || i == 4 {
			idle += n
		}
		if i < 8 { // those of guests are in the others
			all += n
		}
	}
	return idle, all, nil
}

func readTurns(file string) (runs []turns, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("no runs are recorded (make bench-record): %w", err)
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var t turns
		if err := d.Decode(&t); errors.Is(err, io.EOF) {
			return runs, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		runs = append(runs, t)
	}
}

const begin, end = "<!-- bench:begin -->\n", "<!-- bench:end -->"

// between is the page with text between its marks.
func between(page, text string) (string, error) {
	head, rest, ok := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("no %q with %q behind it", strings.TrimSpace(begin), end)
	}
	return head + begin + "\n" + text + end + tail, nil
}
