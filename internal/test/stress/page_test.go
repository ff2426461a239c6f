package stress

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/docgen"
)

// page is where the tables are.
const page = "../../../docs/security.md"

// siege says that `make siege` runs: long enough for figures.
func siege() bool { return os.Getenv("SOFTRNIC_SIEGE_SECONDS") != "" }

// table is one of docs/security.md, which `make siege` writes there between the marks of its name.
type table struct {
	name string
	head []string
	rows []string
}

var (
	silentTable = table{name: "silent", head: []string{
		"listener", "silent connections", "honest ones", "failed", "p50", "p99", "idle p50", "idle p99", "before", "after",
	}}
	resetsTable = table{name: "resets", head: []string{
		"listener", "resets at each step", "honest ones", "failed", "p50", "p99", "before", "after",
	}}
	worstTable = table{name: "worst", head: []string{
		"server", "each connection", "connections", "KiB each", "promised", "socket, KiB each", "promised", "honest clients",
	}}
)

// row adds a row, and prints it.
func (x *table) row(t *testing.T, cells ...any) {
	t.Helper()
	var b strings.Builder
	for _, c := range cells {
		fmt.Fprintf(&b, "| %v ", c)
	}
	x.rows = append(x.rows, b.String()+"|\n")
	t.Log(b.String() + "|")
}

// publish writes the table to the page if it is one of `make siege`, is whole, and all bars were met.
func (x *table) publish(t *testing.T, whole int) {
	t.Helper()
	if !siege() || t.Failed() || len(x.rows) != whole {
		return
	}
	text := fmt.Sprintf("All %d rows met the bars, in a run on %d processors (%s/%s):\n\n", whole, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	text += "| " + strings.Join(x.head, " | ") + " |\n" + strings.Repeat("|---", len(x.head)) + "|\n" + strings.Join(x.rows, "")
	was := *docgen.Update
	*docgen.Update = true
	docgen.Generated(t, page, x.name, text)
	*docgen.Update = was
}

// siegeAttacks are those of `make siege`.
func siegeAttacks() (all []attack) {
	for _, rate := range []int{20, 200, 2000} {
		all = append(all, attack{rate: rate}, attack{rate: rate, many: true})
	}
	return append(all, attack{rate: 200, trickle: true})
}

// TestPage: the page has a row for each listener, attack and worst there is, in their order, and no other.
func TestPage(t *testing.T) {
	var silent, resets, worsts []string
	for _, s := range servers {
		for _, a := range siegeAttacks() {
			silent = append(silent, fmt.Sprintf("| %s | %v | ", s.name, a))
		}
		resets = append(resets, fmt.Sprintf("| %s | 1000 | ", s.name))
	}
	for _, w := range worstOf {
		worsts = append(worsts, fmt.Sprintf("| %s | %s | ", w.server, w.does))
	}
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, c := range []struct {
		table
		want []string
	}{{silentTable, silent}, {resetsTable, resets}, {worstTable, worsts}} {
		_, rest, ok := strings.Cut(string(raw), "<!-- "+c.name+":begin -->\n")
		require.True(t, ok, c.name)
		text, _, ok := strings.Cut(rest, "<!-- "+c.name+":end -->")
		require.True(t, ok, c.name)
		_, body, ok := strings.Cut(text, "| "+strings.Join(c.head, " | ")+" |\n"+strings.Repeat("|---", len(c.head))+"|\n")
		require.True(t, ok, "%s has another head: make siege", c.name)
		lines := strings.Split(strings.TrimSpace(body), "\n")
		if assert.Len(t, lines, len(c.want), "%s has other rows: make siege", c.name) {
			for i, line := range lines {
				assert.True(t, strings.HasPrefix(line, c.want[i]), "%s has %q where %q is to be: make siege", c.name, line, c.want[i])
			}
		}
	}
}
