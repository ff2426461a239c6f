package tcpsock

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
)

// TestPrepare: the options, of a socket that somebody has made block.
func TestPrepare(t *testing.T) {
	c, far, err := rawpeer.Pair()
	require.NoError(t, err)
	defer func() { _, _ = c.Close(), far.Close() }()
	f, err := c.(*net.TCPConn).File()
	require.NoError(t, err)
	_ = f.Fd()
	require.NoError(t, f.Close())

	Prepare(c)
	rc, err := c.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, rc.Control(func(fd uintptr) {
		unsent, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotsentLowat)
		require.NoError(t, err)
		require.Equal(t, Unsent, unsent)
		_, _, err = syscall.Recvfrom(int(fd), make([]byte, 1), 0)
		require.ErrorIs(t, err, syscall.EAGAIN)
	}))
}

// What has no socket, or another kind of one, is left as it is.
func TestPrepareOther(t *testing.T) {
	a, b := net.Pipe()
	Prepare(a)
	_, _ = a.Close(), b.Close()
}
