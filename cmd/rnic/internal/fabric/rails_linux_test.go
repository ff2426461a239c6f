//go:build fabric

package fabric

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// railsOf is a fabric of 8 hosts with two rails, and the example with collectives, compiled by what an MPI has for that.
func railsOf(t *testing.T, compiler, needs string) (rnic, program string, f *fabric) {
	rnic, err := filepath.Abs("../../../../bin/rnic")
	require.NoError(t, err)
	mpicc, err := exec.LookPath(compiler)
	if err != nil {
		t.Skip("needs " + needs)
	}
	examples := "../../../../examples/fabric/"
	program = filepath.Join(t.TempDir(), "collectives")
	said, err := exec.CommandContext(t.Context(), mpicc, "-O2", "-Wall", "-Werror", "-o", program, examples+"collectives.c").CombinedOutput()
	require.NoError(t, err, string(said))
	home(t)
	said, err = exec.CommandContext(t.Context(), rnic, "fabric", "up", "--name", "test", examples+"rails.fabric").CombinedOutput()
	require.NoError(t, err, string(said))
	f = &fabric{t: t, dir: place("test")}
	if s := f.state(); s.In == onLoopback {
		t.Skip("this system has no network namespaces for this user: " + strings.Join(s.Notes, "; "))
	}
	return rnic, program, f
}

// TestOpenMPI: a rank of Open MPI over UCX on each host, which its own launcher starts there; the data is compared.
func TestOpenMPI(t *testing.T) {
	rnic, program, f := railsOf(t, "mpicc.openmpi", "openmpi-bin and libopenmpi-dev")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	mpi := exec.CommandContext(ctx, rnic, "fabric", "run", "--", "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "8",
		"--mca", "pml", "ucx", "--mca", "osc", "^ucx", program, "3")
	mpi.Env = append(os.Environ(), "UCX_TLS=rc_verbs,ud_verbs,self") // RDMA alone
	said, err := mpi.CombinedOutput()
	t.Log(string(said))
	require.NoError(t, err)
	assert.Contains(t, string(said), "8 ranks on h1 h2 h3 h4 h5 h6 h7 h8\n")
	assert.Contains(t, string(said), "collectives: ok")
	require.NoError(t, exec.CommandContext(t.Context(), rnic, "fabric", "down").Run())
	f.nothingLeft()
}

// TestRails: 16 ranks of MPICH over UCX on 8 hosts with two rails, collectives whose data is compared, while each rail of a
// host goes down and comes back. Both rails carry it.
func TestRails(t *testing.T) {
	rnic, program, f := railsOf(t, "mpicc.mpich", "mpich and libmpich-dev")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	mpi := exec.CommandContext(ctx, rnic, "fabric", "run", "--", "mpirun.mpich", "-n", "16", program, "20")
	mpi.Env = append(os.Environ(), "UCX_TLS=rc_verbs,ud_verbs,self", "UCX_MAX_EAGER_RAILS=2", "UCX_MAX_RNDV_RAILS=2")
	mpi.Stderr = os.Stderr
	out, err := mpi.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, mpi.Start())
	lines := bufio.NewScanner(out)
	read := func() string {
		require.True(t, lines.Scan(), "it has ended")
		t.Log(lines.Text())
		return lines.Text()
	}
	assert.Equal(t, "16 ranks on"+strings.Repeat(" h1 h2 h3 h4 h5 h6 h7 h8", 2), read())
	for _, rail := range []string{"h3.nic0", "h5.nic1"} {
		read()
		for _, to := range []string{"down", "up"} {
			said, err := exec.CommandContext(ctx, rnic, "fabric", "break", rail, to).CombinedOutput()
			require.NoError(t, err, string(said))
			if to == "down" {
				time.Sleep(700 * time.Millisecond) // how long it is out: nothing is waited for
			}
		}
		read()
	}
	for _, nic := range []string{"nic0", "nic1"} {
		moved := sum(take(f.dir)["h2"], func(name string) bool { return name == nic })
		t.Logf("h2.%s: %d messages, %d octets out", nic, moved.outMessages, moved.outOctets)
		assert.Greater(t, moved.outOctets, uint64(100_000), nic)
	}
	var last string
	for lines.Scan() {
		last = lines.Text()
		t.Log(last)
	}
	_, _ = io.Copy(io.Discard, out)
	require.NoError(t, mpi.Wait())
	assert.Contains(t, last, "collectives: ok")
	require.NoError(t, exec.CommandContext(t.Context(), rnic, "fabric", "down").Run())
	f.nothingLeft()
}
