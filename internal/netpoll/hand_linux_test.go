package netpoll

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHandToRuntimeInUse: a look at the socket that is under way does not keep it from the runtime.
func TestHandToRuntimeInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	b, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer b.Close()
	a, err := l.Accept()
	require.NoError(t, err)
	c, err := Own(a, nil)
	require.NoError(t, err)
	c.Take()
	defer c.Close()
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	looking, looked, handed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		_ = raw.Control(func(uintptr) {
			close(looking)
			<-looked
		})
	}()
	<-looking
	go func() {
		defer close(handed)
		c.HandToRuntime()
	}()
	tries := func() bool { // it has the lock while it does
		mu := &c.link.(*tcp).mu
		if mu.TryLock() {
			mu.Unlock()
			return false
		}
		return true
	}
	for !tries() {
		select {
		case <-handed:
			require.Fail(t, "it is another's still")
			return
		default:
			runtime.Gosched()
		}
	}
	close(looked)
	<-handed
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err = b.Write([]byte{7})
	require.NoError(t, err)
	n, err := c.Read(make([]byte, 2))
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
