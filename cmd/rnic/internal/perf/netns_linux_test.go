package perf

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func mayMakeNamespaces() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	return cmd.Run() == nil
}

// A link that cannot be made is no success, and what ip says is told.
func TestJoinNamespacesFails(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		assert.ErrorContains(t, joinNamespaces(t.Context(), 1, 1), "executable file not found")
		return
	}
	const nobody = 1 << 30 // above the largest process ID
	err := joinNamespaces(t.Context(), nobody, nobody)
	require.Error(t, err)
	assert.Regexp(t, `^ip link add name rnic0 .*: exit status \d+: .+`, err.Error())
}

// The child is in a namespace of its own, which has nothing but a loopback that
// is down, and nothing of it stays here.
func TestChildInNamespace(t *testing.T) {
	if !mayMakeNamespaces() {
		_, err := startInNamespace(t.Context(), mtuServer)
		assert.Error(t, err)
		return
	}
	c, err := startInNamespace(t.Context(), mtuServer, "perf", "mtu", "--end", mtuServer)
	require.NoError(t, err)
	there, err := os.Readlink("/proc/" + strconv.Itoa(c.Cmd.Process.Pid) + "/ns/net")
	require.NoError(t, err)
	here, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	assert.NotEqual(t, here, there)
	require.NoError(t, c.Stop())
}
