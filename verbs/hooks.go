package verbs

import (
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/wr"
)

// What packages of this module may do and programs may not: package verbsinternal says what each is for.
func init() {
	verbsinternal.Step = func(q verbsinternal.QP, step string, err error) { q.(*QP).traceStep(step, err) }
	verbsinternal.CountAttempt = func(q verbsinternal.QP, a verbsinternal.Attempt) { q.(*QP).rnic.ended.attempts[a].Add(1) }
	verbsinternal.WhenOver = func(s verbsinternal.LLPStream, f func()) { s.(*LLPStream).l.WhenOver(f) }
	verbsinternal.Begin = func(r verbsinternal.RNIC, c verbsinternal.Counts) { r.(*RNIC).carried = c }
	verbsinternal.FailRNIC = func(r verbsinternal.RNIC) { r.(*RNIC).fail() }
	verbsinternal.SetLink = func(r verbsinternal.RNIC, l verbsinternal.Link) { r.(*RNIC).port.Set(qp.Shape(l)) }
	verbsinternal.LinkOf = func(r verbsinternal.RNIC) verbsinternal.Link { return verbsinternal.Link(r.(*RNIC).port.Shape()) }
	verbsinternal.TellFault = func(r verbsinternal.RNIC, kind, what string) { r.(*RNIC).tellFault(kind, what) }
	verbsinternal.FailQP = func(q verbsinternal.QP) { q.(*QP).q.Fail() }
	verbsinternal.FailCQ = func(c verbsinternal.CQ) { c.(*CQ).q.Fail() }
	verbsinternal.FailSRQ = func(s verbsinternal.SRQ) { s.(*SRQ).q.Fail() }
	verbsinternal.MayVanish = func(r verbsinternal.RNIC) { r.(*RNIC).vanishing.Store(true) }
	verbsinternal.Room = func(q verbsinternal.QP) (send, recv int) { return q.(*QP).q.Room() }
	verbsinternal.OnNotify = func(c verbsinternal.CQ, f func()) { c.(*CQ).onNotify = f }
	verbsinternal.Hush = func(c verbsinternal.CQ, hushes func(context any, op wr.Op) bool) { c.(*CQ).hushes = hushes }
	verbsinternal.Fire = func(c verbsinternal.CQ) { c.(*CQ).q.Fire() }
	verbsinternal.Entries = func(c verbsinternal.CQ) int { return c.(*CQ).q.Cap() }
	verbsinternal.PollQueued = func(c verbsinternal.CQ, dst []wr.Completion) int { return c.(*CQ).q.PollQueued(dst) }
	verbsinternal.NotifyWatched = func(c verbsinternal.CQ, t wr.NotifyType) error { return c.(*CQ).notifyWatched(t) }
	verbsinternal.Watch = func(c verbsinternal.CQ, fds []int) ([]int, bool) { return c.(*CQ).q.Watch(fds) }
	verbsinternal.OnReadiness = func(q verbsinternal.QP, waits, notReady func(msn uint32), arrived func()) {
		q.(*QP).q.SetReadiness(qp.Readiness{Waits: waits, NotReady: notReady, Arrived: arrived})
	}
	verbsinternal.Unreliable = func(q verbsinternal.QP, dropped func(why func() *wr.Reason), mute func(why *wr.Reason), ofWrite func(data uint64) bool) {
		q.(*QP).q.SetLossy(&qp.Lossy{Dropped: dropped, Mute: mute, OfWrite: ofWrite})
	}
	verbsinternal.PlaceSends = func(q verbsinternal.QP, on bool) { q.(*QP).q.PlaceSends(on) }
	verbsinternal.WaitsForReceive = func(q verbsinternal.QP) (uint32, bool) { return q.(*QP).q.WaitsForReceive() }
	verbsinternal.TellNotReady = func(q verbsinternal.QP, msn uint32) { q.(*QP).q.TellNotReady(msn) }
	verbsinternal.Unbind = func(w verbsinternal.MW) { w.(*MW).unbind() }
	verbsinternal.HeardOf = func(q verbsinternal.QP, ask bool) (verbsinternal.Heard, bool) {
		h, ok := q.(*QP).q.Heard(ask)
		return verbsinternal.Heard(h), ok
	}
	verbsinternal.PeerGone = func(q verbsinternal.QP) bool { return q.(*QP).q.LLPStream().PeerGone() }
	verbsinternal.Idle = func(q verbsinternal.QP) bool { return q.(*QP).q.Idle() }
	verbsinternal.Yield = func(c verbsinternal.CQ) { c.(*CQ).q.Yield() }
	verbsinternal.Drive = func(c verbsinternal.CQ) bool { return c.(*CQ).q.Drive() }
}
