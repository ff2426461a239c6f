//go:build lockcheck && !amd64 && !arm64

package lockorder

import "unsafe"

// current is nil: how to find the structure is not known here.
func current() unsafe.Pointer { return nil }
