package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance/cases"
)

// Each case has shown that it can fail: a mutant names it, or a line of excused.txt says why
// none can.
func TestEachCaseIsProved(t *testing.T) {
	var names []string
	for _, c := range cases.All() {
		names = append(names, c.Name)
	}
	mutants, err := readAll(".")
	require.NoError(t, err)
	excused, err := readExcused(".")
	require.NoError(t, err)
	missing, needless := unproved(names, mutants, excused)
	assert.Empty(t, missing, "no mutant names these cases: write one for each, or add the name to a mutant that it catches "+
		"(go run ./conformance/mutants -run NAME), or say in %s why no fault can be noticed by it:\n%s", excusedFile, strings.Join(missing, "\n"))
	assert.Empty(t, needless, "excused in %s, though a mutant names them or there is no such case", excusedFile)
}

func TestUnproved(t *testing.T) {
	mutants := []mutant{{cases: []string{"a", "b"}}}
	missing, needless := unproved([]string{"a", "b", "c", "d"}, mutants, map[string]string{"c": "why"})
	assert.Equal(t, []string{"d"}, missing)
	assert.Empty(t, needless)
	missing, needless = unproved([]string{"a", "b"}, mutants, map[string]string{"gone": "why", "a": "why"})
	assert.Empty(t, missing)
	assert.Equal(t, []string{"a", "gone"}, needless)

	dir := t.TempDir()
	write := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, excusedFile), []byte(text), 0o600))
	}
	_, err := readExcused(dir)
	require.Error(t, err, "there is no file")
	write("# why\n\na\tbecause\n")
	excused, err := readExcused(dir)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "because"}, excused)
	for text, want := range map[string]string{"a\n": "excused.txt:1: ", "a\tx\na\ty\n": "excused.txt:2: "} {
		write(text)
		_, err = readExcused(dir)
		require.ErrorContains(t, err, want)
	}
}
