//go:build !linux

package stress

// socketMemory cannot be read here.
func socketMemory(string) octets { return 0 }
