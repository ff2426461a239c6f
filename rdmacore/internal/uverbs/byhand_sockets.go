//go:build linux && (amd64 || arm64)

package uverbs

import (
	"net"
	"syscall"
)

// Owning tells of a listener's descriptor, and later of those of the connections that it accepts.
func (d *Device) Owning(l net.Listener) net.Listener {
	d.OwnSocket(l)
	return owning{l, d}
}

type owning struct {
	net.Listener
	dev *Device
}

func (l owning) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.dev.OwnSocket(c)
	}
	return c, err
}

// OwnSocket tells of the descriptor of a connection or a listener.
func (d *Device) OwnSocket(s any) {
	if c, ok := s.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { d.Own(int(fd)) })
		}
	}
}
