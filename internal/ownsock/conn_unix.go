//go:build linux || darwin || freebsd

package ownsock

import (
	"errors"
	"os"
	"syscall"
)

// Passes says that a Conn can be had, and carries descriptors.
const Passes = true

// SyscallConn is a socket of which a descriptor can be sent.
type SyscallConn = syscall.Conn

// receipt is the descriptors that have come with a message so far. Those of a sendmsg come with its first octet, and
// no read goes beyond a message: so they are that message's.
type receipt struct {
	fds     []int
	cut     bool // some have been lost
	strange bool // something else came with it
}

// fill reads all of b, or up to a descriptor too many: each octet can bring some along, and this process has few.
func (c *Conn) fill(b []byte, r *receipt) error {
	oob := make([]byte, syscall.CmsgSpace(2*4)) // room for one too many, to see that
	for len(b) > 0 {
		n, oobn, flags, _, err := c.c.ReadMsgUnix(b, oob)
		if oobn > 0 {
			r.take(oob[:oobn])
		}
		r.cut = r.cut || flags&syscall.MSG_CTRUNC != 0
		if err == nil && r.tooMany() {
			_, err = r.file()
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// take takes the descriptors out of control messages.
func (r *receipt) take(oob []byte) {
	all, err := syscall.ParseSocketControlMessage(oob)
	r.strange = r.strange || err != nil
	for i := range all {
		fds, err := syscall.ParseUnixRights(&all[i])
		r.strange = r.strange || err != nil
		r.fds = append(r.fds, fds...)
	}
}

// tooMany reports what file refuses.
func (r *receipt) tooMany() bool { return len(r.fds) > 1 || r.cut || r.strange }

// file is the one descriptor, or nil if there is none. After an error they are still there.
func (r *receipt) file() (*os.File, error) {
	switch {
	case r.cut && len(r.fds) == 0:
		return nil, ErrNoDescriptors
	case r.tooMany():
		return nil, ErrDescriptors
	case len(r.fds) == 0:
		return nil, nil
	}
	return os.NewFile(uintptr(r.fds[0]), "passed"), nil
}

func (r *receipt) discard() {
	for _, fd := range r.fds {
		_ = syscall.Close(fd)
	}
}

// Listens reports whether a descriptor is that of a socket that listens, where the system can tell: a connection has a
// local address as well, and accept would never have one.
func Listens(f *os.File) (yes bool) {
	rc, err := f.SyscallConn()
	if err != nil {
		return false
	}
	err = rc.Control(func(fd uintptr) {
		v, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
		yes = v != 0 || errors.Is(err, syscall.ENOPROTOOPT)
	})
	return yes && err == nil
}

// send writes b, with a descriptor beside its first octet.
func (c *Conn) send(b []byte, with SyscallConn) error {
	if with == nil {
		_, err := c.c.Write(b)
		return err
	}
	rc, err := with.SyscallConn()
	if err != nil {
		return err
	}
	var n int
	failed := rc.Control(func(fd uintptr) { n, _, err = c.c.WriteMsgUnix(b, syscall.UnixRights(int(fd)), nil) })
	if err = errors.Join(failed, err); err != nil || n == len(b) {
		return err
	}
	_, err = c.c.Write(b[n:])
	return err
}

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

func tryLock(f *os.File) (free bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}
