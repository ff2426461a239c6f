package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance/cases"
	"github.com/softrnic/softrnic/conformance/requirements"
)

// The cases that docs/security.md names are there, and it names every key of RFC
// 5042 but the two that ask for nothing.
func TestSecurityNamesCases(t *testing.T) {
	raw, err := os.ReadFile("security.md")
	require.NoError(t, err)
	text := string(raw)
	there := map[string]bool{}
	for _, c := range cases.All() {
		there[c.Name] = true
	}
	named := regexp.MustCompile("`([0-9][0-9.]*/[a-z0-9-]+)`").FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		assert.True(t, there[m[1]], "there is no case %s", m[1])
	}
	for _, r := range requirements.All() {
		if r.Spec == "rfc5042" && r.Section != "10.2" && r.Level == "MUST" {
			assert.Regexp(t, regexp.QuoteMeta(r.Section)+`-M`, text, "%s is not spoken of", r.Key)
		}
	}
}

// TestSecurityNamesTests: each row of what a hostile peer can cost, of servers, and of what others of the machine could
// come by, has its tests named, and the tests are there.
func TestSecurityNamesTests(t *testing.T) {
	raw, err := os.ReadFile("security.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(raw), "## What a hostile peer can cost")
	costs, tests, ok := strings.Cut(text, "| what it does | tests |")
	require.True(t, ok)
	tests, _, _ = strings.Cut(tests, "\n## ")
	costs, _, _ = strings.Cut(strings.TrimSpace(costs), "\n\n") // the first table
	row := regexp.MustCompile(`(?m)^\| ([a-z][^|]*) \| (.*)$`)
	named := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(tests, -1) {
		named[m[1]] = m[2]
	}
	rows := 0
	for _, m := range row.FindAllStringSubmatch(costs, -1) {
		if m[1] == "what it does" {
			continue
		}
		rows++
		assert.Contains(t, named, m[1], "add a line with the row's tests to the table below it")
	}
	assert.Len(t, named, rows, "a line of the table of tests has no row")

	for _, head := range []string{"| who | what a client takes |", "| what | who gets at it |"} {
		_, table, ok := strings.Cut(string(raw), head)
		require.True(t, ok, head)
		table, _, _ = strings.Cut(table, "\n\n")
		rows := strings.Split(table, "\n")[2:]
		require.NotEmpty(t, rows)
		for _, row := range rows {
			cells := strings.Split(strings.Trim(row, "| "), " | ")
			assert.Regexp(t, "^`[a-z]+\\.Test", cells[len(cells)-1], "add the row's tests: %s", row)
		}
	}

	const commands = "../cmd/rnic/internal/"
	places := map[string]string{
		"rnic": "../cmd/rnic", "ping": commands + "ping", "perf": commands + "perf", "nvme": commands + "nvme", "proxy": commands + "proxy",
		"top": commands + "top", "cli": commands + "cli", "run": commands + "run", "nvmeof": "../ulp/nvmeof",
		"dissect": commands + "dissect", "safeopen": "../internal/safeopen", "rsocket": "../ulp/rsocket",
		"stats": "../stats", "tap": "../lab/tap", "trace": "../lab/trace", "cmdtrace": commands + "trace", "fault": "../lab/fault",
		"qp": "../qp", "verbs": "../verbs", "cm": "../cm", "vitcp": "../internal/vitcp", "endpoint": "../internal/vitcp/endpoint", "vipl": "../vipl", "port": "../internal/vitcp/port", "portmap": "../rdmacore/internal/portmap", "ownsock": "../internal/ownsock",
		"tcpsock": "../internal/tcpsock", "admission": "../internal/admission", "relay": "../lab/relay", "stress": "../internal/test/stress", "ucma": "../rdmacore/internal/ucma", "uverbs": "../rdmacore/internal/uverbs",
	}
	for _, m := range regexp.MustCompile("`([a-z0-9]+)\\.(Test[A-Za-z]+)`").FindAllStringSubmatch(string(raw), -1) {
		require.Contains(t, places, m[1])
		files, err := filepath.Glob(filepath.Join(places[m[1]], "*_test.go"))
		require.NoError(t, err)
		found := false
		for _, f := range files {
			src, err := os.ReadFile(f)
			require.NoError(t, err)
			found = found || strings.Contains(string(src), "\nfunc "+m[2]+"(")
		}
		assert.True(t, found, "there is no test %s.%s", m[1], m[2])
	}
}
