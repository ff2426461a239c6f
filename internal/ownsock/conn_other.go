//go:build !linux && !darwin && !freebsd

package ownsock

import (
	"net"
	"os"
)

// Passes says that no Conn can be had.
const Passes = false

// SyscallConn is a socket of which a descriptor could be sent.
type SyscallConn = any

type receipt struct{}

func (c *Conn) fill([]byte, *receipt) error { return ErrUnsupported }

func (r *receipt) file() (*os.File, error) { return nil, ErrUnsupported }

func (r *receipt) discard() {}

// Listens is false: no descriptor comes.
func Listens(*os.File) bool { return false }

func (c *Conn) send([]byte, SyscallConn) error { return ErrUnsupported }

func sameUser(*net.UnixConn) error { return ErrUnsupported }

func openLock(string) (*os.File, error) { return nil, ErrUnsupported }

func tryLock(*os.File) (bool, error) { return false, ErrUnsupported }
