package rsocket

import (
	"github.com/softrnic/softrnic/verbs"
)

// The reader and the writer of a connection wait for completions themselves: no goroutine of this package stands between. The one that
// waits first leads, and takes what comes for both; the other sleeps until there is something for it, or it has to lead.

// wait lets go of mu until something has happened that may concern w; who calls looks again.
func (c *Conn) wait(w *waiter) {
	if c.flushed && c.leader == nil { // else that one learns it, behind what it is given
		c.learn()
		return
	}
	if c.leader != nil {
		w.asleep = true
		c.mu.Unlock()
		<-w.told
		c.mu.Lock()
		w.asleep = false
		return
	}
	c.leader = w
	c.interrupt.now.Store(false)
	got := c.waited[0][:]
	if w == &c.writer {
		got = c.waited[1][:]
	}
	c.mu.Unlock()
	n, err := c.cq.Wait(&c.interrupt, got)
	c.mu.Lock()
	c.leader = nil
	c.take(got[:n])
	c.update()
	if n == 0 && c.interrupt.Err() == nil && err != nil { // the queue has been destroyed
		c.flushed = true
	}
}

// poll takes what there is.
func (c *Conn) poll() {
	c.collect()
	c.update()
}

// collect is poll without an answer. It leaves the queue to the leader: completions are taken in their order.
func (c *Conn) collect() {
	for c.leader == nil {
		n := c.cq.Poll(c.completions[:])
		c.take(c.completions[:n])
		if n < len(c.completions) {
			return
		}
	}
}

// leave is the end of a call that may have led: if the other one is asleep, it has to lead. Where the peer writes by itself the RNIC is to receive at once,
// whatever its slack: as long as somebody wants to be notified it does.
func (c *Conn) leave(w *waiter) {
	if c.exposed { // the peer's writes into it tell nobody
		_ = c.cq.Notify(verbs.NotifyNext)
	}
	other := &c.reader
	if w == other {
		other = &c.writer
	}
	if other.asleep && c.leader == nil {
		wakeSleeper(other)
	}
}

// wake makes w look; mu is held.
func (c *Conn) wake(w *waiter) {
	if c.leader == w && !c.interrupt.now.Swap(true) {
		c.cq.Wake()
	}
	if w.asleep {
		wakeSleeper(w)
	}
}

// wakeSleeper wakes w, which is asleep; mu is held.
func wakeSleeper(w *waiter) {
	select {
	case w.told <- struct{}{}:
	default:
	}
}

// take takes completions; mu is held.
func (c *Conn) take(got []verbs.Completion) {
	for i := range got {
		d := &got[i]
		switch {
		case d.Status != verbs.StatusSuccess:
			c.flushed = true
			c.wake(&c.reader)
			c.wake(&c.writer)
		case d.Op == verbs.OpRecv:
			if err := c.hear(d); err != nil {
				c.fail(err)
			}
		case d.ID&ofControl != 0:
			c.heard = d.ID&^ofControl + 1
		default:
			c.reap(d.ID + 1)
		}
	}
}

// reap frees the slots of messages with data up to n.
func (c *Conn) reap(n uint64) {
	for ; c.done < n; c.done++ {
		o := &c.octets[c.done%dataSlots]
		c.smallUsed -= int(*o)
		*o = 0
	}
	if c.writer.asleep {
		wakeSleeper(&c.writer)
	}
}

// hear takes a message.
func (c *Conn) hear(d *verbs.Completion) error {
	if c.failure != nil || c.mute {
		return nil
	}
	var m message
	switch {
	case d.HasImmediate:
		m = message(d.Value >> 32)
	case d.Bytes == messageSize:
		m = message(order.Uint32(c.mem.received[d.ID*messageSize:]))
	default:
		return broken("a message of %d octets, and not %d", d.Bytes, messageSize)
	}
	if err := c.again(d.ID); err != nil { // the stream has ended
		c.flushed = true
	}
	switch m.op() {
	case opData:
		if c.finished {
			return broken("data behind the end that it has told")
		}
		if err := c.in.data(m.value()); err != nil {
			return err
		}
		if c.reader.asleep {
			wakeSleeper(&c.reader)
		}
	case opGrant:
		c.out.granted(m.value())
		if c.writer.asleep {
			wakeSleeper(&c.writer)
		}
	case opMap:
		return c.peerMapped(m.value())
	case opState:
		return c.peerState(m.value())
	default:
		return broken("message 0x%08x, which is none of the protocol's", uint32(m))
	}
	return nil
}

func (c *Conn) peerState(state uint32) error {
	switch state {
	case stateKeepalive:
		return nil
	case stateShutdown:
		c.finished = true
		if c.writeShut {
			c.gone = true
		}
	case stateDisconnect:
		c.finished, c.gone, c.mute = true, true, true
	default:
		return broken("state %d, which is none of the protocol's", state)
	}
	c.wake(&c.reader)
	c.wake(&c.writer)
	return nil
}
