package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/docgen"
)

// root is the folder of the module, seen from a test of this package.
const root = "../../.."

// imported is what `go list` says of the module's packages, on every system that they build for: what each imports,
// tests apart. A package that does not build (-e) is listed all the same: the compiler is the one to say so.
func imported(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, env := range [][]string{{"GOOS=linux", "CGO_ENABLED=1"}, {"GOOS=darwin", "CGO_ENABLED=0"}, {"GOOS=windows", "CGO_ENABLED=0"}} {
		cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", Module+"/...")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), env...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, stderr.String())
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				ImportPath string
				Imports    []string
			}
			err := dec.Decode(&p)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			name := short(p.ImportPath)
			list := all[name]
			for _, imp := range p.Imports {
				if s := short(imp); s != "" && !slices.Contains(list, s) {
					list = append(list, s)
				}
			}
			slices.Sort(list)
			all[name] = list
		}
	}
	return all
}

// TestTableIsTheCode: every package has a row, and imports what its row says: no more, and no less.
func TestTableIsTheCode(t *testing.T) {
	code := imported(t)
	table := map[string][]string{}
	for _, g := range packages {
		for _, e := range g.entries {
			require.Nil(t, table[e.path], "%s has two rows", e.path)
			table[e.path] = slices.Sorted(strings.FieldsSeq(e.imports))
			assert.NotEmpty(t, e.holds, e.path)
		}
	}
	for name, imports := range code {
		_, there := table[name]
		if assert.True(t, there, "%s has no row in packages.go", name) {
			for _, imp := range imports {
				assert.True(t, slices.Contains(table[name], imp), "%s imports %s, and its row in packages.go does not say so", name, imp)
			}
			for _, imp := range table[name] {
				assert.True(t, slices.Contains(imports, imp), "%s does not import %s, as its row in packages.go says", name, imp)
			}
		}
	}
	for name := range table {
		_, there := code[name]
		assert.True(t, there, "packages.go has a row of %s, which is no package", name)
	}
}

// TestImportsPointUpTheTable, and none is one that can never be.
func TestImportsPointUpTheTable(t *testing.T) {
	for _, s := range broken(packages) {
		t.Error(s)
	}
}

// TestBroken: what no table may have is found.
func TestBroken(t *testing.T) {
	of := func(entries ...entry) []group { return []group{{"", entries}} }
	for _, tt := range []struct {
		name  string
		table []group
		want  int
	}{
		{"in order", of(entry{path: "ddp"}, entry{path: "rdmap", imports: "ddp golang.org/x/sys"}), 0},
		{"out of order", of(entry{path: "rdmap", imports: "ddp"}, entry{path: "ddp"}), 1},
		{"of a package that is not there", of(entry{path: "rdmap", imports: "ddp"}), 1},
		{"the nouns import nothing", of(entry{path: "stag"}, entry{path: "wr", imports: "stag"}), 1},
		{"wire layers do not see each other", of(entry{path: "ddp"}, entry{path: "mpa", imports: "ddp"}), 1},
		{"a user's program sees verbs", of(entry{path: "verbs"}, entry{path: "examples/kv", imports: "verbs"}), 0},
		{"and nothing below", of(entry{path: "qp"}, entry{path: "ulp/rsocket", imports: "qp"}), 1},
		{"a prefix is no folder", of(entry{path: "verbsx"}, entry{path: "qp", imports: "verbsx"}), 0},
	} {
		assert.Len(t, broken(tt.table), tt.want, tt.name)
	}
}

// TestLinter and TestPage: the linter's rules and the page are made from the table.
func TestLinter(t *testing.T) {
	docgen.Generated(t, root+"/.golangci.yml", "packages", linterRules(packages))
}

func TestPage(t *testing.T) {
	docgen.Generated(t, root+"/docs/architecture.md", "packages", page(packages))
}
