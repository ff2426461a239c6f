package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// childEnv makes the test program act as rnic, for commands that start another
// process of themselves.
const childEnv = "RNIC_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
	}
	os.Setenv(childEnv, "1")
	os.Exit(m.Run())
}

// result is what a command line left behind.
type result struct {
	status         int
	stdout, stderr string
}

// rnic runs a command line to its end.
func rnic(ctx context.Context, args ...string) result {
	var stdout, stderr bytes.Buffer
	status := run(ctx, args, strings.NewReader(""), &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// server is a command that runs beside the test.
type server struct {
	addr string
	stop context.CancelFunc
	done chan result // gets one value, when the command has ended
}

// startServer runs a command that listens, and waits until it does.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &server{stop: cancel, done: make(chan result, 1)}
	logR, logW := io.Pipe()
	ended := make(chan struct{})
	var log lockedBuffer
	go func() {
		defer close(ended)
		var stdout bytes.Buffer
		status := run(ctx, args, strings.NewReader(""), &stdout, io.MultiWriter(&log, logW))
		logW.Close()
		s.done <- result{status, stdout.String(), log.String()}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	line, err := bufio.NewReader(logR).ReadString('\n')
	require.NoError(t, err, log.String())
	go func() { _, _ = io.Copy(io.Discard, logR) }()
	_, addr, found := strings.Cut(strings.TrimSpace(line), "listening on ")
	require.True(t, found, line)
	s.addr = addr
	return s
}

// lockedBuffer collects what several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(v), text)
	_, err := dec.Token()
	require.ErrorIs(t, err, io.EOF, "more than one JSON value: %s", text)
}

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		args string
		want string // part of the message
	}{
		{"", "no command given"},
		{"bogus", `unknown command "bogus"`},
		{"--bogus", "unknown flag"},
		{"info extra", `"extra" is one too many`},
		{"ping", "choose one of -s"},
		{"ping -s -c", "choose one of -s"},
		{"ping -c", "needs -a"},
		{"ping -c -a 127.0.0.1 -P", "-P is for the server"},
		{"ping -s -v --json", "choose one"},
		{"ping -s -S 0", "want 1 to 1M"},
		{"ping -s -S 1025K", "want 1 to 1M"},
		{"ping -s -p 65536", "from 0 to 65535"},
		{"ping -s -C -1", "from 0 to"},
		{"ping -s --crc maybe", "want on or off"},
		{"ping -s --mpa-rev 3", "from 1 to 2"},
		{"ping -s --ird 16384", "from 0 to 16383"},
		{"ping -s --timeout soon", "want a time"},
		{"ping -s extra", "one too many"},
		{"demo --bytes 2", "want 3 to"},
		{"demo --bytes lots", "such as 4096"},
		{"demo --bytes", "needs an argument"},
		{"perf", "no command given"},
		{"perf bogus", "unknown command"},
		{"perf send", "want one of bw, rate, lat"},
		{"perf send bw", "ADDR is missing"},
		{"perf send bw a b", `"b" is one too many`},
		{"perf send bw a --size 64,0", "want 1 to 64M"},
		{"perf send bw a --size 64,,65", "such as 4096"},
		{"perf send bw a --depth 8193", "from 0 to 8192"},
		{"perf send bw a --duration 0s", "from 1ms"},
		{"perf server a b", "one too many"},
		{"perf suite --lines --json", "choose one"},
		{"perf baseline --rounds 0", "from 1 to"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			r := rnic(t.Context(), strings.Fields(tt.args)...)
			assert.Equal(t, 2, r.status)
			assert.Contains(t, r.stderr, tt.want)
			assert.Regexp(t, `^rnic: .*; see rnic.* --help\n$`, r.stderr)
			assert.Empty(t, r.stdout)
		})
	}
}

func TestHelpOfEveryCommand(t *testing.T) {
	var visit func(path []string)
	visit = func(path []string) {
		r := rnic(t.Context(), append(path, "--help")...)
		assert.Zero(t, r.status, path)
		assert.Contains(t, r.stdout, "Usage:", path)
		assert.Empty(t, r.stderr, path)
		root := newRoot()
		cmd, _, err := root.Find(path)
		require.NoError(t, err)
		for _, c := range cmd.Commands() {
			assert.NotEmpty(t, c.Short, c.CommandPath())
			visit(append(path[:len(path):len(path)], c.Name()))
		}
	}
	visit(nil)
}

func TestFailuresAreOneLine(t *testing.T) {
	for _, args := range []string{
		// Port 1 of the loopback address: nobody listens there.
		"ping -c -a 127.0.0.1 -p 1 --timeout 5s",
		"perf read lat 127.0.0.1:1 --timeout 5s",
		"ping -s -a 192.0.2.1 -p 0", // not an address of this machine
		"perf server 192.0.2.1:0",
	} {
		t.Run(args, func(t *testing.T) {
			r := rnic(t.Context(), strings.Fields(args)...)
			assert.Equal(t, 1, r.status)
			assert.Regexp(t, `^rnic: [^\n]*; [^\n]+\n$`, r.stderr)
			assert.Empty(t, r.stdout)
		})
	}
}

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("first"), errors.New("second\n"))
	assert.Equal(t, "first; second", oneLine(err))
}

func TestStatusError(t *testing.T) {
	cause := errors.New("cause")
	assert.ErrorIs(t, withStatus(3, cause), cause)
	assert.Equal(t, "cause", withStatus(3, cause).Error())
	assert.Equal(t, "exit status 3", withStatus(3, nil).Error())
}
