package nvmeof

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// hostQueue is a submission and completion queue pair of a Host: a connection. One goroutine hands what completes to
// the calls that wait for it.
type hostQueue struct {
	host    *Host
	id      uint16
	qp      *verbs.QP
	cq      *verbs.CQ // of both its queues
	conn    *cm.Conn
	out     *verbs.MR // capsules, one a slot
	in      *verbs.MR // answers
	capsule int       // octets of a command and the data that it brings along, at most
	slots   []*hostSlot
	free    chan *hostSlot // of the admin queue
}

// hostSlot is a place for a command. The call that has taken it owns all but pending.
type hostSlot struct {
	q       *hostQueue
	index   int
	uses    uint16
	pending atomic.Uint32 // 1 more than the identifier of the command that has no answer yet; 0: none
	sent    chan struct{}
	answer  chan hostAnswer
}

// hostAnswer is a completion, and the key that came with it to be invalidated.
type hostAnswer struct {
	completion
	key         verbs.STag
	invalidated bool
}

// cidBits are those of a command identifier that name its slot; the others tell its commands apart.
const cidBits = 10

// connect makes a queue that may have depth commands outstanding, of octets each, in-capsule data among them.
func (h *Host) connect(ctx context.Context, id uint16, depth, octets int) (*hostQueue, error) {
	q := &hostQueue{host: h, id: id, capsule: octets, free: make(chan *hostSlot, depth)}
	receives := depth + 1
	var err error
	if q.cq, err = h.nic.CreateCQ(verbs.CQConfig{Entries: 4*receives + 8}); err != nil {
		return nil, err
	}
	q.qp, err = h.nic.CreateQP(verbs.QPConfig{
		PD: h.pd, SendCQ: q.cq, RecvCQ: q.cq, SendDepth: depth, RecvDepth: receives, NoBind: true,
	})
	if err != nil {
		return nil, err
	}
	if q.out, err = h.pd.Register(make([]byte, depth*octets), verbs.LocalRead); err != nil {
		return nil, err
	}
	if q.in, err = h.pd.Register(make([]byte, receives*completionSize), verbs.LocalRead|verbs.LocalWrite); err != nil {
		return nil, err
	}
	for i := range receives {
		if err := q.repost(uint64(i)); err != nil {
			return nil, err
		}
	}
	for i := range depth {
		q.slots = append(q.slots, &hostSlot{q: q, index: i, sent: make(chan struct{}, 1), answer: make(chan hostAnswer, 1)})
		q.free <- q.slots[i]
	}
	hello := hello{qid: id, hrqsize: uint16(receives), hsqsize: uint16(depth)}
	conf := h.config.Connection
	conf.PrivateData = hello.request()
	if q.conn, err = cm.Dial(ctx, h.addr, q.qp, conf); err != nil {
		var refused *cm.RejectedError
		if errors.As(err, &refused) {
			err = fmt.Errorf("%w: %w", decodeRejected(refused.PrivateData), err)
		}
		return nil, err
	}
	over, cancel := context.WithCancel(context.Background())
	h.all.Go(func() { q.takeCompletions(over) })
	h.all.Go(func() { q.watch(); cancel() })
	if err := decodeAccepted(q.conn.PrivateData(), hello); err != nil {
		_ = q.conn.Abort()
		return nil, err
	}
	if err := h.join(ctx, q); err != nil {
		_ = q.conn.Abort()
		return nil, err
	}
	return q, nil
}

// watch ends the association with the connection, and the connection with the association.
func (q *hostQueue) watch() {
	h := q.host
	select {
	case <-q.conn.Done():
		err := q.conn.Err()
		if err == nil {
			err = fmt.Errorf("the target %s has closed queue %d", h.addr, q.id)
		}
		h.fail(err)
	case <-h.gone:
		h.mu.Lock()
		orderly := h.orderly
		h.mu.Unlock()
		if !orderly {
			_ = q.conn.Abort()
		}
		<-q.conn.Done()
	}
}

func (q *hostQueue) repost(id uint64) error {
	_, err := q.qp.PostRecv(verbs.Recv{ID: id, SGL: q.in.SGL(int(id)*completionSize, completionSize)})
	return err
}

// takeCompletions hands completions to the slots they are of, until ctx ends.
func (q *hostQueue) takeCompletions(ctx context.Context) {
	var got [64]verbs.Completion
	for {
		n, err := q.cq.Wait(ctx, got[:])
		for _, c := range got[:n] {
			if err := q.take(c); err != nil {
				q.breach(err)
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// breach ends the association because of what the target has done.
func (q *hostQueue) breach(err error) {
	q.host.fail(fmt.Errorf("the target %s breaks the protocol on queue %d: %w", q.host.addr, q.id, err))
}

// take hands on one completion. Its error is what the target has done wrong.
func (q *hostQueue) take(c verbs.Completion) error {
	switch {
	case c.Err() != nil:
		return nil // the connection ends, and tells why: see watch
	case c.Op != verbs.OpRecv:
		q.slots[c.ID].sent <- struct{}{}
		return nil
	case c.Bytes != completionSize:
		return fmt.Errorf("an answer of %d octets, want %d", c.Bytes, completionSize)
	}
	a := hostAnswer{
		completion: decodeCompletion(q.in.Bytes()[int(c.ID)*completionSize:][:completionSize]),
		key:        c.Invalidated, invalidated: c.HasInvalidated,
	}
	if err := q.repost(c.ID); err != nil {
		return nil // as above
	}
	s := q.slotOf(a.cid)
	if s == nil || !s.pending.CompareAndSwap(uint32(a.cid)+1, 0) {
		return fmt.Errorf("an answer to command %#04x, which is not outstanding", a.cid)
	}
	s.answer <- a
	return nil
}

// slotOf is the slot that a command identifier names; nil if there is none.
func (q *hostQueue) slotOf(cid uint16) *hostSlot {
	if i := int(cid & (1<<cidBits - 1)); i < len(q.slots) {
		return q.slots[i]
	}
	return nil
}

// post sends a command, and the data behind it that go in its capsule.
func (s *hostSlot) post(c command, data []byte) error {
	s.uses++
	cid := s.uses<<cidBits | uint16(s.index)
	le.PutUint16(c[2:], cid)
	at := s.index * s.q.capsule
	b := s.q.out.Bytes()[at:][:s.q.capsule]
	n := copy(b, c)
	n += copy(b[n:], data)
	s.pending.Store(uint32(cid) + 1) // before the answer can come
	_, err := s.q.qp.PostSend(verbs.Request{ID: uint64(s.index), SGL: s.q.out.SGL(at, n)})
	return err
}
