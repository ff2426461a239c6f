package nvmeof

import (
	"sync"
	"time"
)

// Controller registers (properties).
const (
	regCAP  = 0x00
	regVS   = 0x08
	regCC   = 0x14
	regCSTS = 0x1c

	version = 0x00010300

	capMQES = 0xffff  // the size of a queue, 0-based
	capTO   = 24      // the place of the time to become ready, 8 bits in 500 ms
	capNVM  = 1 << 37 // the NVM command set
	capMin  = 48      // the place of the smallest page, 4 bits: 4096 << it

	ccEnable   = 1 << 0
	ccEntries  = 6<<16 | 4<<20 // of 64 and 16 octets
	ccSHN      = 3 << 14
	ccShutdown = 1 << 14 // in ccSHN: normal

	cstsRDY          = 1 << 0
	cstsCFS          = 1 << 1
	cstsSHST         = 3 << 2
	cstsSHSTComplete = 2 << 2
)

// controller is what an admin queue's Connect makes: an association with one host. It ends with that queue.
type controller struct {
	target  *Target
	subsys  *Subsystem // nil: discovery
	id      uint16
	nqn     string // of the subsystem, as connected to
	hostNQN string
	hostID  [16]byte
	shares

	mu        sync.Mutex
	cc, csts  uint32 // csts without RDY
	resetting bool   // I/O queues of before the reset are still there
	granted   int    // I/O queues
	queues    map[uint16]*queue
	kato      time.Duration
	expiry    *time.Timer // nil: no keep-alive
	last      time.Time   // of the newest command
	ended     bool
	eventMask uint32
	events    []*request      // that wait for an event
	changed   map[uint32]bool // namespaces, since the log was read
	noticed   bool            // the host has a notice of that, or it is pending
	pending   bool            // no request has taken the notice
}

// ready reports whether commands other than Fabrics' may run.
func (c *controller) ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.enabled()
}

// enabled is ready with the lock held.
func (c *controller) enabled() bool { return c.cc&ccEnable != 0 && !c.resetting }

// setKATO starts the keep-alive timer anew; 0 stops it.
func (c *controller) setKATO(ms uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.expiry != nil {
		c.expiry.Stop()
		c.expiry = nil
	}
	c.kato, c.last = time.Duration(ms)*time.Millisecond, time.Now()
	if ms != 0 && !c.ended {
		var t *time.Timer
		t = time.AfterFunc(c.kato, func() { c.expire(&t) })
		c.expiry = t
	}
}

// expire ends the controller if no command came for kato: any command counts, as ctratt bit 6 says.
func (c *controller) expire(t **time.Timer) {
	c.mu.Lock()
	if c.ended || c.expiry != *t {
		c.mu.Unlock()
		return
	}
	if left := time.Until(c.last.Add(c.kato)); left > 0 {
		c.expiry.Reset(left)
		c.mu.Unlock()
		return
	}
	c.csts |= cstsCFS
	c.mu.Unlock()
	c.target.log.Warn("nvmeof: a controller ends: its host has not kept it alive", "host_nqn", c.hostNQN, "controller", c.id)
	c.end()
}

func (c *controller) heard() {
	c.mu.Lock()
	c.last = time.Now()
	c.mu.Unlock()
}

// end closes all queues and forgets the controller.
func (c *controller) end() {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended = true
	if c.expiry != nil {
		c.expiry.Stop()
	}
	queues := c.queues
	c.queues = nil
	c.mu.Unlock()
	for _, q := range queues {
		q.cancel()
	}
	c.target.forget(c)
}

// attach makes q the queue of its qid, if the controller is ready and has granted it.
func (c *controller) attach(q *queue) (result uint64, status Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended || !c.enabled():
		return 0, SequenceError | DNR
	case int(q.hello.qid) > c.granted:
		return connectRefusal(connectQID, false)
	case c.queues[q.hello.qid] != nil:
		return 0, SequenceError | DNR
	}
	c.queues[q.hello.qid] = q
	return 0, Success
}

// ioQueues is how many there are. The lock is held.
func (c *controller) ioQueues() int {
	if c.queues[0] == nil {
		return len(c.queues)
	}
	return len(c.queues) - 1
}

// detach is told that q is gone. The admin queue takes all others along.
func (c *controller) detach(q *queue) {
	c.mu.Lock()
	if c.queues[q.hello.qid] == q {
		delete(c.queues, q.hello.qid)
	}
	c.resetting = c.resetting && c.ioQueues() > 0
	c.mu.Unlock()
	if q.hello.qid == 0 {
		c.end()
	}
}

// property reads a register.
func (c *controller) property(offset uint32, eight bool) (uint64, Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case offset == regCAP && eight:
		depth := c.target.config.Depth
		if c.subsys == nil {
			depth = adminDepth
		}
		return capNVM | 0x0f<<capTO | 1<<16 | uint64(depth-1), Success // 7.5 s; CQR; MQES
	case offset == regVS && !eight:
		return version, Success
	case offset == regCC && !eight:
		return uint64(c.cc), Success
	case offset == regCSTS && !eight:
		v := c.csts
		if c.cc&ccEnable != 0 || c.resetting {
			v |= cstsRDY
		}
		return uint64(v), Success
	}
	return 0, InvalidField | DNR
}

// setCC writes the one register that hosts write.
func (c *controller) setCC(v uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.cc
	c.cc = v
	if v&ccEnable != 0 && old&ccEnable == 0 {
		c.csts = 0
	}
	if v&ccEnable == 0 && old&ccEnable != 0 { // a reset: the I/O queues go, and RDY with the last of them
		c.resetting = c.ioQueues() > 0
		c.granted, c.eventMask, c.noticed, c.pending = 0, 0, false, false
		for qid, q := range c.queues {
			if qid != 0 {
				q.cancel()
			}
		}
		for _, r := range c.events {
			r.completeEvent(completion{status: Aborted})
		}
		c.events = nil
	}
	c.csts &^= cstsSHST
	if v&ccSHN != 0 {
		c.csts |= cstsSHSTComplete
	}
}
