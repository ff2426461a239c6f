//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/tap"
	"github.com/softrnic/softrnic/lab/trace"
)

// TestLabFilesThroughNoLink: whatever opens a file of the lab's overwrites nothing through a link that another user
// has put there.
func TestLabFilesThroughNoLink(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a link of another user")
	}
	precious, link := filepath.Join(t.TempDir(), "precious"), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.WriteFile(precious, []byte("precious"), 0o600))
	require.NoError(t, os.Symlink(precious, link))
	require.NoError(t, os.Lchown(link, 54321, 54321))
	closes := func(c interface{ Close() error }, err error) error {
		if err == nil {
			assert.NoError(t, c.Close())
		}
		return err
	}
	for name, open := range map[string]func() error{
		"Empty":        func() error { return Empty("--strace", link) },
		"tap.Create":   func() error { return closes(tap.Create(link, tap.Config{})) },
		"tap.Append":   func() error { return closes(tap.Append(link, tap.Config{})) },
		"trace.Create": func() error { return closes(trace.Create(link)) },
		"trace.Append": func() error { return closes(trace.Append(link)) },
	} {
		assert.ErrorContains(t, open(), "link of another user", name)
	}
	text, err := os.ReadFile(precious)
	require.NoError(t, err)
	assert.Equal(t, "precious", string(text))
}
