//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/stats"
)

// TestStatsOfProcess: `rnic top` sees what a server in another process has received, and its socket goes with it, however it ends.
func TestStatsOfProcess(t *testing.T) {
	for _, end := range []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGKILL} {
		t.Run(end.String(), func(t *testing.T) {
			t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
			server := exec.CommandContext(t.Context(), os.Args[0], "ping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--stats") // see package clitest
			stderr, err := server.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, server.Start())
			lines := bufio.NewScanner(stderr)
			port := ""
			for port == "" && lines.Scan() {
				_, port, _ = strings.Cut(lines.Text(), "listening on 127.0.0.1:")
			}
			require.NotEmpty(t, port)
			r := clitest.Run(t.Context(), "ping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "3")
			require.Zero(t, r.Status, r.Stderr)

			r = clitest.Run(t.Context(), "top", "--json")
			require.Zero(t, r.Status, r.Stderr)
			var all []stats.Snapshot
			require.NoError(t, json.Unmarshal([]byte(r.Stdout), &all))
			require.Len(t, all, 1)
			assert.Equal(t, server.Process.Pid, all[0].PID)
			require.Len(t, all[0].RNICs, 1)
			assert.EqualValues(t, 6, all[0].RNICs[0].Counters["iwInRdmaSends"], "two for each ping")
			assert.EqualValues(t, 3, all[0].RNICs[0].Counters["iwOutRdmaReads"])

			require.NoError(t, server.Process.Signal(end))
			for lines.Scan() {
			}
			_ = server.Wait() // its status says how it ended
			list, err := stats.Sockets()
			require.NoError(t, err)
			if end != syscall.SIGKILL {
				assert.Empty(t, list, "a process that may tidies up by itself")
			} else {
				assert.Len(t, list, 1)
			}
			r = clitest.Run(t.Context(), "top")
			assert.Equal(t, 1, r.Status)
			assert.Contains(t, r.Stderr, "no process offers its counters")
			list, err = stats.Sockets()
			require.NoError(t, err)
			assert.Empty(t, list)
		})
	}
}
