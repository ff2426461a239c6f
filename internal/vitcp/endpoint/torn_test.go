package endpoint_test

import (
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// torn is a connection of which a write has the error and a read, at the same time, the
// end of the stream.
type torn struct {
	net.Conn
	stubborn bool // knows no deadlines

	entered, overdue, closed chan struct{}
	once, last               sync.Once
}

func newTorn(t *testing.T, stubborn bool) *torn {
	x, y := net.Pipe()
	t.Cleanup(func() { y.Close() })
	return &torn{Conn: x, stubborn: stubborn, entered: make(chan struct{}), overdue: make(chan struct{}), closed: make(chan struct{})}
}

func (c *torn) Write([]byte) (int, error) {
	close(c.entered)
	select {
	case <-c.overdue:
	case <-c.closed:
	}
	return 0, syscall.ECONNRESET
}

func (c *torn) Read([]byte) (int, error) {
	<-c.entered
	return 0, io.EOF
}

func (c *torn) SetWriteDeadline(time.Time) error {
	if c.stubborn {
		return net.ErrClosed
	}
	c.once.Do(func() { close(c.overdue) })
	return nil
}

func (c *torn) Close() error {
	c.last.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// The reader that finds the end of the stream hears the writer first, if that can be made
// to return.
func TestEndOfStreamDuringAWrite(t *testing.T) {
	s := newSide(t, newTorn(t, false), endpoint.Config{Level: segment.ReliableDelivery})
	s.Start()
	s.send()
	assert.ErrorIs(t, s.endedBy(endpoint.CauseLost), syscall.ECONNRESET)
	s.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
	s.drained()

	s = newSide(t, newTorn(t, true), endpoint.Config{Level: segment.ReliableDelivery, Linger: time.Millisecond})
	s.Start()
	s.send()
	s.ended(endpoint.CausePeerClosed)
	s.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
	s.drained()
}
