package sockio

import (
	"errors"
	"fmt"
	"syscall"
)

// Lack adds to an error that says that there are no descriptors what to do about it. Any
// other one it leaves as it is.
func Lack(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: close some, or raise the limit of this process (ulimit -n)", err)
	case errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%w: raise the limit of the system (sysctl fs.file-max)", err)
	}
	return err
}

// IsLack reports whether err says that there are no descriptors.
func IsLack(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }
