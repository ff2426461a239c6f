package verbs

import (
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// SetCompletionHandler registers, replaces or clears a completion event handler
// (verbs draft 9.4.1):
//
//	id 0, h set      registers h and returns its identifier, for CQConfig.Handler
//	id set, h set    makes h the handler of that identifier
//	id set, h nil    clears it: the identifier is no more
//
// h is called once for each notification that CQ.Notify armed on a queue of that
// identifier, from one goroutine for each identifier; it may call any verb but
// RNIC.Close. A queue whose identifier is cleared calls nothing any more.
// Destroyed queues are not named to h. Errors: ErrInvalidRNIC,
// ErrInvalidEventHandler (id is unknown, or both are zero),
// ErrInsufficientResources.
func (r *RNIC) SetCompletionHandler(id HandlerID, h func(*CQ)) (HandlerID, error) {
	if err := r.lock(); err != nil {
		return 0, fmt.Errorf("set completion event handler: %w", err)
	}
	defer r.mu.Unlock()
	d := r.handlers[id]
	switch {
	case id == 0 && h != nil:
		return r.addHandler(h)
	case d == nil:
		return 0, fmt.Errorf("set completion event handler %d: %w", id, wr.ErrInvalidEventHandler)
	case h == nil:
		delete(r.handlers, id)
		d.stop()
		d.set(nil)
	default:
		d.set(r.living(h))
	}
	return id, nil
}

// addHandler registers h, with mu held.
func (r *RNIC) addHandler(h func(*CQ)) (HandlerID, error) {
	if len(r.handlers) >= r.limits.EventHandlers {
		return 0, fmt.Errorf("set completion event handler: %w: all %d are in use",
			wr.ErrInsufficientResources, r.limits.EventHandlers)
	}
	d := newDispatcher[*CQ](&r.calls)
	d.set(r.living(h))
	id := HandlerID(r.nextID())
	r.handlers[id] = d
	return id, nil
}

// living is h for queues that have not been destroyed.
func (r *RNIC) living(h func(*CQ)) func(*CQ) {
	return func(c *CQ) {
		if r.CQ(c.ID()) == c {
			h(c)
		}
	}
}
