package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/interop/internal/siw"
)

// Limits of one cell. A connection takes about a second under emulation; one that hangs ends itself in the
// guest first, so that what it printed is seen.
const (
	rpingTime = 20 * time.Second
	cellTime  = 40 * time.Second
)

// harness runs cells with one guest at a time.
type harness struct {
	boot   func() (guest, error)
	guest  guest
	rnic   string // path of the program
	rounds int
}

// attempt runs one connection up to n times, until it works, and returns what came of each. A wedged guest
// is booted again, and that time does not count.
func (h *harness) attempt(n int, run func() error) []error {
	var errs []error
	for len(errs) < n {
		err := run()
		if errors.Is(err, errWedged) {
			if err := h.reboot(); err != nil {
				return append(errs, err)
			}
			err = run()
		}
		errs = append(errs, err)
		if err == nil {
			break
		}
	}
	return errs
}

// repeat runs one connection n times, none of them again, and tells how many failed, and how, or nil.
func (h *harness) repeat(n int, run func() error) error {
	if n == 1 {
		return h.attempt(1, run)[0]
	}
	var errs []error
	for i := range n {
		if err := h.attempt(1, run)[0]; err != nil {
			errs = append(errs, fmt.Errorf("connection %d: %w", i+1, err))
		}
	}
	if errs == nil {
		return nil
	}
	return fmt.Errorf("%d of %d connections failed: %w", len(errs), n, errors.Join(errs...))
}

// reboot replaces the guest by a new one of the same kind.
func (h *harness) reboot() error {
	if err := h.guest.Stop(); err != nil {
		return err
	}
	g, err := h.boot()
	if err != nil {
		return err
	}
	h.guest = g
	return nil
}

// control runs a cell's settings with siw at both ends.
func (h *harness) control(ctx context.Context, c cell) error {
	if err := h.guest.set(ctx, c.settings); err != nil {
		return err
	}
	out, err := h.guest.Command(ctx, cellTime, controlScript(c.size, h.rounds)).CombinedOutput()
	return said("siw with siw", err, string(out))
}

// run runs a cell with softrnic at one end.
func (h *harness) run(ctx context.Context, c cell) error {
	ctx, cancel := context.WithTimeout(ctx, 2*cellTime)
	defer cancel()
	if c.dir == ourClient {
		return h.runClient(ctx, c)
	}
	return h.runServer(ctx, c)
}

// flags are the flags of rnic that both its roles share.
func (h *harness) flags(c cell) []string {
	return []string{
		"--json", "-V", "-C", strconv.Itoa(h.rounds), "-S", strconv.Itoa(c.size),
		"--crc=" + onOff(c.crc), "--mpa-rev=" + strconv.Itoa(c.rev), fmt.Sprintf("--p2p=%t", c.p2p),
		"--timeout=" + rpingTime.String(),
	}
}

// runClient lets rnic connect to rping in the guest. What a server in the guest does follows from the request.
func (h *harness) runClient(ctx context.Context, c cell) error {
	wait, err := h.guest.startServer(ctx, c.size)
	if err != nil {
		return err
	}
	ours, theirs := h.ping(ctx, c), wait()
	if ours == nil && errors.Is(theirs, errLate) {
		return nil // all rounds were done, with valid data
	}
	return either(ours, theirs)
}

// ping runs rnic's client against the server in the guest.
func (h *harness) ping(ctx context.Context, c cell) error {
	args := append([]string{"ping", "-c", "-a", "127.0.0.1", "-p", strconv.Itoa(h.guest.Port)}, h.flags(c)...)
	cmd := exec.CommandContext(ctx, h.rnic, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := said("rnic client", cmd.Run(), stderr.String()); err != nil {
		return err
	}
	return h.complete(stdout.Bytes())
}

// runServer lets rping in the guest connect to rnic.
func (h *harness) runServer(ctx context.Context, c cell) error {
	if err := h.guest.set(ctx, c.settings); err != nil {
		return err
	}
	args := append([]string{"ping", "-s", "-a", "127.0.0.1", "-p", "0"}, h.flags(c)...)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(ctx, h.rnic, args...)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	log := bufio.NewReader(pipe)
	port, err := listeningPort(log)
	if err != nil {
		stop()
		return errors.Join(err, cmd.Wait())
	}

	script := clientScript(siw.HostAddr, port, h.rounds, c.size)
	out, err := h.guest.Command(ctx, cellTime, script).CombinedOutput()
	theirs := said("siw client", err, string(out))
	if theirs != nil {
		stop() // a client that never connected leaves the server waiting
	}
	rest, _ := io.ReadAll(log)
	ours := said("rnic server", cmd.Wait(), string(rest))
	if ours == nil {
		ours = h.complete(stdout.Bytes())
	}
	return either(ours, theirs)
}

// listeningPort reads the line in which rnic names the port it listens on.
func listeningPort(log *bufio.Reader) (int, error) {
	line, err := log.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("rnic server: %w: %s", err, line)
	}
	line = strings.TrimSpace(line)
	port, err := strconv.Atoi(line[strings.LastIndexByte(line, ':')+1:])
	if err != nil {
		return 0, fmt.Errorf("rnic server: no port in its first line %q", line)
	}
	return port, nil
}

// complete checks rnic's summary: a connection that ended early exits with 0 at a server.
func (h *harness) complete(summary []byte) error {
	var s struct {
		Rounds    int
		Validated bool
	}
	if err := json.Unmarshal(summary, &s); err != nil {
		return fmt.Errorf("rnic's summary %q: %w", summary, err)
	}
	if s.Rounds != h.rounds || !s.Validated {
		return fmt.Errorf("rnic: %d of %d rounds, validated %t", s.Rounds, h.rounds, s.Validated)
	}
	return nil
}

// either joins what the two ends say, on one line. A stall explains what softrnic says, so it stands alone.
func either(ours, theirs error) error {
	switch {
	case ours == nil, errors.Is(theirs, errStalled):
		return theirs
	case theirs == nil:
		return ours
	}
	return fmt.Errorf("%w; %w", ours, theirs)
}
