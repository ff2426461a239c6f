package verbs_test

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

// TestNothingOfWRIsMissing: a program needs no other package than this one for the
// codes and nouns of the verbs (9.5).
func TestNothingOfWRIsMissing(t *testing.T) {
	have := exported(t, ".")
	for name, public := range exported(t, "../wr") {
		if public {
			assert.True(t, have[name], "verbs has no %s", name)
		}
	}
	assert.Greater(t, len(have), 150)
}

// exported are the names of the exported types and constants that the files of a
// directory declare at top level.
func exported(t *testing.T, dir string) map[string]bool {
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		f, err := parser.ParseFile(token.NewFileSet(), file, src, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok != token.VAR && g.Tok != token.IMPORT {
				addNames(names, g)
			}
		}
	}
	return names
}

func addNames(names map[string]bool, g *ast.GenDecl) {
	for _, spec := range g.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			names[s.Name.Name] = s.Name.IsExported()
		case *ast.ValueSpec:
			for _, n := range s.Names {
				names[n.Name] = n.IsExported()
			}
		}
	}
}
