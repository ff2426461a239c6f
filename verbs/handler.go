package verbs

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/label"
	"github.com/softrnic/softrnic/wr"
)

// AddCompletionHandler registers h as a completion event handler (verbs draft
// 9.4.1) and returns its identifier, for CQConfig.Handler. h is called once for
// each notification that CQ.Notify armed on a queue of that identifier, from one
// goroutine for each identifier; it may call any verb but RNIC.Close. Destroyed
// queues are not named to it. Errors: ErrInvalidRNIC, ErrInvalidEventHandler (h is
// nil), ErrInsufficientResources.
func (r *RNIC) AddCompletionHandler(h func(*CQ)) (HandlerID, error) {
	if err := r.lock(); err != nil {
		return 0, fmt.Errorf("add completion event handler: %w", err)
	}
	defer r.mu.Unlock()
	switch {
	case h == nil:
		return 0, fmt.Errorf("add completion event handler: %w: a function is needed", wr.ErrInvalidEventHandler)
	case len(r.handlers) >= r.limits.EventHandlers:
		return 0, fmt.Errorf("add completion event handler: %w: all %d are in use",
			wr.ErrInsufficientResources, r.limits.EventHandlers)
	}
	d := newDispatcher[*CQ](&r.calls, r.labels.With(label.Work, "completion handler"))
	d.set(r.living(h))
	id := HandlerID(r.nextID())
	r.handlers[id] = d
	return id, nil
}

// ReplaceCompletionHandler makes h the handler of an identifier, in place of the one
// before. Errors: ErrInvalidRNIC, ErrInvalidEventHandler (id is unknown, or h is
// nil: see RemoveCompletionHandler).
func (r *RNIC) ReplaceCompletionHandler(id HandlerID, h func(*CQ)) error {
	if err := r.lock(); err != nil {
		return fmt.Errorf("replace completion event handler %d: %w", id, err)
	}
	defer r.mu.Unlock()
	d := r.handlers[id]
	if d == nil || h == nil {
		return fmt.Errorf("replace completion event handler %d: %w", id, wr.ErrInvalidEventHandler)
	}
	d.set(r.living(h))
	return nil
}

// RemoveCompletionHandler clears a handler: its identifier is no more, and queues
// that have it call nothing from here on. Errors: ErrInvalidRNIC,
// ErrInvalidEventHandler (id is unknown).
func (r *RNIC) RemoveCompletionHandler(id HandlerID) error {
	if err := r.lock(); err != nil {
		return fmt.Errorf("remove completion event handler %d: %w", id, err)
	}
	defer r.mu.Unlock()
	d := r.handlers[id]
	if d == nil {
		return fmt.Errorf("remove completion event handler %d: %w", id, wr.ErrInvalidEventHandler)
	}
	delete(r.handlers, id)
	d.stop()
	d.set(nil)
	return nil
}

// living is h for queues that have not been destroyed.
func (r *RNIC) living(h func(*CQ)) func(*CQ) {
	return func(c *CQ) {
		if r.CQ(c.ID()) == c {
			h(c)
		}
	}
}
