package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// child is another process of this program, the server of a command that needs
// two. It says on its standard output, in one line of JSON, where it listens,
// and it ends when its standard input does: so it cannot outlive its parent.
// Parent and child may exchange more lines of JSON, see ask.
type child struct {
	name   string // for messages
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	answer *json.Decoder // of standard output
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
	c, err := newChild(ctx, nil, args...)
	if err != nil {
		return nil, where, err
	}
	if err := c.listen(&where); err != nil {
		return nil, where, errors.Join(fmt.Errorf("the server process did not start: %w", err), c.stop())
	}
	return c, where, nil
}

// newChild runs this program with args, as attr says if it is not nil.
func newChild(ctx context.Context, attr *syscall.SysProcAttr, args ...string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, to start another process of it: %w", err)
	}
	c := &child{name: "server process", cmd: exec.CommandContext(ctx, program, args...)}
	c.cmd.Stderr = &c.stderr
	c.cmd.SysProcAttr = attr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.answer = json.NewDecoder(stdout)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", c.name, err)
	}
	return c, nil
}

// listen reads the next line of the child's into v.
func (c *child) listen(v any) error { return c.answer.Decode(v) }

// tell writes a line to the child.
func (c *child) tell(v any) error { return json.NewEncoder(c.stdin).Encode(v) }

// ask tells the child something and reads its answer.
func (c *child) ask(question, answer any) error {
	if err := c.tell(question); err != nil {
		return err
	}
	return c.listen(answer)
}

// wait waits until the child ends by itself.
func (c *child) wait() error {
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", c.name, err, strings.TrimSpace(c.stderr.String()))
	}
	return nil
}

// stop tells the child to end, and waits for it.
func (c *child) stop() error {
	c.stdin.Close()
	return c.wait()
}

// instead is err, or that ctx has ended if it has: then what children say of their
// end says nothing.
func instead(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
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
