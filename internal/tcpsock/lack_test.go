package tcpsock_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/internal/tcpsock"
)

// TestIsNoPort: a port that the program chose itself, and an address that is not this host's, are no lack of ports.
func TestIsNoPort(t *testing.T) {
	dial := func(source *net.TCPAddr, call string, no syscall.Errno) error {
		err := os.NewSyscallError(call, no)
		return fmt.Errorf("so: %w", &net.OpError{Op: "dial", Net: "tcp", Source: source, Err: err})
	}
	any, chosen := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}
	for _, row := range []struct {
		err  error
		want bool
	}{
		{dial(nil, "connect", syscall.EADDRNOTAVAIL), true},
		{dial(any, "connect", syscall.EADDRNOTAVAIL), true},
		{dial(any, "bind", syscall.EADDRINUSE), true},
		{dial(chosen, "bind", syscall.EADDRINUSE), false},
		{dial(nil, "bind", syscall.EADDRINUSE), false},
		{dial(any, "bind", syscall.EADDRNOTAVAIL), false},
		{dial(nil, "connect", syscall.ECONNREFUSED), false},
		{&net.OpError{Op: "dial", Err: errors.New("x")}, false},
		{syscall.EADDRNOTAVAIL, false},
		{nil, false},
	} {
		assert.Equal(t, row.want, tcpsock.IsNoPort(row.err), "%v", row.err)
		if !row.want {
			assert.Equal(t, row.err, tcpsock.NoPort(row.err))
		}
	}
}
