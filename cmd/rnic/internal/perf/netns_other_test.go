//go:build !linux

package perf

func mayMakeNamespaces() bool { return false }
