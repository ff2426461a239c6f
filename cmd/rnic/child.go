package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// child is another process of this program, the server of a command that needs
// two. It says on its standard output, in one line of JSON, where it listens,
// and it ends when its standard input does: so it cannot outlive its parent.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer
}

// announcement is the line in which a child says where it listens.
type announcement struct {
	Address string `json:"address"`         // RDMA
	Plain   string `json:"plain,omitempty"` // a bare TCP stream, to compare with
}

// startChild runs this program with args and waits for its announcement. The
// child is killed when ctx ends.
func startChild(ctx context.Context, args ...string) (*child, announcement, error) {
	var where announcement
	program, err := os.Executable()
	if err != nil {
		return nil, where, fmt.Errorf("finding this program, to start the server process: %w", err)
	}
	c := &child{cmd: exec.CommandContext(ctx, program, args...)}
	c.cmd.Stderr = &c.stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, where, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, where, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, where, fmt.Errorf("starting the server process: %w", err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &where)
	}
	if err != nil {
		return nil, where, errors.Join(fmt.Errorf("the server process did not start: %w", err), c.stop())
	}
	return c, where, nil
}

// wait waits until the child ends by itself.
func (c *child) wait() error {
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("server process: %w: %s", err, strings.TrimSpace(c.stderr.String()))
	}
	return nil
}

// stop tells the child to end, and waits for it.
func (c *child) stop() error {
	c.stdin.Close()
	return c.wait()
}

// announce writes the line that startChild waits for.
func announce(w io.Writer, where announcement) error {
	return json.NewEncoder(w).Encode(where)
}

// untilEOF returns a context that also ends when r does.
func untilEOF(ctx context.Context, r io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, r) // however it ends
		cancel()
	}()
	return ctx, cancel
}
