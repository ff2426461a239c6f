package qp

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// Unreliable connections of InfiniBand, for the devices of C programs (package verbsinternal, decision 0043). Nothing that the
// peer does ends such a queue pair:
//
//	what a reliable one answers with a Terminate   here
//	-------------------------------------------   -------------------------------------------
//	a message that has no place                    it is dropped, up to its last segment (drop)
//	a segment that breaks the protocol, a bad CRC  the stream is reset, and the queue pair mute
//	the end of the peer's, a Terminate of its own  the queue pair is mute
//
// A queue pair that is mute is in RTS. Its requests are checked, framed and completed as ever, and the octets go nowhere
// (llp.write); receives stay posted. What fails here, such as a key of the program's own, ends it as it ends others.

// Lossy makes a queue pair unreliable. The functions may not block and call no verb; the receive side is held.
type Lossy struct {
	// Dropped is called for each message that is dropped. why makes the reason; it is good for the call alone.
	Dropped func(why func() *wr.Reason)
	// Mute is called once a stream, when the peer is gone, or was not worth listening to any more. why is nil after a close in
	// good order.
	Mute func(why *wr.Reason)
	// OfWrite reports whether Immediate Data is the end of an RDMA Write with Immediate Data: it is dropped with that.
	OfWrite func(data uint64) bool

	now func() time.Time // time.Now, but in tests
}

// SetLossy is called before the first stream.
func (q *QP) SetLossy(l *Lossy) {
	if l.now == nil {
		l.now = time.Now
	}
	q.lossy = l
}

// loss is what the receive side of such a queue pair knows of what it drops.
type loss struct {
	*Lossy
	send    bool // the rest of the Send that is due is dropped
	write   bool // so is that of the RDMA Write under way
	behind  bool // the message before was an RDMA Write that was dropped
	muted   bool
	stalled atomic.Bool // see Stalled
	guesses guesses
	// whys are of the last receives that were given up: a completion has the number of its reason alone. Older ones, that nobody has
	// polled yet, have their status.
	whys [16]*wr.Reason
	told int
}

// A reliable queue pair ends with the first wrong STag of the peer's; here a peer could try one after the other. As with VI's
// unreliable connections (internal/vitcp/endpoint), freeGuesses-1 of them cost nothing, as a program makes mistakes, and one that was the
// wrong one just now is not another guess. From then on each blinds the queue pair for a time: whatever names an STag is dropped.
const (
	freeGuesses = 16
	leastBlind  = time.Millisecond
	mostBlind   = time.Second // twice the one before, up to this
)

// guesses are the wrong STags of a stream.
type guesses struct {
	last  uint32
	count uint64
	until time.Time // blind; zero before freeGuesses
}

func (g *guesses) add(stag uint32, now time.Time) {
	if g.count > 0 && stag == g.last {
		return
	}
	g.last = stag
	if g.count++; g.count >= freeGuesses {
		g.until = now.Add(min(leastBlind<<min(g.count-freeGuesses, 10), mostBlind))
	}
}

func (g *guesses) blind(now time.Time) bool { return now.Before(g.until) }

// lossyFault is what becomes of a fault that a reliable queue pair's receive side ends with.
type lossyFault uint8

const (
	lossEnds  lossyFault = iota // it ends this one too: the fault is this side's own
	lossDrops                   // its message is dropped
	lossMutes
)

// lossOf is that of a fault.
func lossOf(f streamFault) lossyFault {
	switch f {
	case faultNoReceive, faultSendTooLong, faultWriteNotEnabled,
		faultSendInvSTag, faultSendInvGone, faultSendInvAccess, faultSendInvPD, faultSendInvWindows,
		faultTagSTag, faultTagBounds, faultTagAccess, faultTagPD, faultTagWrap:
		return lossDrops
	case faultStalled, faultLLPLost, faultLLPReset, faultPeerClosed, faultTerminateReceived:
		return lossMutes
	default:
		if f >= faultSendMSNGap && f <= faultUnexpectedResponse || f >= faultReadTooMany && f <= faultReadWrap {
			return lossMutes
		}
		return lossEnds
	}
}

// handOnLossy is handOn of an unreliable queue pair. What it returns is nothing to drop.
func (r *receiver) handOnLossy(op rdmap.Opcode, seg ddp.Segment) streamFault {
	l := r.loss
	behind := l.behind
	l.behind = false
	switch {
	case l.write && op == rdmap.Write:
		return r.skipWrite(seg)
	case l.send && takesReceive(op):
		return r.skipSend(seg)
	case behind && op.IsImmediate() && l.OfWrite(immediateData(seg).Value):
		return r.skipSend(seg)
	}
	if (op == rdmap.Write && seg.Size() > 0 || op.Invalidates()) && l.guesses.blind(l.now()) {
		return r.drop(op, faultTagSTag, seg, "the peer has named so many wrong STags that none is looked at for up to a second")
	}
	f, _ := r.handOn(op, seg) // nothing waits: see waits
	if f == noFault || lossOf(f) != lossDrops {
		return f
	}
	if of, _, ok := memoryCause(f); ok {
		l.guesses.add(either(of == sideInvalidateRemote, seg.RsvdULP32(), seg.STag()), l.now())
	}
	return r.drop(op, f, seg, "")
}

