package cm

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"

	"github.com/softrnic/softrnic/internal/verbsinternal"
)

// Shutdown stops listening and waits for what the Listener has handed out. In
// order: connections in startup are closed; Requests that wait for Accept are
// rejected; Accept returns net.ErrClosed. Then it waits until every Request that
// Accept returned has been answered, and every connection that came of one has
// ended, by either side: telling peers and programs to is the program's.
//
// When ctx is done first, the connections that are left are aborted, Requests
// without an answer closed, and the error matches the context's. A Request that
// is accepted after that fails with net.ErrClosed. Shutdown after Close waits all
// the same, and Close during Shutdown changes nothing.
func (l *Listener) Shutdown(ctx context.Context) error {
	var rejects sync.WaitGroup
	err := l.stop(func(r *Request) {
		rejects.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = r.nc.Close() })()
			_ = r.Reject(nil) // of a peer that has gone, perhaps
		})
	})
	rejects.Wait()
	if n := l.out.drain(ctx); n > 0 {
		return fmt.Errorf("cm: shutdown of %v: %d connections aborted: %w", l.Addr(), n, context.Cause(ctx))
	}
	return err
}

// handed is what a Listener has handed out. What is over goes at once: with a
// connection its queue pair would stay, and the memory of its queues.
type handed struct {
	mu     sync.Mutex
	open   map[outstanding]struct{} // guarded by mu, as below
	closed bool                     // Shutdown has seen the last, or aborted all
}

// outstanding is a *Conn, or a Request that has no answer.
type outstanding interface {
	Done() <-chan struct{}
	Abort() error
}

// undecided stands for a Request that has no answer.
type undecided struct {
	nc   net.Conn
	done chan struct{} // closed by the answer
}

func (u *undecided) Done() <-chan struct{} { return u.done }
func (u *undecided) Abort() error          { return u.nc.Close() }

// request adds a Request, unless it is too late.
func (h *handed) request(r *Request) bool {
	r.out, r.decision = h, &undecided{r.nc, make(chan struct{})}
	return h.add(r.decision)
}

// conn adds a connection until it is over, unless it is too late.
func (h *handed) conn(c *Conn) bool {
	if !h.add(c) {
		return false
	}
	verbsinternal.WhenOver(c.llp, func() { h.remove(c) })
	return true
}

// add adds what has been handed out, unless it is too late.
func (h *handed) add(o outstanding) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	if h.open == nil {
		h.open = make(map[outstanding]struct{})
	}
	h.open[o] = struct{}{}
	return true
}

// remove is told of what is over.
func (h *handed) remove(o outstanding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, o)
}

// count is how many there are that have no answer, and how many connections.
func (h *handed) count() (requests, conns int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for o := range h.open {
		if _, ok := o.(*Conn); ok {
			conns++
		} else {
			requests++
		}
	}
	return requests, conns
}

// drop drops what is over.
func (h *handed) drop() {
	maps.DeleteFunc(h.open, func(o outstanding, _ struct{}) bool { return over(o) })
}

// next is one that is not over, if there is one; else it is too late for more. Those it meets before that are
// dropped: with all of them each time, to drain would take the square of their number.
func (h *handed) next() outstanding {
	h.mu.Lock()
	defer h.mu.Unlock()
	for o := range h.open {
		if !over(o) {
			return o
		}
		delete(h.open, o)
	}
	h.closed = true
	return nil
}

func over(o outstanding) bool {
	select {
	case <-o.Done():
		return true
	default:
		return false
	}
}

// drain waits until all are over, or aborts them when ctx is done. It returns how
// many it had to abort.
func (h *handed) drain(ctx context.Context) int {
	for o := h.next(); o != nil; o = h.next() {
		select {
		case <-o.Done():
		case <-ctx.Done():
			return h.abort()
		}
	}
	return 0
}

// abort ends all that are not over, and waits until they are.
func (h *handed) abort() int {
	h.mu.Lock()
	h.drop()
	left := h.open
	h.open, h.closed = nil, true
	h.mu.Unlock()
	var aborts sync.WaitGroup
	for o := range left {
		aborts.Go(func() { _ = o.Abort() })
	}
	aborts.Wait()
	return len(left)
}
