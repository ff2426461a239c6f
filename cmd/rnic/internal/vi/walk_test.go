//go:build unix

package vi

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
)

// walk is the commands of docs/vi.md that show servers on one port.
func walk(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile("../../../../docs/vi.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(raw), "<!-- walk:begin -->")
	require.True(t, ok)
	text, _, ok = strings.Cut(text, "<!-- walk:end -->")
	require.True(t, ok)
	var commands []string
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "rnic "); ok {
			commands = append(commands, command)
		}
	}
	return commands
}

// TestServersShareThePort: the commands of the page, each a process, at a port of the test's own.
func TestServersShareThePort(t *testing.T) {
	dir, err := os.MkdirTemp("", "vi")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	addr := ""
	var servers []*exec.Cmd
	clients := 0
	for _, line := range walk(t) {
		line, server := strings.CutSuffix(line, " &")
		args := strings.Fields(line)
		switch {
		case server && addr == "":
			addr = freeWildcard(t)
			args = append(args, addr)
		case server:
			args = append(args, addr)
		default:
			for i := range args {
				args[i] = strings.Replace(args[i], "localhost", "localhost"+addr, 1)
			}
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...) // see package clitest
		if !server {
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), "all verified")
			clients++
			continue
		}
		stderr, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		said, err := bufio.NewReader(stderr).ReadString('\n')
		require.NoError(t, err)
		assert.Contains(t, said, "listening on ")
		assert.Contains(t, said, addr+" for ")
		servers = append(servers, cmd)
	}
	assert.Len(t, servers, 2)
	assert.Equal(t, 2, clients)
	for _, s := range servers {
		assert.NoError(t, s.Wait())
	}
}

// freeWildcard is a port that nothing has, at all addresses.
func freeWildcard(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return ":" + port
}

// TestPortOfAnotherProgram: the sentence says whose it may be and what to do, and is another one than that of a port
// where nothing listens.
func TestPortOfAnotherProgram(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := clitest.Run(t.Context(), "vi", "ping", "-s", l.Addr().String())
	assert.Equal(t, 1, r.Status)
	assert.Regexp(t, `^rnic: vi ping: opening the NIC: vipl: in use: .*: end that one, or use another address or port\n$`, r.Stderr)
	require.NoError(t, l.Close())
	r = clitest.Run(t.Context(), "vi", "ping", "-c", l.Addr().String(), "--discriminator", strings.Repeat("x", 65))
	assert.Equal(t, 2, r.Status)
	assert.Contains(t, r.Stderr, "a --discriminator of 65 octets, want 64 at most")
	r = clitest.Run(t.Context(), "vi", "ping", "-c", l.Addr().String())
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, "vipl: refused: nothing listens at that address and port")
}
