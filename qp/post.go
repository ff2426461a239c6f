package qp

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/sglcheck"
	"github.com/softrnic/softrnic/wr"
)

// PostSend posts a list of work requests to the Send Queue, in order, and
// reports how many were posted. The first that is refused stops the list
// (verbs draft 8.2.1). It does not block and keeps nothing of reqs. Errors:
// wr.ErrInvalidState, wr.ErrInvalidOp, wr.ErrInvalidModifier, wr.ErrInvalidSGLLength, wr.ErrInvalidSGLFormat,
// wr.ErrQueueFull, wr.ErrInvalidQP.
func (q *QP) PostSend(reqs ...wr.Request) (int, error) {
	if q.spans != nil {
		defer region(q.spans.send).End()
	}
	n, octets, err := q.postSend(reqs)
	if n > 0 {
		if s := q.session.Load(); s != nil {
			s.tx.posted(n, octets)
		}
	}
	return n, err
}

// postSend queues requests, and reports how many, and of how many octets.
func (q *QP) postSend(reqs []wr.Request) (n int, octets uint64, err error) {
	q.sq.postMu.Lock()
	defer q.sq.postMu.Unlock()
	if err := q.accepts(trigPostSQ); err != nil {
		return 0, 0, err
	}
	before := q.sq.octets
	for i := range reqs {
		if err = q.sq.check(&reqs[i]); err != nil {
			break
		}
		if err = q.sq.push(&reqs[i]); err != nil {
			break
		}
		if q.cfg.Trace != nil {
			q.tracePosted(&reqs[i])
		}
		n++
	}
	q.sq.publish()
	return n, q.sq.octets - before, err
}

// accepts reports whether a post is in order; it stays so while that queue's postMu is held.
func (q *QP) accepts(t trigger) error {
	s := q.state.load()
	if c := &table[s][t]; c.Actions&actEnqueue == 0 {
		return q.refusal(refusePost(c.Err, s))
	}
	return nil
}

// refusal is err, or that there is no such queue pair any more.
func (q *QP) refusal(err error) error {
	if q.destroyed.Load() {
		return errGone
	}
	return err
}

// allFlags are the flags there are.
const allFlags = wr.Unsignaled | wr.ReadFence | wr.LocalFence | wr.WithImmediate

// check finds the Immediate Errors of a request (verbs draft 9.3.1.1). Modifiers
// that do not go with its operation type are not looked at.
func (s *sendQueue) check(r *wr.Request) error {
	if r.Flags&^allFlags != 0 {
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: fmt.Sprintf("flags %#x are none of %#x", uint8(r.Flags&^allFlags), uint8(allFlags)), Remedy: "leave those out"}
	}
	if r.Flags&wr.WithImmediate != 0 && (!s.sendImmediate || r.Op != wr.OpSend && r.Op != wr.OpSendSE) {
		return &wr.Reason{
			Err: wr.ErrInvalidModifier, What: fmt.Sprintf("the flag WithImmediate of %v", r.Op),
			Remedy: "set QPConfig.SendImmediate at both ends, and use it with OpSend and OpSendSE alone",
		}
	}
	if r.Op.IsExtension() && !s.extensions {
		return &wr.Reason{
			Err: wr.ErrInvalidOp, What: fmt.Sprintf("%v is of RFC 7306, which this queue pair does not speak", r.Op),
			Remedy: "set QPConfig.Extensions, or cm.Config.Extensions at both ends",
		}
	}
	switch {
	case r.Op.IsSend():
		return sglcheck.CheckList(r.SGL, s.sendSGE)
	case r.Op.IsWrite():
		return sglcheck.CheckList(r.SGL, s.writeSGE)
	case r.Op.IsRead():
		if s.listed(r) {
			return sglcheck.CheckList(r.SGL, s.readSGE)
		}
		if sglcheck.Is(&r.Local) {
			return sglcheck.Err
		}
	case r.Op.IsMemory():
		return checkMemory(r)
	case r.Op.IsAtomic():
		return checkAtomic(r)
	case r.Op.IsImmediate(): // eight octets, and no list
	default:
		return &wr.Reason{Err: wr.ErrInvalidOp, What: fmt.Sprintf("%v is not for the Send Queue", r.Op)}
	}
	return nil
}

