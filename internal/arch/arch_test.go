package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listed is the part of a `go list -json` record that matters here. Imports leaves test files out: tests
// may look at everything.
type listed struct {
	ImportPath string
	Imports    []string
}

// listModule runs `go list` over the whole module as it builds for one operating system. A package that does
// not build (-e) is listed all the same: the compiler is the one to say so.
func listModule(t *testing.T, goos string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", Module+"/...")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())

	var pkgs []listed
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		require.NoError(t, err)
		pkgs = append(pkgs, p)
	}
}

func TestImportDirection(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			var paths []string
			for _, p := range listModule(t, goos) {
				paths = append(paths, p.ImportPath)
				for _, v := range violations(p.ImportPath, p.Imports) {
					t.Error(v)
				}
			}
			require.Contains(t, paths, Module+"/wr", "go list did not report the module's packages")
			require.Contains(t, paths, Module+"/internal/arch")
		})
	}
}

func TestViolations(t *testing.T) {
	tests := []struct {
		name    string
		pkg     string
		imports []string
		want    int
	}{
		{"standard library", "wr", []string{"net", "encoding/binary"}, 0},
		{"nouns import nothing", "wr", []string{Module + "/stag"}, 1},
		{"stag sees nouns", "stag", []string{Module + "/wr"}, 0},
		{"wire layers do not see each other", "mpa", []string{Module + "/ddp"}, 1},
		{"wire layers do not call up", "ddp", []string{Module + "/rdmap"}, 1},
		{"rdmap sees ddp", "rdmap", []string{Module + "/ddp"}, 0},
		{"rdmap does not see mpa", "rdmap", []string{Module + "/mpa"}, 1},
		{"qp composes the wire layers", "qp", []string{Module + "/mpa", Module + "/ddp", Module + "/rdmap", Module + "/internal/ring"}, 0},
		{"qp does not see verbs", "qp", []string{Module + "/verbs", Module + "/cm"}, 2},
		{"verbs does not see ddp", "verbs", []string{Module + "/ddp"}, 1},
		{"verbs does not see cm", "verbs", []string{Module + "/cm"}, 1},
		{"cm goes through verbs", "cm", []string{Module + "/verbs", Module + "/mpa", Module + "/wr"}, 0},
		{"cm does not reach below verbs", "cm", []string{Module + "/qp"}, 1},
		{"own subpackage", "stag", []string{Module + "/stag/sub"}, 0},
		{"machines see the endpoint", "vitcp", []string{Module + "/vitcp/endpoint", Module + "/vitcp/segment"}, 0},
		{"machines see no memory", "vitcp", []string{Module + "/stag"}, 1},
		{"the endpoint sees the wire", "vitcp/endpoint", []string{Module + "/vitcp/segment", Module + "/stag"}, 0},
		{"the endpoint does not see the machines", "vitcp/endpoint", []string{Module + "/vitcp"}, 1},
		{"the wire sees neither", "vitcp/segment", []string{Module + "/vitcp", Module + "/vitcp/endpoint"}, 2},
		{"vipl sees all of vitcp", "vipl", []string{Module + "/vitcp", Module + "/vitcp/endpoint"}, 0},
		{"a prefix is not the room", "rdmap", []string{Module + "/ddpx"}, 1},
		{"subpackage keeps its room's rule", "mpa/sub", []string{Module + "/wr"}, 1},
		{"internal sees nouns", "internal/ring", []string{Module + "/wr", Module + "/internal/other"}, 0},
		{"internal does not see verbs", "internal/ring", []string{Module + "/verbs"}, 1},
		{"internal package with a rule of its own", "internal/rping", []string{Module + "/verbs"}, 0},
		{"programs see all", "cmd/rnic", []string{Module + "/verbs", Module + "/qp", "github.com/spf13/cobra"}, 0},
		{"the program sees its commands", "cmd/rnic", []string{Module + "/cmd/rnic/internal/perf"}, 0},
		{"commands see what they share", "cmd/rnic/internal/perf", []string{Module + "/cmd/rnic/internal/cli", Module + "/verbs"}, 0},
		{"commands do not see each other", "cmd/rnic/internal/perf", []string{Module + "/cmd/rnic/internal/demo"}, 1},
		{"what commands share does not see them", "cmd/rnic/internal/cli", []string{Module + "/cmd/rnic/internal/demo"}, 1},
		{"core takes no command library", "qp", []string{"github.com/spf13/cobra"}, 1},
		{"core takes the Go project's modules", "mpa", []string{"golang.org/x/sys/unix"}, 0},
		{"cases assert with testify", "conformance/cases", []string{Module + "/verbs", "github.com/stretchr/testify/require"}, 0},
		{"what is shipped does not assert", "verbs", []string{"github.com/stretchr/testify/require"}, 1},
		{"unknown room", "newroom", []string{"net"}, 1},
		{"root package", "", []string{"net"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pkg := Module
			if tt.pkg != "" {
				pkg += "/" + tt.pkg
			}
			assert.Len(t, violations(pkg, tt.imports), tt.want)
		})
	}
}

// A name that the table mentions but does not define would allow nothing, silently.
func TestRulesNameKnownRooms(t *testing.T) {
	for name, r := range rules {
		for _, to := range r.rooms {
			assert.Contains(t, rules, to, "rule of room %q", name)
		}
	}
}
