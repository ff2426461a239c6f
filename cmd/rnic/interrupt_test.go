//go:build unix

package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ^C ends a command with 130, whether it waits for somebody or serves until it is stopped; SIGTERM is the way to end a
// server.
func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		args   string
		signal os.Signal
		status int
	}{
		{"ping -s -a 127.0.0.1 -p 0", os.Interrupt, 130},
		{"ping -s -P -a 127.0.0.1 -p 0", os.Interrupt, 130},
		{"perf server 127.0.0.1:0", os.Interrupt, 130},
		{"ping -s -a 127.0.0.1 -p 0", syscall.SIGTERM, 143},
		{"perf server 127.0.0.1:0", syscall.SIGTERM, 0},
	} {
		t.Run(tt.args+" "+tt.signal.String(), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(tt.args)...) // see package clitest
			stderr, err := cmd.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewReader(stderr)
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, "listening on")
			require.NoError(t, cmd.Process.Signal(tt.signal))
			rest, err := lines.ReadString(0)
			assert.Error(t, err, "the end of the file: %s", rest)
			err = cmd.Wait()
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = nil
			}
			require.NoError(t, err)
			assert.Equal(t, tt.status, cmd.ProcessState.ExitCode(), rest)
		})
	}
}
