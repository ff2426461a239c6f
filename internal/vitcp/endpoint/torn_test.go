package endpoint_test

import (
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// torn is a connection of which a read has the end of the stream, and a write that is under way the error.
type torn struct {
	net.Conn
	entered, fails, closed chan struct{}
	once                   sync.Once
}

func newTorn(t *testing.T) *torn {
	x, y := net.Pipe()
	t.Cleanup(func() { y.Close() })
	return &torn{Conn: x, entered: make(chan struct{}), fails: make(chan struct{}), closed: make(chan struct{})}
}

func (c *torn) Write([]byte) (int, error) {
	close(c.entered)
	select {
	case <-c.fails:
	case <-c.closed:
	}
	return 0, syscall.ECONNRESET
}

func (c *torn) Read([]byte) (int, error) {
	<-c.entered
	return 0, io.EOF
}

func (c *torn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// The end of a stream is told behind a write that was under way, if that returns soon.
func TestEndOfStreamDuringAWrite(t *testing.T) {
	for _, fails := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			conn := newTorn(t)
			s := newSide(t, conn, endpoint.Config{Level: segment.ReliableDelivery})
			s.Start()
			s.send()
			s.sent(endpoint.OpSend, 0, 0) // it was taken
			if fails {
				time.Sleep(time.Millisecond)
				close(conn.fails)
				assert.ErrorIs(t, s.endedBy(endpoint.CauseLost), syscall.ECONNRESET)
			} else {
				s.ended(endpoint.CausePeerClosed)
			}
			s.drained()
		})
	}
}
