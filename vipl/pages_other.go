//go:build !linux

package vipl

// permitted tells what may be done with all pages of memory. This system does not tell,
// so that is everything.
func permitted([]byte) (read, write bool) { return true, true }
