package verbs

import (
	"sync"

	"github.com/softrnic/softrnic/wr"
)

// dispatcher calls the asynchronous event handler from a goroutine of its own,
// so that a handler may call any verb. The goroutine runs while there are
// events.
type dispatcher struct {
	mu      sync.Mutex
	idle    sync.Cond
	handler func(wr.Event) // guarded by mu, as all below
	queue   []wr.Event
	running bool
	stopped bool
}

func newDispatcher() *dispatcher {
	d := &dispatcher{}
	d.idle.L = &d.mu
	return d
}

func (d *dispatcher) set(h func(wr.Event)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handler = h
}

// raise queues an event. It does not block.
func (d *dispatcher) raise(e wr.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handler == nil || d.stopped {
		return
	}
	d.queue = append(d.queue, e)
	if !d.running {
		d.running = true
		go d.run()
	}
}

func (d *dispatcher) run() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.queue) > 0 {
		e, h := d.queue[0], d.handler
		d.queue = d.queue[1:]
		if h == nil {
			continue
		}
		d.mu.Unlock()
		h(e)
		d.mu.Lock()
	}
	d.running = false
	d.idle.Broadcast()
}

// stop delivers what is queued and takes nothing more. A handler may not call
// it.
func (d *dispatcher) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	for d.running {
		d.idle.Wait()
	}
}
