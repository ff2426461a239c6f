//go:build published

package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestCollectorIsGot: the module of stats/prometheus finds the root at its own version.
func TestCollectorIsGot(t *testing.T) {
	u := newUser(t)
	u.file("go.mod", "module example.com/x\n\ngo 1.25.0\n")
	u.file("x.go", "package x\n\nimport _ \"github.com/softrnic/softrnic/stats/prometheus\"\n")
	list := added(u.run("go", "get", "github.com/softrnic/softrnic/stats/prometheus@v"+verbs.Version().Release))
	assert.Subset(t, list, []string{"github.com/softrnic/softrnic", "github.com/softrnic/softrnic/stats/prometheus"})
	u.run("go", "build", ".")
}

// TestInstall: `go install` of the program works, and the program says its version, and what `rnic run` would need.
func TestInstall(t *testing.T) {
	u := newUser(t)
	u.run("go", "install", "github.com/softrnic/softrnic/cmd/rnic@v"+verbs.Version().Release)
	found, err := filepath.Glob(filepath.Join(u.dir, "bin", "*"))
	if len(found) == 0 { // of another processor than this
		found, err = filepath.Glob(filepath.Join(u.dir, "bin", "*", "*"))
	}
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Contains(t, u.run(found[0], "version"), "rnic "+verbs.Version().Release+" (released), ")
	if runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
		out, err := exec.CommandContext(t.Context(), found[0], "run", "--", "true").CombinedOutput()
		assert.Error(t, err)
		assert.Contains(t, string(out), "softrnic_"+verbs.Version().Release+"_linux_"+runtime.GOARCH+".tar.gz")
	}
}
