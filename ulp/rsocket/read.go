package rsocket

import (
	"errors"
	"io"
)

// Read reads what is there, up to len(p) octets, and waits for one at least. Errors: io.EOF behind the peer's last octet; ErrProtocol, or why the
// stream has failed, in a *net.OpError; the others of net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	c.rd.Lock()
	defer c.rd.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.awaitData(len(p) == 0); err != nil || len(p) == 0 {
		return 0, c.readFailure(err)
	}
	a, b := c.in.span(c.mem.ring)
	large := min(len(p), c.in.unread) >= direct
	if large {
		c.mu.Unlock() // the peer may not write there
	}
	n := copy(p, a)
	n += copy(p[n:], b)
	if large {
		c.mu.Lock()
	}
	c.read(n)
	return n, nil
}

// WriteTo writes what the peer sends to w, out of the ring, until its end: it is what io.Copy uses.
func (c *Conn) WriteTo(w io.Writer) (written int64, err error) {
	c.rd.Lock()
	defer c.rd.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := c.awaitData(false); errors.Is(err, io.EOF) {
			return written, nil
		} else if err != nil {
			return written, c.readFailure(err)
		}
		a, _ := c.in.span(c.mem.ring)
		c.mu.Unlock()
		n, err := w.Write(a)
		c.mu.Lock()
		written += int64(n)
		c.read(n)
		switch {
		case err != nil:
			return written, err
		case n != len(a):
			return written, io.ErrShortWrite
		}
	}
}

// awaitData waits until there is something to read, or only sees whether there can be; mu is held.
func (c *Conn) awaitData(only bool) error {
	defer c.leave(&c.reader)
	for {
		if err := c.readError(); err != nil || c.in.unread > 0 || only {
			return err
		}
		c.wait(&c.reader)
	}
}

// read says that n octets have been read; mu is held.
func (c *Conn) read(n int) {
	c.in.consume(n)
	if !c.closed {
		c.update()
	}
}

func (c *Conn) readFailure(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return opError("read", c, err)
}
