package endpoint

import (
	"errors"
	"time"

	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// write sends what the connection takes of b at once, and tells of what has left.
func (e *Endpoint) write(b *batch) error {
	err := e.push(b)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.account(b)
	if err != nil && !errors.Is(err, netpoll.ErrAgain) && e.broken == nil && !e.ended {
		e.broken = err
		e.goOn(waitAnswers)
	}
	return err
}

// writeRest sends the segment that has begun to leave when the end came. If the program has closed the connection it waits
// for nothing.
func (e *Endpoint) writeRest(b *batch, wait bool) {
	for {
		b.truncate(b.boundary())
		if !b.left() {
			return
		}
		err := e.write(b)
		if wait && errors.Is(err, netpoll.ErrAgain) {
			late := e.conn.AwaitWrite(func() bool {
				err = e.write(b)
				return !errors.Is(err, netpoll.ErrAgain)
			})
			err = errors.Join(err, late)
		}
		e.deliver()
		if err != nil {
			e.tx.torn = b.boundary() != b.sent
			return
		}
	}
}

// patience is how long the reader may still receive when nothing can be written.
func (e *Endpoint) patience() time.Duration {
	if e.c.Level == segment.ReliableReception {
		return max(e.c.Linger, codeLinger)
	}
	return e.c.Linger
}

// account tells of the segments that have left since the last time. The caller has mu.
func (e *Endpoint) account(b *batch) {
	for b.known < len(b.marks) {
		m := &b.marks[b.known]
		if m.start >= b.sent {
			break
		}
		whole := m.end <= b.sent
		if m.kind == segRequest && m.idx >= e.sq.head {
			e.departed(*e.sq.at(m.idx), m, whole)
		}
		if !whole {
			break
		}
		if m.kind == segAnswer && m.Last() {
			e.answered(m)
		}
		b.known++
	}
}

// departed says that a segment of request r has left, or a part of one. The caller has
// mu.
func (e *Endpoint) departed(r *request, m *mark, whole bool) {
	r.begun = true
	if !whole || !m.Last() {
		return
	}
	r.sentAll = !m.Failed()
	// Transmitted is enough at Unreliable and Reliable Delivery (VI Architecture
	// 2.5.2); Reception waits for the ACK (VT-3.2-M12), a Read for its answer.
	if r.flaws != 0 || r.Op != OpRead && e.c.Level != segment.ReliableReception {
		r.done = true
		e.advance()
	}
}

// answered says that the answer to an RDMA Read has left. One that failed ends the
// connection. The caller has mu.
func (e *Endpoint) answered(m *mark) {
	if m.Failed() {
		if !m.told {
			e.raise(EventReadProtection)
		}
		e.blame(m.Number, segment.RDMAProtection)
		e.end(CauseInbound, nil)
		return
	}
	if e.unsent--; e.unsent == 0 {
		e.goOn(waitAnswers)
	}
	if e.c.Level == segment.ReliableReception {
		*e.items.push() = item{kind: itemAck, acks: true, number: m.Number}
	}
}

// blame has the peer told what was wrong with a message of it. It takes all before that
// one for received (3.2, Message ACK), so number is never one that a segment names which
// is damaged or out of turn, but of the first message that has not come: that is the one
// in error. The caller has mu.
func (e *Endpoint) blame(number uint32, code segment.ErrorCode) {
	if e.c.Level == segment.ReliableReception && e.badCode == 0 { // VT-3.2-M15, VT-3.2-S5
		e.badNumber, e.badCode = number, code
	}
}

// drain sends what the peer is still to know, and ends this half of the connection, behind all that it has taken.
func (e *Endpoint) drain() {
	e.mu.Lock()
	for e.delivering {
		e.calm.Wait() // what is delivered now can be acknowledged still
	}
	h := segment.Header{Type: segment.NOP, Flags: segment.EndOfMessage, Number: e.number}
	e.inform(&h)
	if e.badCode != 0 { // VT-3.6-M7, 3.2 Message ACK
		h.Ack, h.Code = e.badNumber, e.badCode
	}
	farewell, lost := e.draining && e.c.Level == segment.ReliableReception && !e.tx.torn, e.cause == CauseLost
	e.mu.Unlock()
	if lost {
		return
	}
	ok := true
	if farewell {
		h.SetLength(0, e.c.CRC)
		b := h.Append(nil)
		if e.c.CRC {
			b = segment.AppendCRC(b, 0)
		}
		_, err := e.conn.Write(b)
		ok = err == nil
	}
	has, err := e.conn.HalfClose()
	if e.tx.torn || !ok || !has || err != nil {
		_ = e.conn.Close()
	}
}
