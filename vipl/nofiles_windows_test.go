package vipl

import "syscall"

// errNoFiles is what accept says that has no descriptors.
const errNoFiles = syscall.Errno(10024)
