package archtest

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// promised are the packages that the compatibility promise covers, and engine those
// that it does not, though they can be imported (docs/decisions/0010-api.md). The
// others are programs, or internal.
var (
	promised = []string{
		"wr", "verbs", "cm", "nd2", "vipl", "mpa", "ddp", "rdmap", "stats", "stats/prometheus", "stats/expvars",
		"ulp/rsocket", "ulp/nvmeof", "lab/fault", "lab/trace", "lab/tap", "lab/rnictest", "lab/relay",
	}
	engine = []string{"qp", "stag", "srq", "conformance"}
)

// TestPromiseIsWritten: the decision names each package, and every other one that can be imported is the engine, serves
// `rnic run`, or is a program.
func TestPromiseIsWritten(t *testing.T) {
	raw, err := os.ReadFile(root + "/docs/decisions/0010-api.md")
	require.NoError(t, err)
	text, _, _ := strings.Cut(string(raw), "**Not promised**")
	for _, name := range promised {
		assert.True(t, strings.Contains(text, "`"+name+"`"), "0010 does not promise %s", name)
	}
	for _, g := range packages {
		for _, e := range g.entries {
			hidden := strings.HasPrefix(e.path, "internal/") || strings.Contains(e.path, "/internal/")
			other := slices.ContainsFunc([]string{"cmd", "docs", "examples", "interop", "rdmacore", "conformance"}, func(root string) bool { return below(e.path, root) })
			known := hidden || other || slices.Contains(promised, e.path) || slices.Contains(engine, e.path)
			assert.True(t, known, "%s is neither promised nor the engine", e.path)
		}
	}
}

// TestPromise: nothing exported of a promised package mentions a type of the engine.
func TestPromise(t *testing.T) {
	var paths []string
	for _, name := range promised {
		paths = append(paths, "./"+name)
	}
	imp := exports(t, paths...)
	for _, name := range promised {
		pkg, err := imp.Import(Module + "/" + name)
		require.NoError(t, err)
		assert.Empty(t, mentions(pkg), name)
	}
}

// TestPromiseFinds: the walk sees what it is to see.
func TestPromiseFinds(t *testing.T) {
	pkg, err := exports(t, "./qp").Import(Module + "/qp")
	require.NoError(t, err)
	got := mentions(pkg)
	assert.Contains(t, got, "Config.STags: stag.Table", "a field")
	assert.Contains(t, got, "Config.SRQ: srq.Queue")
}

// TestEngineSaysSo in its first lines.
func TestEngineSaysSo(t *testing.T) {
	const says = "of softrnic, not covered by the compatibility promise"
	for _, name := range engine {
		assert.Contains(t, synopsis(t, name), says)
	}
	for _, name := range promised {
		assert.NotContains(t, synopsis(t, name), says)
	}
}

// synopsis is the first sentence of a package's documentation.
func synopsis(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", "{{.Doc}}", "./"+name)
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

// exports makes an importer of the packages and all below them, from what the
// compiler says of them.
func exports(t *testing.T, patterns ...string) types.Importer {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, patterns...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
}

// shows reports whether a struct that embeds t offers anything of it: a method, or a field, that is exported.
func shows(t types.Type) bool {
	methods := types.NewMethodSet(types.NewPointer(t))
	for m := range methods.Methods() {
		if m.Obj().Exported() {
			return true
		}
	}
	st, ok := t.Underlying().(*types.Struct)
	for i := 0; ok && i < st.NumFields(); i++ {
		if st.Field(i).Exported() {
			return true
		}
	}
	return false
}

// mentions lists where something exported of pkg names a type of the engine.
func mentions(pkg *types.Package) (list []string) {
	seen := map[types.Type]bool{}
	var walk func(where string, t types.Type)
	tuple := func(where string, t *types.Tuple) {
		for v := range t.Variables() {
			walk(where, v.Type())
		}
	}
	walk = func(where string, t types.Type) {
		if seen[t] {
			return
		}
		switch t := t.(type) {
		case *types.Alias:
			walk(where, types.Unalias(t))
		case *types.Named:
			p := t.Obj().Pkg()
			if p == nil {
				return
			}
			if name := short(p.Path()); p != pkg && (slices.Contains(engine, name) || below(name, "internal")) {
				list = append(list, where+": "+p.Name()+"."+t.Obj().Name())
			}
			if p != pkg {
				return // a package of its own
			}
			seen[t] = true
			for m := range t.Methods() {
				if m.Exported() {
					walk(where+"."+m.Name(), m.Type())
				}
			}
			walk(where, t.Underlying())
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() || f.Embedded() && shows(f.Type()) {
					walk(where+"."+f.Name(), f.Type())
				}
			}
		case *types.Signature:
			tuple(where, t.Params())
			tuple(where, t.Results())
		case *types.Interface:
			for m := range t.Methods() {
				walk(where+"."+m.Name(), m.Type())
			}
		case *types.Map:
			walk(where, t.Key())
			walk(where, t.Elem())
		case interface{ Elem() types.Type }: // pointer, slice, array, channel
			walk(where, t.Elem())
		}
	}
	for _, name := range pkg.Scope().Names() {
		if o := pkg.Scope().Lookup(name); o.Exported() {
			walk(name, o.Type())
		}
	}
	return list
}
