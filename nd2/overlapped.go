package nd2

import (
	"context"
	"errors"
)

// Overlapped is an operation that runs beside the caller (IND2Overlapped, and the
// OVERLAPPED of one request).
type Overlapped struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // written before done is closed
}

// Overlap runs f, which is a method that takes a context, in a goroutine:
//
//	ov := nd2.Overlap(ctx, func(ctx context.Context) error { return connector.Accept(ctx, qp, 1, 1, nil) })
//	for errors.Is(ov.GetOverlappedResult(false), nd2.Pending) { ... }
func Overlap(ctx context.Context, f func(context.Context) error) *Overlapped {
	ctx, cancel := context.WithCancel(ctx)
	o := &Overlapped{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		defer cancel()
		o.err = f(ctx)
	}()
	return o
}

// Done is closed when the operation has ended.
func (o *Overlapped) Done() <-chan struct{} { return o.done }

// GetOverlappedResult is what the operation returned. While it runs the result is
// Pending, or with wait the call waits for the end.
func (o *Overlapped) GetOverlappedResult(wait bool) error {
	if wait {
		<-o.done
	}
	select {
	case <-o.done:
		return o.err
	default:
		return Pending
	}
}

// CancelOverlappedRequests cancels the operation, and waits until it has returned.
// It returns nil if that was with ErrCanceled, or if it had ended well before.
func (o *Overlapped) CancelOverlappedRequests() error {
	o.cancel()
	<-o.done
	if o.err == nil || errors.Is(o.err, ErrCanceled) {
		return nil
	}
	return o.err
}
