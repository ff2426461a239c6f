package verbs

import (
	"github.com/softrnic/softrnic/internal/verbshook"
	"github.com/softrnic/softrnic/wr"
)

// What packages of this module may do and programs may not: package verbshook says what each is for.
func init() {
	verbshook.Step = func(q verbshook.QP, step string, err error) { q.(*QP).traceStep(step, err) }
	verbshook.CountAttempt = func(q verbshook.QP, a verbshook.Attempt) { q.(*QP).rnic.ended.attempts[a].Add(1) }
	verbshook.WhenOver = func(s verbshook.LLPStream, f func()) { s.(*LLPStream).l.WhenOver(f) }
	verbshook.Begin = func(r verbshook.RNIC, c verbshook.Counts) { r.(*RNIC).carried = c }
	verbshook.FailRNIC = func(r verbshook.RNIC) { r.(*RNIC).fail() }
	verbshook.FailQP = func(q verbshook.QP) { q.(*QP).q.Fail() }
	verbshook.FailCQ = func(c verbshook.CQ) { c.(*CQ).q.Fail() }
	verbshook.FailSRQ = func(s verbshook.SRQ) { s.(*SRQ).q.Fail() }
	verbshook.MayVanish = func(r verbshook.RNIC) { r.(*RNIC).vanishing.Store(true) }
	verbshook.Room = func(q verbshook.QP) (send, recv int) { return q.(*QP).q.Room() }
	verbshook.OnNotify = func(c verbshook.CQ, f func()) { c.(*CQ).onNotify = f }
	verbshook.Entries = func(c verbshook.CQ) int { return c.(*CQ).q.Cap() }
	verbshook.PollQueued = func(c verbshook.CQ, dst []wr.Completion) int { return c.(*CQ).q.PollQueued(dst) }
	verbshook.NotifyWatched = func(c verbshook.CQ, t wr.NotifyType) error { return c.(*CQ).notifyWatched(t) }
	verbshook.Watch = func(c verbshook.CQ, fds []int) ([]int, bool) { return c.(*CQ).q.Watch(fds) }
	verbshook.Drive = func(c verbshook.CQ) bool { return c.(*CQ).q.Drive() }
}
