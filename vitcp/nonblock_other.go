//go:build !unix

package vitcp

import "net"

// nonblocking has nothing to do: sockets of this system do not change under the runtime.
func nonblocking(net.Conn) {}
