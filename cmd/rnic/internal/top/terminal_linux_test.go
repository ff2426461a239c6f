package top

import (
	"context"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pty makes a terminal of 24 lines and 80 columns: the user's end, and the program's.
func pty(t *testing.T) (user, program *os.File) {
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = user.Close() })
	fd := int(user.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = program.Close() })
	resize(t, user, 24, 80)
	return user, program
}

func resize(t *testing.T, user *os.File, lines, columns uint16) {
	require.NoError(t, unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: lines, Col: columns}))
}

// TestTerminal: time, a new size, keys and the context end a wait, each as what it is; and the terminal is left as it was.
func TestTerminal(t *testing.T) {
	user, program := pty(t)
	before, err := unix.IoctlGetTermios(int(program.Fd()), getTermios)
	require.NoError(t, err)
	w := openTerminal(program, program)
	require.NotNil(t, w)
	assert.Equal(t, []int{24, 80}, []int{w.lines, w.columns})
	assert.Equal(t, due, w.wait(t.Context(), time.Now().Add(time.Millisecond)))

	far := time.Now().Add(time.Hour)
	resize(t, user, 50, 200)
	assert.Equal(t, resized, w.wait(t.Context(), far))
	assert.Equal(t, []int{50, 200}, []int{w.lines, w.columns})

	_, err = io.WriteString(user, "xq") // and no Enter
	require.NoError(t, err)
	assert.Equal(t, quit, w.wait(t.Context(), far))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, quit, w.wait(ctx, far))

	w.close()
	after, err := unix.IoctlGetTermios(int(program.Fd()), getTermios)
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

// TestNoTerminal: a pipe is none, and one that is drawn on but has no keys still waits.
func TestNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	assert.Nil(t, openTerminal(r, w))
	user, program := pty(t)
	window := openTerminal(r, program)
	require.NotNil(t, window)
	assert.Equal(t, due, window.wait(t.Context(), time.Now().Add(time.Millisecond)))
	resize(t, user, 50, 200)
	assert.Equal(t, resized, window.wait(t.Context(), time.Now().Add(time.Hour)))
	window.close()
}
