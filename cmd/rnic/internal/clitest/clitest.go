// Package clitest runs commands of rnic for tests.
package clitest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// childEnv makes the test program act as rnic, for commands that start another
// process of themselves.
const childEnv = "RNIC_TEST_CHILD"

// makeRoot makes the program that is tested.
var makeRoot func() *cobra.Command

// Main is the TestMain of a package with commands.
func Main(m *testing.M, root func() *cobra.Command) {
	makeRoot = root
	// A worker of the fuzzer inherits the variable, but is no child of rnic.
	worker := slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.fuzzworker") })
	if os.Getenv(childEnv) != "" && !worker {
		os.Exit(cli.Main(root()))
	}
	os.Setenv(childEnv, "1")
	os.Exit(m.Run())
}

// Result is what a command line left behind.
type Result struct {
	Status         int
	Stdout, Stderr string
}

// Run runs a command line to its end.
func Run(ctx context.Context, args ...string) Result { return RunInput(ctx, "", args...) }

// RunInput is rnic with a standard input.
func RunInput(ctx context.Context, stdin string, args ...string) Result {
	var stdout, stderr bytes.Buffer
	status := cli.Run(ctx, makeRoot(), args, strings.NewReader(stdin), &stdout, &stderr)
	return Result{status, stdout.String(), stderr.String()}
}

// Execute runs one command with its arguments, without the rest of rnic, and returns what it printed.
func Execute(ctx context.Context, cmd *cobra.Command, args ...string) (string, error) {
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage = true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// Server is a command that runs beside the test.
type Server struct {
	Addr string
	Stop context.CancelFunc
	Done chan Result // gets one value, when the command has ended
	Log  chan string // lines on standard error after the first
}

// StartServer runs a command that listens, and waits until it does.
func StartServer(t *testing.T, args ...string) *Server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &Server{Stop: cancel, Done: make(chan Result, 1), Log: make(chan string, 64)}
	logR, logW := io.Pipe()
	ended := make(chan struct{})
	var log LockedBuffer
	go func() {
		defer close(ended)
		var stdout bytes.Buffer
		status := cli.Run(ctx, makeRoot(), args, strings.NewReader(""), &stdout, io.MultiWriter(&log, logW))
		logW.Close()
		s.Done <- Result{status, stdout.String(), log.String()}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	lines := bufio.NewScanner(logR)
	if !lines.Scan() {
		t.Fatalf("the command said nothing: %s", log.String())
	}
	line := lines.Text()
	go func() {
		defer close(s.Log)
		for lines.Scan() {
			select {
			case s.Log <- lines.Text():
			default: // a test that does not look must not stop the command
			}
		}
	}()
	_, addr, found := strings.Cut(line, "listening on ")
	if !found {
		t.Fatalf("the command does not say where it listens: %s", line)
	}
	s.Addr = addr
	return s
}

// LockedBuffer collects what several goroutines write.
type LockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *LockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *LockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Decode reads text, which must be one JSON value, into v.
func Decode(t *testing.T, text string, v any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("more than one JSON value: %s", text)
	}
}
