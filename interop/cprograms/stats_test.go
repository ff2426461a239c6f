//go:build linux && cprograms

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/stats"
)

// rnicProgram is what `make c` builds, with the libraries beside it.
var rnicProgram, _ = filepath.Abs("../../bin/rnic")

// pingpong starts ibv_rc_pingpong under `rnic run --stats`, a server and its client, for so many round trips.
func pingpong(t *testing.T, n int) (server, client *exec.Cmd) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // for a port that is free
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	start := func(host ...string) *exec.Cmd {
		args := []string{"run", "--addr", "127.0.0.1", "--stats", "--", "ibv_rc_pingpong", "-g", "0", "-p", fmt.Sprint(port), "-n", fmt.Sprint(n)}
		cmd := exec.CommandContext(t.Context(), rnicProgram, append(args, host...)...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		require.NoError(t, cmd.Start())
		return cmd
	}
	server = start()
	listens := fmt.Sprintf(":%04X 00000000:0000 0A", port)
	require.Eventually(t, func() bool { // whom it accepts first is its client
		table, err := os.ReadFile("/proc/net/tcp")
		return err == nil && strings.Contains(string(table), listens)
	}, time.Minute, 10*time.Millisecond)
	return server, start("127.0.0.1")
}

// top is what `rnic top --json` prints.
func top(t *testing.T) (all []stats.Snapshot) {
	out, err := exec.Command(rnicProgram, "top", "--json").Output()
	if err == nil {
		require.NoError(t, json.Unmarshal(out, &all))
	}
	return all
}

// TestStatsOfPrograms: `rnic top` sees the traffic of C programs that run, of two processes, and none of one that has ended or was killed;
// then there is no socket either.
func TestStatsOfPrograms(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	none := func() {
		list, err := stats.Sockets()
		require.NoError(t, err)
		assert.Empty(t, list)
	}

	server, client := pingpong(t, 100)
	require.NoError(t, client.Wait())
	require.NoError(t, server.Wait())
	none()

	server, client = pingpong(t, 1<<30)
	var seen []stats.Snapshot
	require.Eventually(t, func() bool {
		seen = top(t)
		return len(seen) == 2 && received(seen[0]) > 0 && received(seen[1]) > 0
	}, time.Minute, 10*time.Millisecond)
	require.NotEqual(t, seen[0].PID, seen[1].PID)
	for _, s := range seen {
		assert.Equal(t, "ibv_rc_pingpong", s.Program)
		_ = syscall.Kill(s.PID, syscall.SIGKILL) // the other may have seen the end, and be gone
	}
	_, _ = client.Process.Wait()
	_, _ = server.Process.Wait()
	none()
	require.Empty(t, top(t))

	server, client = pingpong(t, 1<<30)
	require.Eventually(t, func() bool { return len(top(t)) == 2 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, server.Process.Kill()) // rnic run itself, and so the program: nobody is left that tidies up
	require.NoError(t, client.Process.Kill())
	_, _ = client.Process.Wait()
	_, _ = server.Process.Wait()
	require.Eventually(t, func() bool { // a program that is being killed may answer no more, and be there still: the next top sees to it
		list, err := stats.Sockets()
		return err == nil && len(top(t)) == 0 && len(list) == 0
	}, time.Minute, 10*time.Millisecond)
}

// received are the messages that a process has received.
func received(s stats.Snapshot) (n uint64) {
	for i := range s.RNICs {
		n += s.RNICs[i].Counters["iwInRdmaSends"]
	}
	return n
}