// Room reports how many requests the Send and the Receive Queue take now: 0 in a state in which they take none, and
// of a shared one.
func (q *QP) Room() (send, recv int) {
	if q.accepts(trigPostSQ) == nil {
		send = q.sq.spare()
	}
	if q.cfg.SRQ == nil && q.accepts(trigPostRQ) == nil {
		recv = q.rq.spare()
	}
	return send, recv
}

// Idle reports whether nothing that was posted is to complete, and nothing shared can be received. It costs a few loads.
func (q *QP) Idle() bool {
	return q.sq.tail.Load() == q.sq.done.Load() && q.cfg.SRQ == nil && q.rq.tail.Load() == q.rq.done.Load()
}

// spare reports how many elements can be posted now.
func (q *workQueue[E]) spare() int {
	q.postMu.Lock()
	defer q.postMu.Unlock()
	return q.slots.depth() - int(q.reclaim())
}

// PostRecv posts a list of receives, in order, and reports how many were posted.
// Errors: wr.ErrInvalidState, wr.ErrInvalidSGLLength, wr.ErrInvalidSGLFormat, wr.ErrQueueFull,
// wr.ErrRQUsesSRQ, wr.ErrInvalidQP.
func (q *QP) PostRecv(reqs ...wr.Recv) (int, error) {
	if q.spans != nil {
		defer region(q.spans.recv).End()
	}
	n, err := q.postRecv(reqs)
	if n > 0 {
		if s := q.session.Load(); s != nil {
			s.rx.recvPosted()
		}
	}
	return n, err
}

func (q *QP) postRecv(reqs []wr.Recv) (n int, err error) {
	q.rq.postMu.Lock()
	defer q.rq.postMu.Unlock()
	if q.cfg.SRQ != nil {
		return 0, q.refusal(errRQUsesSRQ)
	}
	if err := q.accepts(trigPostRQ); err != nil {
		return 0, err
	}
	defer q.rq.publish()
	for i := range reqs {
		if err := q.rq.push(&reqs[i]); err != nil {
			return i, err
		}
		if q.cfg.Trace != nil {
			q.tracePostedRecv(&reqs[i])
		}
	}
	return len(reqs), nil
}

// A program that posts one request after the other, without a pause, has more to
// come: what it posts is held back, so that many messages share a system call. A
// request behind a pause goes out at once, and so do the first few of a series.
// What is held back goes out
//
//   - when enough has come together,
//   - when the program looks: it polls an empty CQ, or waits, or asks to be
//     notified,
//   - when something else has to be sent, or the stream is to end,
//   - of a burst, when the group's flushLoop runs, which the first request held back makes
//     runnable: as soon as the poster sleeps, wherever that is, or another processor is
//     free,
//   - of a program that streams, and stops without a look, a little later. Waking
//     flushLoop for each batch of a stream takes the processor from the peer: it
//     costs two fifths of the messages a second on two of them.
//
// A program streams if much has come together in a burst, or enough to fill a batch, or if
// it has looked while something was held back: its queue is full, say. A program that has left something
// behind is not taken for one for a while, so that few of many bursts wait for the timer.
//
// With one processor nothing is held back, or a poster that computes would delay it.

const (
	// postWeight is what a message counts beside its octets.
	postWeight = 512
	// pause ends a series, if nothing is posted or sent for so long. A loop that posts
	// takes less from one request to the next; whatever sleeps or calls the system,
	// more.
	pause = 2 * time.Microsecond
	// idle ends a stream.
	idle = time.Millisecond
	// streamEach is what a batch that tells of a stream comes to, and doubts how many
	// batches are those of bursts after one that was left behind.
	streamEach = 16 * postWeight
	doubts     = 64
	// linger is when a timer sends what a stream, or pollers, have left. The
	// runtime may round it up to a millisecond.
	linger = 100 * time.Microsecond
)

