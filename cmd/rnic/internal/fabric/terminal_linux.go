package fabric

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is a program's own, as ssh and docker give one: it has job control, and ^C and ^Z are for what is in its foreground. The
// command's own terminal passes on all that is typed meanwhile.
type terminal struct {
	theirs, ours *os.File // the program's end, until it has that, and the other
	own          *os.File // the command's terminal
	before       *term.State
	sizes        chan os.Signal
	output       sync.WaitGroup
}

// lastWords is how long a terminal is read after its program has ended, if something that the program has left holds it open.
const lastWords = time.Second

// terminalPair makes a terminal: what is written to one end comes from the other as if it were typed.
func terminalPair() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	number := 0
	err = control(master, func(fd int) (err error) {
		if number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); err == nil {
			err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
		}
		return err
	})
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}

// control calls f with the descriptor of a file, whose reads can be given a deadline still: Fd would end that.
func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return errors.Join(err, failed)
}

// copySize gives a terminal the size of another; one of no size stays as it is.
func copySize(from, to *os.File) {
	if size, err := unix.IoctlGetWinsize(int(from.Fd()), unix.TIOCGWINSZ); err == nil {
		_ = setSize(to, size)
	}
}

func setSize(of *os.File, size *unix.Winsize) error {
	return control(of, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
}

// openTerminal makes a terminal of the size of own, and joins it with own and out.
func openTerminal(own, out *os.File) (*terminal, error) {
	ours, theirs, err := terminalPair()
	if err != nil {
		return nil, err
	}
	t := &terminal{theirs: theirs, ours: ours, own: own, sizes: make(chan os.Signal, 1)}
	if t.before, err = term.MakeRaw(int(own.Fd())); err != nil {
		return nil, errors.Join(err, theirs.Close(), ours.Close())
	}
	signal.Notify(t.sizes, syscall.SIGWINCH)
	copySize(own, ours)
	go func() {
		for range t.sizes {
			copySize(own, ours)
		}
	}()
	go func() { _, _ = io.Copy(ours, own) }()
	t.output.Go(func() { _, _ = io.Copy(out, ours) }) // an error is the end of what the program has written
	return t, nil
}

// close shows what the program has still written, and gives the command its terminal back.
func (t *terminal) close() {
	_ = t.theirs.Close()
	_ = t.ours.SetReadDeadline(time.Now().Add(lastWords))
	t.output.Wait()
	signal.Stop(t.sizes)
	close(t.sizes)
	_ = term.Restore(int(t.own.Fd()), t.before)
	_ = t.ours.Close()
}
