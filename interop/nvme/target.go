//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/interop/internal/siw"
)

// diskSize is that of the exported file, in octets.
const diskSize = 256 << 20

// lab is what the steps share: the guest, and the target if one runs.
type lab struct {
	rnic, dir string
	guest     *siw.Guest
	target    *exec.Cmd
	port      string
}

func (l *lab) disk() string { return filepath.Join(l.dir, "disk.img") }

// serve runs `rnic nvme serve` with args at 127.0.0.1, port 0 being any, and returns when it listens.
func (l *lab) serve(ctx context.Context, port string, args ...string) error {
	if l.target != nil {
		return errors.New("a target runs already")
	}
	cmd := exec.Command(l.rnic, append([]string{"nvme", "serve", "--listen", net.JoinHostPort("127.0.0.1", port)}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	l.target = cmd
	found := make(chan string, 1)
	go func() {
		r := bufio.NewReader(stderr)
		line, _ := r.ReadString('\n')
		found <- line
		_, _ = io.Copy(io.Discard, r)
	}()
	select {
	case line := <-found:
		_, addr, ok := strings.Cut(strings.TrimSpace(line), "listening on ")
		if !ok {
			l.end()
			return fmt.Errorf("rnic nvme serve said %q", line)
		}
		_, l.port, err = net.SplitHostPort(addr)
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end kills the target, as a crash would.
func (l *lab) end() {
	if l.target != nil {
		_ = l.target.Process.Kill()
		_ = l.target.Wait()
		l.target = nil
	}
}

// interrupted is the status of a command that ended in order when it was asked to.
const interrupted = 128 + int(syscall.SIGINT)

// quit asks the target to end, and waits until it has.
func (l *lab) quit() error {
	if l.target == nil {
		return errors.New("no target runs")
	}
	err := l.target.Process.Signal(os.Interrupt)
	late := time.AfterFunc(time.Minute, func() { _ = l.target.Process.Kill() })
	_ = l.target.Wait() // the status tells
	late.Stop()
	if got := l.target.ProcessState.ExitCode(); err == nil && got != interrupted {
		err = fmt.Errorf("rnic nvme serve ended with status %d, want %d", got, interrupted)
	}
	l.target = nil
	return err
}
