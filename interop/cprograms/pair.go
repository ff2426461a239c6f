//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// program is a running side.
type program struct {
	cmd  *exec.Cmd
	out  output        // what it prints
	errs output        // the errors among that
	says output        // the rest of it
	err  error         // valid when done is closed
	done chan struct{} // closed when it and all that holds its output has ended
}

// output is what a program prints, on both streams.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs words in the space, with the folder dir as theirs.
func (s *space) start(ctx context.Context, dir string, words []string) (*program, error) {
	return begin(s.command(ctx, dir, words...), dir)
}

// begin starts cmd in a process group of its own. Temporary files go below dir.
func begin(cmd *exec.Cmd, dir string) (*program, error) {
	p := &program{cmd: cmd, done: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second // for what has left the group, and has its output open
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(dir, "tmp"), "LC_ALL=C", "PWD="+dir)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&p.out, &p.says), io.MultiWriter(&p.out, &p.errs)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// prints reports whether what it has printed matches a regexp, which may have first what stands on either of stdout and stderr: they
// are two pipes, and which of two lines comes first through them is nobody's affair.
func (p *program) prints(want string) bool {
	re, out, errs := regexp.MustCompile(want), p.says.String(), p.errs.String()
	return re.MatchString(out+errs) || re.MatchString(errs+out)
}

// wait returns how the program ended.
func (p *program) wait(ctx context.Context) error {
	<-p.done // a context that ends kills it
	if ctx.Err() != nil {
		return errTime
	}
	return p.err
}

// quit asks the program, and what it started, to end: as Ctrl-C in its terminal does.
func (p *program) quit() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT) }

var errTime = errors.New("it did not end in time")

// ready waits for a server to listen.
func (p *program) ready(ctx context.Context, s *space, port int) error {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !s.listens(port) {
		select {
		case <-p.done:
			return fmt.Errorf("the server ended before it listened: %w", orGood(p.err))
		case <-ctx.Done():
			return fmt.Errorf("the server does not listen on port %d", port)
		case <-look.C:
		}
	}
	return nil
}

func orGood(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// outcome is what became of a row.
type outcome struct {
	row
	err    error // nil: it ran
	took   time.Duration
	hungUp bool   // the client ended with row.early
	lost   int    // packets, where some are
	left   string // what it printed, for a reader of the log
}

// verdict is the cell of the table.
func (o outcome) verdict() string {
	switch {
	case o.cannot != "" && o.err != nil:
		return "cannot: " + o.cannot
	case o.cannot != "":
		return "FAIL: it works, and the table says it cannot"
	case o.err != nil:
		return "FAIL: " + o.err.Error()
	case o.hungUp:
		return fmt.Sprintf("ran; the client ended with %d: its last poll saw the server's end together with the last octets", o.early)
	case o.checks:
		return "ran, data compared"
	}
	return "ran"
}

// good tells whether the row is as the table of rows says.
func (o outcome) good() bool { return (o.cannot == "") == (o.err == nil) }

// run does one row: in a space of its own or, where packets are to be lost, two that are joined.
func (o options) run(ctx context.Context, r row, joined bool) (out outcome) {
	out.row = r
	limit := r.limit
	if limit == 0 {
		limit = rowTime
	}
	if r.cannot != "" {
		limit = min(limit, 20*time.Second)
	}
	if joined {
		limit *= 2
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, err := o.folder()
	if err != nil {
		out.err = err
		return out
	}
	if o.keep {
		fmt.Fprintf(os.Stderr, "  in %s\n", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	out.err = func() error {
		here, err := newSpace()
		if err != nil {
			return err
		}
		defer here.end()
		there := here
		if joined {
			if there, err = newSpace(); err != nil {
				return err
			}
			defer there.end()
			if err := join(ctx, here, there); err != nil {
				return err
			}
		} else if _, err := here.do(ctx, alone); err != nil {
			return err
		}
		if err := o.enter(ctx, here); err != nil {
			return err
		}
		const host = serverAddr
		if r.before != "" {
			first := exec.CommandContext(ctx, "sh", "-ec", r.fill(r.before, host, o))
			first.Dir = dir
			if text, err := first.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, text)
			}
		}
		begun := time.Now()
		out.left, err = o.both(ctx, r, here, there, host, dir, &out.hungUp)
		out.took = time.Since(begun)
		if joined {
			a, err1 := here.lost(context.WithoutCancel(ctx))
			b, err2 := there.lost(context.WithoutCancel(ctx))
			out.lost = a + b
			err = errors.Join(err, err1, err2)
		}
		if err == nil {
			err = o.residue(dir)
		}
		return err
	}()
	if o.keep {
		_ = os.WriteFile(filepath.Join(dir, "printed"), []byte(out.left), 0o644)
	}
	return out
}

// folder makes a folder for a row that everybody can write to.
func (o options) folder() (string, error) {
	dir, err := os.MkdirTemp("", "cprograms-")
	if err != nil {
		return "", err
	}
	tmp := filepath.Join(dir, "tmp")
	return dir, errors.Join(os.Mkdir(tmp, 0o755), os.Chmod(tmp, 0o777), os.Chmod(dir, 0o777))
}

// residue holds `rnic run` to leaving no folder behind.
func (o options) residue(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, "tmp", "*rnic*"))
	if err != nil || len(left) == 0 {
		return err
	}
	return fmt.Errorf("`rnic run` left %s behind", filepath.Base(left[0]))
}

