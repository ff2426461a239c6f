//go:build linux

package ownsock

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

// TestInventory: of the folder in which a socket is made nothing is left, whether it could be made or not.
func TestInventory(t *testing.T) {
	dir := t.TempDir() // goes behind what asks
	leakcheck.Inventory(t)
	l, err := Listen(filepath.Join(dir, "s"))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = Listen(filepath.Join(dir, "nowhere", "s"))
	assert.Error(t, err)
	_, err = Listen(dir) // there is one of that name, with something in it
	assert.Error(t, err)
}
