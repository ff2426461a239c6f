package netpoll

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/tcpsock"
)

// MaxReadPieces is into how many pieces TryReadPieces reads.
const MaxReadPieces = tcpsock.MaxRecvPieces

// tcp is the link of a TCP connection: another descriptor of the socket, of which the runtime's poller does not know. What
// arrives wakes the group's poller and no other goroutine.
type tcp struct {
	net.Conn // the one it was, for its addresses
	fd       *tcpsock.Descriptor

	mu   lockorder.Mutex[lockorder.TCP] // held to change file, and to use it without a side
	file *os.File                       // fd, from handToRuntime on
	raw  syscall.RawConn
}

func newLink(c net.Conn, wear func(work string)) (link, error) {
	tcpsock.Prepare(c)
	t, ok := c.(*net.TCPConn)
	if !ok {
		return newPump(c, wear), nil
	}
	fd, err := tcpsock.Duplicate(t)
	if err != nil {
		return nil, err
	}
	return &tcp{Conn: c, fd: fd, raw: fd}, nil
}

func (t *tcp) join(g *Group, s Member) (sock *Socket, err error) {
	if e := t.raw.Control(func(fd uintptr) { sock, err = g.Add(int(fd), s) }); e != nil {
		err = e
	}
	return sock, err
}

// take closes the other descriptor.
func (t *tcp) take() { _ = t.Conn.Close() }

func (t *tcp) tryRead(p []byte) (n int, err error) {
	fd, err := t.fd.Use()
	if err != nil {
		return t.handed(func(fd uintptr) (int, syscall.Errno) { return tcpsock.Recv(fd, p) }, true)
	}
	n, errno := tcpsock.Recv(fd, p)
	t.fd.Done()
	return readOutcome(n, errno)
}

func (t *tcp) tryReadPieces(pieces [][]byte) (int, error) {
	fd, err := t.fd.Use()
	if err != nil {
		return t.handed(func(fd uintptr) (int, syscall.Errno) { return tcpsock.RecvPieces(fd, pieces) }, true)
	}
	n, errno := tcpsock.RecvPieces(fd, pieces)
	t.fd.Done()
	return readOutcome(n, errno)
}

func (t *tcp) tryWrite(pieces [][]byte, limit int) (int, error) {
	fd, err := t.fd.Use()
	if err != nil {
		return t.handed(func(fd uintptr) (int, syscall.Errno) { return tcpsock.SendPieces(fd, pieces, limit) }, false)
	}
	n, errno := tcpsock.SendPieces(fd, pieces, limit)
	t.fd.Done()
	if errno != 0 {
		return 0, errno
	}
	return n, nil
}

func (t *tcp) pending() (n int) {
	_ = t.raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) })
	return n
}

// handed makes a call on a descriptor that the runtime has, if it has.
func (t *tcp) handed(call func(fd uintptr) (int, syscall.Errno), read bool) (n int, err error) {
	var errno syscall.Errno
	if err = t.raw.Control(func(fd uintptr) { n, errno = call(fd) }); err != nil {
		return 0, err
	}
	if read {
		return readOutcome(n, errno)
	}
	if errno != 0 {
		return 0, errno
	}
	return n, nil
}

func readOutcome(n int, errno syscall.Errno) (int, error) {
	switch {
	case errno != 0:
		return 0, errno
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (t *tcp) dropped() (is bool) {
	_ = t.raw.Control(func(fd uintptr) { is = tcpsock.Dropped(fd) })
	return is
}

// handToRuntime makes it a descriptor of the runtime's poller.
func (t *tcp) handToRuntime() {
	t.mu.Lock()
	defer t.mu.Unlock()
	file, err := t.fd.File()
	if err != nil {
		return
	}
	t.file = file
	if raw, err := file.SyscallConn(); err == nil {
		t.raw = raw
	}
}

// awaitWrite has the runtime call try: what comes between a call and the wait for the next would be lost otherwise.
func (t *tcp) awaitWrite(try func() bool) error {
	return t.raw.Write(func(uintptr) bool { return try() })
}

func (t *tcp) SyscallConn() (syscall.RawConn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.raw, nil
}

func (t *tcp) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil {
		return t.file.Close()
	}
	return t.fd.Close()
}

func (t *tcp) halfClose() (has bool, err error) {
	if e := t.raw.Control(func(fd uintptr) { err = syscall.Shutdown(int(fd), syscall.SHUT_WR) }); e != nil {
		err = e
	}
	return true, err
}

func (t *tcp) reset() {
	l := syscall.Linger{Onoff: 1}
	t.mu.Lock()
	_ = t.raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &l)
	})
	t.mu.Unlock()
	_ = t.Close()
}

func (t *tcp) wait() {}

// Until handToRuntime there is no file, no goroutine waits, and these fail.

func (t *tcp) Read(p []byte) (int, error)  { return t.file.Read(p) }
func (t *tcp) Write(p []byte) (int, error) { return t.file.Write(p) }

func (t *tcp) SetDeadline(at time.Time) error      { return t.runtimes().SetDeadline(at) }
func (t *tcp) SetReadDeadline(at time.Time) error  { return t.runtimes().SetReadDeadline(at) }
func (t *tcp) SetWriteDeadline(at time.Time) error { return t.runtimes().SetWriteDeadline(at) }

func (t *tcp) runtimes() *os.File {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.file
}
