package tcpsock

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
)

// Descriptor is one of a socket, of which the runtime's poller does not know. It implements
// syscall.RawConn, but for waiting.
type Descriptor struct {
	fd int
	// users is how many use fd just now, and gone once nobody may begin to. Who takes it to
	// just gone closes fd.
	users atomic.Int64
}

const gone = 1 << 62

// duplicates is the function that is told of them.
var duplicates atomic.Pointer[func(fd int)]

// TellDuplicates has f told of each descriptor that Duplicate makes in this process from now on: to close it in the
// child of a fork, which would keep the connection of a parent that ends.
func TellDuplicates(f func(fd int)) { duplicates.Store(&f) }

// Duplicate makes another descriptor of c's socket.
func Duplicate(c syscall.Conn) (*Descriptor, error) {
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
	if tell := duplicates.Load(); tell != nil {
		(*tell)(int(fd))
	}
	return &Descriptor{fd: int(fd)}, nil
}

// Control calls f with the descriptor, which stays open meanwhile.
func (d *Descriptor) Control(f func(fd uintptr)) error {
	fd, err := d.Use()
	if err != nil {
		return err
	}
	f(fd)
	d.Done()
	return nil
}

// Use returns the descriptor, which stays open until Done.
func (d *Descriptor) Use() (fd uintptr, err error) {
	for {
		n := d.users.Load()
		if n&gone != 0 {
			return 0, net.ErrClosed
		}
		if d.users.CompareAndSwap(n, n+1) {
			return uintptr(d.fd), nil
		}
	}
}

// Done ends Use.
func (d *Descriptor) Done() {
	if d.users.Add(-1) == gone {
		_ = syscall.Close(d.fd)
	}
}

// Read fails: nobody waits with it.
func (d *Descriptor) Read(func(uintptr) bool) error { return errors.ErrUnsupported }

// Write fails: nobody waits with it.
func (d *Descriptor) Write(func(uintptr) bool) error { return errors.ErrUnsupported }

// Close closes the descriptor, as soon as nobody uses it.
func (d *Descriptor) Close() error {
	for {
		switch n := d.users.Load(); {
		case n&gone != 0:
			return net.ErrClosed
		case !d.users.CompareAndSwap(n, n|gone):
		case n == 0:
			return os.NewSyscallError("close", syscall.Close(d.fd))
		default:
			return nil
		}
	}
}

// File makes a file of the descriptor that the runtime's poller knows: it has deadlines, and
// somebody may wait with it. d is closed then, as soon as nobody uses it, for a system call each: File waits for that. It
// needs no other descriptor.
func (d *Descriptor) File() (*os.File, error) {
	for !d.users.CompareAndSwap(0, gone) {
		if d.users.Load()&gone != 0 {
			return nil, net.ErrClosed
		}
		runtime.Gosched()
	}
	_ = syscall.SetNonblock(d.fd, true) // or the poller does not take it
	return os.NewFile(uintptr(d.fd), "tcp"), nil
}
