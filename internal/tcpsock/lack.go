package tcpsock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
)

// Lack adds to an error that says that there are no descriptors what to do about it. Any
// other one it leaves as it is.
func Lack(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: close some, or raise the limit of this process (ulimit -n)", err)
	case errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%w: raise the limit of the system (sysctl fs.file-max)", err)
	}
	return err
}

// IsLack reports whether err says that there are no descriptors.
func IsLack(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

// IsRefused reports whether err of a net.Dialer says that nothing listens there.
func IsRefused(err error) bool { return errors.Is(err, refused) }

// NoPort adds to an error of a net.Dialer which says that this host has no local port left for a connection what to
// do about it. Any other one it leaves as it is.
func NoPort(err error) error {
	if !IsNoPort(err) {
		return err
	}
	return fmt.Errorf("%w: this host has no local port, or no address, left for a connection to there: close some "+
		"connections, wait a minute for the ports of those that have ended, or widen the range "+
		"(Linux: sysctl net.ipv4.ip_local_port_range)", err)
}

// IsNoPort reports whether err says that: EADDRNOTAVAIL of connect(2) and, where the address was given and the port
// was not, EADDRINUSE of bind(2). EADDRNOTAVAIL of bind is another thing, an address that is not this host's.
func IsNoPort(err error) bool {
	var dial *net.OpError
	var call *os.SyscallError
	if !errors.As(err, &dial) || !errors.As(dial.Err, &call) {
		return false
	}
	switch {
	case strings.HasPrefix(call.Syscall, "connect"):
		return errors.Is(call, syscall.EADDRNOTAVAIL)
	case call.Syscall == "bind":
		local, ok := dial.Source.(*net.TCPAddr)
		return ok && local != nil && local.Port == 0 && errors.Is(call, syscall.EADDRINUSE)
	}
	return false
}
