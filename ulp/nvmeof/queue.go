package nvmeof

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// queue is a submission and completion queue pair of a host: a connection. Each command has a goroutine of its own; one
// more takes commands in, one hands completions of the Send Queue to the commands they belong to.
type queue struct {
	target *Target
	hello  hello
	qp     *verbs.QP
	sendCQ *verbs.CQ
	recvCQ *verbs.CQ
	in     *receives
	out    *verbs.MR // responses, one for each request
	local  string    // the address that the host came to

	gone   context.Context // ended: the connection is to end
	cancel context.CancelFunc
	dead   chan struct{} // closed: the RNIC has let go of all memory
	free   chan *request
	slots  []*request

	mu        sync.Mutex
	ctrl      *controller // nil before Connect
	connected bool        // by a Connect that succeeded
	noFlow    bool        // Connect has turned off flow control by sqhd
	sqhd      uint32
	cids      map[uint16]*request // in execution
}

func newQueue(ctx context.Context, t *Target, h hello) (q *queue, err error) {
	depth := int(h.hsqsize) + 1
	q = &queue{target: t, hello: h, in: t.shared, dead: make(chan struct{}), free: make(chan *request, depth), cids: map[uint16]*request{}}
	q.gone, q.cancel = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			q.destroy()
		}
	}()
	if q.sendCQ, err = t.nic.CreateCQ(verbs.CQConfig{Entries: 3*depth + 8}); err != nil {
		return q, err
	}
	received := depth
	if t.shared != nil {
		received = t.config.SharedReceives
	}
	if q.recvCQ, err = t.nic.CreateCQ(verbs.CQConfig{Entries: received + 8}); err != nil {
		return q, err
	}
	c := verbs.QPConfig{
		PD: t.pd, SendCQ: q.sendCQ, RecvCQ: q.recvCQ, SendDepth: 2*depth + 2, RecvDepth: depth,
		ReadIntoLocal: true, NoInboundRead: true, NoInboundWrite: true, NoBind: true, // a host reaches none of the target's memory
	}
	if t.shared != nil {
		c.SRQ, c.GracefulReceive = t.shared.srq, true
	}
	if q.qp, err = t.nic.CreateQP(c); err != nil {
		return q, err
	}
	if q.out, err = t.pd.Register(make([]byte, depth*completionSize), verbs.LocalRead); err != nil {
		return q, err
	}
	if t.shared == nil {
		if q.in, err = newReceives(t.pd, depth, t.config.capsule(h.qid)); err != nil {
			return q, err
		}
		q.in.post = q.qp.PostRecv
		if err = q.in.postAll(depth); err != nil {
			return q, err
		}
	}
	for i := range depth {
		r := &request{q: q, slot: i, done: make(chan verbs.Completion, 2)}
		q.slots = append(q.slots, r)
		q.free <- r
	}
	return q, nil
}

// destroy gives back what newQueue has taken; it may have failed half way.
func (q *queue) destroy() {
	q.cancel()
	if q.qp != nil {
		_ = q.qp.Destroy()
	}
	close(q.dead)
}

func (q *queue) release() {
	for _, cq := range []*verbs.CQ{q.sendCQ, q.recvCQ} {
		_ = cq.Destroy()
	}
	_ = q.out.Deregister()
	if q.in != q.target.shared {
		_ = q.in.mr.Deregister()
	}
}

// expire ends a queue that is not connected yet: its host would keep the place from others.
func (q *queue) expire(host net.Addr) {
	q.mu.Lock()
	connected := q.connected
	q.mu.Unlock()
	if !connected {
		q.target.log("%v: queue %d ended: no Connect within %v", host, q.hello.qid, q.target.config.ConnectTimeout)
		q.cancel()
	}
}

// run serves the queue until its connection ends, or the target ends it.
func (q *queue) run(conn *cm.Conn) {
	defer time.AfterFunc(q.target.config.ConnectTimeout, func() { q.expire(conn.RemoteAddr()) }).Stop()
	var loops, requests sync.WaitGroup
	loops.Go(func() { q.takeCommands(&requests) })
	loops.Go(q.takeCompletions)
	select {
	case <-conn.Done():
	case <-q.gone.Done():
		_ = conn.Abort()
		<-conn.Done()
	}
	q.cancel()
	loops.Wait()
	q.reclaim()
	q.destroy()
	requests.Wait()
	q.mu.Lock()
	c := q.ctrl
	q.mu.Unlock()
	if c != nil {
		c.detach(q)
	}
	q.release()
}

// reclaim gives shared receives back that the queue's end has left in its CQ.
func (q *queue) reclaim() {
	if q.in != q.target.shared {
		return
	}
	for {
		c, err := q.recvCQ.PollOne()
		if err != nil {
			return
		}
		_ = q.in.repost(c.ID)
	}
}

func (q *queue) takeCompletions() {
	var done [64]verbs.Completion
	for {
		n, err := q.sendCQ.Wait(q.gone, done[:])
		for _, c := range done[:n] {
			select {
			case q.slots[c.ID].done <- c:
			default: // one error is enough to know
			}
		}
		if err != nil {
			return
		}
	}
}

// takeCommands begins a goroutine for each capsule that comes.
func (q *queue) takeCommands(requests *sync.WaitGroup) {
	var got [64]verbs.Completion
	for {
		n, err := q.recvCQ.Wait(q.gone, got[:])
		for i, c := range got[:n] {
			if !q.take(c, requests) {
				for _, c := range got[i:n] {
					if q.in == q.target.shared {
						_ = q.in.repost(c.ID)
					}
				}
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// take begins one command; false when the queue ends.
func (q *queue) take(c verbs.Completion, requests *sync.WaitGroup) bool {
	if c.Err() != nil {
		q.cancel()
		return false
	}
	if c.Bytes < commandSize {
		q.target.log("queue %d: a capsule of %d octets has no command; the connection ends", q.hello.qid, c.Bytes)
		q.cancel()
		return false
	}
	var r *request
	select {
	case r = <-q.free:
	case <-q.gone.Done():
		return false
	}
	capsule := q.in.capsule(c.ID, c.Bytes)
	r.begin(capsule, c.ID)
	r.admit()
	requests.Go(func() {
		r.serve()
		q.free <- r
	})
	return true
}
