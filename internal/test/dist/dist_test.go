package dist

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNumbers: versions are compared by their numbers, and those that are none are newer than all.
func TestNumbers(t *testing.T) {
	list := []string{"PRIVATE", "2.31", "2.4", "2.3.4", "2.17", "2.34"}
	slices.SortFunc(list, func(a, b string) int { return slices.Compare(numbers(a), numbers(b)) })
	assert.Equal(t, []string{"2.3.4", "2.4", "2.17", "2.31", "2.34", "PRIVATE"}, list)
}

// TestRead: the files of an archive in its order; of a cut one, an error.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tar.gz")
	f, err := os.Create(path)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for _, name := range []string{"b", "a"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Size: 2, Mode: 0o644}))
		_, err := w.Write([]byte(name + "!"))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	info, err := f.Stat()
	require.NoError(t, err)
	require.NoError(t, f.Close())

	files, err := read(path)
	require.NoError(t, err)
	require.Len(t, files, 2)
	assert.Equal(t, "b", files[0].Name)
	assert.Equal(t, "a!", string(files[1].octets))

	require.NoError(t, os.Truncate(path, info.Size()-10))
	_, err = read(path)
	assert.Error(t, err)
}
