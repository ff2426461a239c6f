//go:build !linux

package main

// residentMemory is not known on this system.
func residentMemory() (*int64, error) { return nil, nil }
