package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPreloadList: ASan's library comes first, from the program or from the user; ours before all others.
func TestPreloadList(t *testing.T) {
	for _, row := range [][3]string{
		{"", "", "/p"},
		{"", "/other", "/p:/other"},
		{"", "/a /b", "/p:/a:/b"},
		{"libasan.so.8", "", "libasan.so.8:/p"},
		{"libasan.so.8", "/other", "libasan.so.8:/p:/other"},
		{"libasan.so.8", "/other:/usr/lib/libasan.so.6", "/usr/lib/libasan.so.6:/p:/other"},
		{"", "libclang_rt.asan-x86_64.so", "libclang_rt.asan-x86_64.so:/p"},
	} {
		assert.Equal(t, row[2], preloadList("/p", row[0], row[1]))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	assert.Empty(t, addressSanitizer(self))
	assert.Empty(t, addressSanitizer(filepath.Join(t.TempDir(), "none")))
}

func TestSuppressions(t *testing.T) {
	dir := t.TempDir()
	opts, err := writeSuppressions(dir, "--leak-check=full")
	require.NoError(t, err)
	assert.Equal(t, "--leak-check=full --suppressions="+filepath.Join(dir, suppressionsName), opts)
	text, err := os.ReadFile(filepath.Join(dir, suppressionsName))
	require.NoError(t, err)
	assert.Contains(t, string(text), "libsoftrnic-engine.so")
	spaced := filepath.Join(dir, "a b")
	require.NoError(t, os.Mkdir(spaced, 0o755))
	opts, err = writeSuppressions(spaced, "-q")
	require.NoError(t, err)
	assert.Equal(t, "-q", opts, "valgrind would take it for two words")
}
