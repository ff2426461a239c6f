package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLabFilesAreOwn: what another process of this user is to write to is there, empty, and nobody else's to read, whatever it was before.
func TestLabFilesAreOwn(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	l := Lab{Pcap: "c", Trace: "t"}
	require.NoError(t, os.WriteFile("c", []byte("old"), 0o644))
	require.NoError(t, os.Chmod("c", 0o644))
	require.NoError(t, l.Absolute())
	for _, path := range []string{l.Pcap, l.Trace} {
		assert.True(t, filepath.IsAbs(path))
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, info.Mode())
		assert.Zero(t, info.Size())
	}
	l.Trace = filepath.Join(dir, "none", "t")
	assert.ErrorContains(t, l.Absolute(), "--trace")
}
