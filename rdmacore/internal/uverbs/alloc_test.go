//go:build linux && (amd64 || arm64) && !race

package uverbs

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Under the race detector pools drop items on purpose.

// TestHotDoesNotAllocate: posting and polling cost no memory.
func TestHotDoesNotAllocate(t *testing.T) {
	h := newHot(t, Config{})
	assert.Less(t, testing.AllocsPerRun(1000, func() { h.round(t) }), 0.5)
}
