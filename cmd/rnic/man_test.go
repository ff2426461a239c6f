package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
)

// TestManPages: each command has one, which says what its help says, in macros of man(7); where mandoc is, it has nothing to say about them.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "man1")
	r := clitest.Run(t.Context(), "man", dir)
	require.Zero(t, r.Status, r.Stderr)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	n := 0
	for words, c := range commands() {
		if !c.Runnable() {
			continue // a topic
		}
		n++
		file := filepath.Join(dir, strings.Join(append([]string{"rnic"}, strings.Fields(words)...), "-")+".1")
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		page := string(raw)
		assert.Regexp(t, `^\.TH RNIC\S* 1 "\d{4}-\d\d-\d\d" "\S+" "softrnic"\n\.SH NAME\nrnic\S* \\- \S.*\n\.SH SYNOPSIS\n\.B rnic.*\n`, page)
		assert.NotRegexp(t, regexp.MustCompile(`(?m)^\.(?:SH|TP)\n\.(?:SH|TP)`), page, "an empty section or item")
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
				assert.Regexp(t, `^\.(TH|SH|PP|TP|nf|fi|B|BR|RS|RE)\b`, line, file)
			}
		}
		for _, name := range []string{"json", "timeout", "size"} {
			if c.LocalFlags().Lookup(name) != nil {
				assert.Contains(t, page, `\fB\-\-`+name+`\fR`, file)
			}
		}
	}
	assert.Len(t, files, n, "and no other")
	root, err := os.ReadFile(filepath.Join(dir, "rnic.1"))
	require.NoError(t, err)
	for _, want := range []string{".SH EXIT STATUS", "SOFTRNIC_PCAP_PAYLOAD", ".BR rnic\\-perf (1)", "\\fBrnic\\-ping\\fR(1)"} {
		assert.Contains(t, string(root), want)
	}

	if mandoc, err := exec.LookPath("mandoc"); err == nil {
		out, err := exec.Command(mandoc, append([]string{"-T", "lint", "-W", "warning"}, files...)...).CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
	if _, err := os.Stat("/proc/self"); err == nil { // a folder that nobody can make
		assert.Equal(t, 2, clitest.Run(t.Context(), "man", "/proc/self/nothing").Status)
	}
}

// TestCompletion: each shell gets a script, and the words that it asks for are there.
func TestCompletion(t *testing.T) {
	for shell, want := range map[string]string{"bash": "complete -o default", "zsh": "#compdef rnic", "fish": "complete -c rnic", "powershell": "Register-ArgumentCompleter"} {
		r := clitest.Run(t.Context(), "completion", shell)
		assert.Zero(t, r.Status, r.Stderr)
		assert.Contains(t, r.Stdout, want)
	}
	for asked, want := range map[string]string{"perf wr": "write", "completion z": "zsh", "ping --val": "--validate", "tr": "trace"} {
		r := clitest.Run(t.Context(), append([]string{"__complete"}, strings.Fields(asked)...)...)
		assert.Zero(t, r.Status, r.Stderr)
		assert.Regexp(t, `(?m)^`+want+`\b`, r.Stdout, asked)
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		out, err := exec.Command(bash, "-n", "-c", clitest.Run(t.Context(), "completion", "bash").Stdout).CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
}
