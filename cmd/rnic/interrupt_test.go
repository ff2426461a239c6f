//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
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

// ^C does not wait for a server that is connected and says nothing any more, not even to a close.
func TestInterruptedClient(t *testing.T) {
	for _, args := range []string{
		"ping -c -C 1 --timeout 1h -a",
		"ping -c -C 0 --timeout 1h -a",
		"perf send lat --timeout 1h",
		"perf send bw --timeout 1h",
		"perf write bw --timeout 1h",
		"perf read bw --timeout 1h",
	} {
		t.Run(args, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			addr := l.Addr().String()
			if strings.HasPrefix(args, "ping") {
				addr = strings.Replace(addr, ":", " -p ", 1)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(args+" "+addr)...)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			require.NoError(t, cmd.Start())
			conn, err := l.Accept()
			require.NoError(t, err)
			defer conn.Close()
			rep, err := rawpeer.ReadStartup(conn)
			require.NoError(t, err)
			rep.Reply, rep.PrivateData = true, []byte(`{"stag":1,"to":0}`)
			require.NoError(t, rawpeer.WriteStartup(conn, rep))
			_, err = conn.Read(make([]byte, 1)) // it has sent something, and waits
			require.NoError(t, err)
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			_, err = io.Copy(io.Discard, conn)
			assert.ErrorIs(t, err, syscall.ECONNRESET, "a close, which waits for this end's")
			_ = cmd.Wait() // its status says more
			assert.Equal(t, 130, cmd.ProcessState.ExitCode(), stderr.String())
		})
	}
}