func (c *postBatching) init(eager int, leftovers func()) {
	c.eager = int32(eager)
	c.pause, c.linger = pause, linger
	c.free.Store(c.eager)
	c.left = time.AfterFunc(time.Hour, leftovers)
	c.left.Stop()
}

// begin starts a new series behind a pause, or behind a look of the program: it had nothing
// to post for then. If the program streams it has paused because its queue is full, say: one
// request goes out at once, so that the peer has something to do.
func (c *postBatching) begin(looks uint64) {
	if c.looks.Load() != looks {
		c.looks.Store(looks)
		if free := c.free.Load(); free < c.eager && !(free > 0 && c.stream.Load()) {
			c.stream.Store(false)
			c.free.Store(c.eager)
		}
	}
	switch gap := clock() - c.last.Load(); {
	case gap < int64(c.pause):
	case gap < int64(idle) && c.stream.Load():
		c.free.Store(min(c.eager, 1))
	default:
		c.stream.Store(false)
		c.free.Store(c.eager)
	}
}

// streams reports whether the batch that begins is a stream's, or a burst.
func (c *postBatching) streams() bool {
	if c.doubt.Load() > 0 {
		c.doubt.Add(-1)
		return false
	}
	return c.stream.Load()
}

// holdsBack takes n requests of so many octets into account, and reports whether they
// are to be held back for now.
func (t *transmitter) holdsBack(n int, octets uint64) bool {
	c := &t.batching
	if c.eager < 0 || t.s.rx.single {
		return false
	}
	if c.octets.Load() == 0 {
		c.begin(t.s.sock.Looks())
		if c.free.Load() > 0 {
			c.free.Add(-1)
			return false
		}
	}
	weight := int64(n*postWeight) + int64(octets)
	held := c.octets.Add(weight)
	if held == weight { // the first
		stream := c.streams()
		if stream {
			c.left.Reset(c.linger)
		}
		c.hold(!stream)
	}
	return held < int64(t.tuning.Hold)
}

// posted sends what was posted, now or soon.
func (t *transmitter) posted(n int, octets uint64) {
	if !t.llp.mute.Load() && t.holdsBack(n, octets) {
		return
	}
	c := &t.batching
	if c.octets.Load() > 0 { // see tryOwn
		c.octets.Store(0)
		c.stream.Store(true)
	}
	t.tryTransmit()
	c.last.Store(clock())
}

// looked sends what is held back because the program looks for completions. It looks
// because its queue is full, say: what it posts next is a stream too.
func (t *transmitter) looked() {
	c := &t.batching
	if c.octets.Load() > 0 {
		c.stream.Store(true)
		c.free.Store(min(c.eager, 1))
		c.looks.Store(t.s.sock.Looks())
	}
	t.flushPosted()
}

// flushPosted sends what is held back, and says how much that was.
func (t *transmitter) flushPosted() (octets int64) {
	c := &t.batching
	if c.octets.Load() > 0 {
		octets = c.octets.Swap(0)
	}
	if octets > 0 {
		t.tryTransmit()
		c.last.Store(clock())
	}
	return octets
}

// flushAhead sends what is held back before the stream is told to close: what is left then makes it a bad close (draft 6.2.2.2).
// flushLoop may have taken it just now, and be about to send it, or half done: flushAhead waits for whoever has the side,
// which is not for a peer.
func (t *transmitter) flushAhead() {
	t.flushPosted()
	if t.awaitSide() {
		t.transmit()
	}
}

// burst sends what has come together by now, and tells by that whether the program
// streams.
func (t *transmitter) burst() {
	if t.flushPosted() >= streamEach {
		t.batching.stream.Store(true)
	}
}

// leftovers sends what a stream has left.
func (t *transmitter) leftovers() {
	if t.flushPosted() > 0 {
		t.batching.stream.Store(false)
		t.batching.doubt.Store(doubts)
	}
}

// clock is a time in nanoseconds.
func clock() int64 { return int64(time.Since(epoch)) }

var epoch = time.Now()

// Flush implements netpoll.Member.
func (s *session) Flush(looked bool) {
	if looked {
		s.tx.looked()
	} else {
		s.tx.burst()
	}
}
