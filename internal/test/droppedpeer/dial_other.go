//go:build !linux

package droppedpeer

import "net"

// Dialer is for connections from one address, nil for any.
func Dialer(from net.IP) net.Dialer {
	if from == nil {
		return net.Dialer{}
	}
	return net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
}
