package siw_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/internal/siw"
)

// script stands for siw-guest: it notes its arguments in the file args, and then runs text.
func script(t *testing.T, text string) (path, args string) {
	dir := t.TempDir()
	path, args = filepath.Join(dir, "siw-guest"), filepath.Join(dir, "args")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho \"$@\" >>"+args+"\n"+text+"\n"), 0o700))
	return path, args
}

// TestGuest: a guest gets its options, and says which port of this machine leads to it.
func TestGuest(t *testing.T) {
	path, args := script(t, `case $1 in start) echo "name x"; echo "fwd 4711:7";; exec) shift 6; sh -c "$1";; esac`)
	g, err := siw.Start(t.Context(), path, "kind", 7, "--smp", "4")
	require.NoError(t, err)
	assert.Equal(t, 4711, g.Port)
	printed, err := g.Run(t.Context(), 2*time.Second, "echo one; echo two")
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo", printed)
	printed, err = g.Run(t.Context(), time.Second, "echo one; echo two; exit 3")
	assert.EqualError(t, err, "in the guest: exit status 3: two")
	assert.Equal(t, "one\ntwo", printed)
	require.NoError(t, g.Beside(t.Context(), "ls", "/").Run())
	require.NoError(t, g.Stop())
	said, err := os.ReadFile(args)
	require.NoError(t, err)
	assert.Regexp(t, `^start -n kind-\d+ --smp 4 -f 0:7
exec -n kind-\d+ -t 2 -- echo one; echo two
exec -n kind-\d+ -t 1 -- .*
nsexec -n kind-\d+ -- ls /
stop -n kind-\d+
$`, string(said))
}

// TestNoPort: a guest whose port is not to be found is powered off again.
func TestNoPort(t *testing.T) {
	path, args := script(t, `echo "fwd x:7"`)
	_, err := siw.Start(t.Context(), path, "kind", 7)
	require.ErrorContains(t, err, "no forwarded port")
	said, err := os.ReadFile(args)
	require.NoError(t, err)
	assert.Contains(t, string(said), "\nstop -n kind-")
	_, err = siw.Start(t.Context(), path, "kind", 0)
	require.NoError(t, err, "none is asked for")
}
