//go:build !windows

package tcpsock

import "syscall"

const refused = syscall.ECONNREFUSED
