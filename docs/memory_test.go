package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLocksAreNamed: memory-model.md has every mutex of the engine, and none that there
// is not.
func TestLocksAreNamed(t *testing.T) {
	raw, err := os.ReadFile("memory-model.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(raw), "### Locks")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "```")
	for _, path := range []string{"verbs", "qp", "internal/cq", "srq", "stag", "internal/netpoll", "internal/vitcp/endpoint", "vipl"} {
		pkg := filepath.Base(path)
		locks := mutexes(t, path)
		require.NotEmpty(t, locks)
		for _, name := range locks {
			assert.Contains(t, section, "`"+name+"`", "it is not in the table, and where is it in the order?")
			section = strings.ReplaceAll(section, "`"+name+"`", "")
		}
		assert.NotContains(t, section, "`"+pkg+".", "there is no such mutex")
	}
}

// mutexes are the fields of a package's types that are mutexes, as package.Type.field.
func mutexes(t *testing.T, pkg string) (names []string) {
	files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	require.NoError(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			of, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range of.Fields.List {
				kind, ok := f.Type.(*ast.SelectorExpr)
				if !ok || kind.Sel.Name != "Mutex" && kind.Sel.Name != "RWMutex" {
					continue
				}
				owner := filepath.Base(pkg) + "." + spec.Name.Name + "."
				if len(f.Names) == 0 {
					names = append(names, owner+kind.Sel.Name)
				}
				for _, name := range f.Names {
					names = append(names, owner+name.Name)
				}
			}
			return true
		})
	}
	return names
}
