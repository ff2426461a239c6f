package tap

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
)

// conn is a net.Conn with a tap: it carries what the other one carries.
type conn struct {
	net.Conn
	st     *stream
	abrupt atomic.Bool // SetLinger(0)
}

// halves is a conn that has a half-close.
type halves struct{ *conn }

// offered is c with the methods that the connection below has.
func offered(c *conn) net.Conn {
	if _, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return halves{c}
	}
	return c
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.st.carry(0, b[:n])
	switch {
	case errors.Is(err, io.EOF):
		c.st.end(0, fin)
	case errors.Is(err, syscall.ECONNRESET):
		c.st.end(0, rst)
	}
	return n, err
}

// Write implements net.Conn. What goes out is in the capture before its answer can be; what a write that fails has left is
// there too, and nothing behind it can be.
func (c *conn) Write(b []byte) (int, error) {
	c.st.carry(1, b)
	return c.Conn.Write(b)
}

// CloseWrite ends the direction out.
func (c halves) CloseWrite() error {
	err := c.Conn.(interface{ CloseWrite() error }).CloseWrite()
	if err == nil {
		c.st.end(1, fin)
	}
	return err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if c.abrupt.Load() {
		c.st.end(1, rst)
	} else {
		c.st.end(1, fin)
	}
	c.st.mu.Lock()
	c.st.finish()
	c.st.mu.Unlock()
	return c.Conn.Close()
}

// SetLinger is that of the connection below, if it has one.
func (c *conn) SetLinger(sec int) error {
	c.abrupt.Store(sec == 0)
	if l, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(sec)
	}
	return nil
}

// NetConn is the connection at the bottom.
func (c *conn) NetConn() net.Conn {
	if over, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		return over.NetConn()
	}
	return c.Conn
}
