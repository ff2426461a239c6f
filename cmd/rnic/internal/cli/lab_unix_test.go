//go:build unix

package cli

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestLabLeavesPipes: a pipe is neither opened, which would wait for a reader, nor closed, which would be its end.
func TestLabLeavesPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	l := Lab{Pcap: pipe, Trace: pipe}
	require.NoError(t, l.Absolute())
	l = Lab{Pcap: t.TempDir()}
	require.ErrorContains(t, l.Absolute(), "directory")
}
