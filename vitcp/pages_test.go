package vitcp

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the generated part of docs/vi.md")

// TestMachinesAreCurrent: docs/vi.md has the tables of both machines, a row for each
// event that a state takes.
func TestMachinesAreCurrent(t *testing.T) {
	const file, begin, end = "../docs/vi.md", "<!-- machines:begin -->\n", "<!-- machines:end -->"
	var b strings.Builder
	for _, m := range []*machine{activeMachine, passiveMachine} {
		fmt.Fprintf(&b, "\n### A connection, %v end\n\n| state | event | next state | what is done |\n|---|---|---|---|\n", m)
		for _, s := range m.states {
			for e := range numTriggers {
				next, actions, err := m.step(s, e)
				if err != nil {
					continue
				}
				what := actions.String()
				if what == "" {
					what = "nothing"
				}
				fmt.Fprintf(&b, "| %v | %v | %v | %s |\n", s, e, next, what)
			}
		}
	}
	b.WriteString("\n")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(raw), begin)
	require.True(t, ok, "%s has no %q", file, begin)
	have, tail, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s has no %q", file, end)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(head+begin+b.String()+end+tail), 0o644))
		return
	}
	require.Equal(t, b.String(), have, "%s is stale: go test ./vitcp -update", file)
}
