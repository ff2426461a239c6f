package netpoll

import (
	"net"
	"os"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/internal/tcpsock"
)

// Conn is a TCP connection of a Group: another descriptor of the socket, of which the
// runtime's poller does not know. What arrives wakes the group's poller and no other goroutine.
// It can be closed; the rest is system calls, through Control of SyscallConn, until HandToRuntime:
// from then on reads and writes may wait, until a deadline.
type Conn struct {
	net.Conn // the one it was, for its addresses
	fd       *tcpsock.Descriptor
	file     *os.File        // fd, from HandToRuntime on
	raw      syscall.RawConn // of either
	sock     *Socket         // nil until Join
}

// Own makes another descriptor of c's socket. It fails if the system has none left. c is as it
// was, and its owner's to close.
func Own(c *net.TCPConn) (*Conn, error) {
	tcpsock.Prepare(c)
	fd, err := tcpsock.Duplicate(c)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c, fd: fd, raw: fd}, nil
}

// Join gives the stream of the connection its place in g.
func (c *Conn) Join(g *Group, s Member) (*Socket, error) {
	var err error
	if e := c.raw.Control(func(fd uintptr) { c.sock, err = g.Add(int(fd), s) }); e != nil {
		err = e
	}
	return c.sock, err
}

// HandToRuntime makes it a connection of the runtime again, for the end of a stream: deadlines work,
// and a goroutine may wait, with what is returned. It needs no other descriptor, and changes
// nothing if c has been closed. No other goroutine uses c meanwhile.
func (c *Conn) HandToRuntime() syscall.RawConn {
	if c.sock != nil {
		c.sock.Remove()
	}
	file, err := c.fd.File()
	if err != nil {
		return c.raw
	}
	c.file = file
	if raw, err := file.SyscallConn(); err == nil {
		c.raw = raw
	}
	return c.raw
}

// SyscallConn implements syscall.Conn.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return c.raw, nil }

// Close leaves the group first: the set keeps a socket that is open elsewhere.
func (c *Conn) Close() error {
	if c.file != nil {
		return c.file.Close()
	}
	if c.sock != nil {
		c.sock.Remove()
	}
	return c.fd.Close()
}

// CloseWrite is that of net.TCPConn.
func (c *Conn) CloseWrite() error {
	var err error
	if e := c.raw.Control(func(fd uintptr) { err = syscall.Shutdown(int(fd), syscall.SHUT_WR) }); e != nil {
		err = e
	}
	return err
}

// SetLinger is that of net.TCPConn.
func (c *Conn) SetLinger(sec int) error {
	l := syscall.Linger{Onoff: 1, Linger: int32(sec)}
	return c.raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &l)
	})
}

// Until HandToRuntime there is no file, no goroutine waits, and these fail.

// Read is that of net.TCPConn, after HandToRuntime.
func (c *Conn) Read(p []byte) (int, error) { return c.file.Read(p) }

// Write is that of net.TCPConn, after HandToRuntime.
func (c *Conn) Write(p []byte) (int, error) { return c.file.Write(p) }

// SetDeadline is that of net.TCPConn, after HandToRuntime.
func (c *Conn) SetDeadline(t time.Time) error { return c.file.SetDeadline(t) }

// SetReadDeadline is that of net.TCPConn, after HandToRuntime.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.file.SetReadDeadline(t) }

// SetWriteDeadline is that of net.TCPConn, after HandToRuntime.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.file.SetWriteDeadline(t) }
