//go:build unix && !linux

package rawsock

func boundUnsent(int) {}
