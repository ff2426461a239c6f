package rsocket

import (
	"io"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

const (
	// direct is from how many octets on a write goes out of the caller's memory, which is registered for it.
	direct = 16 << 10
	// piece is how much is written with one message at most, in octets, so that the peer has something to do early.
	piece = 64 << 10
)

// Write writes p. It returns when the peer's ring has room for all of it, and TCP has the last of it or a copy is made. Errors: ErrProtocol, or why
// the stream has failed, in a *net.OpError; syscall.ECONNRESET if the peer has closed; the others of net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	c.wr.Lock()
	defer c.wr.Unlock()
	return c.write(p, nil)
}

// ReadFrom writes what r gives until its end: it is what io.Copy uses. It needs no other buffer.
func (c *Conn) ReadFrom(r io.Reader) (total int64, err error) {
	buf := make([]byte, piece)
	mr, err := c.qp.PD().Register(buf, verbs.LocalRead)
	if err != nil {
		return 0, opError("write", c, err)
	}
	defer func() { _ = mr.Deregister() }()
	for {
		n, err := r.Read(buf)
		if n > 0 {
			c.wr.Lock()
			sent, err := c.write(buf[:n], mr)
			c.wr.Unlock()
			total += int64(sent)
			if err != nil {
				return total, err
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// write writes p, which is at the beginning of mr if that is not nil; wr is held.
func (c *Conn) write(p []byte, mr *verbs.MR) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.leave(&c.writer)
	if err := c.writeError(); err != nil || len(p) == 0 {
		return 0, c.writeFailure(err)
	}
	if len(p) >= direct {
		if mr == nil {
			c.mu.Unlock()
			mr, err = c.qp.PD().Register(p, verbs.LocalRead)
			c.mu.Lock()
			if err != nil {
				return 0, c.writeFailure(err)
			}
			defer func() { _ = mr.Deregister() }()
		}
		defer c.settle() // before the region goes
	} else {
		mr = nil
	}
	for n < len(p) {
		k, err := c.awaitRoom(len(p)-n, mr == nil)
		if err != nil {
			return n, c.writeFailure(err)
		}
		at := c.out.take(uint32(k))
		c.send(p[n:][:k], mr, n, newMessage(opData, uint32(k)), at)
		n += k
	}
	return n, nil
}

// awaitRoom waits until up to n octets can be sent, and is how many; mu is held.
func (c *Conn) awaitRoom(n int, small bool) (int, error) {
	for {
		if err := c.awaitSlot(); err != nil {
			return 0, err
		}
		k := min(n, int(min(c.out.room(), piece)))
		if small {
			k = min(k, c.smallRoom())
		}
		if k > 0 {
			return k, nil
		}
		c.wait(&c.writer)
	}
}

// awaitSlot waits until a message with data can be sent, credit apart; mu is held.
func (c *Conn) awaitSlot() error {
	for {
		if c.flushed && c.leader == nil {
			c.learn()
		}
		if err := c.writeError(); err != nil {
			return err
		}
		if c.sent-c.done < dataSlots {
			return nil
		}
		c.wait(&c.writer)
	}
}

// smallRoom is how many octets of a small write can be copied to where smallAt is.
func (c *Conn) smallRoom() int {
	if c.smallUsed == 0 {
		c.smallAt = 0
	}
	free := len(c.mem.small) - c.smallUsed
	return min(free, len(c.mem.small)-c.smallAt)
}

// smallFits reports whether n octets can be copied in one piece, behind where smallAt is or at the beginning.
func (c *Conn) smallFits(n int) bool {
	room := c.smallRoom()
	return room >= n || len(c.mem.small)-c.smallUsed-room >= n
}

// send sends p, which there is room for, out of offset off of mr or, without one, of a copy, and m behind it. It may let go of mu.
func (c *Conn) send(p []byte, mr *verbs.MR, off int, m message, at target) {
	n := len(p)
	slot := int(c.sent % dataSlots)
	id := c.sent
	c.sent++
	var payload verbs.SGE
	var flags verbs.Flags
	if mr != nil {
		payload = mr.SGE(off, n)
		c.lent = c.sent
		c.unsignaled, c.unsignaledSize = 0, 0
	} else {
		used := n
		if left := len(c.mem.small) - c.smallAt; left < n {
			c.smallAt, used = 0, left+n // all in one piece: see smallFits
		}
		payload = c.mem.own.SGE(c.smallAt, n)
		copy(c.mem.small[c.smallAt:], p)
		c.octets[slot] = int32(used)
		c.smallUsed += used
		c.smallAt = (c.smallAt + n) % len(c.mem.small)
		c.unsignaled++
		c.unsignaledSize += n
		if c.unsignaled < together && c.unsignaledSize < len(c.mem.small)/4 {
			flags = verbs.Unsignaled
		} else {
			c.unsignaled, c.unsignaledSize = 0, 0
		}
	}
	if c.sent-c.done > dataSlots/2 {
		c.poll()
	}
	if mr != nil { // it may take a while
		c.mu.Unlock()
	}
	err := c.post(&c.data, id, slot, flags, m, payload, at)
	if mr != nil {
		c.mu.Lock()
	}
	if err != nil { // the stream has ended
		c.flushed = true
	}
}

// settle waits until TCP has all that was sent out of the caller's memory, of which completions tell. Where it takes nothing, the connection ends before the caller's
// memory is used for anything else.
func (c *Conn) settle() {
	if c.done < c.lent {
		c.poll()
	}
	var late *time.Timer
	defer func() {
		if late != nil {
			late.Stop()
		}
	}()
	for c.done < c.lent && !c.flushed {
		if late == nil && (c.closed || c.writer.passed) {
			late = time.AfterFunc(c.config.CloseTimeout, func() { _ = c.cm.Abort() })
		}
		c.wait(&c.writer)
	}
}

func (c *Conn) writeFailure(err error) error {
	if err == nil {
		return nil
	}
	return opError("write", c, err)
}
