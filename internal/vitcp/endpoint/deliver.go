package endpoint

// itemKind is what an item tells.
type itemKind uint8

const (
	itemSend itemKind = iota
	itemReceive
	itemEvent
	itemEnded
	itemAck // tells nobody: a message without a result is complete
)

// item is something that the Handler is to be told, in its turn.
type item struct {
	kind   itemKind
	event  Event
	acks   bool // a message is complete, and may be acknowledged afterwards
	number uint32
	result Result
	end    *EndError
}

// maxTold is how much one goroutine tells for others, who keep posting.
const maxTold = 2048

// deliver tells the Handler what there is to tell. Whoever comes first does it for
// all, so calls come one at a time and in order. The caller is the reader, or was the
// writer just now, without mu.
func (e *Endpoint) deliver() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.delivering {
		return
	}
	e.delivering = true
	for n := 0; e.more(); n++ {
		if n == maxTold && !e.ended { // the rest is the group's
			e.untold.Store(true)
			e.sock.Soon()
			break
		}
		e.current = *e.items.front()
		e.items.front().result.Context = nil
		e.items.pop()
		e.notify(&e.current)
	}
	e.delivering = false
	if e.ended { // the drain waits for that
		e.calm.Broadcast()
	}
}

// more reports whether there is an item. When no memory is used any more it makes items of all that is still posted; when there is none of that
// either, posting is over. The caller has mu.
func (e *Endpoint) more() bool {
	if e.items.len() == 0 && e.quiet {
		e.flush()
		e.closed = e.items.len() == 0
	}
	return e.items.len() > 0
}

// notify hands one item to the handler, without mu, which the caller has.
func (e *Endpoint) notify(it *item) {
	switch it.kind {
	case itemSend:
		e.sendOut--
	case itemReceive:
		e.recvOut--
	default:
	}
	e.mu.Unlock()
	switch h := e.c.Handler; it.kind {
	case itemSend:
		h.SendDone(&it.result)
	case itemReceive:
		h.ReceiveDone(&it.result)
	case itemEvent:
		h.Event(it.event)
	case itemEnded:
		h.Ended(it.end)
	default:
	}
	e.mu.Lock()
	it.result.Context = nil
	if it.acks { // VT-3.2-S3: not before the completion is there
		e.ack = it.number
		e.holdACK()
	}
}

// raise queues an event. The caller has mu.
func (e *Endpoint) raise(ev Event) { *e.items.push() = item{kind: itemEvent, event: ev} }
