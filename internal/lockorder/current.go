//go:build lockcheck && (amd64 || arm64)

package lockorder

import "unsafe"

// current is the run time's structure of the goroutine that calls.
func current() unsafe.Pointer
