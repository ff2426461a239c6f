//go:build !386 && !s390x

package tcpsock

import "syscall"

const (
	sysRecvfrom = syscall.SYS_RECVFROM
	sysSendto   = syscall.SYS_SENDTO
	sysRecvmsg  = syscall.SYS_RECVMSG
	sysSendmsg  = syscall.SYS_SENDMSG
)
