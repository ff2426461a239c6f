//go:build testers && linux

package conform

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
)

// skeletons is where the upper testers in other languages are: see docs/upper-tester.md.
const skeletons = "../../../../conformance/uppertester/skeleton"

// passing are cases that the small stacks behind the skeletons pass, C and Python alike. They keep more
// rules than these, and many not.
var passing = []string{
	// MPA's startup, on both sides.
	"7.1.1/private-data-carried", "7.1.2/private-data-ends", "7.1.2/initiator-waits", "7.1.2/rejected", "C.1/one-version",
	"6/revision-1-served", "9/word-layout", "9.1/reply-without-ird", "9.2/client-server-request",
	"9.2/client-server-reply", "10/enhanced-answered", "10/plain-answered",
	// FPDUs.
	"3/one-segment-each", "3/ulpdus-delivered", "4.1/fpdu-octets", "4.1/pad", "4.4/crc-by-default", "4.4/both-without-crc",
	"4.4/one-asks-for-crc", "5.1/any-segmentation", "5.2/next-by-length",
	// Segments.
	"3/boundaries", "3/digest", "4.1/buffer-models", "4.1/version", "4.2/tagged-layout", "5.2/segments-placed", "5.3/delivery-order",
	"5.4/delivered-when-whole", "5.4/never-without-last", "5.4/length-told", "8.3/access-told",
	// Sends, RDMA Reads in both directions, Terminate.
	"5.3/sends-received", "5.3/send-without-receive", "5.2.1/read-requests-sent", "5.2.1/answers-in-order", "5.2.1/one-source",
	"5.2.1/read-of-nothing", "5.2.2/response-placed", "5.4/terminate-arrives", "5.5/send-delivered-whole",
	"5.5/response-delivered-whole", "6.1/outbound-reads", "6.5/never-above-ord",
	"8.1.3.3/remote-address",
}

// The skeletons in C and Python, each with a stack of its own, are upper testers: the cases run against
// them, and those named pass.
func TestSkeletons(t *testing.T) {
	t.Run("C", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "tester")
		files, err := filepath.Glob(skeletons + "/stack/*.c")
		require.NoError(t, err)
		args := []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, skeletons + "/tester.c", skeletons + "/json.c"}
		out, err := exec.CommandContext(t.Context(), "gcc", append(args, files...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		conforms(t, program, "127.0.0.1", "0")
	})
	t.Run("Python", func(t *testing.T) {
		conforms(t, "python3", "-B", skeletons+"/tester.py", "127.0.0.1", "0", skeletons+"/stack/stack.py")
	})
}

// conforms runs an upper tester, and the cases against it.
func conforms(t *testing.T, program string, args ...string) {
	cmd := exec.CommandContext(t.Context(), program, args...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var log clitest.LockedBuffer
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", log.String())
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	require.True(t, ok, line)

	r := clitest.Run(t.Context(), "conform", "run", "--target", addr, "--run", strings.Join(passing, ","), "--json", "-", "--parallel", "4")
	assert.Empty(t, r.Stderr, "its startup is in order")
	var results []conformResult
	clitest.Decode(t, r.Stdout, &results)
	verdict := map[string]string{}
	for _, res := range results {
		if res.Case != "" {
			verdict[res.Case] = res.Verdict
			if res.Verdict == "FAIL" {
				t.Logf("%s: %s", res.Case, res.Detail)
			}
		}
	}
	for _, name := range passing {
		assert.Equal(t, "PASS", verdict[name], name)
	}
	if t.Failed() {
		t.Logf("the tester says: %s", log.String())
	}
}