func either(b bool, yes, no uint32) uint32 {
	if b {
		return yes
	}
	return no
}

// drop drops the message of seg, which f is wrong with, or what. It returns what breaks the protocol.
func (r *receiver) drop(op rdmap.Opcode, f streamFault, seg ddp.Segment, what string) (broken streamFault) {
	switch {
	case f == faultNoReceive || f == faultSendTooLong || f == faultTagSTag && takesReceive(op):
		broken = r.skipSend(seg)
	case op == rdmap.Write:
		broken = r.skipWrite(seg)
	case op == rdmap.ReadResponse: // to no Read
		return f
	default: // a Send with Invalidate, of which this was the last segment
	}
	if broken != noFault {
		return broken
	}
	r.count.dropped++
	why := func() *wr.Reason {
		c := r.cause(f, seg)
		w := r.s.reason(&c)
		if what != "" {
			w.What, w.Remedy = what, ""
		}
		return w
	}
	if tell := r.loss.Dropped; tell != nil {
		tell(why)
	}
	if takesReceive(op) {
		r.giveUp(f, why)
	}
	return noFault
}

// giveUp lets go of the receive of a message that will not be whole. One of the queue pair's own is the next message's; one that was
// taken from an S-RQ cannot go back, and completes in error.
func (r *receiver) giveUp(f streamFault, why func() *wr.Reason) {
	l := &r.recv
	if !l.open || l.element == nil {
		l.open = false
		return
	}
	c := wr.Completion{Status: faults[f].Status}
	switch {
	case f == faultSendTooLong: // an adapter's word, whose program does not look at the reason
		c.Status = wr.StatusInvalidLength
	case c.Status == wr.StatusFlushed: // not a fault of a receive
		c.Status = wr.StatusInvalidateSTag
	}
	w := why()
	if w == nil { // the peer has closed within the message
		w = f.reason(r.s.q.cfg.ID)
	}
	if w.Operation == "" {
		w.Operation = wr.OpRecv.Words()
	}
	c.Value = w.Number()
	r.loss.whys[r.loss.told%len(r.loss.whys)] = w
	r.loss.told++
	r.handCompleted()
	r.hand([]cq.Entry{r.closeRecv(c, false)})
}

// skipSend passes over a segment of a Send, in the order that all have to come in.
func (r *receiver) skipSend(seg ddp.Segment) streamFault {
	r.loss.send = !seg.Last()
	return r.sendFault(seg, r.send.Accept(seg, math.MaxUint64, true))
}

// skipWrite is that of an RDMA Write.
func (r *receiver) skipWrite(seg ddp.Segment) streamFault {
	r.loss.write, r.loss.behind = !seg.Last(), seg.Last()
	return r.tagged(rdmap.Write, seg)
}

// takesReceive reports whether a message of that kind does.
func takesReceive(op rdmap.Opcode) bool { return op.IsSend() || op.IsImmediate() }

// mute reports whether the queue pair is.
func (r *receiver) mute() bool { return r.loss != nil && r.loss.muted }

// outlives reports whether the session goes on in spite of c, as that of an unreliable queue pair does: it is mute then.
func (r *receiver) outlives(c *cause) bool {
	l := r.loss
	switch {
	case l == nil || lossOf(c.fault) == lossEnds:
		return false
	case l.muted:
		return true
	}
	l.muted = true
	if l.Mute != nil {
		l.Mute(r.s.reason(c))
	}
	r.giveUp(c.fault, func() *wr.Reason { return r.s.reason(c) })
	r.handCompleted()
	if r.cfg.SRQ != nil {
		r.noteFilling()
		r.forgetRecvRequest()
	}
	r.s.llp.conn.Reset()
	r.s.mute()
	return true
}

// mute has what is sent from here on go nowhere, and sends what has waited.
func (s *session) mute() {
	s.llp.mute.Store(true)
	s.gate.Store(false)
	s.tx.flushPosted()
	s.tx.tryTransmit()
	s.tx.rested()
}

// broke is told that the LLP takes nothing any more. The receive side of an unreliable queue pair finds that out by itself.
func (t *transmitter) broke(f streamFault) {
	if t.s.q.lossy == nil {
		t.s.fail(f)
		return
	}
	t.llp.mute.Store(true)
}
