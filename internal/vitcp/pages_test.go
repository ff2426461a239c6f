package vitcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/softrnic/softrnic/internal/test/docgen"
)

// TestMachinesAreCurrent: docs/vi.md has the tables of both machines, a row for each
// event that a state takes.
func TestMachinesAreCurrent(t *testing.T) {
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
	docgen.Generated(t, "../../docs/vi.md", "machines", b.String())
}
