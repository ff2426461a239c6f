package fabric

import (
	"bufio"
	"errors"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestTerminal: at a terminal a program has one of its own: the controlling one, of the right size, with ^C for it alone. The
// command gives its own back as it was.
func TestTerminal(t *testing.T) {
	user, its, err := terminalPair()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this system has no terminals: ", err)
	}
	require.NoError(t, err)
	defer user.Close()
	f := begun(t, two)
	const script = `trap 'stty size' WINCH; trap 'echo interrupted; exit 7' INT
		test -t 0 && test -t 1 && test -t 2 && true </dev/tty && echo terminal
		stty size; echo ready; while :; do sleep 1000 & wait; done`
	client := exec.Command(self(t), "fabric", "exec", "--plain", "h2", "--", "sh", "-c", script)
	require.NoError(t, setSize(user, &unix.Winsize{Row: 17, Col: 71}))
	modes := func() (m *unix.Termios) {
		require.NoError(t, control(user, func(fd int) (err error) {
			m, err = unix.IoctlGetTermios(fd, unix.TCGETS)
			return err
		}))
		return m
	}
	before := modes()
	client.Stdin, client.Stdout, client.Stderr = its, its, its
	client.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, client.Start())
	require.NoError(t, its.Close())
	require.NoError(t, user.SetReadDeadline(time.Now().Add(time.Minute)))
	lines := bufio.NewReader(user)
	says := func(want string) {
		t.Helper()
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, want, strings.Trim(line, "^C\r\n"))
	}
	says("terminal")
	says("17 71")
	says("ready")
	during := modes()
	assert.Zero(t, during.Lflag&(unix.ICANON|unix.ISIG|unix.ECHO), "all goes to the program")
	require.NoError(t, setSize(user, &unix.Winsize{Row: 20, Col: 90}))
	says("20 90")
	_, err = user.WriteString("\x03")
	require.NoError(t, err)
	says("interrupted")
	var status *exec.ExitError
	require.ErrorAs(t, client.Wait(), &status)
	assert.Equal(t, 7, status.ExitCode())
	after := modes()
	assert.Equal(t, before, after)
	assert.Contains(t, rnic(t, "exec", "-t", "h1", "--", "true").Stderr, "the standard input is none")
	require.Zero(t, rnic(t, "down").Status)
	f.nothingLeft()
}

// TestSignalsAsUsual: a program of a fabric ignores no signal that it would not elsewhere.
func TestSignalsAsUsual(t *testing.T) {
	f := begun(t, two)
	const ignored = "grep SigIgn /proc/self/status"
	here, err := exec.Command("sh", "-c", ignored).Output()
	require.NoError(t, err)
	assert.Equal(t, string(here), f.sh("h1", ignored).Stdout)
	require.Zero(t, rnic(t, "down").Status)
}
