//go:build linux

package ownsock

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

// long is how long a test waits for what has to come; with a fault on purpose (conformance/mutants), not as long.
var long = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("SOFTRNIC_PATIENCE")); err == nil {
		return d
	}
	return time.Minute
}()

// Environment of another process that the test binary is.
const lockEnv, dialEnv = "SOFTRNIC_TEST_LOCK", "SOFTRNIC_TEST_DIAL"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(lockEnv) != "":
		if _, err := Lock(context.Background(), long); err == nil {
			_, _ = os.Stdout.WriteString("locked\n")
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
	case os.Getenv(dialEnv) != "":
		c, err := Dial(os.Getenv(dialEnv))
		if err == nil {
			_, _ = io.Copy(os.Stdout, c)
		}
	default:
		leakcheck.Main(m)
	}
}

// pair is two ends of a connection, one of them by hand.
func pair(t testing.TB, patience time.Duration) (*Conn, *net.UnixConn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	require.NoError(t, err)
	defer l.Close()
	raw, err := Dial(path)
	require.NoError(t, err)
	near, err := l.AcceptUnix()
	require.NoError(t, err)
	c, err := NewConn(near, patience)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = raw.Close(), c.Close() })
	return c, raw
}

func TestMessages(t *testing.T) {
	ledger := leakcheck.Open(t)
	a, raw := pair(t, long)
	b, err := NewConn(raw, long)
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	whole := bytes.Repeat([]byte("x"), MaxBody)
	go func() {
		for i := range 40 { // more than there is room for, with and without a descriptor
			var with SyscallConn
			if i%2 == 0 {
				with = w
			}
			if a.Write(byte(i), whole[:i*MaxBody/39], with) != nil {
				return
			}
		}
	}()
	for i := range 40 {
		m, err := b.Read(long)
		require.NoError(t, err)
		assert.Equal(t, byte(i), m.Type)
		assert.Len(t, m.Body, i*MaxBody/39)
		require.Equal(t, i%2 == 0, m.File != nil, i)
		if m.File != nil {
			_, err := m.File.WriteString("here")
			require.NoError(t, err)
			got := make([]byte, 4)
			_, err = io.ReadFull(r, got)
			require.NoError(t, err)
			flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, m.File.Fd(), syscall.F_GETFD, 0)
			require.Zero(t, errno)
			assert.EqualValues(t, syscall.FD_CLOEXEC, flags, "no child has it")
		}
		m.Discard()
	}
	_, _, _, _ = r.Close(), w.Close(), a.Close(), b.Close()
	_, err = b.Read(0)
	require.ErrorIs(t, err, net.ErrClosed)
	require.Error(t, a.Write(1, nil, nil))
	ledger.Settle()
}

// TestFrame: the octets.
func TestFrame(t *testing.T) {
	a, raw := pair(t, long)
	require.NoError(t, a.Write(7, []byte("body"), nil))
	b := make([]byte, 8)
	_, err := io.ReadFull(raw, b)
	require.NoError(t, err)
	assert.Equal(t, "\x07\x00\x00\x04body", string(b))
}

// TestHostile: whatever comes, no descriptor stays.
func TestHostile(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	ledger := leakcheck.Open(t)
	defer ledger.Settle()
	fds := func(n int) []int {
		list := make([]int, n)
		for i := range list {
			list[i] = int(null.Fd())
		}
		return list
	}
	for _, c := range []struct {
		name string
		b    string
		fds  int
		want error
	}{
		{"nothing", "", 0, io.EOF},
		{"half a header", "\x01\x00", 0, io.EOF},
		{"half a body", "\x01\x00\x00\x05abc", 0, io.EOF},
		{"half a body and a descriptor", "\x01\x00\x00\x05abc", 1, io.EOF},
		{"too long", "\x01\x02\x00\x01", 0, ErrTooLong},
		{"too long and a descriptor", "\x01\xff\xff\xff", 1, ErrTooLong},
		{"two descriptors", "\x01\x00\x00\x00", 2, ErrDescriptors},
		{"three descriptors", "\x01\x00\x00\x00", 3, ErrDescriptors},
		{"many descriptors", "\x01\x00\x00\x00", 250, ErrDescriptors},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, raw := pair(t, long)
			if c.fds > 0 {
				_, _, err := raw.WriteMsgUnix([]byte(c.b), syscall.UnixRights(fds(c.fds)...), nil)
				require.NoError(t, err)
			} else {
				_, err := raw.Write([]byte(c.b))
				require.NoError(t, err)
			}
			require.NoError(t, raw.CloseWrite())
			m, err := a.Read(long)
			require.ErrorIs(t, err, c.want)
			assert.Nil(t, m.File)
			_, _ = raw.Close(), a.Close()
		})
	}
	t.Run("a descriptor in the middle of a message, and one at its beginning", func(t *testing.T) {
		a, raw := pair(t, long)
		for _, b := range []string{"\x01\x00\x00\x04ab", "cd"} {
			_, _, err := raw.WriteMsgUnix([]byte(b), syscall.UnixRights(fds(1)...), nil)
			require.NoError(t, err)
		}
		_, err := a.Read(long)
		require.ErrorIs(t, err, ErrDescriptors)
		_, _ = raw.Close(), a.Close()
	})
}

