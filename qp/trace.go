package qp

import (
	"strconv"
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/proflabel"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// lengthSize is that of an FPDU's length field, which comes before the ULPDU (RFC 5044 4).
const lengthSize = 2

// Each of these is called behind a look at Config.Trace, where what it records happens; each makes one record.

// wear labels the calling goroutine as one that does this for the queue pair alone.
func (q *QP) wear(work string) {
	q.cfg.Labels.With(proflabel.Work, work, proflabel.QP, strconv.Itoa(int(q.cfg.ID))).Wear()
}

// traceNow stamps r and gives it to Config.Trace.
func (q *QP) traceNow(r wr.Record) {
	r.Time, r.QP = time.Now().UnixNano(), q.cfg.ID
	q.cfg.Trace(r)
}

func (q *QP) tracePosted(r *wr.Request) {
	rec := wr.Record{Kind: wr.RecordPosted, Name: r.Op.String(), ID: r.ID, STag: r.Remote.STag, TO: r.Remote.TO}
	if r.Op.IsRead() && !q.sq.listed(r) {
		rec.Octets = uint64(r.Local.Length)
	} else {
		rec.Octets = total(r.SGL)
	}
	q.traceNow(rec)
}

func (q *QP) tracePostedRecv(r *wr.Recv) {
	q.traceNow(wr.Record{Kind: wr.RecordPosted, Name: wr.OpRecv.String(), ID: r.ID, Octets: total(r.SGL)})
}

func total(sgl []wr.SGE) (n uint64) {
	for i := range sgl {
		n += uint64(sgl[i].Length)
	}
	return n
}

// traceSent records a segment with n octets of payload, whose header ulpdu begins with.
func (t *transmitter) traceSent(ulpdu []byte, n int) {
	if seg, code := ddp.Parse(ulpdu); code == ddp.CodeOK {
		t.s.q.traceSegment(wr.RecordSent, seg, n)
	}
}

// traceSegment records a segment with n octets behind its DDP header.
func (q *QP) traceSegment(k wr.RecordKind, seg ddp.Segment, n int) {
	op := rdmap.OpcodeOf(seg.RsvdULP())
	r := wr.Record{Kind: k, Name: op.String(), Last: seg.Last()}
	if op.HasPayload() {
		r.Octets = uint64(n)
	}
	if seg.Tagged() {
		r.STag, r.TO = wr.STag(seg.STag()), seg.TO()
	} else {
		r.MSN, r.MO = seg.MSN(), seg.MO()
	}
	q.traceNow(r)
}

// traceState records a change of state, and the Terminate Message that comes with it.
func (q *QP) traceState(from, next wr.State, why string, term *TerminateMessage) {
	if from == next {
		return
	}
	r := wr.Record{Kind: wr.RecordState, Name: why, From: from, Next: next}
	if term != nil && next != wr.StateIdle {
		r.Code = uint16(term.Code)
		r.Note = "Terminate received"
		if term.Sent {
			r.Note = "Terminate sent"
		}
	}
	q.traceNow(r)
}
