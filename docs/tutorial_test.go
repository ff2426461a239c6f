package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/docgen"
)

// TestTutorialIsCurrent: the programs of tutorial.md are the ones that package tutorial
// runs. A line
//
//	<!-- FILE: NAME... -->
//
// stands before the declarations of these names, and "output NAME" before what the
// example of that name prints. With -update the blocks behind such lines are written.
func TestTutorialIsCurrent(t *testing.T) {
	raw, err := os.ReadFile("tutorial.md")
	require.NoError(t, err)
	mark := regexp.MustCompile("(?s)(<!-- (\\w+\\.go): ([\\w ]+) -->\n)(\n```.*?\n```\n)?")
	blocks := 0
	want := mark.ReplaceAllStringFunc(string(raw), func(found string) string {
		m := mark.FindStringSubmatch(found)
		blocks++
		return m[1] + "\n" + source(t, filepath.Join("tutorial", m[2]), strings.Fields(m[3]))
	})
	require.Positive(t, blocks)
	if *docgen.Update {
		require.NoError(t, os.WriteFile("tutorial.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(raw), "tutorial.md is stale: go test ./docs -update")
}

// source is the fenced source of the named declarations of a file.
func source(t *testing.T, file string, names []string) string {
	t.Helper()
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, src, parser.ParseComments)
	require.NoError(t, err)
	text := func(from, to token.Pos) string { return string(src[set.Position(from).Offset:set.Position(to).Offset]) }
	if names[0] == "output" {
		_, out, found := strings.Cut(text(find(t, f, names[1]).Pos(), f.FileEnd), "utput:\n")
		require.True(t, found, "%s prints nothing", names[1])
		out, _, _ = strings.Cut(out, "\n}")
		return fmt.Sprintf("```\n%s\n```\n", regexp.MustCompile(`(?m)^\t// `).ReplaceAllString(out, ""))
	}
	var parts []string
	for _, name := range names {
		d := find(t, f, name)
		from := d.Pos()
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		case *ast.GenDecl:
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		}
		parts = append(parts, text(from, d.End()))
	}
	return fmt.Sprintf("```go\n%s\n```\n", strings.Join(parts, "\n\n"))
}

// find is the declaration of a function or type.
func find(t *testing.T, f *ast.File, name string) ast.Decl {
	t.Helper()
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == name {
				return d
			}
		case *ast.GenDecl:
			if s, ok := d.Specs[0].(*ast.TypeSpec); ok && s.Name.Name == name {
				return d
			}
		}
	}
	require.Failf(t, "not declared", "%s in %s", name, f.Name)
	return nil
}
