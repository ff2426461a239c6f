//go:build !windows

package admission

import "syscall"

// lacks are errors of a system that is short of something (accept(2)).
var lacks = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

// passes are errors of one connection (accept(2), "Error handling").
var passes = append([]syscall.Errno{
	syscall.ECONNABORTED, syscall.EPROTO, syscall.EPERM, syscall.ENETDOWN, syscall.ENOPROTOOPT,
	syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.EOPNOTSUPP, syscall.ENETUNREACH,
	syscall.ECONNRESET, syscall.ETIMEDOUT, // other systems'
}, passesHere...)
