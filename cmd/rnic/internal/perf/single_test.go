package perf

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
)

// With one processor for each process nothing spins so long that what it waits
// for cannot run. A run that hangs is ended by the context.
func TestPerfWithOneProcessor(t *testing.T) {
	t.Setenv("GOMAXPROCS", "1") // of the processes that are started
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	program, err := os.Executable()
	require.NoError(t, err)
	server, err := cli.StartServer(ctx, ownServer...)
	require.NoError(t, err)
	for _, op := range []string{"send", "write", "write-imm", "read"} {
		for _, args := range []string{"bw --size 64,1M", "lat", "bw --size 4K --event", "lat --event", "lat --crc off"} {
			t.Run(op+" "+args, func(t *testing.T) {
				words := append([]string{"perf", strings.TrimSuffix(op, "-imm")}, strings.Fields(args)...)
				if op == "write-imm" {
					words = append(words, "--imm")
				}
				words = append(words, server.Address, "--json", "--duration", "20ms")
				cmd := exec.CommandContext(ctx, program, words...)
				var stdout, stderr bytes.Buffer
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				require.NoError(t, cmd.Run(), stderr.String())
				var results []perfResult
				clitest.Decode(t, stdout.String(), &results)
				for _, r := range results {
					assert.Positive(t, r.Messages)
				}
			})
		}
	}
	require.NoError(t, server.Stop())
	for _, args := range []string{"--poll", "--plain"} {
		t.Run("many "+args, func(t *testing.T) {
			cmd := exec.CommandContext(ctx, program, "perf", "many", args, "--qps", "3", "--rounds", "1", "--duration", "20ms")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
		})
	}
}

// Who polls without end does end with the context, and tells its cause.
func TestReaperEndsWithContext(t *testing.T) {
	cause := errors.New("enough")
	for name, mode := range map[string]endpoint.Waiting{"sleep": endpoint.WaitSleep, "spin": endpoint.WaitSpin, "poll": endpoint.WaitPoll} {
		t.Run(name, func(t *testing.T) {
			ep, err := endpoint.Open(endpoint.Limits{SendDepth: 1, RecvDepth: 1})
			require.NoError(t, err)
			defer func() { require.NoError(t, ep.Close(t.Context())) }()
			ctx, cancel := context.WithCancelCause(t.Context())
			r := endpoint.NewReaper(ep.CQ, mode, ep.Lost)
			ended := make(chan error)
			go func() {
				_, err := r.Next(ctx)
				ended <- err
			}()
			cancel(cause)
			assert.ErrorIs(t, <-ended, cause)
		})
	}
}

// On the only processor nobody polls all the time.
func TestReaperSparesOnlyProcessor(t *testing.T) {
	for w, want := range map[endpoint.Waiting]endpoint.Waiting{endpoint.WaitPoll: endpoint.WaitSpin, endpoint.WaitSpin: endpoint.WaitSpin, endpoint.WaitSleep: endpoint.WaitSleep} {
		assert.Equal(t, want, w.With(1))
		assert.Equal(t, w, w.With(2))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	assert.Equal(t, endpoint.WaitSpin, endpoint.NewReaper(nil, endpoint.WaitPoll, nil).Mode)
}

// The server of a client that polls does not fall asleep.
func TestPerfServerAnswersAsAsked(t *testing.T) {
	assert.Equal(t, endpoint.WaitPoll, perfRun{}.answering())
	assert.Equal(t, endpoint.WaitSleep, perfRun{Event: true}.answering())
}
