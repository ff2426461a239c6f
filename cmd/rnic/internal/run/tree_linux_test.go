package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTree: the folder of a process that was killed goes when the next is made; one that is held, a young one, and others stay.
func TestTree(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * treeAge)
	folder := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Join(path, "class"), 0o755))
		require.NoError(t, os.Chtimes(path, old, old))
		return path
	}
	dead, other, young := folder("softrnic-1"), folder("else"), folder("softrnic-2")
	require.NoError(t, os.Chtimes(young, time.Now(), time.Now()))
	held, err := newTree(dir)
	require.NoError(t, err)
	info, err := os.Stat(held.path)
	require.NoError(t, err)
	assert.Equal(t, os.ModeDir|0o700, info.Mode(), "nobody else may put files there")
	assert.NoDirExists(t, dead)
	require.NoError(t, os.Chtimes(held.path, old, old))
	next, err := newTree(dir)
	require.NoError(t, err)
	assert.DirExists(t, held.path)
	held.remove()
	next.remove()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 2)
	assert.DirExists(t, young)
	assert.DirExists(t, other)
}
