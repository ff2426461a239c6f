// Package exhaustion gives a test a process that has as few descriptors, or local ports, as the test says.
package exhaustion

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// childEnv holds the name of the test that a process is for.
const childEnv = "SOFTRNIC_SCARCE"

// limit is how many descriptors that process may have.
const limit = 512

// Hoard are the descriptors that nobody else has. It is for one goroutine.
type Hoard struct {
	t    testing.TB
	held []int
}

// Run runs f, which is all of the test t, in a process of its own, where few descriptors
// are to be had; Hoard.Leave says how many. Until then there are enough.
func Run(t *testing.T, f func(h *Hoard)) {
	t.Helper()
	if os.Getenv(childEnv) == t.Name() {
		h := &Hoard{t: t}
		defer h.release()
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			t.Fatalf("lowering the limit: %v", err)
		}
		f(h)
		return
	}
	again(t, nil)
}

// again runs the test in a process of its own.
func again(t *testing.T, attr *syscall.SysProcAttr) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	cmd.SysProcAttr = attr
	cmd.Env = append(os.Environ(), childEnv+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err == nil && bytes.Contains(out, []byte("--- SKIP: "+t.Name())) {
		t.Skipf("in a process of its own: %s", out)
	}
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Fatalf("in a process of its own: %v\n%s", err, out)
	}
}

// Leave leaves n descriptors to be had, and reports how many were to be had before.
func (h *Hoard) Leave(n int) (free int) {
	before := len(h.held)
	for {
		fd, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		h.held = append(h.held, fd)
	}
	free = len(h.held) - before
	for _, fd := range h.held[len(h.held)-n:] {
		_ = syscall.Close(fd)
	}
	h.held = h.held[:len(h.held)-n]
	return free
}

// Await waits until n descriptors are to be had, besides those of the Hoard, which are as
// many as before then.
func (h *Hoard) Await(n int) {
	h.t.Helper()
	free := 0
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		free = h.Leave(0)
		last := len(h.held) - free
		for _, fd := range h.held[last:] {
			_ = syscall.Close(fd)
		}
		if h.held = h.held[:last]; free == n {
			return
		}
	}
	h.t.Fatalf("%d descriptors are left, not %d: %s", free, n, open())
}

// release gives everything back.
func (h *Hoard) release() {
	for _, fd := range h.held {
		_ = syscall.Close(fd)
	}
	h.held = nil
}

// open tells what is open.
func open() (list string) {
	for fd := range limit {
		if to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && to != "/dev/null" {
			list += fmt.Sprintf("%d %s\n", fd, to)
		}
	}
	return list
}
