//go:build unix

package safeopen_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/safeopen"
)

// another is a user that this one is not, as root can make files of.
const another = 54321

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func write(t *testing.T, f *os.File, err error, s string) {
	t.Helper()
	require.NoError(t, err)
	_, err = f.WriteString(s)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestPrivate: a file of one's own is made, overwritten or added to, and is one's own to read.
func TestPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := safeopen.Private(path, os.O_TRUNC)
	write(t, f, err, "long")
	require.NoError(t, os.Chmod(path, 0o644))
	f, err = safeopen.Private(path, os.O_TRUNC)
	write(t, f, err, "a")
	f, err = safeopen.Private(path, os.O_APPEND)
	write(t, f, err, "b")
	assert.Equal(t, "ab", text(t, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode())
	_, err = safeopen.Private(filepath.Dir(path), os.O_TRUNC)
	require.ErrorIs(t, err, syscall.EISDIR)
}

// TestPrivateThroughOwnLink: the user's own link, a pipe of the user's and what a shell hands over are what the user
// means.
func TestPrivateThroughOwnLink(t *testing.T) {
	dir := t.TempDir()
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	require.NoError(t, os.Symlink("f", link))
	f, err := safeopen.Private(link, os.O_TRUNC)
	write(t, f, err, "a")
	assert.Equal(t, "a", text(t, filepath.Join(dir, "f")))

	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	r, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer r.Close()
	f, err = safeopen.Private(fifo, os.O_TRUNC)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	f, err = safeopen.Private(os.DevNull, os.O_APPEND)
	write(t, f, err, "x")

	if os.Getenv("SOFTRNIC_TEST_STDOUT") != "" {
		f, err = safeopen.Private("/dev/stdout", os.O_TRUNC)
		write(t, f, err, "to the pipe")
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "SOFTRNIC_TEST_STDOUT=1")
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "to the pipe")
}

// TestNotThroughAnothersLink: in a folder that everybody may write to, nothing of the user's is overwritten through
// what another user has put there, and nobody reads along.
func TestNotThroughAnothersLink(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a link of another user")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	precious := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(precious, []byte("precious"), 0o600))
	link, open := filepath.Join(dir, "link"), filepath.Join(dir, "open")
	require.NoError(t, os.Symlink(precious, link))
	require.NoError(t, os.Lchown(link, another, another))
	require.NoError(t, os.WriteFile(open, []byte("theirs"), 0o666))
	require.NoError(t, os.Chown(open, another, another))
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o666))
	require.NoError(t, os.Chown(fifo, another, another))
	r, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer r.Close()

	for _, how := range []int{os.O_TRUNC, os.O_APPEND} {
		_, err = safeopen.Private(link, how)
		require.ErrorContains(t, err, "link of another user")
		_, err = safeopen.Private(open, how)
		require.ErrorContains(t, err, "belongs to another user")
		_, err = safeopen.Private(fifo, how)
		require.ErrorContains(t, err, "belongs to another user")
	}
	_, err = safeopen.Create(link)
	require.ErrorContains(t, err, "link of another user")
	assert.Equal(t, "precious", text(t, precious))
	assert.Equal(t, "theirs", text(t, open))
}

// TestHardLink: a second name of a file of the user's may be another user's doing as well.
func TestHardLink(t *testing.T) {
	dir := t.TempDir()
	precious, name := filepath.Join(dir, "precious"), filepath.Join(dir, "name")
	require.NoError(t, os.WriteFile(precious, []byte("precious"), 0o600))
	require.NoError(t, os.Link(precious, name))
	_, err := safeopen.Private(name, os.O_TRUNC)
	require.ErrorContains(t, err, "hard link")
	assert.Equal(t, "precious", text(t, precious))
}
