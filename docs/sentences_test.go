package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// errorText is a text of an error in the code, and where it is.
type errorText struct {
	field, text string
	at          token.Position
}

// longest is how many characters a part of an error may have.
var longest = map[string]int{"What": 90, "Remedy": 92, "Detail": 110, "error": 150}

// literals are the texts of an expression: of a format the format, of a sum its parts.
func literals(e ast.Expr) (all []string) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			all = append(all, s)
		}
	case *ast.BinaryExpr:
		all = append(literals(e.X), literals(e.Y)...)
	case *ast.CallExpr:
		if len(e.Args) > 0 {
			all = literals(e.Args[0])
		}
	}
	return all
}

// sentences are those of a file: the words of reasons, and of errors that are made with fmt.Errorf and errors.New.
func sentences(t *testing.T, path string) (all []errorText) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	require.NoError(t, err)
	add := func(field string, e ast.Expr) {
		if longest[field] == 0 {
			return
		}
		for _, text := range literals(e) {
			all = append(all, errorText{field, text, set.Position(e.Pos())})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if name, ok := n.Key.(*ast.Ident); ok {
				add(name.Name, n.Value)
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if of, ok := left.(*ast.SelectorExpr); ok && i < len(n.Rhs) {
					add(of.Sel.Name, n.Rhs[i])
				}
			}
		case *ast.CallExpr:
			if of, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 0 {
				if pkg, ok := of.X.(*ast.Ident); ok && (pkg.Name == "fmt" && of.Sel.Name == "Errorf" || pkg.Name == "errors" && of.Sel.Name == "New") {
					add("error", n.Args[0])
				}
			}
		}
		return true
	})
	return all
}

// TestSentences: what errors say, in all packages that programs and users get errors of, fits a line with the rest of it, says no word twice in a
// row, and is put together as the others are: it begins small, has no stop at its end, and what decides it stands in its own field.
func TestSentences(t *testing.T) {
	n := 0
	for _, dir := range []string{"qp", "stag", "srq", "internal/cq", "verbs", "cm", "mpa", "nd2", "vipl", "internal/vitcp", "ulp", "lab", "stats", "rdmacore", "cmd/rnic"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, s := range sentences(t, path) {
				n++
				assert.LessOrEqual(t, len(s.text), longest[s.field], "%v: %s: %q", s.at, s.field, s.text)
				words := strings.Fields(s.text)
				for i := range words[:max(len(words)-1, 0)] {
					assert.False(t, words[i] == words[i+1] && len(words[i]) > 1 && !strings.HasPrefix(words[i], "%"), "%v: %q", s.at, s.text)
				}
				assert.False(t, strings.HasSuffix(s.text, "."), "%v: a stop: %q", s.at, s.text)
				first := []rune(s.text + "x x")
				assert.False(t, unicode.IsUpper(first[0]) && unicode.IsLower(first[1]) && s.field == "Remedy", "%v: %q", s.at, s.text)
			}
			return nil
		}))
	}
	assert.Greater(t, n, 300)
}
