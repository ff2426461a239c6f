//go:build !linux

package tcpsock

import (
	"net"
	"time"
)

// RTT returns 0: this system is not asked for the round-trip time of a connection.
func RTT(net.Conn) time.Duration { return 0 }
