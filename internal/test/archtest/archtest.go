// Package archtest holds the packages of the module as one table: what each is for and what it may import. Its tests hold
// the code against the table, and make the linter's rules and the table of docs/architecture.md from it.
//
// Imports point up the table only: a wire layer returns values that the next layer takes, and never calls up.
package archtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Module is the import path of this module.
const Module = "github.com/softrnic/softrnic"

// never are imports that no decision about one package can allow: what begins with the first does not import what begins
// with the second. "" as the second is every package of this module but those behind it.
var never = []struct {
	from, to string
	but      []string
	why      string
}{
	{"wr", "", nil, "the nouns stand on nothing"},
	{"mpa", "", []string{"internal/crc32c"}, "a wire layer knows octets, and no other layer"},
	{"ddp", "", nil, "a wire layer knows octets, and no other layer"},
	{"qp", "verbs", nil, "the engine does not know the RNIC above it"},
	{"verbs", "ddp", nil, "the RNIC reaches the wire through its queue pairs"},
	{"cm", "qp", nil, "connecting goes through the verbs"},
	{"internal/vitcp/segment", "", []string{"internal/crc32c"}, "the wire of VI knows no memory and no connection"},
	{"examples", "", []string{"verbs", "cm"}, "an example is a user's program"},
	{"ulp", "", []string{"verbs", "cm", "internal/inventory"}, "an upper layer is a user's program, but that it counts what it holds"},
	{"cmd/rnic/internal/cli", "cmd", nil, "what commands share does not know them"},
	{"cmd/rnic/internal/endpoint", "cmd", nil, "what commands share does not know them"},
}

// below reports whether a package is root, or stands below it.
func below(pkg, root string) bool {
	return root == "" || pkg == root || strings.HasPrefix(pkg, root+"/")
}

// broken lists what is wrong with a table, a sentence each.
func broken(table []group) (list []string) {
	var above []string
	for _, g := range table {
		for _, e := range g.entries {
			for imp := range strings.FieldsSeq(e.imports) {
				if !foreign(imp) && !slices.Contains(above, imp) {
					list = append(list, fmt.Sprintf("%s imports %s, which does not stand above it", e.path, imp))
				}
				for _, n := range never {
					allowed := slices.ContainsFunc(n.but, func(b string) bool { return below(imp, b) })
					if below(e.path, n.from) && !foreign(imp) && below(imp, n.to) && !below(imp, n.from) && !allowed {
						list = append(list, fmt.Sprintf("%s imports %s: %s", e.path, imp, n.why))
					}
				}
			}
			above = append(above, e.path)
		}
	}
	return list
}

// foreign reports whether an import, as the table has it, is of another module: its first element has a dot.
func foreign(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return strings.Contains(first, ".")
}

// short is an import path as the table has it; "" for one of the standard library.
func short(path string) string {
	if rel, ok := strings.CutPrefix(path, Module+"/"); ok {
		return rel
	}
	if !foreign(path) {
		return ""
	}
	elements := strings.Split(path, "/")
	return strings.Join(elements[:min(3, len(elements))], "/")
}

// linterRules is the depguard section of .golangci.yml: a rule a package.
func linterRules(table []group) string {
	var b strings.Builder
	for _, g := range table {
		for _, e := range g.entries {
			fmt.Fprintf(&b, "        %s:\n          files: [\"**/%s/*.go\", \"!$test\"]\n          list-mode: lax\n", strings.ReplaceAll(e.path, "/", "-"), e.path)
			var allow []string
			for imp := range strings.FieldsSeq(e.imports) {
				if !foreign(imp) {
					allow = append(allow, "            - "+Module+"/"+imp+"$\n")
				}
			}
			if len(allow) > 0 {
				b.WriteString("          allow:\n" + strings.Join(allow, ""))
			}
			fmt.Fprintf(&b, "          deny: [{pkg: %s, desc: see internal/test/archtest}]\n", Module)
		}
	}
	return b.String()
}

// page is the table as docs/architecture.md shows it.
func page(table []group) string {
	var b strings.Builder
	for _, g := range table {
		fmt.Fprintf(&b, "### %s\n\n| package | holds | imports of this module |\n|---|---|---|\n", g.title)
		for _, e := range g.entries {
			var own []string
			for imp := range strings.FieldsSeq(e.imports) {
				if !foreign(imp) {
					own = append(own, "`"+imp+"`")
				}
			}
			imports := cmp.Or(strings.Join(own, ", "), "none")
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.path, e.holds, imports)
		}
		b.WriteString("\n")
	}
	return b.String()
}
