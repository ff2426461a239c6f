package verbs

import (
	"time"

	"github.com/softrnic/softrnic/internal/steps"
	"github.com/softrnic/softrnic/trace"
	"github.com/softrnic/softrnic/wr"
)

func init() {
	steps.Tell = func(qp any, step string, err error) {
		if q := qp.(*QP); q != nil && q.rnic.trace != nil {
			r := trace.Record{Kind: trace.Connection, QP: uint32(q.ID()), Name: step}
			if err != nil {
				r.Note = err.Error()
			}
			q.rnic.tell(r)
		}
	}
}

// tell gives r to who traces, of whom there is one.
func (r *RNIC) tell(rec trace.Record) {
	rec.Time = time.Now().UnixNano()
	r.trace(rec)
}

// tellVerb tells of a verb, where the RNIC traces.
func (r *RNIC) tellVerb(verb string, qp QPID, cq CQID, s wr.STag, octets uint64, err error) {
	if r.trace == nil {
		return
	}
	rec := trace.Record{Kind: trace.Verb, Name: verb, QP: uint32(qp), CQ: uint32(cq), STag: uint32(s), Octets: octets}
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
	return func(what string) { r.tell(trace.Record{Kind: trace.Fault, Name: what}) }
}
