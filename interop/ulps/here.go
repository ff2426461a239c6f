//go:build linux

package main

import (
	"context"
	"crypto/md5"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// here is this machine: programs run under `rnic run`.
type here struct{ rnic string }

func (h here) folder(context.Context) (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", "ulps-"); err != nil {
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir) }, os.WriteFile(filepath.Join(dir, "original"), octets(fileSize), 0o600)
}

func (h here) ports() (there, here int, err error) {
	port, err := freePort()
	return port, port, err
}

func (h here) command(ctx context.Context, r row, dir string, port int) *exec.Cmd {
	words := append([]string{"run"}, strings.Fields(r.flags)...)
	words = append(words, "--addr", h.host(), "--")
	cmd := exec.CommandContext(ctx, h.rnic, append(words, r.filled(h.host(), port)...)...)
	cmd.Dir = dir
	return cmd
}

// listens leaves it to the dialer: nobody else takes connections of that port.
func (h here) listens(context.Context, *output) error { return nil }

func (h here) end(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func (h here) sum(_ context.Context, file string) (string, error) {
	b, err := os.ReadFile(file)
	return fmt.Sprintf("%x", md5.Sum(b)), err
}

func (h here) host() string { return "127.0.0.1" }
