//go:build !windows

package port

import (
	"errors"
	"syscall"
)

// inUse reports an address that another socket listens on.
func inUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
