package perf

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
)

func TestPerfScale(t *testing.T) {
	const qps = 70 // more than are made, or carry a message, at a time
	r := clitest.Run(t.Context(), "perf", "scale", "--json", "--qps", "70", "--duration", "5ms")
	require.Zero(t, r.Status, r.Stderr)
	var got scaleResult
	clitest.Decode(t, r.Stdout, &got)
	assert.Equal(t, qps, got.QPs)
	assert.Positive(t, got.ConnectsPerS)
	assert.Positive(t, got.TCPConnectsPerS)
	assert.Positive(t, got.AloneUS)
	assert.Positive(t, got.AmongUS)
	assert.Greater(t, got.Server.Goroutines, scaleDialers, "they accept")
	if runtime.GOOS != "linux" {
		assert.Nil(t, got.IdleBytes)
		return
	}
	// What a few dozen queue pairs take may drown in what the collector gives
	// back, so only the arithmetic can be tested.
	for _, side := range []scaleSide{got.Client, got.Server} {
		for _, resident := range []*int64{side.OneResident, side.IdleResident, side.ActiveResident} {
			require.NotNil(t, resident)
			assert.Greater(t, *resident, int64(1<<20))
		}
		assert.Equal(t, (*side.IdleResident-*side.OneResident)/(qps-1), *side.IdleBytes)
		assert.Equal(t, (*side.ActiveResident-*side.OneResident)/(qps-1), *side.ActiveBytes)
	}
	assert.Equal(t, max(*got.Client.IdleBytes, *got.Server.IdleBytes), *got.IdleBytes)
	assert.Equal(t, max(*got.Client.ActiveBytes, *got.Server.ActiveBytes), *got.ActiveBytes)

	var out bytes.Buffer
	require.NoError(t, got.print(&out))
	assert.Regexp(t, `connects a second +\d+ +bare TCP +\d+ +\d+\.\d\d`, out.String())
	assert.Regexp(t, `idle +[\d,]+ +[\d,]+\n`, out.String())
}

// Where the system does not tell the memory, nothing else is lost.
func TestPrintScaleWithoutMemory(t *testing.T) {
	r := scaleResult{QPs: 10000, ConnectsPerS: 50, TCPConnectsPerS: 100, AloneUS: 4, AmongUS: 5}
	r.Client.perQP(1)
	r.Server.perQP(1)
	require.Nil(t, larger(r.Client.IdleBytes, r.Server.IdleBytes))
	var out bytes.Buffer
	require.NoError(t, r.print(&out))
	assert.Contains(t, out.String(), "10,000 connected pairs")
	assert.Regexp(t, `connects a second +50 +bare TCP +100 +0\.50`, out.String())
	assert.Regexp(t, `p50, us +5\.00 +alone +4\.00 +1\.25`, out.String())
	assert.Regexp(t, `idle +not known +not known`, out.String())
}

// The limit of the parent is the child's.
func TestPerfScaleNeedsFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		assert.NoError(t, allowFiles(1<<20))
		return
	}
	program, err := os.Executable()
	require.NoError(t, err)
	rnic := func(qps string) (stderr string, status int) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 120; exec "$0" perf scale --duration 1ms --qps `+qps, program)
		var out bytes.Buffer
		cmd.Stderr = &out
		_ = cmd.Run() // the status is what counts
		return out.String(), cmd.ProcessState.ExitCode()
	}
	stderr, status := rnic("57")
	assert.Equal(t, 1, status)
	assert.Equal(t, "rnic: perf: 57 queue pairs need 121 open files, but the hard limit is 120: "+
		"raise it (ulimit -Hn 121, as root), or ask for --qps 56\n", stderr)
	stderr, status = rnic("56")
	assert.Zero(t, status, stderr)
}

// A limit that is low but may be raised is raised, in both processes.
func TestPerfScaleRaisesFileLimit(t *testing.T) {
	if runtime.GOOS == "windows" {
		assert.NoError(t, allowFiles(1<<20))
		return
	}
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -Sn 40; exec "$0" perf scale --duration 1ms --qps 50`, program)
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, string(out))
}

// Whatever goes wrong in the server process is told.
func TestScaleServer(t *testing.T) {
	for name, tt := range map[string]struct{ questions, answers string }{
		"no questions":                           {"", ""},
		"unknown question":                       {`{"do":"dance"}`, "{\"resident\":null,\"goroutines\":0,\"error\":\"unknown question \\\"dance\\\"\"}\n"},
		"not a question":                         {`dance`, ""},
		"the client ends while the server waits": {`{"do":"qps","n":1}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := clitest.RunInput(t.Context(), tt.questions, "perf", "scale", "--serve", "--qps", "2")
			require.Zero(t, r.Status, r.Stderr)
			_, answers, found := strings.Cut(r.Stdout, "\n")
			require.True(t, found, "an announcement first")
			assert.Equal(t, tt.answers, answers)
		})
	}
}
