package install

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFiles(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "opt", "softrnic")
	write := func(dir, name, text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
	}
	has := func(name, text string, mode os.FileMode) {
		got, err := os.ReadFile(filepath.Join(to, name))
		require.NoError(t, err)
		assert.Equal(t, text, string(got))
		info, err := os.Lstat(filepath.Join(to, name))
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode(), name)
	}
	write(from, "rnic", "one", 0o700)
	write(from, "lib.so", "two", 0o600)
	replaced, err := Files(from, to)
	require.NoError(t, err)
	assert.Equal(t, []string{"lib.so", "rnic"}, replaced)
	has("rnic", "one", 0o755)
	has("lib.so", "two", 0o644)

	replaced, err = Files(from, to)
	require.NoError(t, err)
	assert.Empty(t, replaced, "all is as it should be")

	// A container that has the old library goes on with it.
	old, err := os.Open(filepath.Join(to, "lib.so"))
	require.NoError(t, err)
	defer old.Close()
	write(from, "lib.so", "new", 0o600)
	require.NoError(t, os.Chmod(filepath.Join(to, "rnic"), 0o600))
	replaced, err = Files(from, to)
	require.NoError(t, err)
	assert.Equal(t, []string{"lib.so", "rnic"}, replaced)
	has("rnic", "one", 0o755)
	has("lib.so", "new", 0o644)
	text := make([]byte, 3)
	_, err = old.Read(text)
	require.NoError(t, err)
	assert.Equal(t, "two", string(text))

	// A link is replaced, and what it leads to is left alone.
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("new"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(to, "lib.so")))
	require.NoError(t, os.Symlink(outside, filepath.Join(to, "lib.so")))
	_, err = Files(from, to)
	require.NoError(t, err)
	has("lib.so", "new", 0o644)

	entries, err := os.ReadDir(to)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "nothing is left over")
}

func TestFilesFails(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	_, err := Files(from, to)
	assert.ErrorContains(t, err, "is empty")
	_, err = Files(filepath.Join(from, "none"), to)
	assert.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.Mkdir(filepath.Join(from, "sub"), 0o755))
	_, err = Files(from, to)
	assert.ErrorContains(t, err, "is no file")

	// What cannot be replaced is an error, and leaves nothing behind.
	require.NoError(t, os.Remove(filepath.Join(from, "sub")))
	require.NoError(t, os.WriteFile(filepath.Join(from, "rnic"), []byte("x"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(to, "rnic", "in the way"), 0o755))
	_, err = Files(from, to)
	assert.Error(t, err)
	entries, err := os.ReadDir(to)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}
