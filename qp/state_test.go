package qp

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// golden compares text with a file of testdata, or writes it there.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *docgen.Update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "%s is not what the code does: if that is meant, run the test with -update", path)
}

// TestStateTable has every pair of state and trigger, refusals included.
func TestStateTable(t *testing.T) {
	var b strings.Builder
	for s := range numStates {
		for tr := range numTriggers {
			if !happens(s, tr) {
				assert.Panics(t, func() { step(s, tr) })
				assert.Zero(t, table[s][tr], "%v, %v: nothing is said of what cannot happen", s, tr)
				fmt.Fprintf(&b, "%-10v %-25v cannot happen\n", s, tr)
				continue
			}
			x := step(s, tr)
			if x.Err != 0 {
				assert.Zero(t, x.Actions, "%v, %v: a refusal changes nothing", s, tr)
				fmt.Fprintf(&b, "%-10v %-25v refused: %v\n", s, tr, x.Err)
				continue
			}
			fmt.Fprintf(&b, "%-10v %-25v -> %-10v %v\n", s, tr, x.Next, x.Actions)
		}
		b.WriteByte('\n')
	}
	golden(t, "states.txt", b.String())
}

// TestFaultTable has every fault and what follows.
func TestFaultTable(t *testing.T) {
	var b strings.Builder
	for f := noFault + 1; f < numFaults; f++ {
		c := faults[f]
		require.NotEmpty(t, c.Name, "fault %d has no row", f)
		assert.NotEmpty(t, c.Source, f)
		assert.NotEqual(t, wr.StatusSuccess, c.Status, f)
		event, code := "-", "-"
		if c.Event != 0 {
			event = c.Event.String()
		}
		if c.Sends() {
			code = c.Code.String()
			assert.True(t, c.Code.Defined(), f)
		}
		fmt.Fprintf(&b, "%v\n  status     %v\n  event      %s\n  Terminate  %s\n  trigger    %v, in %v\n  source     %s\n",
			f, c.Status, event, code, c.Trigger, c.In, c.Source)
	}
	golden(t, "faults.txt", b.String())
}

// TestNames: values outside of the tables have a name too.
func TestNames(t *testing.T) {
	assert.Equal(t, "State(9)", wr.State(9).String())
	assert.Equal(t, "Trigger(99)", trigger(99).String())
	assert.Equal(t, "Fault(200)", streamFault(200).String())
	assert.Equal(t, "enqueue, process", (actEnqueue | actProcess).String())
}

// TestModifyRefusals are the Immediate Errors of Modify QP in the states without
// a stream and in RTS: state and attributes stay (verbs draft 8.3.1).
func TestModifyRefusals(t *testing.T) {
	n := func(n int) *int { return &n }
	check := func(r *rig, m Modify, want wr.ImmediateError) {
		t.Helper()
		before := r.q.Query()
		require.ErrorIs(t, r.q.Modify(m), want)
		require.Equal(t, before, r.q.Query())
	}
	r := newIdleRig(t, setup{})
	check(r, Modify{Next: wr.StateClosing}, wr.ErrInvalidState)
	check(r, Modify{Next: wr.StateTerminate}, wr.ErrInvalidState)
	check(r, Modify{Next: 9}, wr.ErrInvalidState)
	check(r, Modify{Next: wr.StateRTS}, wr.ErrInvalidLLPStream)
	check(r, Modify{Next: wr.StateIdle, LastMessage: []byte("x")}, wr.ErrInvalidModifier)
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateIdle, ORD: n(3)}))
	require.Equal(t, 3, r.q.Query().ORD)
	r.connect()
	check(r, Modify{Next: wr.StateIdle}, wr.ErrInvalidState)
	check(r, Modify{Next: wr.StateRTS, Stream: streamFor(wr.StateRTS)}, wr.ErrInvalidModifier)
	check(r, Modify{Next: wr.StateError, ORD: n(1)}, wr.ErrInvalidModifier)
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateRTS, ORD: n(2)}))
	require.Equal(t, 2, r.q.Query().ORD)
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
	check(r, Modify{Next: wr.StateRTS, Stream: streamFor(wr.StateRTS)}, wr.ErrInvalidState)
	check(r, Modify{Next: wr.StateClosing}, wr.ErrInvalidState)
	check(r, Modify{Next: wr.StateTerminate}, wr.ErrInvalidState)
	check(r, Modify{Next: wr.StateError}, wr.ErrInvalidState)
}

// TestUnknownRefusals: what another package is not known to refuse is a failure of
// this side, never a success.
func TestUnknownRefusals(t *testing.T) {
	for s := range numSides {
		assert.Equal(t, noFault, memoryFault(s, stag.OK))
		assert.Equal(t, faultLocal, memoryFault(s, 250))
	}
	assert.Equal(t, faultLocal, checkFault(rdmap.Send, rdmap.CodeGlobal))
}
