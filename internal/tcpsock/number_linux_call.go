//go:build linux && (386 || s390x)

package tcpsock

// Package syscall knows only the one call that these systems had for everything about
// sockets, before Linux 4.3.
const (
	sysSendto   = 369
	sysSendmsg  = 370
	sysRecvfrom = 371
	sysRecvmsg  = 372
)
