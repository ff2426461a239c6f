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
	q.rnic.traceNow(r)
}

// traceNow stamps rec and gives it to Config.Trace, which is set.
func (r *RNIC) traceNow(rec wr.Record) {
	rec.Time = time.Now().UnixNano()
	r.trace(rec)
}

// traceVerb records a verb, where the RNIC traces.
func (r *RNIC) traceVerb(verb string, qp QPID, cq CQID, s wr.STag, octets uint64, err error) {
	if r.trace == nil {
		return
	}
	rec := wr.Record{Kind: wr.RecordVerb, Name: verb, QP: qp, CQ: cq, STag: s, Octets: octets}
	if err != nil {
		rec.Note = err.Error()
	}
	r.traceNow(rec)
}

// tellFault counts a fault by its kind, and records it where the RNIC traces.
func (r *RNIC) tellFault(kind, what string) {
	r.struck.add(kind)
	if r.trace != nil {
		r.traceNow(wr.Record{Kind: wr.RecordFault, Name: what})
	}
}