// TestSilence: a message that has begun goes on, or the connection is of no use; and so is one that nobody reads from.
func TestSilence(t *testing.T) {
	a, raw := pair(t, 20*time.Millisecond)
	defer time.AfterFunc(long, func() { _ = a.Close() }).Stop()
	_, err := a.Read(time.Millisecond)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = raw.Write([]byte("\x01\x00"))
	require.NoError(t, err)
	_, err = a.Read(0)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	for err = nil; err == nil; {
		err = a.Write(1, make([]byte, MaxBody), nil)
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorIs(t, a.Write(1, nil, nil), net.ErrClosed)
}

// TestNoDescriptors: one that this process has no room for.
func TestNoDescriptors(t *testing.T) {
	a, raw := pair(t, long)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	_, _, err = raw.WriteMsgUnix([]byte("\x01\x00\x00\x00"), syscall.UnixRights(int(null.Fd())), nil)
	require.NoError(t, err)
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
	low := was
	low.Cur = 3
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
	_, err = a.Read(long)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was))
	require.ErrorIs(t, err, ErrNoDescriptors)
}

// TestLock: one at a time, and none that has died.
func TestLock(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	unlock, err := Lock(t.Context(), 0)
	require.NoError(t, err)
	_, err = Lock(t.Context(), time.Millisecond)
	require.ErrorContains(t, err, "locked by another process for 1ms")
	unlock()

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockEnv+"=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, len("locked\n")))
	require.NoError(t, err)
	_, err = Lock(t.Context(), time.Millisecond)
	require.ErrorContains(t, err, "locked by another process")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	unlock, err = Lock(t.Context(), long)
	require.NoError(t, err)
	unlock()
}

// TestLockElsewhere: nothing of the user's is opened through a link that stands for the lock.
func TestLockElsewhere(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	dir, err := Make()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(filepath.Join(t.TempDir(), "precious"), filepath.Join(dir, lockName)))
	_, err = Lock(t.Context(), 0)
	require.ErrorIs(t, err, syscall.ELOOP)
	require.NoError(t, os.Chmod(dir, 0o711))
	_, err = Lock(t.Context(), 0)
	require.ErrorContains(t, err, "mode 0700")
}

// TestAnotherUser: a process of another user that gets as far as the socket is not talked to.
func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	dir, err := os.MkdirTemp("", "ownsock")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, "s")
	l, err := Listen(path)
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, os.Chmod(path, 0o666))
	exe := filepath.Join(dir, "exe")
	b, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(exe, b, 0o755)) //nolint:gosec // another user starts it

	cmd := exec.Command(exe)
	cmd.Env = []string{dialEnv + "=" + path}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	require.NoError(t, l.SetDeadline(time.Now().Add(long)))
	c, err := l.AcceptUnix()
	require.NoError(t, err)
	_, err = NewConn(c, long)
	require.ErrorContains(t, err, "another user (54321)")
	require.NoError(t, cmd.Wait())
	assert.Empty(t, out.String())
}

// TestRemoveStale removes what nobody has, and nothing else.
func TestRemoveStale(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	alive, err := RemoveStale(path)
	require.NoError(t, err)
	require.False(t, alive)
	l, err := Listen(path)
	require.NoError(t, err)
	alive, err = RemoveStale(path)
	require.NoError(t, err)
	require.True(t, alive)
	was, err := os.Lstat(path)
	require.NoError(t, err)
	assert.EqualValues(t, os.ModeSocket|0o600, was.Mode())
	require.NoError(t, l.Close())
	_, err = Dial(path)
	require.True(t, Refused(err), "%v", err)
	alive, err = RemoveStale(path)
	require.NoError(t, err)
	require.False(t, alive)
	_, err = os.Lstat(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, RemoveIf(path, was))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = RemoveStale(path)
	require.ErrorIs(t, err, os.ErrExist)
	require.NoError(t, RemoveIf(path, was), "it is another file")
	_, err = os.Lstat(path)
	require.NoError(t, err)
}

// FuzzRead: whatever octets come, with a descriptor or without, a Conn has messages or an error, and keeps nothing.
func FuzzRead(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add(frame(1, []byte("body")), true)
	f.Add(append(frame(0, nil), frame(255, make([]byte, 300))...), true)
	f.Add([]byte("\x01\x02\x00\x01"), true)
	null, err := os.Open(os.DevNull)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte, with bool) {
		if len(b) > 1<<16 { // of which a socket has room
			return
		}
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		ends := [2]*net.UnixConn{}
		for i, fd := range fds {
			file := os.NewFile(uintptr(fd), "end")
			c, err := net.FileConn(file)
			require.NoError(t, err)
			require.NoError(t, file.Close())
			ends[i] = c.(*net.UnixConn)
		}
		c, err := NewConn(ends[0], long)
		require.NoError(t, err)
		defer c.Close()
		if with && len(b) > 0 {
			_, _, err = ends[1].WriteMsgUnix(b, syscall.UnixRights(int(null.Fd())), nil)
		} else {
			_, err = ends[1].Write(b)
		}
		require.NoError(t, err)
		require.NoError(t, ends[1].Close())
		var again []byte
		files := 0
		for {
			m, err := c.Read(long)
			if err != nil {
				break
			}
			again = append(again, frame(m.Type, m.Body)...)
			if m.File != nil {
				files++
			}
			m.Discard()
		}
		require.True(t, bytes.HasPrefix(b, again))
		require.LessOrEqual(t, files, 1)
	})
}
