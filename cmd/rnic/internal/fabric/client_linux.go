package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/softrnic/softrnic/internal/ownsock"
)

var errEnded = errors.New("the keeper of the fabric has ended")

// dial connects to the keeper of the fabric at dir, whose process is keeper.
func dial(dir string) (c *ownsock.Conn, keeper int, err error) {
	uc, err := ownsock.Dial(filepath.Join(dir, socketFile))
	for i := 0; err != nil && ownsock.Busy(err) && i < 100; i++ { // many at once, as MPI's launchers
		time.Sleep(20 * time.Millisecond)
		uc, err = ownsock.Dial(filepath.Join(dir, socketFile))
	}
	switch {
	case errors.Is(err, os.ErrNotExist), err != nil && ownsock.Refused(err):
		return nil, 0, errEnded
	case err != nil:
		return nil, 0, fmt.Errorf("reaching the keeper of the fabric: %w", err)
	}
	if rc, err := uc.SyscallConn(); err == nil {
		_ = rc.Control(func(fd uintptr) {
			if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
				keeper = int(cred.Pid) // 0 within the fabric
			}
		})
	}
	c, err = ownsock.NewConn(uc, within)
	return c, keeper, err
}

// hear waits for the answer: for ever if within is 0.
func hear(c *ownsock.Conn, within time.Duration) (answer, error) {
	var a answer
	var body []byte
	for kind := byte(msgPart); kind == msgPart; {
		m, err := c.Read(within)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return a, err
		}
		if err != nil {
			return a, fmt.Errorf("%w: %w", errEnded, err)
		}
		m.Discard()
		kind, body = m.Type, append(body, m.Body...)
	}
	err := json.Unmarshal(body, &a)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// answered is how long the keeper may take: it is as quick as the system, but for programs that do not end at once.
const answered = 30 * time.Second

// ask sends a request without files, and waits for the answer.
func ask(ctx context.Context, dir string, kind byte, request any) (answer, error) {
	return askWithin(ctx, answered, dir, kind, request)
}

func askWithin(ctx context.Context, within time.Duration, dir string, kind byte, request any) (answer, error) {
	c, keeper, err := dial(dir)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if err := say(c, kind, request); err != nil {
		return answer{}, err
	}
	a, err := hear(c, within)
	switch {
	case ctx.Err() != nil:
		return a, context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return a, stands(within, keeper)
	}
	if a.State != nil {
		a.State.Keeper = keeper
	}
	return a, err
}

// stands is the error of a keeper that does not answer.
func stands(within time.Duration, keeper int) error {
	return fmt.Errorf("the keeper of the fabric has not answered for %v: end process %d (kill -9), and the fabric with it", within, keeper)
}

