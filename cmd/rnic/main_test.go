package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
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
	// A worker of the fuzzer inherits the variable, but is no child of rnic.
	worker := slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.fuzzworker") })
	if os.Getenv(childEnv) != "" && !worker {
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
	log  chan string // lines on standard error after the first
}

// startServer runs a command that listens, and waits until it does.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &server{stop: cancel, done: make(chan result, 1), log: make(chan string, 64)}
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
	lines := bufio.NewScanner(logR)
	require.True(t, lines.Scan(), log.String())
	line := lines.Text()
	go func() {
		defer close(s.log)
		for lines.Scan() {
			select {
			case s.log <- lines.Text():
			default: // a test that does not look must not stop the command
			}
		}
	}()
	_, addr, found := strings.Cut(line, "listening on ")
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
		{"ping -c -a 127.0.0.1 -p 0", "-p 0 is for the server"},
		{"ping -s --ird 4097", "from 0 to 4096"},
		{"ping -c -a 127.0.0.1 --ord 16384", "from 0 to 4096"},
		{"ping -s --ird 9999999999", "from 0 to 2147483647"},
		{"ping -s --mpa-rev 1 --p2p", "--p2p needs --mpa-rev 2"},
		{"ping -c -a 127.0.0.1 --p2p --mpa-rev 1", "--p2p needs --mpa-rev 2"},
		{"ping -s --timeout soon", "want a time"},
		{"ping -s extra", "one too many"},
		{"demo --bytes 2", "want 3 to"},
		{"demo --bytes lots", "such as 4096"},
		{"demo --bytes 18446744073709551616", "want less than 2^64 octets"},
		{"demo --bytes 562949953421313", "want 3 to 524288G octets"},
		{"demo --mpa-rev 1 --p2p", "--p2p needs --mpa-rev 2"},
		{"demo --ord 4097", "from 0 to 4096"},
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
		{"perf send bw a --mpa-rev 1 --p2p", "--p2p needs --mpa-rev 2"},
		{"perf read lat a --ird 4097", "from 0 to 4096"},
		{"perf server --mpa-rev 1 --p2p", "--p2p needs --mpa-rev 2"},
		{"perf server --ord 4097", "from 0 to 4096"},
		{"perf server a b", "one too many"},
		{"perf suite --lines --json", "choose one"},
		{"perf baseline --rounds 0", "from 1 to"},
		{"perf scale extra", "one too many"},
		{"perf scale --qps 1", "from 2 to 60000"},
		{"perf scale --qps many", "from 2 to 60000"},
		{"perf scale --duration 0s", "from 1ms"},
		{"perf sweep extra", "one too many"},
		{"perf sweep --out charts.png", "ends with .html or .svg"},
		{"perf sweep --size 0", "want 1 to 64M"},
		{"perf mtu extra", "one too many"},
		{"perf mtu --mtu 575", "from 576 to 65535"},
		{"perf mtu --rounds 0", "from 1 to"},
		{"conform", "no command given"},
		{"conform list x", "one too many"},
		{"conform run x", "one too many"},
		{"conform run --run nothing-at-all", "no case matches"},
		{"conform run --run [", "is no pattern"},
		{"conform run --timeout 0s", "from 1ms"},
		{"conform run --parallel 0", "from 1 to"},
		{"conform run --role initiator", "--role is for a --target"},
		{"conform run --rping", "--rping is for a --target"},
		{"conform run --target a:1 --role both", "want initiator or responder"},
		{"conform run --target a", "want HOST:PORT"},
		{"conform run --run 5.1 --json - --html -", "only one output"},
		{"conform serve", "ADDR is missing"},
		{"conform report", "FILE is missing"},
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

// A group alone is an error, so its help must not show that as a usage.
func TestHelpOfGroups(t *testing.T) {
	for _, path := range []string{"rnic", "rnic perf", "rnic perf send"} {
		r := rnic(t.Context(), append(strings.Fields(path)[1:], "--help")...)
		assert.Contains(t, r.stdout, "Usage:\n  "+path+" COMMAND\n\n", path)
		assert.NotContains(t, r.stdout, path+" [flags]")
	}
	r := rnic(t.Context(), "perf", "send", "bw", "--help")
	assert.Contains(t, r.stdout, "Usage:\n  rnic perf send bw ADDR [flags]\n")
}

// Where something listens, but not an RNIC, the hint would mislead.
func TestHintOnlyIfRefused(t *testing.T) {
	const hint = "is a server listening there?"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		if nc, err := l.Accept(); err == nil {
			nc.Close()
		}
	}()
	r := rnic(t.Context(), "perf", "send", "lat", l.Addr().String())
	assert.Equal(t, 1, r.status)
	assert.Contains(t, r.stderr, "connecting to "+l.Addr().String())
	assert.NotContains(t, r.stderr, hint)
	require.NoError(t, l.Close())
	<-accepted

	r = rnic(t.Context(), "perf", "send", "lat", l.Addr().String()) // now closed
	assert.Equal(t, 1, r.status)
	assert.Contains(t, r.stderr, hint)
}

// Who connects but does not speak MPA is named, and the server goes on.
func TestServersLogStartupErrors(t *testing.T) {
	for _, args := range []string{"ping -s -a 127.0.0.1 -p 0", "perf server 127.0.0.1:0"} {
		t.Run(args, func(t *testing.T) {
			s := startServer(t, strings.Fields(args)...)
			nc, err := net.Dial("tcp", s.addr)
			require.NoError(t, err)
			defer nc.Close()
			_, err = nc.Write([]byte("GET / HTTP/1.1\r\nHost: nowhere\r\n\r\n"))
			require.NoError(t, err)
			line := <-s.log
			assert.Regexp(t, `^rnic: .*`+regexp.QuoteMeta(nc.LocalAddr().String())+`: .+`, line)
			assert.Equal(t, 1, strings.Count(line, nc.LocalAddr().String()), line)
			select {
			case r := <-s.done:
				assert.Fail(t, "the server ended", r.stderr)
			default:
			}
		})
	}
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
