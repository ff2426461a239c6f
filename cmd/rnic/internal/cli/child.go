package cli

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

// Child is another process of this program, the server of a command that needs
// two. It says on its standard output, in one line of JSON, where it listens,
// and it ends when its standard input does: so it cannot outlive its parent.
// Parent and child may exchange more lines of JSON, see ask.
type Child struct {
	Name   string // for messages
	Cmd    *exec.Cmd
	stdin  io.WriteCloser
	answer *json.Decoder // of standard output
	Stderr bytes.Buffer
}

// Announcement is the line in which a child says where it listens.
type Announcement struct {
	Address string `json:"address"`         // RDMA
	Plain   string `json:"plain,omitempty"` // a bare TCP stream, to compare with
}

// StartChild runs this program with args and waits for its announcement. The
// child is killed when ctx ends.
func StartChild(ctx context.Context, args ...string) (*Child, Announcement, error) {
	var where Announcement
	c, err := NewChild(ctx, nil, args...)
	if err != nil {
		return nil, where, err
	}
	if err := c.listen(&where); err != nil {
		return nil, where, errors.Join(fmt.Errorf("the server process did not start: %w", err), c.Stop())
	}
	return c, where, nil
}

// NewChild runs this program with args, as attr says if it is not nil.
func NewChild(ctx context.Context, attr *syscall.SysProcAttr, args ...string) (*Child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, to start another process of it: %w", err)
	}
	c := &Child{Name: "server process", Cmd: exec.CommandContext(ctx, program, args...)}
	c.Cmd.Stderr = &c.Stderr
	c.Cmd.SysProcAttr = attr
	if c.stdin, err = c.Cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.Cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.answer = json.NewDecoder(stdout)
	if err := c.Cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", c.Name, err)
	}
	return c, nil
}

// listen reads the next line of the child's into v.
func (c *Child) listen(v any) error { return c.answer.Decode(v) }

// tell writes a line to the child.
func (c *Child) tell(v any) error { return json.NewEncoder(c.stdin).Encode(v) }

// Ask tells the child something and reads its answer.
func (c *Child) Ask(question, answer any) error {
	if err := c.tell(question); err != nil {
		return err
	}
	return c.listen(answer)
}

// Wait waits until the child ends by itself.
func (c *Child) Wait() error {
	if err := c.Cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", c.Name, err, strings.TrimSpace(c.Stderr.String()))
	}
	return nil
}

// Stop tells the child to end, and waits for it.
func (c *Child) Stop() error {
	c.stdin.Close()
	return c.Wait()
}

// Instead is err, or that ctx has ended if it has: then what children say of their
// end says nothing.
func Instead(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Announce writes the line that StartChild waits for.
func Announce(w io.Writer, where Announcement) error {
	return json.NewEncoder(w).Encode(where)
}

// UntilEOF returns a context that also ends when r does.
func UntilEOF(ctx context.Context, r io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, r) // however it ends
		cancel()
	}()
	return ctx, cancel
}