// both runs server and client, and returns what they printed.
func (o options) both(ctx context.Context, r row, here, there *space, host, dir string, early *bool) (printed string, err error) {
	trace := func(s string) string {
		if o.strace == "" {
			return ""
		}
		return filepath.Join(o.strace, fileName(r.name())+"-"+s)
	}
	var srv *program
	if r.server != "" {
		if srv, err = here.start(ctx, dir, o.inRoot(dir, r.words(server, host, trace("server"), o))); err != nil {
			return "", err
		}
		if err := srv.ready(ctx, here, r.port); err != nil {
			srv.quit()
			return srv.out.String(), err
		}
	}
	cl, err := there.start(ctx, dir, o.inRoot(dir, r.words(client, host, trace("client"), o)))
	if err != nil {
		return "", err
	}
	err = cl.wait(ctx)
	text := cl.out.String()
	if exit := new(exec.ExitError); r.early != 0 && errors.As(err, &exit) && exit.ExitCode() == r.early {
		err, *early = nil, true
	}
	if err != nil {
		err = fmt.Errorf("client: %w%s", err, cl.said())
	} else if r.want != "" && !cl.prints(r.want) {
		err = fmt.Errorf("client: its output has no %s%s", r.want, cl.said())
	}
	if srv != nil {
		if r.stays || err != nil {
			srv.quit()
		}
		serverErr := srv.wait(ctx)
		text = "server:\n" + srv.out.String() + "client:\n" + text
		if serverErr != nil && !r.stays && r.leaves == "" && err == nil {
			err = fmt.Errorf("server: %w%s", serverErr, srv.said())
		}
		if r.leaves != "" && errors.Is(serverErr, errTime) && err == nil {
			err = fmt.Errorf("server: %w", serverErr)
		}
	}
	if err == nil && r.after != "" {
		check := exec.CommandContext(ctx, "sh", "-ec", r.fill(r.after, host, o))
		check.Dir = dir
		if words, e := check.CombinedOutput(); e != nil {
			err = fmt.Errorf("%w: %s", e, words)
		}
	}
	return text, err
}

// said is the last line that says something: of the errors, if there is one.
func (p *program) said() string {
	if line := last(p.errs.String()); line != "" {
		return line
	}
	return last(p.out.String())
}

func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" && strings.Trim(line, "-= ") != "" {
			return ": " + line
		}
	}
	return ""
}

var notInName = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// fileName makes a name of a file of the name of a row.
func fileName(s string) string { return strings.Trim(notInName.ReplaceAllString(s, "-"), "-") }
