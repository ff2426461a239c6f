package vipl

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Return is a VIP_RETURN (VI Architecture 9.10.1): what a call came to. Calls return
// it as an error, possibly wrapped; compare with errors.Is.
type Return uint8

// The return codes, numbered as in the appendix. Success is never returned as an error:
// it is nil.
const (
	Success Return = iota
	// ErrNotDone is VIP_NOT_DONE: nothing has completed on the queue.
	ErrNotDone
	// ErrInvalidParameter is VIP_INVALID_PARAMETER: an argument is invalid, a handle
	// is of something destroyed, or the call is not for the state that the VI is in.
	ErrInvalidParameter
	// ErrResource is VIP_ERROR_RESOURCE: a limit, or something is in use.
	ErrResource
	// ErrTimeout is VIP_TIMEOUT: the context's deadline passed first.
	ErrTimeout
	// ErrReject is VIP_REJECT: the remote end rejected the connection.
	ErrReject
	// ErrInvalidReliabilityLevel is VIP_INVALID_RELIABILITY_LEVEL.
	ErrInvalidReliabilityLevel
	// ErrInvalidMTU is VIP_INVALID_MTU: of the maximum transfer size.
	ErrInvalidMTU
	// ErrInvalidQoS is VIP_INVALID_QOS.
	ErrInvalidQoS
	// ErrInvalidPtag is VIP_INVALID_PTAG.
	ErrInvalidPtag
	// ErrInvalidRdmaRead is VIP_INVALID_RDMAREAD: RDMA Read was asked for where it
	// is not supported.
	ErrInvalidRdmaRead
	numReturns
)

var returnNames = [numReturns]string{
	Success:                    "success",
	ErrNotDone:                 "nothing completed on the queue",
	ErrInvalidParameter:        "invalid parameter",
	ErrResource:                "insufficient resources, or in use",
	ErrTimeout:                 "timed out",
	ErrReject:                  "rejected by the remote end",
	ErrInvalidReliabilityLevel: "invalid reliability level",
	ErrInvalidMTU:              "invalid maximum transfer size",
	ErrInvalidQoS:              "invalid quality of service",
	ErrInvalidPtag:             "invalid protection tag",
	ErrInvalidRdmaRead:         "RDMA Read is not supported",
}

// Finer words for ErrResource (extension). What matches one of them matches ErrResource, whose code of the appendix
// ReturnOf tells.
var (
	// ErrInUse: the port is another's; or something cannot be destroyed, because something else has it.
	ErrInUse error = finer("in use")
	// ErrRefused: nothing listens at the address.
	ErrRefused error = finer("refused")
)

// finer is a word for some of what ErrResource is for.
type finer string

func (f finer) Error() string { return "vipl: " + string(f) }

// Unwrap is the code of the appendix.
func (f finer) Unwrap() error { return ErrResource }

func (r Return) Error() string {
	if r < numReturns {
		return "vipl: " + returnNames[r]
	}
	return fmt.Sprintf("vipl: Return(%d)", uint8(r))
}

// ReturnOf is the return code that err stands for: Success for nil, the Return in its
// chain, else ErrTimeout for a context that was cancelled, which the appendix has no
// code for, and ErrResource for anything else.
func ReturnOf(err error) Return {
	var r Return
	switch {
	case err == nil:
		return Success
	case errors.As(err, &r):
		return r
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ErrTimeout
	}
	return ErrResource
}

// Infinite is VIP_INFINITE: the timeout in milliseconds that never passes.
const Infinite = ^uint32(0)

// TimeoutContext turns a timeout of appendix A into a context: milliseconds from now,
// no deadline if it is Infinite, a deadline that has passed if it is zero.
func TimeoutContext(parent context.Context, milliseconds uint32) (context.Context, context.CancelFunc) {
	if milliseconds == Infinite {
		return context.WithCancel(parent)
	}
	return context.WithTimeout(parent, time.Duration(milliseconds)*time.Millisecond)
}

// ended is what a call returns whose context ended first. A cancelled context has no
// code of the appendix, and is not told as a timeout.
func ended(ctx context.Context) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("vipl: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrTimeout, context.DeadlineExceeded)
}

// over reports whether ctx has ended. Its deadline may have passed for the dialer and not
// yet for its own timer: then it waits for that.
func over(ctx context.Context) bool {
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// invalid is ErrInvalidParameter with what is wrong.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidParameter, fmt.Sprintf(format, args...))
}

// inUse is ErrInUse with what is, and by what.
func inUse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInUse, fmt.Sprintf(format, args...))
}

// resource is ErrResource with what there is not enough of.
func resource(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrResource, fmt.Sprintf(format, args...))
}
