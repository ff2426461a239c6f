package verbs

import (
	"sync"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/proflabel"
)

// dispatcher calls a handler of the program from a goroutine of its own, so that
// the handler may call verbs. It is called for one value at a time, in the order
// in which they were posted. The goroutine runs while there are values.
type dispatcher[T any] struct {
	running *sync.WaitGroup // the RNIC's: Close waits for it
	loop    func()          // run, made once
	labels  proflabel.Set

	mu      lockorder.Mutex[lockorder.Events]
	handler func(T) // guarded by mu, as all below
	queue   []T
	active  bool
	stopped bool
}

func newDispatcher[T any](running *sync.WaitGroup, labels proflabel.Set) *dispatcher[T] {
	d := &dispatcher[T]{running: running, labels: labels}
	d.loop = d.run
	return d
}

// set makes h the handler; nil turns calls off.
func (d *dispatcher[T]) set(h func(T)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handler = h
}

// post queues a call. It does not block. Without a handler v is lost.
func (d *dispatcher[T]) post(v T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handler == nil || d.stopped {
		return
	}
	d.queue = append(d.queue, v)
	if !d.active {
		d.active = true
		d.running.Add(1)
		go d.loop()
	}
}

func (d *dispatcher[T]) run() {
	defer d.running.Done()
	d.labels.Wear()
	d.mu.Lock()
	defer d.mu.Unlock()
	var batch []T
	for len(d.queue) > 0 {
		batch, d.queue = d.queue, batch[:0]
		for _, v := range batch {
			h := d.handler
			if h == nil {
				continue
			}
			d.mu.Unlock()
			h(v)
			d.mu.Lock()
		}
		clear(batch)
	}
	d.active = false
}

// stop takes nothing more; what is queued is delivered.
func (d *dispatcher[T]) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
}

// SetEventHandler makes h the handler of asynchronous events, replacing an
// earlier one; nil turns them off (verbs draft 9.4.2). It is called from one
// goroutine, an event at a time, in the order in which they happened, and may
// call any verb but Close. Events that happen while there is no handler are
// lost. The event names its resource by ID: see RNIC.QP, CQ and SRQ. Errors:
// ErrInvalidRNIC.
func (r *RNIC) SetEventHandler(h func(Event)) error {
	if err := r.refusal(); err != nil {
		return refused(err, "Set Asynchronous Event Handler", "verbs draft 9.4.2", Reason{})
	}
	r.events.set(h)
	return nil
}

// QP returns the queue pair of an ID, or nil if there is none any more.
func (r *RNIC) QP(id QPID) *QP {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.qps[id]
}

// CQ returns the completion queue of an ID, or nil if there is none any more.
func (r *RNIC) CQ(id CQID) *CQ {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cqs[id]
}

// SRQ returns the shared receive queue of an ID, or nil if there is none any more.
func (r *RNIC) SRQ(id SRQID) *SRQ {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.srqs[id]
}
