// Package docgen keeps the parts of the documentation that come from tables in the code:
// a test makes each of them anew, fails when what the page has is another, and writes it
// with -update.
package docgen

import (
	"flag"
	"os"
	"strings"
	"testing"
)

// Update is set to write what tests compare: parts of pages, and golden files.
var Update = flag.Bool("update", false, "write what is generated instead of comparing it")

// Generated compares with want the part of a page between its marks, which are
// <!-- MARK:begin --> and <!-- MARK:end -->, each on a line; in YAML, # MARK:begin and # MARK:end.
func Generated(t testing.TB, file, mark, want string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+mark+":begin -->\n", "<!-- "+mark+":end -->"
	if strings.HasSuffix(file, ".yml") {
		begin, end = "# "+mark+":begin\n", "# "+mark+":end\n"
	}
	head, rest, begins := strings.Cut(string(raw), begin)
	have, tail, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no %q with %q behind it", file, begin, end)
	}
	if *Update {
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Fatalf("%s is stale, run this test with -update: %s", file, difference(have, want))
	}
}

// difference is the first line that is not the same.
func difference(have, want string) string {
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(h), len(w)) {
		if h[i] != w[i] {
			return "it has " + h[i] + ", the code " + w[i]
		}
	}
	return "one goes on where the other ends"
}
