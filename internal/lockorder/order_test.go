package lockorder

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOrderHasNoCycle: no class comes before itself. Of an exception both come the other way round, or it would be none.
func TestOrderHasNoCycle(t *testing.T) {
	before := before()
	require.NotEmpty(t, before)
	for c, firsts := range before {
		assert.False(t, firsts[c], "%s comes before itself", c)
	}
	for _, e := range Exceptions {
		assert.False(t, before[e.Wanted][e.Held], "%s -> %s is no exception", e.Held, e.Wanted)
		assert.True(t, before[e.Held][e.Wanted] || e.Held == e.Wanted, "%s -> %s can be of the order", e.Held, e.Wanted)
		assert.NotEmpty(t, e.Why)
	}
}

// TestCyclesAreFound: a cycle over two lines.
func TestCyclesAreFound(t *testing.T) {
	m := parse("A -> B, C -> D\nD -> E\nE -> C")
	for c, cyclic := range map[string]bool{"A": false, "B": false, "C": true, "D": true, "E": true} {
		assert.Equal(t, cyclic, m[c][c], c)
	}
	assert.True(t, m["E"]["A"], "across lines")
	assert.False(t, m["A"]["E"])
	m = parse("A, B -> C")
	assert.False(t, m["A"]["B"] || m["B"]["A"], "one rank")
}

// TestNamesAreWhole: a misspelled separator would make two classes one.
func TestNamesAreWhole(t *testing.T) {
	for c := range before() {
		assert.False(t, strings.ContainsAny(c, " ,->") || c == "", "%q", c)
	}
}
