package qp

import (
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
)

// TestUnreadCostsLittle: a stream whose peer does not read what it asked for holds less
// than a MiB in its socket, and as many RDMA Read Requests as it may.
func TestUnreadCostsLittle(t *testing.T) {
	r := newIdleRig(t, setup{})
	a, b, err := rawpeer.Pair()
	require.NoError(t, err)
	r.start(a, b)
	big := r.big(64 << 20)
	for msn := range uint32(r.set.ird) {
		r.send(rawpeer.ReadRequest(msn+1, rdmap.ReadRequestHeader{
			SinkSTag: 1, Size: big.Length, SourceSTag: uint32(big.STag), SourceTO: big.TO,
		}).Octets())
	}
	require.Eventually(t, func() bool { return r.s.irrq.len() == r.set.ird }, patience, time.Millisecond)
	r.stuck()
	require.Less(t, queued(t, r.s.llp.conn), 1<<20)
	require.Equal(t, r.set.ird, r.s.irrq.len())
	require.NoError(t, r.q.Destroy()) // both sides rest
}

// queued is how many octets wait in a socket to be sent or acknowledged (SIOCOUTQ).
func queued(t *testing.T, c *netpoll.Conn) (n int) {
	rc, err := c.SyscallConn()
	require.NoError(t, err)
	var octets int32
	require.NoError(t, rc.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&octets)))
		require.Zero(t, errno)
	}))
	return int(octets)
}
