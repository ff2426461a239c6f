package verbs

import (
	"time"

	"github.com/softrnic/softrnic/wr"
)

// traceStep records a step of connecting, where the RNIC traces.
func (q *QP) traceStep(step string, err error) {
	if q == nil || q.rnic.trace == nil {
		return
	}
	r := wr.Record{Kind: wr.RecordConnection, QP: q.ID(), Name: step}
	if err != nil {
		r.Note = err.Error()
	}
	q.rnic.tell(r)
}

// tell gives r to who traces, of whom there is one.
func (r *RNIC) tell(rec wr.Record) {
	rec.Time = time.Now().UnixNano()
	r.trace(rec)
}

// tellVerb tells of a verb, where the RNIC traces.
func (r *RNIC) tellVerb(verb string, qp QPID, cq CQID, s wr.STag, octets uint64, err error) {
	if r.trace == nil {
		return
	}
	rec := wr.Record{Kind: wr.RecordVerb, Name: verb, QP: qp, CQ: cq, STag: s, Octets: octets}
	if err != nil {
		rec.Note = err.Error()
	}
	r.tell(rec)
}

// tellFaults is where a plan's faults are told of; nil if nobody traces.
func (r *RNIC) tellFaults() func(what string) {
	if r.trace == nil {
		return nil
	}
	return func(what string) { r.tell(wr.Record{Kind: wr.RecordFault, Name: what}) }
}
