// Package docs holds the documents of the project. Its test generates the parts
// of them that come from tables in the code, and fails when one is stale:
//
//	go test ./docs ./qp -update
package docs

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the generated parts")

// generated compares the part of a document between its two marks with want.
func generated(t *testing.T, file, want string) {
	t.Helper()
	const begin, end = "<!-- generated:begin -->\n", "<!-- generated:end -->"
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(raw), begin)
	require.True(t, ok, "%s has no %q", file, begin)
	have, tail, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s has no %q", file, end)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644))
		return
	}
	require.Equal(t, want, have, "%s is stale: go test ./docs -update", file)
}
