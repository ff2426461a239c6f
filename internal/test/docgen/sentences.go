package docgen

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// verb is a verb of fmt.
var verb = regexp.MustCompile(`%[#+]?[a-z]`)

// Sentences are the formats of errors in the package of the working directory, without its tests: the string literals that
// calls of those functions have. Each is a regular expression of what it comes out as, by the format. A format of verbs
// alone, which only passes another error on, is none.
func Sentences(t testing.TB, functions ...string) map[string]*regexp.Regexp {
	t.Helper()
	of := map[string]bool{}
	for _, f := range functions {
		of[f] = true
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*regexp.Regexp{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); !ok || !of[f.Name] {
				return true
			}
			for _, a := range call.Args {
				l, ok := a.(*ast.BasicLit)
				if !ok || l.Kind != token.STRING {
					continue
				}
				format, err := strconv.Unquote(l.Value)
				if err != nil {
					t.Fatal(err)
				}
				pattern := regexp.QuoteMeta(format)
				if verb.ReplaceAllString(format, "") != "" {
					all[format] = regexp.MustCompile(verb.ReplaceAllString(pattern, ".*"))
				}
				break
			}
			return true
		})
	}
	return all
}

// Provoked fails for each of the formats that no error had, unless it is excused: by the format, with the reason. It fails
// for an excuse that nobody needs.
func Provoked(t testing.TB, formats map[string]*regexp.Regexp, errs []error, excused map[string]string) {
	t.Helper()
	for format, pattern := range formats {
		had := false
		for _, err := range errs {
			had = had || err != nil && pattern.MatchString(err.Error())
		}
		if _, ok := excused[format]; ok == had {
			t.Errorf("%q: provoked %v, excused %v", format, had, ok)
		}
	}
	for format := range excused {
		if formats[format] == nil {
			t.Errorf("%q is excused, and is no sentence", format)
		}
	}
}
