//go:build !unix

package ownsock

import "net"

// Supported says that there are none.
const Supported = false

// Folder is where the sockets would be.
func Folder() string { return "" }

// Make fails.
func Make() (string, error) { return "", ErrUnsupported }

// Private fails.
func Private(string) error { return ErrUnsupported }

// Listen fails.
func Listen(string) (*net.UnixListener, error) { return nil, ErrUnsupported }

// Refused is for errors that do not come.
func Refused(error) bool { return false }

// Busy is for errors that do not come.
func Busy(error) bool { return false }
