package qp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/wr"
)

// The tables of this package are pages of the documentation: these tests write them,
// with -update, and fail when they are stale.

// TestStateMachineIsCurrent: docs/state-machine.md.
func TestStateMachineIsCurrent(t *testing.T) {
	var b strings.Builder
	for _, s := range allStates() {
		fmt.Fprintf(&b, "\n## %v\n\n| when | next state | what is done |\n|---|---|---|\n", s)
		for _, trig := range allTriggers() {
			if !happens(s, trig) {
				fmt.Fprintf(&b, "| %v | - | cannot happen |\n", trig)
				continue
			}
			tr := step(s, trig)
			next, what := tr.Next, tr.Actions.String()
			switch {
			case tr.Err != 0:
				next, what = s, "refused: "+tr.Err.Error()
			case what == "":
				what = "nothing"
			}
			fmt.Fprintf(&b, "| %v | %v | %s |\n", trig, next, what)
		}
	}
	docgen.Generated(t, "../docs/state-machine.md", "generated", b.String())
}

// TestErrorsAreCurrent: docs/errors.md.
func TestErrorsAreCurrent(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| what happened | work request | event | Terminate | then | decided by |\n|---|---|---|---|---|---|\n")
	for _, f := range allFaults() {
		c := faults[f]
		status, event, term := "-", "-", "none"
		if c.Status != wr.StatusFlushed {
			status = c.Status.String()
		}
		if c.Event != 0 {
			event = c.Event.String()
		}
		if c.Sends() {
			term = fmt.Sprintf("`0x%04x`", uint16(c.Code))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %v | %s |\n", c.Name, status, event, term,
			step(c.In, c.Trigger).Next, c.Source)
	}
	docgen.Generated(t, "../docs/errors.md", "generated", b.String())
}
