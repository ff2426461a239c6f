package admission

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// lacks are errors of a system that is short of something (AcceptEx).
var lacks = []syscall.Errno{
	windows.WSAEMFILE, windows.WSAENOBUFS, windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_TOO_MANY_OPEN_FILES,
	windows.ERROR_NO_SYSTEM_RESOURCES,
}

// passes are errors of one connection.
var passes = []syscall.Errno{
	windows.WSAECONNABORTED, windows.WSAECONNRESET, windows.WSAETIMEDOUT, windows.WSAENETDOWN, windows.WSAENETRESET,
	windows.WSAENETUNREACH, windows.WSAEHOSTDOWN, windows.WSAEHOSTUNREACH, windows.WSAENOPROTOOPT, windows.WSAEOPNOTSUPP,
	windows.ERROR_NETNAME_DELETED, windows.ERROR_CONNECTION_ABORTED,
}
