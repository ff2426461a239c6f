//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// qpEvents are the events of Linux for those of the core that name a queue pair. A stream that the peer closes
// in order has none. What is not named here is QP_FATAL.
var qpEvents = map[verbs.EventID]uint32{
	verbs.EventProtSTag: uabi.EventQPAccessErr, verbs.EventProtBounds: uabi.EventQPAccessErr,
	verbs.EventProtAccess: uabi.EventQPAccessErr, verbs.EventProtPD: uabi.EventQPAccessErr,
	verbs.EventProtWrap: uabi.EventQPAccessErr,
	verbs.EventIRRQSTag: uabi.EventQPAccessErr, verbs.EventIRRQBounds: uabi.EventQPAccessErr,
	verbs.EventIRRQAccess: uabi.EventQPAccessErr, verbs.EventIRRQPD: uabi.EventQPAccessErr,
	verbs.EventIRRQWrap:         uabi.EventQPAccessErr,
	verbs.EventReadNotEnabled:   uabi.EventQPAccessErr,
	verbs.EventWriteNotEnabled:  uabi.EventQPAccessErr,
	verbs.EventAtomicNotEnabled: uabi.EventQPAccessErr,
	verbs.EventUnexpectedOpcode: uabi.EventQPReqErr,
	verbs.EventInvalidQN:        uabi.EventQPReqErr, verbs.EventInvalidReadRequest: uabi.EventQPReqErr,
	verbs.EventInvalidAtomic: uabi.EventQPReqErr,
}

// lost are the ends of the stream alone. That is the peer's program's end more often than not.
var lost = map[verbs.EventID]bool{verbs.EventLLPLost: true, verbs.EventLLPReset: true, verbs.EventBadClose: true, verbs.EventBadLLPClose: true}

// withoutEvent reports whether completions alone tell of such an end, as those of an InfiniBand adapter do of what comes from the peer
// (IBA 11.6.3). With the iWARP presentation a request that the peer refuses may have completed before.
func (q *QP) withoutEvent(e verbs.EventID) bool {
	if e == verbs.EventTerminateReceived {
		return q.file.dev.config.RoCE
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return lost[e] && q.discreet()
}

// event is the asynchronous event handler of the RNIC.
func (d *Device) event(e verbs.Event) {
	switch e.ID {
	case verbs.EventLLPCloseComplete, verbs.EventRQLimit:
	case verbs.EventRNICCatastrophic:
		d.fatal()
	case verbs.EventCQOverflow, verbs.EventCQOperation:
		if v, _ := d.cqs.Load(e.CQ); v != nil {
			d.raise(&v.(*cq).async, v.(*cq).user, uabi.EventCQErr)
		}
	case verbs.EventSRQLimit, verbs.EventSRQCatastrophic:
		kind := uint32(uabi.EventSRQLimitReached)
		if e.ID == verbs.EventSRQCatastrophic {
			kind = uabi.EventSRQErr
		}
		if v, _ := d.srqs.Load(e.SRQ); v != nil {
			d.raise(&v.(*srq).async, v.(*srq).user, kind)
		}
	default:
		v := d.rnic.QP(e.QP)
		if v == nil {
			return
		}
		q, ok := v.Context().(*QP)
		if !ok {
			return
		}
		q.telling.Lock()
		defer q.telling.Unlock()
		if s := v.State(); s == verbs.StateIdle || s == verbs.StateRTS { // RESET has overtaken the event, which came behind Error
			return
		}
		kind, ok := qpEvents[e.ID]
		if !ok {
			kind = uabi.EventQPFatal
		}
		if q.withoutEvent(e.ID) {
			d.reportFailure(q, "failed", e)
			if q.waitsForPeer() { // it is in RTS still, for the program
				return
			}
		} else {
			d.reportFailure(q, "event "+eventNames[kind], e)
			d.raise(&q.async, q.user, kind)
		}
		q.inError()
	}
}

// inError is told that the queue pair is in ERR, for the program too, by whatever way: nothing will be taken from the shared queue any
// more, which is told once (IBA 10.2.9.3).
func (q *QP) inError() {
	if q.srq == nil {
		return
	}
	q.mu.Lock()
	e := &q.ending
	tell := !e.last && !e.parting
	e.last = true
	q.mu.Unlock()
	if tell {
		q.file.dev.raise(&q.async, q.user, uabi.EventQPLastWQEReached)
	}
}

// arrived is told of the first message of the peer's. If the program has not gone on to RTS, it waits for that
// (IBA 11.6.3.2, communication established).
func (q *QP) arrived() {
	q.mu.Lock()
	early := q.state == uabi.QPSRTR
	q.mu.Unlock()
	if early {
		q.file.dev.raise(&q.async, q.user, uabi.EventCommEst)
	}
}

// eventNames are those of the events of queue pairs, for --strace.
var eventNames = map[uint32]string{uabi.EventQPFatal: "QP_FATAL", uabi.EventQPReqErr: "QP_REQ_ERR", uabi.EventQPAccessErr: "QP_ACCESS_ERR"}

// reportFailure says why a queue pair has failed, in the trace, which calls it so, and once to the user: what the peer, or this
// side, found. That a stream was lost is no news to the user.
func (d *Device) reportFailure(q *QP, name string, e verbs.Event) {
	if !lost[e.ID] && e.Why != nil {
		d.Report(kindOf(e.Why), "queue pair %#x has failed: %s", q.qpn, words(e.Why.WithoutQP(), "rkey"))
	}
	if d.config.Trace == nil {
		return
	}
	why := text(e.ID.String())
	if e.Why != nil {
		why += ": " + words(e.Why.WithoutQP(), "rkey")
	}
	if s := q.qp.LLPStream(); e.Why == nil && s != nil { // what has a reason of its own is told the same whichever is first
		if err := s.Err(); err != nil {
			why += ": " + Words(err)
		}
	}
	d.config.Trace(fmt.Sprintf("uverbs %s(qpn=%#x): %s", name, q.qpn, why))
}

// kindOf is what is the same in reasons of a kind, of which the user is told one.
func kindOf(why *verbs.Reason) string {
	return fmt.Sprint("reason ", why.Rule, why.Missing, why.Terminate)
}

// reportRequestFault is reportFailure for a request at fault, of which a completion has told.
func (d *Device) reportRequestFault(q *QP, c *verbs.Completion) {
	var why *verbs.Reason
	if err := c.Err(); c.Status == verbs.StatusFlushed || !errors.As(err, &why) || q.uc != nil && c.Op == verbs.OpRecv && q.qp.State() == verbs.StateRTS {
		return // of UC a receive that was taken for what was dropped
	}
	d.Report(kindOf(why), "queue pair %#x has failed: %s: %s", q.qpn, text(c.Status.String()), words(why.WithoutQP(), "lkey"))
	if d.config.Trace != nil {
		d.config.Trace(fmt.Sprintf("uverbs failed(qpn=%#x, wr_id=%d): %s: %s", q.qpn, c.ID, text(c.Status.String()), words(why.WithoutQP(), "lkey")))
	}
}

// raise tells a program of an event of an object.
func (d *Device) raise(s *source, element uint64, kind uint32) {
	if s.ch != nil && !s.asynchronous(element, kind) {
		d.Report("async full", "the asynchronous events of a context are not read, so one is lost (ibv_get_async_event)")
	}
}

// fatal tells every context that the device has failed.
func (d *Device) fatal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for f := range d.files {
		if c := f.async.Load(); c != nil {
			d.raise(&source{ch: c}, 0, uabi.EventDeviceFatal)
		}
	}
}
