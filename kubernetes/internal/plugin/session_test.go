package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A plug-in that ends leaves the socket of its successor alone.
func TestRemoveOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	first, err := listen(path)
	require.NoError(t, err)
	own, err := os.Lstat(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path)) // the kubelet has started
	removeOwn(path, own)
	second, err := listen(path)
	require.NoError(t, err)
	defer second.Close()
	removeOwn(path, own)
	require.NoError(t, first.Close())
	assert.FileExists(t, path)
	own, err = os.Lstat(path)
	require.NoError(t, err)
	removeOwn(path, own)
	assert.NoFileExists(t, path)
}
