package tcpsock

import "golang.org/x/sys/windows"

const refused = windows.WSAECONNREFUSED
