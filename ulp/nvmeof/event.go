package nvmeof

import "slices"

// Asynchronous events. A host leaves requests with the controller, which answers one when there is news.
const (
	aerl          = 3 // 0-based: requests that a host may leave
	eventNSNotice = 1 << 8
	nsAttrChanged = 0x00040002 // type notice, info namespace attribute changed, log page 4
	maxChanged    = 1024       // entries of that log page
)

// awaitEvent holds r until there is an event.
func (c *controller) awaitEvent(r *request) (uint64, Status) {
	c.mu.Lock()
	switch {
	case r.told: // aborted
	case len(c.events) > aerl:
		c.mu.Unlock()
		return 0, TooManyEvents | DNR
	case c.pending && c.eventMask&eventNSNotice != 0:
		c.pending = false
		r.completeEvent(completion{result: nsAttrChanged})
	default:
		c.events = append(c.events, r)
	}
	c.mu.Unlock()
	select {
	case e := <-r.event:
		return e.result, e.status
	case <-r.q.gone.Done():
		c.mu.Lock()
		c.events = slices.DeleteFunc(c.events, func(e *request) bool { return e == r })
		c.mu.Unlock()
		return 0, Aborted
	}
}

// namespaceChanged notes it for the log, and tells the host once until it has read that.
func (c *controller) namespaceChanged(nsid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed[nsid] = true
	if c.noticed || c.eventMask&eventNSNotice == 0 {
		return
	}
	c.noticed = true
	if len(c.events) == 0 {
		c.pending = true
		return
	}
	c.events[0].completeEvent(completion{result: nsAttrChanged})
	c.events = c.events[1:]
}

// completeEvent answers an event request, once. The controller's lock is held.
func (r *request) completeEvent(e completion) {
	r.event <- e
	r.told = true
}

// abort ends the event request of q, the admin queue, that has this cid; other commands end by themselves.
func (c *controller) abort(q *queue, sqid, cid uint16) (notAborted uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.cids[cid]
	if sqid != 0 || r == nil || r.event == nil || r.told {
		return 1
	}
	r.completeEvent(completion{status: Aborted})
	c.events = slices.DeleteFunc(c.events, func(e *request) bool { return e == r })
	return 0
}
