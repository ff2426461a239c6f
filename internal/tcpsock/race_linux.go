//go:build race

package tcpsock

import "syscall"

// null reads as empty at once.
var null, _ = syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)

// BeforeWrite and AfterRead order a write to a socket before the reads of others that
// follow, as package syscall does for its own reads and writes: the race detector does
// not see what comes through the kernel, and would report the two ends of a connection
// in one process. They go through package syscall, so that the other end may be a plain
// net.Conn.
func BeforeWrite() { _, _ = syscall.Write(-1, nil) }

// AfterRead is the other half of BeforeWrite.
func AfterRead() { _, _ = syscall.Read(null, nil) }
