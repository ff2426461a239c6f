//go:build linux

package port

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/internal/test/otheruser"
)

// socket makes a local socket, and calls one that takes an address with path.
func socket(path string, call func(fd int, at syscall.Sockaddr) error) (*os.File, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	if err = call(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// TestAnotherUser: where the folder lets another user in, for whatever reason, who comes is turned away unheard; and the
// port of another user's process is in use.
func TestAnotherUser(t *testing.T) {
	at := unused(t)
	owner := open(t, process(), at)
	connects(t, owner, "before")
	ledger := leakcheck.Open(t)
	var f *os.File
	otheruser.Do(t, true, func() (err error) {
		f, err = socket(doorOf(at), syscall.Connect)
		return err
	})
	c, err := net.FileConn(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, _ = c.Write(append(hello(), waits(1, "x")...))
	require.NoError(t, c.SetReadDeadline(time.Now().Add(long)))
	n, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Zero(t, n, "no welcome")
	_ = c.Close()
	ledger.Settle()
	require.Zero(t, owner.s.sessions())
	connects(t, owner, "after").carries(t)

	theirs := unused(t)
	h := newHostileAt(t, theirs)
	require.NoError(t, h.door.Close())
	require.NoError(t, os.Remove(doorOf(theirs)))
	otheruser.Do(t, true, func() (err error) {
		f, err = socket(doorOf(theirs), syscall.Bind)
		if err == nil {
			err = syscall.Listen(int(f.Fd()), 1)
		}
		return err
	})
	defer f.Close()
	_, err = process().Open(t.Context(), theirs, Config{})
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, "another user (54321)")
}
