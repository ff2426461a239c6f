package archtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each module is a folder of go.work (docs/decisions/0026-modules.md).
var modules = []string{Module, Module + "/cmd/rnic", Module + "/stats/prometheus"}

// TestRootStandsAlone: the packages that programs import, and their tests, build without go.work: they import none of the
// modules below, whose dependencies are not to be theirs.
func TestRootStandsAlone(t *testing.T) {
	cmd := exec.Command("go", "list", "-test", "-deps", "-tags", "cprograms testers published mutants tshark", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	for line := range strings.Lines(string(out)) {
		for _, nested := range modules[1:] {
			assert.False(t, below(strings.TrimSpace(line), nested), "%s is of the module %s", line, nested)
		}
	}
}

// TestWorkIsAll: what `make test` and its like run, `work`, is each module that is a part of softrnic.
func TestWorkIsAll(t *testing.T) {
	cmd := exec.Command("go", "list", "-m")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Equal(t, modules, strings.Fields(string(out)))
	makefile, err := os.ReadFile(root + "/Makefile")
	require.NoError(t, err)
	for line := range strings.Lines(string(makefile)) {
		everything := strings.HasSuffix(strings.TrimSpace(line), " ./...")
		assert.False(t, everything && !strings.Contains(line, " -C "), "of a module alone: write `work`: %s", line)
	}
}
