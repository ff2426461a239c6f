package engine

import (
	"net"
	"os"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/internal/sockio"
)

// Conn is a TCP connection of a Group: another descriptor of the socket, of which the
// runtime's poller does not know. What arrives wakes who serves the group and nobody else.
// It can be closed; the rest is system calls, through Control of SyscallConn.
type Conn struct {
	net.Conn // the one it was, for its addresses
	file     *os.File
	raw      syscall.RawConn
	sock     *Socket // nil until Join
}

// Own makes another descriptor of c's socket. It fails if the system has none left. c is as it
// was, and its owner's to close.
func Own(c *net.TCPConn) (*Conn, error) {
	sockio.Prepare(c)
	rc, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd uintptr
	var errno syscall.Errno
	err = rc.Control(func(old uintptr) {
		fd, _, errno = syscall.RawSyscall(syscall.SYS_FCNTL, old, syscall.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil && errno != 0 {
		err = os.NewSyscallError("fcntl", errno)
	}
	if err != nil {
		return nil, err
	}
	// A file whose descriptor blocks is none that the runtime waits for.
	_ = syscall.SetNonblock(int(fd), false)
	o := &Conn{Conn: c, file: os.NewFile(fd, "tcp")}
	if o.raw, err = o.file.SyscallConn(); err != nil {
		_ = o.file.Close()
		return nil, err
	}
	return o, nil
}

// Join gives the stream of the connection its place in g.
func (c *Conn) Join(g *Group, s Stream) (*Socket, error) {
	var err error
	if e := c.raw.Control(func(fd uintptr) { c.sock, err = g.Add(int(fd), s) }); e != nil {
		err = e
	}
	return c.sock, err
}

// Settle makes a connection of the runtime again, for the end of a stream: deadlines work, and
// somebody may wait. c is closed, and that is all if there is no descriptor: then ok is false.
func (c *Conn) Settle() (tcp *net.TCPConn, raw syscall.RawConn, ok bool) {
	n, err := net.FileConn(c.file)
	_ = c.Close()
	if err != nil {
		return nil, nil, false
	}
	if tcp, ok = n.(*net.TCPConn); ok {
		raw, err = tcp.SyscallConn()
	}
	return tcp, raw, ok && err == nil
}

// SyscallConn implements syscall.Conn.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return c.raw, nil }

// Close leaves the group first: the set keeps a socket that somebody else has open.
func (c *Conn) Close() error {
	if c.sock != nil {
		c.sock.Remove()
	}
	return c.file.Close()
}

// SetLinger is that of net.TCPConn.
func (c *Conn) SetLinger(sec int) error {
	l := syscall.Linger{Onoff: 1, Linger: int32(sec)}
	return c.raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &l)
	})
}

// Deadlines have nothing to end: nobody waits.

// SetDeadline does nothing.
func (c *Conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (c *Conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }
