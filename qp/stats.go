package qp

import (
	"maps"
	"runtime"

	"github.com/softrnic/softrnic/internal/statuscount"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// Counters are plain integers of the owner of the queue, or the side of a session, that they count:
// counting costs an addition. Stats takes the sides for a moment, as Drain does. A
// side is its owner's for long while finish runs, which leaves what had been counted by then.

// to adds them to s. Of what carries no octets of the ULP the payload is a header, which does not count.
func (o *opCounts) to(s *wr.Flows) {
	for op := range rdmap.Opcode(len(o)) {
		f, sum := o[op], s.ByOpcode(uint8(op))
		switch op {
		case rdmap.ReadRequest, rdmap.Terminate, rdmap.AtomicRequest:
			f.Octets = 0
		case rdmap.Immediate, rdmap.ImmediateSE:
			f.Octets = rdmap.ImmediateSize * f.Messages
		case rdmap.AtomicResponse:
			f.Octets = atomicSize * f.Messages
		default: // as counted
		}
		sum.Messages += f.Messages
		sum.Segments += f.Segments
		sum.Octets += f.Octets
	}
}

// counted is what the side has counted, without waiting for a peer.
func (t *transmitter) counted() outCount {
	for !t.mu.TryLock() {
		if c := t.final.Load(); c != nil {
			return *c
		}
		runtime.Gosched()
	}
	c := t.sum()
	t.mu.Unlock()
	t.rested()
	if t.more.Load() { // a poster may have found the side taken
		t.tryTransmit()
	}
	return c
}

// counted is what the side has counted, and the statuses of receives.
func (r *receiver) counted() (inCount, statuscount.Statuses) {
	for !r.mu.TryLock() {
		if f := r.final.Load(); f != nil {
			return f.inCount, f.statuses
		}
		runtime.Gosched()
	}
	defer r.mu.Unlock()
	return r.count, r.rq.statuses.Clone()
}

// stats adds what a session has counted to q. Of the Read queues Now is 0 if it is over.
func (s *session) stats(q *wr.QPStats, out *outCount, in *inCount) {
	out.ops.to(&q.Out)
	in.ops.to(&q.In)
	q.OutOctets += out.octets
	q.InOctets += in.octets
	q.Binds += out.binds
	q.FastRegisters += out.fastRegisters
	q.Invalidates += out.invalidates + in.invalidates
	q.ReceiveWaits += in.waits
	q.Dropped += in.dropped
	reads, irrq := s.reads.stats(), s.irrq.stats()
	q.OutReads = wr.Depth{Now: reads.Now, Most: max(q.OutReads.Most, reads.Most)}
	q.InReads = wr.Depth{Now: irrq.Now, Most: max(q.InReads.Most, irrq.Most)}
}

// fold adds what the session has counted to what the queue pair keeps, with mu held. It is
// over but for its events.
func (s *session) fold() {
	if s.q.ended == nil {
		s.q.ended = new(wr.QPStats)
	}
	q := s.q.ended
	s.folded = true
	out := s.tx.sum()
	s.stats(q, &out, &s.rx.count)
	q.OutReads.Now, q.InReads.Now = 0, 0
	if s.stream.Role == mpa.Initiator {
		q.Connects++
	} else {
		q.Accepts++
	}
	switch {
	case s.outcome.Reset():
		q.InResets++
	case s.resets: // and not only what is left of a stream that the peer has reset
		q.OutResets++
	}
	if s.outcome.cause == faultCRC {
		q.CRCErrors++
	}
	addOne(&q.Ends, s.outcome.Reason())
	if then := s.outcome.Then(); then != "" {
		addOne(&q.Ends, then)
	}
	if t := s.outcome.Terminate; t != nil && t.Sent {
		addOne(&q.OutTerminates, t.Code.String())
	} else if t != nil {
		addOne(&q.InTerminates, t.Code.String())
	}
}

func addOne(m *map[string]uint64, what string) {
	if *m == nil {
		*m = map[string]uint64{}
	}
	(*m)[what]++
}

// Stats are the counters at this moment, of all sessions. They are valid after Destroy too.
func (q *QP) Stats() wr.QPStats {
	for {
		s, st, statuses := q.endedStats()
		if s != nil {
			out := s.tx.counted()
			in, done := s.rx.counted()
			q.mu.Lock()
			folded := s.folded
			q.mu.Unlock()
			if folded { // meanwhile
				continue
			}
			statuses = done
			s.stats(&st, &out, &in)
			if s.stream.Role == mpa.Initiator {
				st.Connects++
			} else {
				st.Accepts++
			}
		}
		statuses.To(&st.Completions)
		q.queueStats(&st)
		return st
	}
}

// endedStats is a copy of what the queue pair keeps, with the session that it has, if one; without, the statuses of receives.
func (q *QP) endedStats() (*session, wr.QPStats, statuscount.Statuses) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var st wr.QPStats
	if q.ended != nil {
		st = *q.ended
	}
	st.Ends, st.OutTerminates, st.InTerminates = maps.Clone(st.Ends), maps.Clone(st.OutTerminates), maps.Clone(st.InTerminates)
	if s := q.session.Load(); s != nil && !s.folded {
		return s, st, statuscount.Statuses{}
	}
	return nil, st, q.rq.statuses.Clone()
}

// queueStats adds what the work queues know themselves.
func (q *QP) queueStats(st *wr.QPStats) {
	q.sq.doneMu.Lock()
	q.sq.statuses.To(&st.Completions)
	q.sq.doneMu.Unlock()
	st.SendsPosted, st.SendQueue = q.sq.stats()
	st.RecvsPosted, st.RecvQueue = q.rq.stats()
}

// stats is how many elements were posted, and how many have not completed.
func (q *workQueue[E]) stats() (posted uint64, d wr.Depth) {
	q.postMu.Lock()
	defer q.postMu.Unlock()
	done := q.done.Load() // first: it may move meanwhile, and is never beyond tail
	posted = q.tail.Load()
	return posted, wr.Depth{Now: posted - done, Most: q.most}
}
