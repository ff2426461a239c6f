package nvmeof

import (
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/softrnic/softrnic/verbs"
)

// request is a command on its way through the target.
type request struct {
	q    *queue
	slot int // the ID of its work requests
	done chan verbs.Completion

	entry [commandSize]byte
	cmd   command
	extra []byte // in-capsule data, in the receive
	recv  uint64
	held  bool // the receive has not been posted again
	sgl   sgl
	data  *verbs.MR           // what was taken of the buffers
	owner *controller         // whose memory data is
	from  *semaphore.Weighted // and of which of its shares
	twice bool                // another command has its id
	event chan completion     // the answer of an asynchronous event request
	told  bool                // event has it; under the controller's lock
}

func (r *request) begin(capsule []byte, recv uint64) {
	r.cmd = r.entry[:]
	copy(r.entry[:], capsule)
	r.extra, r.recv, r.held = capsule[commandSize:], recv, true
	r.sgl, r.data, r.twice, r.event, r.told = sgl{}, nil, false, nil, false
	for len(r.done) > 0 {
		<-r.done
	}
}

// admit notes the command, in the order of arrival: it is refused if its id is in use, and an Abort behind it finds it.
func (r *request) admit() {
	q := r.q
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sqhd = (q.sqhd + 1) % (uint32(q.hello.hsqsize) + 1)
	q.unanswered++
	if q.hello.qid == 0 && r.cmd.opcode() == adminAsyncEvent {
		r.event = make(chan completion, 1)
	}
	if r.twice = q.cids[r.cmd.cid()] != nil; !r.twice {
		q.cids[r.cmd.cid()] = r
	}
}

// serve executes the command and answers it.
func (r *request) serve() {
	q := r.q
	if c := q.controller(); c != nil {
		c.heard()
	}

	var out []byte // for the host, in r.data
	var result uint64
	status := CIDConflict | DNR
	if !r.twice {
		if r.sgl, status = decodeSGL(r.cmd, len(r.extra)); status == Success {
			if !r.sgl.inline {
				r.repost()
			}
			out, result, status = r.execute()
		} else {
			r.sgl.invalidate = false
		}
	}
	r.repost() // the host may use the place as soon as it has the answer
	r.answer(out, result, status)
	if r.data != nil {
		q.target.buffers.put(r.data)
		r.giveBack(int64(r.data.Len()))
	}
}

func (q *queue) controller() *controller {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ctrl
}

func (r *request) repost() {
	if r.held {
		r.held = false
		if err := r.q.in.repost(r.recv); err != nil {
			r.q.cancel()
		}
	}
}

// answer posts the data and the response behind it, and waits until they are gone.
func (r *request) answer(out []byte, result uint64, status Status) {
	q := r.q
	var posts [2]verbs.Request
	n := 0
	if len(out) > 0 && status == Success {
		posts[n] = verbs.Request{
			ID: uint64(r.slot), Op: verbs.OpWrite, Flags: verbs.Unsignaled, SGL: r.data.SGL(0, len(out)),
			Remote: verbs.Remote{STag: r.sgl.key, TO: r.sgl.offset},
		}
		n++
	}
	at := r.slot * completionSize
	end := completion{result: result, sqid: q.hello.qid, cid: r.cmd.cid(), status: status}
	q.mu.Lock()
	if end.sqhd = uint16(q.sqhd); q.noFlow {
		end.sqhd = 0xffff
	}
	q.unanswered--
	if !r.twice {
		delete(q.cids, r.cmd.cid())
	}
	q.mu.Unlock()
	end.put(q.out.Bytes()[at:])
	posts[n] = verbs.Request{ID: uint64(r.slot), SGL: q.out.SGL(at, completionSize)}
	if r.sgl.invalidate && !q.target.config.NoInvalidate {
		posts[n].Op, posts[n].Invalidate = verbs.OpSendInvalidate, r.sgl.key
	}
	if _, err := q.qp.PostSend(posts[:n+1]...); err != nil {
		q.cancel()
		<-q.dead // a Write may have been posted
		return
	}
	_ = r.wait("taken its answers")
}

// outcome is that of a signaled work request.
func (r *request) outcome(c verbs.Completion) error {
	err := c.Err()
	if err != nil {
		<-r.q.dead // others of this request may be in use still
	}
	return err
}

// wait waits for a signaled work request while the host takes or answers anything at all. Requests complete in the
// order of posting: behind an RDMA Read that is never answered, or an answer that is never taken, none does, and one
// that waits for others sees them complete. does says what a host that lets none complete has not done.
func (r *request) wait(does string) error {
	q := r.q
	limit := q.target.config.StallTimeout
	stall := time.NewTicker(limit)
	defer stall.Stop()
	seen := q.completed.Load()
	for {
		select {
		case c := <-r.done:
			return r.outcome(c)
		case <-q.dead:
			return TransferError
		case <-stall.C:
		}
		now := q.completed.Load()
		if now == seen {
			q.refuse("has not %s for %v", does, limit)
			<-q.dead // the memory is the RNIC's until then
			return TransferError
		}
		seen = now
	}
}

// buffer takes registered memory of n octets for the rest of the request.
func (r *request) buffer(n int) ([]byte, Status) {
	size := int64(bufferSizes[sizeClass(n)])
	c := r.q.controller()
	if c == nil {
		return nil, SequenceError | DNR
	}
	if !r.acquire(c, size) {
		return nil, Aborted
	}
	mr, err := r.q.target.buffers.get(n)
	if err != nil {
		r.giveBack(size)
		return nil, InternalError
	}
	r.data = mr
	return mr.Bytes()[:n], Success
}

// fetch returns the n octets that the host sends along, from the capsule or by an RDMA Read.
func (r *request) fetch(n int) ([]byte, Status) {
	if int(r.sgl.length) != n {
		return nil, SGLInvalidLength | DNR
	}
	if r.sgl.inline {
		return r.extra[r.sgl.offset:][:n], Success
	}
	b, status := r.buffer(n)
	if status != Success {
		return nil, status
	}
	return b, r.read(r.data, n)
}

func (r *request) read(into *verbs.MR, n int) Status {
	_, err := r.q.qp.PostSend(verbs.Request{
		ID: uint64(r.slot), Op: verbs.OpRead, Local: into.SGE(0, n), Remote: verbs.Remote{STag: r.sgl.key, TO: r.sgl.offset},
	})
	if err == nil {
		err = r.wait("answered an RDMA Read")
	}
	if err != nil {
		return TransferError
	}
	return Success
}

// reply takes a buffer of n octets for the host, if it has asked for as many, or with atMost for less.
func (r *request) reply(n int) ([]byte, Status) {
	if r.sgl.inline {
		return nil, SGLInvalidType | DNR
	}
	if int(r.sgl.length) != n {
		return nil, SGLInvalidLength | DNR
	}
	return r.buffer(n)
}

// execute runs the command by kind of queue.
func (r *request) execute() (out []byte, result uint64, status Status) {
	q := r.q
	c := q.controller()
	fabrics := r.cmd.opcode() == fabricsCommand
	switch {
	case c == nil && (!fabrics || r.cmd.fctype() != typeConnect):
		return nil, 0, SequenceError | DNR
	case fabrics:
		result, status = r.fabrics(c)
		return nil, result, status
	case !c.ready():
		return nil, 0, SequenceError | DNR
	case q.hello.qid == 0:
		return r.admin(c)
	}
	out, status = r.io(c)
	return out, 0, status
}
