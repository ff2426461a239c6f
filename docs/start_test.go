package docs

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStartProgram: the program in start/go.md is the one that an example of cm runs, and short.
func TestStartProgram(t *testing.T) {
	page, err := os.ReadFile("start/go.md")
	require.NoError(t, err)
	example, err := os.ReadFile("../cm/example_client_test.go")
	require.NoError(t, err)
	_, program, ok := strings.Cut(string(page), "```go\n")
	require.True(t, ok)
	program, _, _ = strings.Cut(program, "```\n")
	require.LessOrEqual(t, strings.Count(program, "\n"), 40, "lines, all in all")
	program = strings.NewReplacer("package main", "package cm_test", "func main() {", "func Example_client() {",
		`"192.0.2.1:7174"`, "addr").Replace(program)
	rest := strings.Split(string(example), "\n")
	for line := range strings.Lines(program) {
		line = strings.TrimSuffix(line, "\n")
		i := slices.Index(rest, line)
		require.GreaterOrEqual(t, i, 0, "the example has not, from there on: %s", line)
		rest = rest[i+1:]
	}
}
