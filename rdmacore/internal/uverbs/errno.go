//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/softrnic/softrnic/verbs"
)

// Refusal is a command that was refused: with which errno, and why, as a clause for a person.
type Refusal struct {
	Errno syscall.Errno
	Why   string
}

func (r *Refusal) Error() string { return r.Errno.Error() + ": " + r.Why }

// Unwrap returns the errno.
func (r *Refusal) Unwrap() error { return r.Errno }

// refuse makes a Refusal.
func refuse(no syscall.Errno, format string, args ...any) *Refusal {
	return &Refusal{no, fmt.Sprintf(format, args...)}
}

// errnos are those of the core's refusals that are not EINVAL.
var errnos = []struct {
	err verbs.ImmediateError
	no  syscall.Errno
}{
	{verbs.ErrInsufficientResources, syscall.ENOMEM},
	{verbs.ErrQueueFull, syscall.ENOMEM},
	{verbs.ErrPDInUse, syscall.EBUSY},
	{verbs.ErrCQInUse, syscall.EBUSY},
	{verbs.ErrSRQInUse, syscall.EBUSY},
	{verbs.ErrWindowsBound, syscall.EBUSY},
	{verbs.ErrInvalidRNIC, syscall.EIO},
}

// refusal makes a Refusal of any error: of the core, of the system, or one already.
func refusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	for _, e := range errnos {
		if errors.Is(err, e.err) {
			return &Refusal{e.no, Words(err)}
		}
	}
	var no syscall.Errno
	if errors.As(err, &no) {
		return &Refusal{no, Words(err)}
	}
	return &Refusal{syscall.EINVAL, Words(err)}
}
