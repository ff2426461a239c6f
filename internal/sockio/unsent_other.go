//go:build unix && !linux

package sockio

func boundUnsent(int) {}
