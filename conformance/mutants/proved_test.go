package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/cases"
	"github.com/softrnic/softrnic/conformance/requirements"
)

// Each case has shown that it can fail, and with it each key of class test that a case claims: a
// mutant names the case, or a line of excused.txt says why none can.
func TestEachCaseAndKeyIsProved(t *testing.T) {
	all := cases.All()
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	var keys []string
	for _, r := range requirements.All() {
		if r.Class == requirements.Test {
			keys = append(keys, r.Key)
		}
	}
	mutants, err := readAll(".")
	require.NoError(t, err)
	excused, err := readExcused(".")
	require.NoError(t, err)
	named, claimed := namedCases(mutants), namedKeys(mutants, all)
	missing, _ := unproved(names, named, excused)
	assert.Empty(t, missing, "no mutant names these cases: write one for each, or add the name to a mutant that it catches "+
		"(go run ./conformance/mutants -run NAME), or say in %s why no fault can be noticed by it:\n%s", excusedFile, strings.Join(missing, "\n"))
	missing, _ = unproved(keys, claimed, excused)
	assert.Empty(t, missing, "no mutant names a case of these keys: write one that breaks the requirement and nothing "+
		"besides, or say in %s why there can be none:\n%s", excusedFile, strings.Join(missing, "\n"))
	maps.Copy(named, claimed)
	_, needless := unproved(append(names, keys...), named, excused)
	assert.Empty(t, needless, "excused in %s, though a mutant names them, or there is no such case or key", excusedFile)
	assert.Empty(t, astray(mutants, all), "mutants with keys that none of their cases claims")
}

func TestUnproved(t *testing.T) {
	mutants := []mutant{{cases: []string{"a", "b"}}}
	missing, needless := unproved([]string{"a", "b", "c", "d"}, namedCases(mutants), map[string]string{"c": "why"})
	assert.Equal(t, []string{"d"}, missing)
	assert.Empty(t, needless)
	missing, needless = unproved([]string{"a", "b"}, namedCases(mutants), map[string]string{"gone": "why", "a": "why"})
	assert.Empty(t, missing)
	assert.Equal(t, []string{"a", "gone"}, needless)

	all := []conformance.Case{{Name: "a", Keys: []string{"K1"}}, {Name: "c", Keys: []string{"K1", "K2"}}}
	assert.Equal(t, map[string]bool{"K1": true, "K2": false}, namedKeys(mutants, all))
	mutants = []mutant{{share: "s", name: "m", cases: []string{"a", "b"}, keys: []string{"K1", "K2"}}}
	assert.Equal(t, []string{"s/m K2"}, astray(mutants, all))

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
