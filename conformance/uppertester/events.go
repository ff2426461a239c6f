package uppertester

import (
	"context"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/verbs"
)

// Events waits for asynchronous events. What has been raised before is among them, though the handler runs by
// itself: that there is no event, or no other, is told only then.
func (s *Service) Events(a EventsArgs, r *Events) error {
	ctx, cancel := s.bounded(a.Timeout)
	defer cancel()
	s.events.wait(ctx, a.N)
	s.passEvents()
	r.Events = s.events.all()
	return nil
}

// passEvents returns when the log has all events that were raised before: behind them comes that of a queue which fails
// for this alone. Where no such queue is to be had it returns at once.
func (s *Service) passEvents() {
	mark, err := s.rnic.CreateCQ(verbs.CQConfig{Entries: 1})
	if err != nil {
		return
	}
	passed := s.events.expect(mark.ID())
	verbsinternal.FailCQ(mark)
	select {
	case <-passed:
	case <-s.ctx.Done():
	}
	_ = mark.Destroy()
}

// eventLog keeps asynchronous events.
type eventLog struct {
	mu     sync.Mutex
	events []verbs.Event                // guarded by mu, as all below
	more   chan struct{}                // closed when there is one more
	marks  map[verbs.CQID]chan struct{} // of passEvents: closed by the event of the queue, which is not kept
}

func newEventLog() *eventLog {
	return &eventLog{more: make(chan struct{}), marks: make(map[verbs.CQID]chan struct{})}
}

// expect returns a channel that is closed when an event of the queue comes.
func (l *eventLog) expect(q verbs.CQID) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	passed := make(chan struct{})
	l.marks[q] = passed
	return passed
}

func (l *eventLog) add(e verbs.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if passed, mark := l.marks[e.CQ]; mark {
		delete(l.marks, e.CQ)
		close(passed)
		return
	}
	l.events = append(l.events, e)
	close(l.more)
	l.more = make(chan struct{})
}

// all is what the log has.
func (l *eventLog) all() []verbs.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// wait returns once the log has n events, or ctx is done.
func (l *eventLog) wait(ctx context.Context, n int) {
	for {
		l.mu.Lock()
		has, more := len(l.events), l.more
		l.mu.Unlock()
		if has >= n {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}
