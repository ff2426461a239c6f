//go:build unix

package nic

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/lab/rnictest"
	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

func command(t *testing.T, args ...string) (string, error) {
	return clitest.Execute(t.Context(), Command(), args...)
}

// program is this process, with an RNIC that others can break.
func program(t *testing.T) *verbs.RNIC {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	a, _ := rnictest.Pair(t, rnictest.Config{Loopback: true, Faults: "registration 100: fail"})
	in, err := fault.New(&fault.Plan{}, nil)
	require.NoError(t, err)
	s, err := stats.OfferControl("", func() []*verbs.RNIC { return []*verbs.RNIC{a.NIC} }, fault.Control("mlx5_0", a.NIC, in))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return a.NIC
}

// TestCommands: each command reaches the NIC that it names, by process, device or both.
func TestCommands(t *testing.T) {
	nic := program(t)
	pid := os.Getpid()
	self := filepath.Base(os.Args[0])
	file := filepath.Join(t.TempDir(), "plan")
	require.NoError(t, os.WriteFile(file, []byte("registration 1: fail\npost 3: fail\n"), 0o600))
	for _, c := range []struct {
		args string
		done string
		link fault.Link
	}{
		{"down mlx5_0", "down", fault.Link{Down: true}},
		{fmt.Sprintf("up %d", pid), "up", fault.Link{}},
		{fmt.Sprintf("degrade %d/mlx5_0 8m 0.5%%", pid), "degraded to 8m 0.5%", fault.Link{Rate: 1_000_000, Loss: 0.005}},
		{"quiet", "quiet", fault.Link{}},
		{"plan mlx5_0 " + file, "a plan of 2 rules", fault.Link{}},
		{"plan " + file, "a plan of 2 rules", fault.Link{}},
	} {
		out, err := command(t, strings.Fields(c.args)...)
		require.NoError(t, err, c.args)
		assert.Equal(t, fmt.Sprintf("%s[%d]/mlx5_0: %s\n", self, pid, c.done), out)
		assert.Equal(t, c.link, fault.LinkOf(nic), c.args)
	}
	out, err := command(t, "ls")
	require.NoError(t, err)
	lines := strings.Split(out, "\n")
	assert.Equal(t, strings.Fields("PROGRAM PID DEVICE STATE RATE DEGRADED RULES QPS PEERS"), strings.Fields(lines[0]))
	assert.Equal(t, []string{self, fmt.Sprint(pid), "mlx5_0", "ACTIVE", "-", "-", "2", "1", "127.0.0.1"}, strings.Fields(lines[1]))
	out, err = command(t, "ls", "--json")
	require.NoError(t, err)
	var all []listed
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	require.Len(t, all, 1)
	assert.Equal(t, "mlx5_0", all[0].Device)
	_, err = command(t, "fatal", "mlx5_0")
	require.NoError(t, err)
	out, _ = command(t, "ls")
	assert.Contains(t, out, "FAILED")
	out, err = command(t, "unplug", "mlx5_0")
	require.NoError(t, err)
	assert.Contains(t, out, "mlx5_0: unplugged\n")
	out, _ = command(t, "ls")
	assert.Contains(t, out, "UNPLUGGED")
	out, err = command(t, "quiet", "mlx5_0")
	require.NoError(t, err)
	assert.Contains(t, out, "mlx5_0: quiet, but it has failed for good: open another, or start the program anew\n")
	f := nic.Stats().Faults
	assert.Equal(t, map[string]uint64{"port down": 1, "port up": 2, "degrade": 1, "quiet": 2, "plan": 2, "fatal": 1, "unplug": 1}, f)
}

// TestRefuses: what is not there, what a NIC cannot do, and what no command line is.
func TestRefuses(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	_, err := command(t, "down", "x")
	require.ErrorContains(t, err, "no process of this user offers its counters in ")
	program(t)
	bad := filepath.Join(t.TempDir(), "plan")
	require.NoError(t, os.WriteFile(bad, []byte("registration 1: explode"), 0o600))
	for args, says := range map[string]string{
		"down mlx5_1":        fmt.Sprintf("nic: there is no mlx5_1: there are %d/mlx5_0 (rnic nic ls)", os.Getpid()),
		"down 1/mlx5_0":      "nic: there is no 1/mlx5_0",
		"down":               "argument NIC is missing",
		"degrade mlx5_0":     "argument WHAT is missing",
		"degrade mlx5_0 x":   "WHAT: x: a port is degraded to a rate such as 10g",
		"move-gid mlx5_0":    "move-gid is for C programs alone",
		"plan":               "plan takes a NIC, or none, and a file",
		"plan mlx5_0 " + bad: "line 1: behind the colon of registration stands one of fail",
		"plan /none":         "no such file",
		"ls x":               `argument "x" is one too many`,
	} {
		_, err := command(t, strings.Fields(args)...)
		assert.ErrorContains(t, err, says, args)
	}
}
