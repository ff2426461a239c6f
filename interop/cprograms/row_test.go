//go:build linux

package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/internal/docsection"
)

// Every row can be told from the others, can fail, and what it can fail by is well formed.
func TestRows(t *testing.T) {
	names := map[string]bool{}
	lossy := 0
	for _, r := range rows() {
		assert.False(t, names[r.name()], "twice: %s", r.name())
		names[r.name()] = true
		assert.NotEmpty(t, r.pkg)
		assert.NotEmpty(t, r.client)
		assert.Equal(t, r.server != "", r.port != 0, r.name())
		_, err := regexp.Compile(r.want)
		assert.NoError(t, err)
		if r.lossy {
			lossy++
			assert.Empty(t, r.cannot)
		}
	}
	assert.Equal(t, 5, lossy)
	assert.Len(t, newerRows(), 24)
}

func TestWords(t *testing.T) {
	o := options{rnic: "/b/rnic", here: "/h"}
	r := row{server: "RNIC ping -s -a HOST", client: "rping -c -a HOST", plain: server, flags: "--as roce"}
	assert.Equal(t, []string{"sh", "-c", "exec /b/rnic ping -s -a 10.0.0.1"}, r.words(server, "10.0.0.1", "", o))
	assert.Equal(t, "exec /b/rnic run --as roce --strace /t -- rping -c -a 10.0.0.1", r.words(client, "10.0.0.1", "/t", o)[2])
}

func TestWordsInRoot(t *testing.T) {
	words := []string{"sh", "-c", "exec rping"}
	assert.Equal(t, words, options{}.inRoot("/d", words))
	assert.Equal(t, []string{"chroot", "/r", "env", "-C", "/d", "PATH=/usr/bin:/usr/sbin", "sh", "-c", "exec rping"}, options{root: "/r"}.inRoot("/d", words))
}

func TestVerdict(t *testing.T) {
	bad := errors.New("client: exit status 1")
	tests := []struct {
		out  outcome
		want string
		good bool
	}{
		{outcome{}, "ran", true},
		{outcome{row: row{checks: true}}, "ran, data compared", true},
		{outcome{err: bad}, "FAIL: client: exit status 1", false},
		{outcome{row: row{cannot: noMulticast}, err: bad}, "cannot: " + noMulticast, true},
		{outcome{row: row{cannot: noMulticast}}, "FAIL: it works, and the table says it cannot", false},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, tt.out.verdict())
		assert.Equal(t, tt.good, tt.out.good())
	}
}

func TestMarkdown(t *testing.T) {
	done := []outcome{
		{row: row{pkg: "p", server: "a|b", client: "c HOST", flags: "--as roce"}, took: 1250 * time.Millisecond, lost: 7},
		{row: row{pkg: "p", client: "d", cannot: "no way"}, err: errors.New("x")},
	}
	text := markdown(done, false, "Linux X")
	assert.Contains(t, text, "| p | `a\\|b` (`--as roce`)<br>`c HOST` (`--as roce`) | ran | 1.2 |\n|  | `d` | cannot: no way | 0.0 |\n")
	assert.Contains(t, text, "2 rows: 1 ran, 1 cannot, 0 failed. Linux X.\n")
	assert.Contains(t, markdown(done, true, ""), "| ran | 7 | 1.2 |\n")
}

// The page has the markers of every part.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/c-programs.md")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	for _, part := range []string{partPrograms, partLossy, partPyverbs, partSiw} {
		assert.NoError(t, docsection.Update(path, part, "new\n"), part)
	}
}

func TestParseTests(t *testing.T) {
	const text = "noise\nbegin\ttest_pd.T.one\nok\ttest_pd.T.one\nbegin\ttest_pd.T.two\nskip\ttest_pd.T.two\tno such thing\nbegin\ttest_pd.T.three\n"
	want := []tested{{testOK, "roce test_pd.T.one", ""}, {testSkip, "roce test_pd.T.two", "no such thing"}}
	assert.Equal(t, want, parseTests(strings.TrimSuffix(text, "begin\ttest_pd.T.three\n"), "roce", nil))
	got := parseTests(text, "roce", errors.New("signal: segmentation fault"))
	require.Len(t, got, 3)
	assert.Equal(t, testFail, got[2].outcome)
	assert.Equal(t, "roce test_pd.T.three", got[2].name, "the test that was at work when the process died")

	// What has to fail says why, and fails nothing; where it need not, it is a failure.
	name := slices.Sorted(maps.Keys(cannots))[0]
	test := strings.TrimPrefix(name, "iwarp ")
	assert.Equal(t, []tested{{testCannot, name, cannots[name]}}, parseTests("fail\t"+test+"\tits own words\n", "iwarp", nil))
	assert.Equal(t, []tested{{testFail, "roce " + test, "its own words"}}, parseTests("fail\t"+test+"\tits own words\n", "roce", nil))
	assert.Contains(t, testsMarkdown([]tested{{testCannot, name, "a reason"}, {testOK, "iwarp x.y", ""}}), "Cannot:\n\n- `"+name+"`: a reason\n")
}

// passes.txt grows by what passes, in a whole run only; what it names has to pass.
func TestCompare(t *testing.T) {
	o := options{here: t.TempDir(), only: regexp.MustCompile("")}
	read := func() string {
		text, err := os.ReadFile(filepath.Join(o.here, "passes.txt"))
		require.NoError(t, err)
		return string(text)
	}
	lost, err := o.compare([]tested{{testOK, "b", ""}, {testOK, "a", ""}, {testFail, "c", ""}})
	require.NoError(t, err)
	assert.Empty(t, lost)
	assert.Equal(t, "a\nb\n", read())

	lost, err = o.compare([]tested{{testSkip, "a", ""}, {testOK, "c", ""}})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, lost, "one was skipped, one did not run")
	assert.Equal(t, "a\nb\nc\n", read())

	o.only = regexp.MustCompile("pd")
	lost, err = o.compare([]tested{{testFail, "a", ""}, {testOK, "d", ""}})
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, lost)
	assert.Equal(t, "a\nb\nc\n", read())
}
