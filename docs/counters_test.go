package docs

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/stats"
)

// TestCountersAreCurrent holds the table of counters.md to the code.
func TestCountersAreCurrent(t *testing.T) {
	var b strings.Builder
	counterTable(&b, "Of a queue pair, and of all of an RNIC", stats.QPCounters)
	counterTable(&b, "Of a completion queue, and of all of an RNIC", stats.CQCounters)
	counterTable(&b, "Of a shared receive queue, and of all of an RNIC", stats.SRQCounters)
	counterTable(&b, "Of an RNIC", stats.RNICCounters)
	docgen.Generated(t, "counters.md", "counters", b.String())
}

func counterTable[T any](b *strings.Builder, title string, table []stats.Counter[T]) {
	fmt.Fprintf(b, "\n| %s | named by | is | counts |\n|---|---|---|---|\n", title)
	for _, c := range table {
		name, kind := "`"+c.Name+"`", "counter"
		if c.Label != "" {
			name += " [" + c.Label + "]"
		}
		if c.Gauge {
			kind = "gauge"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, cmp.Or(c.Linux, "softrnic"), kind, c.Help)
	}
}