// down ends the fabric at dir, and waits until nothing is left of it. Another one may be there by then: the lock tells them
// apart.
func down(ctx context.Context, dir string) error {
	locked, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer locked.Close()
	if _, err := ask(ctx, dir, msgDown, nil); err != nil && !errors.Is(err, errEnded) {
		return err
	}
	for { // the keeper is about to end: its lock goes with it
		over, err := clearEnded(ctx, dir, locked)
		switch {
		case err != nil || over:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		time.Sleep(time.Millisecond)
	}
}

// clearEnded clears away what is left of the fabric with this lock, if its keeper has ended.
func clearEnded(ctx context.Context, dir string, locked *os.File) (over bool, err error) {
	unlock, err := ownsock.Lock(ctx, patience)
	if err != nil {
		return false, err
	}
	defer unlock()
	if over, err = tryLock(locked); over {
		err = clearAway(dir, locked)
	}
	return over, err
}

// onHost runs a program of a fabric with these files, and returns its status.
func onHost(ctx context.Context, dir string, req *execRequest, in io.Reader, out, errs io.Writer) (status int, err error) {
	return onHostWithin(ctx, answered, dir, req, in, out, errs)
}

// onHostWithin is onHost, where the keeper may take as long as within to start the program.
func onHostWithin(ctx context.Context, within time.Duration, dir string, req *execRequest, in io.Reader, out, errs io.Writer) (status int, err error) {
	req.Env = os.Environ()
	if req.Dir, err = os.Getwd(); err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	c, keeper, err := dial(dir)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var pipes pipes
	defer pipes.close()
	var files []*os.File
	if req.Terminal {
		t, err := pipes.terminal(in, out)
		if err != nil {
			return 0, err
		}
		files = []*os.File{t, t, t}
	} else {
		files = []*os.File{pipes.from(in), pipes.to(out), pipes.to(errs)}
	}
	if pipes.err != nil {
		return 0, pipes.err
	}
	for i, kind := range []byte{msgStdin, msgStdout, msgStderr} {
		if err := c.Write(kind, nil, files[i]); err != nil {
			return 0, err
		}
	}
	if err := say(c, msgExec, req); err != nil {
		return 0, err
	}
	pipes.closeFar()
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case s := <-signals:
				if n, ok := s.(syscall.Signal); ok {
					_ = say(c, msgSignal, int(n)) // who is over hears nothing
				}
			case <-over:
				return
			}
		}
	}()
	hangUp := context.AfterFunc(ctx, func() { _ = c.Close() }) // no program hears of the signal yet
	a, err := hear(c, within)
	hangUp()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = stands(within, keeper)
	}
	if err == nil && a.Begun {
		a, err = hear(c, 0)
		pipes.drain()
	}
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	return a.Status, err
}

// pipes stand for readers and writers that are no files, and for a terminal.
type pipes struct {
	far, near []*os.File
	copies    sync.WaitGroup
	err       error
	own       *terminal
}

// terminal is the program's end of a terminal of its own.
func (p *pipes) terminal(in io.Reader, out io.Writer) (*os.File, error) {
	own, ok := in.(*os.File)
	to, too := out.(*os.File)
	if !ok || !too || !term.IsTerminal(int(own.Fd())) {
		return nil, errors.New("--terminal: the standard input is none")
	}
	t, err := openTerminal(own, to)
	if err != nil {
		return nil, fmt.Errorf("making a terminal: %w", err)
	}
	p.own = t
	return p.lend(t.theirs), nil
}

func (p *pipes) pair() (r, w *os.File) {
	r, w, err := os.Pipe()
	p.err = errors.Join(p.err, err)
	return r, w
}

// lend has the end that the program gets block, as programs expect of their standard files: Go's pipes do not.
func (p *pipes) lend(f *os.File) *os.File {
	p.far = append(p.far, f)
	p.err = errors.Join(p.err, syscall.SetNonblock(int(f.Fd()), false))
	return f
}

func (p *pipes) from(in io.Reader) *os.File {
	if f, ok := in.(*os.File); ok {
		return f
	}
	r, w := p.pair()
	if p.err != nil {
		return nil
	}
	p.near = append(p.near, w)
	go func() {
		_, _ = io.Copy(w, in)
		_ = w.Close()
	}()
	return p.lend(r)
}

func (p *pipes) to(out io.Writer) *os.File {
	if f, ok := out.(*os.File); ok {
		return f
	}
	r, w := p.pair()
	if p.err != nil {
		return nil
	}
	p.near = append(p.near, r)
	p.copies.Go(func() { _, _ = io.Copy(out, r) })
	return p.lend(w)
}

// closeFar closes the ends that the program has now.
func (p *pipes) closeFar() {
	for _, f := range p.far {
		_ = f.Close()
	}
	p.far = nil
}

// drain waits for what the program has written.
func (p *pipes) drain() {
	p.copies.Wait()
	if p.own != nil {
		p.own.close()
		p.own = nil
	}
}

// close ends the copies of a program that has not begun, too: a keeper that stands still has their other ends.
func (p *pipes) close() {
	p.closeFar()
	for _, f := range p.near {
		_ = f.Close()
	}
	p.drain()
}
