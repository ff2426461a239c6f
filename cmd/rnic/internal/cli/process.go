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

	"github.com/spf13/cobra"
)

// Process is another process of this program: the server of a command that needs two. It writes the
// addresses on which it listens to its standard output, a line of JSON. It ends with its standard input, so it cannot outlive this process.
// More lines of JSON may follow, a request and a response at a time.
type Process struct {
	Name string // for messages
	Cmd  *exec.Cmd
	Announcement

	stdin     io.WriteCloser
	responses *json.Decoder // of standard output
	stderr    bytes.Buffer
	waited    bool
}

// Announcement is the line with the addresses on which a server process listens.
type Announcement struct {
	Address string `json:"address"`         // RDMA
	Plain   string `json:"plain,omitempty"` // a bare TCP stream, to compare with
}

// WithServer starts this program with args as a server process, calls use when it listens, and ends it. The error is
// that of use joined to that of the server process, which names itself; or that ctx has ended.
func WithServer(ctx context.Context, args []string, use func(*Process) error) error {
	p, err := StartServer(ctx, args...)
	if err == nil {
		err = errors.Join(use(p), p.Stop())
	}
	return Instead(ctx, err)
}

// StartServer runs this program with args and waits for its announcement. It is killed when ctx ends.
func StartServer(ctx context.Context, args ...string) (*Process, error) {
	p, err := StartProcess(ctx, "server", nil, args...)
	if err != nil {
		return nil, err
	}
	if err := p.responses.Decode(&p.Announcement); err != nil {
		return nil, errors.Join(fmt.Errorf("the server process did not start: %w", err), p.Stop())
	}
	return p, nil
}

// StartProcess runs this program with args, as attr says if it is not nil. Messages name it by its role.
func StartProcess(ctx context.Context, role string, attr *syscall.SysProcAttr, args ...string) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, to start another process of it: %w", err)
	}
	p := &Process{Name: role + " process", Cmd: exec.CommandContext(ctx, program, args...)}
	p.Cmd.Stderr = &p.stderr
	p.Cmd.SysProcAttr = attr
	if p.stdin, err = p.Cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.Cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.responses = json.NewDecoder(stdout)
	if err := p.Cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", p.Name, err)
	}
	return p, nil
}

// Request sends the process a request and reads its response.
func (p *Process) Request(request, response any) error {
	if err := json.NewEncoder(p.stdin).Encode(request); err != nil {
		return err
	}
	return p.responses.Decode(response)
}

// Wait waits until the process ends by itself.
func (p *Process) Wait() error {
	p.waited = true
	if err := p.Cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", p.Name, err, p.Said())
	}
	return nil
}

// Stop ends the process, unless it has been waited for, and waits for it.
func (p *Process) Stop() error {
	if p.waited {
		return nil
	}
	p.stdin.Close()
	return p.Wait()
}

// Said is what a process that has ended wrote to its standard error.
func (p *Process) Said() string { return strings.TrimSpace(p.stderr.String()) }

// Instead is err, or why ctx has ended if it has: then how other processes and connections end says nothing.
func Instead(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Announce writes the line that StartServer waits for.
func Announce(cmd *cobra.Command, where Announcement) error {
	return json.NewEncoder(cmd.OutOrStdout()).Encode(where)
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

// Respond is the other end of Request: it calls respond for each request on the standard input of cmd and writes the
// response, until the input ends. The context of respond ends with the input, too; its error is not one then.
func Respond[T any](ctx context.Context, cmd *cobra.Command, respond func(context.Context, T) (any, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests := make(chan T)
	go func() {
		defer cancel()
		in := json.NewDecoder(cmd.InOrStdin())
		for {
			var request T
			if in.Decode(&request) != nil {
				return // the other process has ended, or will see the end of this one
			}
			select {
			case requests <- request:
			case <-ctx.Done():
				return
			}
		}
	}()
	out := json.NewEncoder(cmd.OutOrStdout())
	for {
		select {
		case <-ctx.Done():
			return nil
		case request := <-requests:
			response, err := respond(ctx, request)
			if err == nil {
				err = out.Encode(response)
			} else if ctx.Err() != nil {
				err = nil
			}
			if err != nil {
				return err
			}
		}
	}
}
