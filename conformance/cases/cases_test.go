package cases

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/requirements"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// TestCases runs every case against the target in this process.
func TestCases(t *testing.T) {
	target := conformance.InProcess{}
	o := conformance.Options{Timeout: 2 * time.Minute, Seed: 1, Select: conformance.Selection{Strict: true}}
	for _, c := range All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			results, err := conformance.Run(t.Context(), []conformance.Case{c}, target, o)
			require.NoError(t, err)
			require.Len(t, results, 1)
			if r := results[0]; r.Verdict != conformance.Pass {
				t.Errorf("%s: %s\n%s", r.Verdict, r.Detail, show(r.Trace))
			}
		})
	}
}

// show is a trace for a person, not all of a long one.
func show(trace []conformance.Mark) string {
	var b strings.Builder
	if most := 40; len(trace) > most {
		fmt.Fprintf(&b, "(%d earlier)\n", len(trace)-most)
		trace = trace[len(trace)-most:]
	}
	for _, m := range trace {
		octets := m.Octets[:min(len(m.Octets), 96)]
		fmt.Fprintf(&b, "%10v %d %s %s % x\n", m.At.Round(time.Microsecond), m.Stream, m.Direction, m.Text, octets)
	}
	return b.String()
}

// TestNames: a name is "section/what" and means one case.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range All() {
		assert.False(t, seen[c.Name], "two cases %s", c.Name)
		seen[c.Name] = true
		assert.Regexp(t, `^[A-Za-z0-9.-]+/[a-z0-9-]+$`, c.Name)
		assert.NotNil(t, c.Run, c.Name)
		assert.NotEmpty(t, c.Keys, c.Name)
		assert.NotZero(t, c.Need, c.Name)
	}
}

// TestKeys: a case covers keys that there are, once each, and that a case can show.
func TestKeys(t *testing.T) {
	for _, c := range All() {
		musts := 0
		for i, k := range c.Keys {
			r, ok := requirements.ByKey()[k]
			if !assert.True(t, ok, "%s: no key %s", c.Name, k) {
				continue
			}
			assert.Equal(t, requirements.Test, r.Class, "%s: the class of %s", c.Name, k)
			assert.NotContains(t, c.Keys[:i], k, c.Name)
			if r.Level == "MUST" {
				musts++
			}
		}
		if c.Strict {
			assert.Zero(t, musts, "%s is run with --strict only: it covers no MUST", c.Name)
		}
	}
}

// TestCoverage: every MUST that a case can show has one.
func TestCoverage(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range All() {
		for _, k := range c.Keys {
			covered[k] = true
		}
	}
	missing := map[string][]string{}
	for _, r := range requirements.All() {
		if r.Level == "MUST" && r.Class == requirements.Test && !covered[r.Key] {
			section := r.Spec + " " + r.Section
			missing[section] = append(missing[section], r.Key)
		}
	}
	var lines []string
	for s, keys := range missing {
		lines = append(lines, fmt.Sprintf("%-16s %3d  %s", s, len(keys), strings.Join(keys, " ")))
	}
	slices.Sort(lines)
	assert.Empty(t, lines, "keys without a case:\n%s", strings.Join(lines, "\n"))
}
