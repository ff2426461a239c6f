// Package ownsock is local sockets at which processes of one user meet, and nobody else: a folder of this user's
// with mode 0700, sockets in it, a check of who is at the other end, and messages that carry a descriptor.
//
//	folder.go, folder_unix.go    the folder, and its sockets
//	lock.go                      one process at a time looks who has a socket
//	conn.go, conn_unix.go        messages with a descriptor
//	peer_linux.go, peer_bsd.go   whose process the other end is
package ownsock

import "errors"

// ErrUnsupported says that this system has no local sockets that are one user's alone (Supported), or cannot pass a
// descriptor from process to process (Passes).
var ErrUnsupported = errors.New("this system cannot do that with local sockets")
