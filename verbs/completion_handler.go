package verbs

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/proflabel"
	"github.com/softrnic/softrnic/wr"
)

// AddCompletionHandler registers h as a completion event handler (verbs draft
// 9.4.1) and returns its identifier, for CQConfig.Handler. h is called once for
// each notification that CQ.Notify armed on a queue of that identifier, from one
// goroutine for each identifier; it may call any verb but RNIC.Close. Destroyed
// queues are not named to it. Errors: ErrInvalidRNIC, ErrInvalidEventHandler (h is
// nil), ErrInsufficientResources.
func (r *RNIC) AddCompletionHandler(h func(*CQ)) (_ HandlerID, err error) {
	defer asRefused(&err, "Set Completion Event Handler", "verbs draft 9.4.1", Reason{})
	if err := r.lock(); err != nil {
		return 0, err
	}
	defer r.mu.Unlock()
	switch {
	case h == nil:
		return 0, &wr.Reason{Err: wr.ErrInvalidEventHandler, What: "it is nil", Remedy: "give a function"}
	case len(r.handlers) >= r.limits.EventHandlers:
		return 0, &wr.Reason{Err: wr.ErrInsufficientResources, What: fmt.Sprintf("all %d handlers are in use", r.limits.EventHandlers)}
	}
	d := newDispatcher[*CQ](&r.calls, r.labels.With(proflabel.Work, "completion handler"))
	d.set(r.living(h))
	id := HandlerID(r.nextID())
	r.handlers[id] = d
	return id, nil
}

// ReplaceCompletionHandler makes h the handler of an identifier, in place of the one
// before. Errors: ErrInvalidRNIC, ErrInvalidEventHandler (id is unknown, or h is
// nil: see RemoveCompletionHandler).
func (r *RNIC) ReplaceCompletionHandler(id HandlerID, h func(*CQ)) (err error) {
	defer asRefused(&err, "Set Completion Event Handler", "verbs draft 9.4.1", Reason{})
	if err := r.lock(); err != nil {
		return err
	}
	defer r.mu.Unlock()
	d := r.handlers[id]
	if d == nil || h == nil {
		return errNoHandler(id)
	}
	d.set(r.living(h))
	return nil
}

// RemoveCompletionHandler clears a handler: its identifier is no more, and queues
// that have it call nothing from here on. Errors: ErrInvalidRNIC,
// ErrInvalidEventHandler (id is unknown).
func (r *RNIC) RemoveCompletionHandler(id HandlerID) (err error) {
	defer asRefused(&err, "Set Completion Event Handler", "verbs draft 9.4.1", Reason{})
	if err := r.lock(); err != nil {
		return err
	}
	defer r.mu.Unlock()
	d := r.handlers[id]
	if d == nil {
		return errNoHandler(id)
	}
	delete(r.handlers, id)
	d.stop()
	d.set(nil)
	return nil
}

// errNoHandler refuses a handler that there is not, or no function for one.
func errNoHandler(id HandlerID) error {
	return &wr.Reason{Err: wr.ErrInvalidEventHandler, What: fmt.Sprintf("there is no handler %d, or no function for it", id)}
}

// living is h for queues that have not been destroyed.
func (r *RNIC) living(h func(*CQ)) func(*CQ) {
	return func(c *CQ) {
		if r.CQ(c.ID()) == c {
			h(c)
		}
	}
}
