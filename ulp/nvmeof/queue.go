package nvmeof

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/inventory"
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
	seat   *seat     // its place

	counted *inventory.Object
	taken   taken

	gone   context.Context // ended: the connection is to end
	cancel context.CancelFunc
	dead   chan struct{} // closed: the RNIC has let go of all memory
	free   chan *request
	slots  []*request

	mu         sync.Mutex
	joining    bool        // a Connect is under way, or has succeeded
	ctrl       *controller // nil before a Connect that succeeded; then for good
	refused    bool        // the host keeps no rules, and the log says so
	noFlow     bool        // Connect has turned off flow control by sqhd
	sqhd       uint32
	cids       map[uint16]*request // in execution
	unanswered int                 // commands

	completed atomic.Uint64 // signaled requests of the Send Queue
}

func newQueue(ctx context.Context, t *Target, h hello) (q *queue, err error) {
	depth := int(h.hsqsize) + 1
	q = &queue{target: t, hello: h, in: t.shared, dead: make(chan struct{}), free: make(chan *request, depth), cids: map[uint16]*request{}}
	q.gone, q.cancel = context.WithCancel(ctx)
	q.counted = inventory.Open(t.counted, "nvmeof queue", h.qid, inventory.CounterFunc(q.count))
	defer func() {
		if err != nil {
			q.release()
		}
	}()
	q.sendCQ, err = t.nic.CreateCQ(verbs.CQConfig{Entries: 3*depth + 8})
	if q.taken.took(err) != nil {
		return q, err
	}
	received := depth
	if t.shared != nil {
		received = t.config.SharedReceives
	}
	q.recvCQ, err = t.nic.CreateCQ(verbs.CQConfig{Entries: received + 8})
	if q.taken.took(err) != nil {
		return q, err
	}
	c := verbs.QPConfig{
		PD: t.pd, SendCQ: q.sendCQ, RecvCQ: q.recvCQ, SendDepth: 2*depth + 2, RecvDepth: depth,
		ReadIntoLocal: true, NoInboundRead: true, NoInboundWrite: true, NoBind: true, // a host reaches none of the target's memory
	}
	if t.shared != nil {
		c.SRQ, c.GracefulReceive = t.shared.srq, true
	}
	q.qp, err = t.nic.CreateQP(c)
	if q.taken.took(err) != nil {
		return q, err
	}
	q.out, err = t.pd.Register(make([]byte, depth*completionSize), verbs.LocalRead)
	if q.taken.took(err) != nil {
		return q, err
	}
	if t.shared == nil {
		q.in, err = newReceives(t.pd, depth, t.config.capsule(h.qid))
		if q.taken.took(err) != nil {
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

// destroy ends the queue pair: commands that wait for the RNIC go on.
func (q *queue) destroy() {
	q.cancel()
	_ = q.taken.gave(q.qp.Destroy())
	close(q.dead)
}

// release gives back all that newQueue has taken, which may have failed half way. Nothing of the queue runs any more.
func (q *queue) release() {
	defer q.counted.Close()
	q.cancel()
	_ = q.taken.gave(q.qp.Destroy()) // of a queue that has not served; nil, and what is destroyed, the verbs refuse
	for _, cq := range []*verbs.CQ{q.sendCQ, q.recvCQ} {
		_ = q.taken.gave(cq.Destroy())
	}
	if q.out != nil {
		_ = q.taken.gave(q.out.Deregister())
	}
	if q.in != nil && q.in != q.target.shared && q.in.mr != nil {
		_ = q.taken.gave(q.in.mr.Deregister())
	}
}

// expire ends a queue that is not connected yet: its host would keep the place from others.
func (q *queue) expire(host net.Addr) {
	if q.controller() == nil {
		q.target.log.Warn("nvmeof: a queue ends: no Connect in time", "host", host, "queue", q.hello.qid, "limit", q.target.config.ConnectTimeout)
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
	if c := q.controller(); c != nil {
		c.detach(q)
	}
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
		q.completed.Add(uint64(n))
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
		q.target.log.Warn("nvmeof: a queue ends: a capsule is too short for a command", "queue", q.hello.qid, "bytes", c.Bytes)
		q.cancel()
		return false
	}
	r := q.place()
	if r == nil {
		return false
	}
	capsule := q.in.capsule(c.ID, c.Bytes)
	r.begin(capsule, c.ID)
	if q.in == q.target.shared { // whatever the command waits for keeps no receive from other hosts
		r.extra = bytes.Clone(r.extra)
		r.repost()
	}
	r.admit()
	requests.Go(func() {
		r.serve()
		q.free <- r
	})
	return true
}

// place is a request for the next command; nil when the queue ends, as it does for a host that sends more than it has
// places: without flow control by sqhd too it has one command in each (Linux's queue_size), and its next place is free
// once it has an answer.
func (q *queue) place() *request {
	q.mu.Lock()
	full := q.unanswered == len(q.slots)
	q.mu.Unlock()
	if full {
		return q.refuse("has more commands outstanding than its %d places", len(q.slots))
	}
	select {
	case r := <-q.free:
		return r
	default:
	}
	// Answers are on their way to the host, or it does not read them, and that ends the queue: see request.wait.
	select {
	case r := <-q.free:
		return r
	case <-q.gone.Done():
		return nil
	}
}

// refuse ends the queue of a host that keeps no rules. The first reason is the one that is logged.
func (q *queue) refuse(format string, args ...any) *request {
	q.mu.Lock()
	first := !q.refused
	q.refused = true
	q.mu.Unlock()
	if first {
		q.target.log.Warn("nvmeof: a queue ends: its host "+fmt.Sprintf(format, args...), "queue", q.hello.qid)
	}
	q.cancel()
	return nil
}
