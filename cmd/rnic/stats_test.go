//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/stats"
)

// offers is a server that offers its counters, a client of it at a port, and what that makes of them; -1: some.
type offers struct {
	server, client []string
	counts         map[string]int
}

// TestStatsOfProcess: `rnic top` sees what a server in another process has received, and its socket goes with it, however it ends.
func TestStatsOfProcess(t *testing.T) {
	for name, o := range map[string]offers{
		"ping": {
			[]string{"ping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--stats"}, []string{"ping", "-c", "-a", "127.0.0.1", "-C", "3", "-p", "PORT"},
			map[string]int{"iwInRdmaSends": 6, "iwOutRdmaReads": 3}, // two Sends for each ping
		},
		"perf": {
			[]string{"perf", "server", "127.0.0.1:0", "--stats"}, []string{"perf", "write", "bw", "--size", "1K", "--duration", "20ms", "127.0.0.1:PORT"},
			map[string]int{"iwInRdmaWrites": -1},
		},
	} {
		for _, end := range []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGKILL} {
			t.Run(name+"/"+end.String(), func(t *testing.T) { o.run(t, end) })
		}
	}
}

func (o *offers) run(t *testing.T, end os.Signal) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	server := exec.CommandContext(t.Context(), os.Args[0], o.server...) // see package clitest
	stderr, err := server.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	lines := bufio.NewScanner(stderr)
	port := ""
	for port == "" && lines.Scan() {
		_, port, _ = strings.Cut(lines.Text(), "listening on 127.0.0.1:")
	}
	require.NotEmpty(t, port)
	client := slices.Clone(o.client)
	last := &client[len(client)-1]
	*last = strings.Replace(*last, "PORT", port, 1)
	r := clitest.Run(t.Context(), client...)
	require.Zero(t, r.Status, r.Stderr)

	r = clitest.Run(t.Context(), "top", "--json")
	require.Zero(t, r.Status, r.Stderr)
	var all []stats.Snapshot
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &all))
	require.Len(t, all, 1)
	assert.Equal(t, server.Process.Pid, all[0].PID)
	require.Len(t, all[0].RNICs, 1)
	for counter, want := range o.counts {
		if got := all[0].RNICs[0].Counters[counter]; want >= 0 {
			assert.EqualValues(t, want, got, counter)
		} else {
			assert.Positive(t, got, counter)
		}
	}

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
	assert.Contains(t, r.Stderr, "no process of this user offers its counters")
	list, err = stats.Sockets()
	require.NoError(t, err)
	assert.Empty(t, list)
}

// TestNoStatsUnlessAsked: a server without --stats has no socket, nor a folder for one.
func TestNoStatsUnlessAsked(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	for _, args := range [][]string{{"ping", "-s", "-P", "-a", "127.0.0.1", "-p", "0"}, {"perf", "server", "127.0.0.1:0"}} {
		s := clitest.StartServer(t, args...)
		_, err := os.Lstat(stats.Folder())
		assert.ErrorIs(t, err, os.ErrNotExist, args)
		s.Stop()
		<-s.Done
	}
}
