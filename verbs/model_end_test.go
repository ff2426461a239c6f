package verbs_test

import (
	"github.com/softrnic/softrnic/verbs"
)

// The ends of a stream: draft 6.2, 8.3, RFC 5040 4.8.

// spoil ends the stream because of a receive, which reports it. What is in its
// buffers then is open (8.2.2 rule 5).
func (q *modelQP) spoil(l *modelLanding, s verbs.Status, code int) {
	for _, g := range l.SGL {
		for n := uint64(g.Length); n > 0; n-- {
			if span, f := q.access(l.pd, g.STag, g.TO, n, verbs.LocalWrite); f == accessFine {
				q.node.unsure = append(q.node.unsure, span...)
				break
			}
		}
	}
	q.end(modelReport{0, code}, nil, 0, nil, func() { l.complete(verbs.Completion{Status: s}, false) })
}

// blame ends the stream because of a request of the Send Queue, which reports it.
func (q *modelQP) blame(e *modelSend, s verbs.Status) { q.end(byVerb, e, s, nil, nil) }

// fault ends the stream with an event; read is the request of the peer that the
// Terminate names.
func (q *modelQP) fault(r modelReport, read *modelSend) { q.end(r, nil, 0, read, nil) }

// end goes through Terminate to Error (6.2.2.3, 6.2.3).
func (q *modelQP) end(r modelReport, e *modelSend, s verbs.Status, read *modelSend, receive func()) {
	p, mute := q.peer, q.shut
	q.raise(r.event)
	q.term = &modelTerm{true, r.code}
	q.flush(verbs.StateError, e, s, receive)
	switch {
	case p == nil:
	case mute: // RFC 5044 7.1.2: no Terminate either, only the LLP Close
		p.peerCloses()
	default:
		p.raise(verbs.EventTerminateReceived)
		p.term = &modelTerm{false, r.code}
		p.flush(verbs.StateError, read, verbs.StatusRemoteTermination, nil)
	}
}

// flush completes what is left, e with a status of its own, and enters the state
// after the stream (6.2.4).
func (q *modelQP) flush(next verbs.State, e *modelSend, s verbs.Status, receive func()) {
	for _, o := range q.waiting() {
		if o == e {
			q.completeSend(o, s)
		} else {
			q.completeSend(o, verbs.StatusFlushed)
		}
	}
	if receive != nil {
		receive()
	}
	q.flushRecvs()
	q.leave(next)
}

func (q *modelQP) flushRecvs() {
	for _, e := range q.rq { // receives of an S-RQ stay there (6.3.6)
		if !e.done {
			q.completeRecv(e, verbs.Completion{Status: verbs.StatusFlushed}, false)
		}
	}
}

func (q *modelQP) leave(next verbs.State) {
	q.state, q.stream, q.peer, q.shut, q.held = next, nil, nil, false, nil
}

// peerCloses is the end of what the peer sends, without a Terminate (6.2.2.2).
func (q *modelQP) peerCloses() {
	if len(q.waiting()) > 0 {
		q.raise(verbs.EventBadLLPClose)
		q.term = &modelTerm{true, 0x0207}
		q.flush(verbs.StateError, nil, 0, nil)
		return
	}
	q.flushRecvs()
	q.leave(verbs.StateIdle)
	q.raise(verbs.EventLLPCloseComplete)
}

// reset is an LLP Reset by the peer.
func (q *modelQP) reset() {
	q.raise(verbs.EventLLPReset)
	q.flush(verbs.StateError, nil, 0, nil)
}

// abort is Modify QP from RTS to Error (6.2.2.4).
func (q *modelQP) abort() {
	p := q.peer
	q.flush(verbs.StateError, nil, 0, nil)
	p.reset()
}

// close is Modify QP from RTS to Closing, to its end (6.2.5).
func (q *modelQP) close() {
	p := q.peer
	if len(q.waiting()) > 0 {
		q.raise(verbs.EventBadClose)
		q.flush(verbs.StateError, nil, 0, nil)
		p.reset()
		return
	}
	q.flushRecvs()
	q.leave(verbs.StateIdle)
	p.peerCloses()
	q.raise(verbs.EventLLPCloseComplete)
}
