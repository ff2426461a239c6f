package admission

import (
	"errors"
	"slices"
	"syscall"
	"time"
)

// kind says what an error of accept means for the Listener.
type kind uint8

const (
	fatal   kind = iota // it fails again
	passing             // it was about one connection, which is gone
	lack                // the system is short of something, for a while
)

// kindOf tells what an error of accept means. accept(2) passes on what has
// happened to the connection already, and asks to be called again then.
func kindOf(err error) kind {
	is := func(e syscall.Errno) bool { return errors.Is(err, e) }
	switch {
	case slices.ContainsFunc(lacks, is):
		return lack
	case slices.ContainsFunc(passes, is):
		return passing
	}
	return fatal
}

// passingAtOnce is how many passing errors in a row are followed by no pause.
// There are no more of them than connections; but EPERM and EOPNOTSUPP may be
// about the socket, and come for ever.
const passingAtOnce = 64

// growing is the pause after n errors before, from a millisecond to a second.
func growing(n int) time.Duration {
	if n < 0 {
		return 0
	}
	return min(time.Millisecond<<min(n, 10), time.Second)
}
