package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/test/docgen"
)

// locked are the packages whose mutexes have classes.
var locked = []string{"verbs", "qp", "internal/cq", "srq", "stag", "internal/netpoll", "internal/vitcp/endpoint", "vipl"}

// class is a class of internal/lockorder: its name, the field that it is of, as package.Type.field, and what that guards.
type class struct{ name, lock, guards string }

// TestLocksAreNamed: each mutex of the engine has a class of its own, each class a mutex, and memory-model.md has them, and
// the order, as they are in internal/lockorder.
func TestLocksAreNamed(t *testing.T) {
	var got []string
	for _, path := range locked {
		found := mutexes(t, path)
		require.NotEmpty(t, found)
		got = append(got, found...)
	}
	table := "\n| class | lock | guards |\n|---|---|---|\n"
	var want []string
	for _, c := range classes(t) {
		want = append(want, c.lock+" is of class "+c.name)
		table += "| " + c.name + " | `" + c.lock + "` | " + c.guards + " |\n"
		assert.Regexp(t, `(?m)(^| )`+c.name+`(,| |$)`, lockorder.Order, "where is %s in the order?", c.name)
	}
	assert.ElementsMatch(t, want, got)
	docgen.Generated(t, "memory-model.md", "locks", table+"\n")
	order := "\n```" + lockorder.Order + "```\n\nExceptions:\n\n"
	for _, e := range lockorder.Exceptions {
		order += fmt.Sprintf("- %s -> %s: %s.\n", e.Held, e.Wanted, e.Why)
	}
	docgen.Generated(t, "memory-model.md", "order", order+"\n")
}

// classes are those of internal/lockorder, in its order: a type and a comment each.
func classes(t *testing.T) (list []class) {
	file, err := parser.ParseFile(token.NewFileSet(), "../internal/lockorder/classes.go", nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			lock, guards, ok := strings.Cut(strings.TrimSpace(spec.Comment.Text()), ": ")
			require.True(t, ok, "%s is of which lock, and what does that guard?", spec.Name.Name)
			list = append(list, class{spec.Name.Name, lock, guards})
		}
		return true
	})
	return list
}

// mutexes are the fields of a package's types that are mutexes, with their class: "package.Type.field is of class Name".
func mutexes(t *testing.T, pkg string) (found []string) {
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
				name, ok := classOf(f.Type)
				if !ok {
					continue
				}
				owner := filepath.Base(pkg) + "." + spec.Name.Name + "."
				if len(f.Names) == 0 {
					found = append(found, owner+"embedded is of class "+name)
				}
				for _, field := range f.Names {
					found = append(found, owner+field.Name+" is of class "+name)
				}
			}
			return true
		})
	}
	return found
}

// classOf is the class of a field of that type, if it is a mutex: "none" of one of package sync.
func classOf(field ast.Expr) (name string, ok bool) {
	kind, class := field, "none"
	if of, generic := field.(*ast.IndexExpr); generic {
		kind = of.X
		if c, named := of.Index.(*ast.SelectorExpr); named {
			class = c.Sel.Name
		}
	}
	of, selects := kind.(*ast.SelectorExpr)
	return class, selects && (of.Sel.Name == "Mutex" || of.Sel.Name == "RWMutex")
}
