package droppedpeer

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dialer is for many connections from one address, nil for any. It has the port chosen when it connects, by both ends: a port chosen
// before is kept from everything else on this host, for a minute more if that connection was closed.
func Dialer(from net.IP) net.Dialer {
	if from == nil {
		return net.Dialer{}
	}
	return net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Control: func(_, _ string, c syscall.RawConn) (err error) {
		failed := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		})
		if failed != nil {
			return failed
		}
		return err
	}}
}
