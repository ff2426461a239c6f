//go:build unix

package top

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is one that the table is drawn on, whose keys come as they are typed if this process has them. ^C and ^Z are signals as ever.
type terminal struct {
	out  *os.File
	keys int           // the descriptor they are read from; -1 for none
	was  *unix.Termios // of keys, for close

	lines, columns int // at the last look
}

// openTerminal is nil if out is no terminal.
func openTerminal(in io.Reader, out io.Writer) *terminal {
	f, ok := out.(*os.File)
	if !ok {
		return nil
	}
	t := &terminal{out: f, keys: -1}
	if !t.look() {
		return nil
	}
	if f, ok := in.(*os.File); ok {
		fd := int(f.Fd())
		if was, err := unix.IoctlGetTermios(fd, getTermios); err == nil {
			t.keys, t.was = fd, was
		}
	}
	t.byKey()
	return t
}

// byKey has keys come without the end of a line. A shell sets it back when it stops the process.
func (t *terminal) byKey() {
	if t.keys < 0 {
		return
	}
	now := *t.was
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	_ = unix.IoctlSetTermios(t.keys, setTermios, &now) // then q needs Enter
}

func (t *terminal) close() {
	if t.keys >= 0 {
		_ = unix.IoctlSetTermios(t.keys, setTermios, t.was)
	}
}

// look looks for the size, and reports whether out is a terminal.
func (t *terminal) look() bool {
	s, err := unix.IoctlGetWinsize(int(t.out.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return false
	}
	t.lines, t.columns = int(s.Row), int(s.Col)
	if s.Row == 0 || s.Col == 0 { // it does not say
		t.lines, t.columns = 24, 80
	}
	return true
}

// lookEvery is how long a new size of the terminal waits to be seen.
const lookEvery = 50 * time.Millisecond

// wait waits until then, or for a key that quits, a new size, or the end of ctx.
func (t *terminal) wait(ctx context.Context, then time.Time) event {
	t.byKey()
	for {
		left := min(time.Until(then), lookEvery)
		switch {
		case ctx.Err() != nil:
			return quit
		case left <= 0:
			return due
		case t.quits(left):
			return quit
		}
		lines, columns := t.lines, t.columns
		if t.look() && (lines != t.lines || columns != t.columns) {
			return resized
		}
	}
}

// quits waits for a key, for so long, and reports whether it quits.
func (t *terminal) quits(d time.Duration) bool {
	if t.keys < 0 {
		time.Sleep(d)
		return false
	}
	set := []unix.PollFd{{Fd: int32(t.keys), Events: unix.POLLIN}}
	if n, err := unix.Poll(set, int((d+time.Millisecond-1)/time.Millisecond)); n <= 0 || err != nil {
		return false // an interrupt, if anything
	}
	var b [16]byte
	n, err := unix.Read(t.keys, b[:])
	if n <= 0 {
		return !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) // the terminal is gone
	}
	return quitKey(b[:n])
}
