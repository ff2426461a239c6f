//go:build !linux

package netpoll

// lose does nothing: this system has no filter of a socket that its owner may set.
func lose(*Conn, float64) {}
