//go:build unix && !linux

package tcpsock

func boundUnsent(int) {}
