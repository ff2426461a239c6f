package port

import (
	"errors"

	"golang.org/x/sys/windows"
)

// inUse reports an address that another socket listens on.
func inUse(err error) bool { return errors.Is(err, windows.WSAEADDRINUSE) }
