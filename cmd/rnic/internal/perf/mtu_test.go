package perf

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
)

// Where network namespaces can be made, it measures; elsewhere it says what is
// missing.
func TestPerfMTU(t *testing.T) {
	missing := ""
	switch _, noIP := exec.LookPath("ip"); {
	case runtime.GOOS != "linux":
		missing = "thing of Linux"
	case noIP != nil:
		missing = "iproute2"
	case !mayMakeNamespaces():
		missing = "takes root"
	}
	r := clitest.Run(t.Context(), "perf", "mtu", "--json", "--rounds", "2", "--duration", "20ms", "--mtu", "1400")
	if missing != "" {
		assert.Equal(t, 1, r.Status)
		assert.Contains(t, r.Stderr, missing)
		return
	}
	require.Zero(t, r.Status, r.Stderr)
	var rows []baselineRow
	clitest.Decode(t, r.Stdout, &rows)
	require.Len(t, rows, len(mtuRuns))
	for i, row := range rows {
		assert.Equal(t, mtuRuns[i].what, row.What)
		assert.Equal(t, mtuRuns[i].run.CRC, row.CRC)
		assert.Positive(t, row.Ours, row.What)
		assert.Positive(t, row.Plain, row.What)
		assert.InEpsilon(t, row.Ours/row.Plain, row.Ratio, 1e-9)
	}
}

// Both runs are measured as they say.
func TestMTURuns(t *testing.T) {
	for _, b := range mtuRuns {
		assert.Equal(t, strings.HasSuffix(b.what, "CRC on"), b.run.CRC)
		assert.Equal(t, 1<<20, b.run.Size)
	}
}

// A child whose parent gave up, or writes nonsense, ends.
func TestMTUEnds(t *testing.T) {
	for _, end := range []string{mtuClient, mtuServer} {
		r := clitest.Run(t.Context(), "perf", "mtu", "--end", end)
		assert.Zero(t, r.Status, r.Stderr)
		r = clitest.RunInput(t.Context(), "dance\n", "perf", "mtu", "--end", end)
		assert.Equal(t, 1, r.Status)
		assert.Contains(t, r.Stderr, "reading what to do")
		assert.Empty(t, r.Stdout)
	}
}
