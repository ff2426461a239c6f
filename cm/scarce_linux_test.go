package cm_test

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/exhaustion"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// requireLack: the error says what is lacking, and what to do.
func requireLack(t testing.TB, err error) {
	t.Helper()
	require.ErrorIs(t, err, syscall.EMFILE)
	require.ErrorContains(t, err, "too many open files")
	require.ErrorContains(t, err, "ulimit -n")
}

// TestConnectWithoutDescriptors: the call that finds no descriptor says so, its queue pair
// is as before, and nothing stays open. A side that has no place for the connection ends it.
func TestConnectWithoutDescriptors(t *testing.T) {
	exhaustion.Run(t, func(h *exhaustion.Hoard) {
		a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
		x, y := connect(t, tcpLink, newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{}), cm.Config{}, cm.Config{}, nil)
		defer func() { _, _ = x.Abort(), y.Abort() }()

		l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
		require.NoError(t, err)
		defer l.Close()
		h.Leave(0)
		_, err = cm.Listen("127.0.0.1:0", cm.ListenConfig{})
		requireLack(t, err)
		_, err = cm.Dial(bounded(t), l.Addr().String(), a.qp, cm.Config{})
		requireLack(t, err)
		h.Await(0)

		for few := range 3 {
			h.Leave(4)
			near, far := pairOf(t)
			h.Leave(few)
			peer := make(chan *rawpeer.Peer, 1)
			go func() {
				p, _, err := rawpeer.Respond(far, mpa.Startup{CRC: true, Rev: 1})
				assert.NoError(t, err)
				peer <- p
			}()
			_, err = cm.Connect(bounded(t), near, a.qp, cm.Config{Rev: 1})
			requireLack(t, err)
			require.Equal(t, verbs.StateIdle, a.qp.State())
			p := <-peer
			u, err := p.Next()
			require.NoError(t, err)
			require.Equal(t, byte(0x47), u[1], "a Terminate Message")
			require.NoError(t, p.Close())
			h.Await(few + 2)

			h.Leave(4)
			near, far = pairOf(t)
			h.Leave(few)
			go func() { _ = rawpeer.WriteStartup(far, mpa.Startup{CRC: true, Rev: 1}) }()
			r, err := cm.Await(bounded(t), near, cm.Config{})
			require.NoError(t, err)
			_, err = r.Accept(bounded(t), b.qp, cm.Config{})
			requireLack(t, err)
			require.Equal(t, verbs.StateIdle, b.qp.State())
			require.NoError(t, far.Close())
			h.Await(few + 2)
		}
		h.Leave(64)
		c, d := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, nil)
		exchange(t, a, b)
		_, _ = c.Abort(), d.Abort()
	})
}

// pairOf is a TCP connection.
func pairOf(t testing.TB) (net.Conn, net.Conn) {
	a, b, err := rawpeer.Pair()
	require.NoError(t, err)
	return a, b
}

// TestListenerWithoutDescriptors: a Listener tells that it cannot accept, and goes on with
// those that wait when there are descriptors again.
func TestListenerWithoutDescriptors(t *testing.T) {
	exhaustion.Run(t, func(h *exhaustion.Hoard) {
		told := make(chan error, 64)
		l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{OnStartupError: func(from net.Addr, err error) {
			if from == nil {
				select {
				case told <- err:
				default:
				}
			}
		}})
		require.NoError(t, err)
		defer l.Close()
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		h.Leave(0)
		at := l.Addr().(*net.TCPAddr)
		require.NoError(t, syscall.Connect(fd, &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}))
		requireLack(t, <-told)
		requireLack(t, <-told)

		h.Leave(64)
		f := os.NewFile(uintptr(fd), "client")
		c, err := net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		defer c.Close()
		require.NoError(t, rawpeer.WriteStartup(c, mpa.Startup{CRC: true, Rev: 1}))
		r, err := l.Accept(bounded(t))
		require.NoError(t, err)
		conn, err := r.Accept(bounded(t), newHost(t, verbs.QPConfig{}).qp, cm.Config{})
		require.NoError(t, err)
		require.NoError(t, conn.Abort())
	})
}
