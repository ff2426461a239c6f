package main

import (
	"strings"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	if got, want := spreadOf([]float64{4, 1, 3, 2, 5}), (spread{5, 1, 2, 3, 4, 5}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := spreadOf([]float64{2}), (spread{1, 2, 2, 2, 2, 2}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := spreadOf([]float64{1, 2}); got.low != 1.25 || got.mid != 1.5 {
		t.Errorf("got %v", got)
	}
}

func TestReadGo(t *testing.T) {
	list, err := readGo("pkg: github.com/softrnic/softrnic/qp\nBenchmarkA/b-c-2  10  200 ns/op\nBenchmarkA/b-c-2  10  100.0 ns/op  3 B/op\n" +
		"pkg: github.com/softrnic/softrnic/stag\nBenchmarkA/b-c-2  1  7 ns/op\n")
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if a := list[0]; a.pkg != "qp" || a.name != "A/b-c" || len(a.ns) != 2 || spreadOf(a.ns).mid != 150 {
		t.Errorf("got %v", a)
	}
	if _, err := readGo("nothing"); err == nil {
		t.Error("a file without benchmarks is read")
	}
}

// TestTables: quiet and busy runs stand apart, and the ratio is the median of the runs'.
func TestTables(t *testing.T) {
	at := func(busy, ratio float64) turns {
		return turns{When: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), CPU: "C", Processors: 2, Busy: busy,
			Rows: []turnRow{{What: "Send", Ours: 3, Plain: 2, Unit: "GB/s", Ratio: ratio}}}
	}
	got := tables([]turns{at(0.01, 1.5), at(0.9, 0.25), at(0, 1.25), at(0.02, 2)}, []goBench{{"qp", "A", []float64{100, 100}}})
	quiet, busy, ok := strings.Cut(got, "### On a busy machine")
	if !ok {
		t.Fatal(got)
	}
	for part, want := range map[string]string{
		quiet: "| Send | more | 3 GB/s | 2 GB/s | **1.50** | 1.38 to 1.75 | 1.25 | 2.00 |",
		busy:  "| Send | more | 3 GB/s | 2 GB/s | **0.25** | 0.25 to 0.25 | 0.25 | 0.25 |",
	} {
		if !strings.Contains(part, want) {
			t.Errorf("no %q in\n%s", want, part)
		}
	}
	if want := "| `qp` | A | 2 | 100 ns | 0 % |"; !strings.Contains(busy, want) {
		t.Errorf("no %q in\n%s", want, busy)
	}
}

func TestBetween(t *testing.T) {
	page := "a\n" + begin + "old\n" + end + "\nz\n"
	got, err := between(page, "new\n")
	if want := "a\n" + begin + "\nnew\n" + end + "\nz\n"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if again, err := between(got, "new\n"); err != nil || again != got {
		t.Errorf("the second time it is %q, %v", again, err)
	}
	if _, err := between("a", "new"); err == nil {
		t.Error("a page without marks is written")
	}
}
