//go:build !unix

// Package rawsock is what softrnic wants of the sockets that it is handed.
package rawsock

import "net"

// Prepare has nothing to do: sockets of this system do not change under the runtime.
func Prepare(net.Conn) {}
