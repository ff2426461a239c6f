//go:build fabric

package fabric

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// What 64 hosts may cost.
const (
	crowdHosts  = 64
	crowdMemory = 8 << 30
	crowdTime   = 60 * time.Second
)

// TestCrowd: 64 hosts with 128 NICs, each with a pair of rping whose data is compared, between it and that of the next host, within 8 GiB and a minute; and then
// nothing is left. It needs rnic and its libraries in bin, and rping.
func TestCrowd(t *testing.T) {
	rnic, err := filepath.Abs("../../../../bin/rnic")
	require.NoError(t, err)
	if _, err := os.Stat(rnic); err != nil {
		t.Fatal("make c builds what this needs: ", err)
	}
	if _, err := exec.LookPath("rping"); err != nil {
		t.Skip("needs rping of rdmacm-utils")
	}
	home(t)
	began := time.Now()
	path := file(t, fmt.Sprintf("switch rail0 rail1\nhost h1..h%d: rail0 rail1", crowdHosts))
	said, err := exec.CommandContext(t.Context(), rnic, "fabric", "up", path).CombinedOutput()
	require.NoError(t, err, string(said))
	t.Logf("up after %v: %s", time.Since(began), said)
	f := &fabric{t: t, dir: place("test"), spaces: map[string]bool{}}
	s := f.state()
	if s.In == onLoopback {
		t.Skip("this system has no network namespaces for this user: " + strings.Join(s.Notes, "; "))
	}
	own := spaces(os.Getpid())
	for ns := range spaces(s.Keeper) {
		f.spaces[ns] = !own[ns]
	}
	pid := "" // the namespace of all that runs there
	for ns := range f.spaces {
		if strings.HasPrefix(ns, "pid:") {
			pid = ns
		}
	}
	require.True(t, f.spaces[pid])

	watching, stop := context.WithCancel(t.Context())
	peak, most := make(chan [2]int, 1), [2]int{}
	go func() {
		for watching.Err() == nil {
			octets, programs := inUse(pid)
			most = [2]int{max(most[0], octets), max(most[1], programs)}
			time.Sleep(500 * time.Millisecond)
		}
		peak <- most
	}()
	pairs, ctx := errgroup.WithContext(t.Context())
	on := func(host string, nic int, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, rnic, append([]string{"fabric", "exec", "--nic", fmt.Sprint("nic", nic), host, "--"}, args...)...)
	}
	// Clients begin when all are there. rping does not say when it listens, so they ask again.
	const client = `until [ -e "$TMPDIR/begin" ]; do sleep 0.2; done
		for i in $(seq 100); do rping -c -a %s -C 100 -S 1000 -V 2>/dev/null && exit 0; sleep 0.2; done; exit 1`
	for h := range crowdHosts {
		for nic := range 2 {
			addr := s.Hosts[h].NICs[nic].Address
			pairs.Go(func() error {
				return ends(on(s.Hosts[h].Name, nic, "rping", "-s", "-a", addr, "-C", "100", "-S", "1000", "-V"))
			})
			pairs.Go(func() error {
				return ends(on(s.Hosts[(h+1)%crowdHosts].Name, nic, "sh", "-c", fmt.Sprintf(client, addr)))
			})
		}
	}
	waiting, programs := 0, 0 // of all when all are there
	require.Eventually(t, func() bool {
		waiting, programs = inUse(pid)
		return ctx.Err() != nil || programs >= 1+2*4*crowdHosts // the keeper; of each NIC a server and a client, under rnic run
	}, crowdTime, 100*time.Millisecond)
	require.NoError(t, ends(on("h1", 0, "sh", "-c", `touch "$TMPDIR/begin"`)))
	require.NoError(t, pairs.Wait())
	took := time.Since(began)
	stop()
	most = <-peak
	most = [2]int{max(most[0], waiting), max(most[1], programs)}
	t.Logf("%d hosts, %d NICs, a pair of rping for each: %v, %d MiB in %d processes", crowdHosts, 2*crowdHosts, took, most[0]>>20, most[1])
	assert.Less(t, took, crowdTime)
	assert.Less(t, most[0], crowdMemory)

	ended := time.Now()
	said, err = exec.CommandContext(t.Context(), rnic, "fabric", "down").CombinedOutput()
	require.NoError(t, err, string(said))
	t.Logf("down after %v", time.Since(ended))
	f.nothingLeft()
}

// ends is the error of a program, with what it has said.
func ends(cmd *exec.Cmd) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args[3:], " "), err, said)
	}
	return nil
}

// inUse is the memory of all processes in a process namespace, shared pages by their share, and how many there are.
func inUse(namespace string) (octets, programs int) {
	for _, pid := range processes() {
		if ns, err := os.Readlink(processFile(pid, "ns/pid")); err != nil || ns != namespace {
			continue
		}
		programs++
		text, _ := os.ReadFile(processFile(pid, "smaps_rollup"))
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			if kib, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(kib, "kB")))
				octets += n << 10
			}
		}
	}
	return octets, programs
}
