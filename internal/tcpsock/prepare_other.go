//go:build !unix

// Package tcpsock is what softrnic wants of the sockets that it is handed.
package tcpsock

import "net"

// Prepare has nothing to do: sockets of this system do not change under the runtime.
func Prepare(net.Conn) {}
