package vipl

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/netpoll"
)

// group serves the connections of the VIs of a CQ, or that of a VI without one: a caller
// that looks for completions there, or waits for them, drives these (package netpoll).
type group struct {
	netpoll.Group
	awaits atomic.Int32 // waiters that do not sleep in it, and handlers
}

// Awaited implements netpoll.Queue, for all that completes to the group.
func (g *group) Awaited() bool { return g.awaits.Load() > 0 }

// waitQueue is where programs look for what completes on a queue, a CQ or a work queue, and
// wait for it. One that waits sleeps in the group that serves the queue, if one alone does,
// and drives it when it wakes; others wait for a token.
type waitQueue struct {
	mu    sync.Locker     // constant, as the next two; of the queue, and guards what is below
	ready func() bool     // there is something, or the queue is gone; called with mu
	gone  <-chan struct{} // closed when the queue is

	wake      chan struct{} // one token: a waiter should look
	waiters   int           // for the token
	awaits    int           // those, and handlers
	sleeper   *group        // where one more sleeps; nil: nowhere
	watched   <-chan struct{}
	stopWatch func() bool // ends the watch for the end of the last sleeper's context
	onEnd     func()      // rouse, made once

	groups atomic.Pointer[[]served] // written with mu
	visit  atomic.Uint32            // of groups, if there are many
}

// served is a group, and for how many of its work queues it serves.
type served struct {
	*group
	users int
}

// maxVisits bounds how many groups one look drives.
const maxVisits = 8

func (l *waitQueue) init(mu sync.Locker, ready func() bool, gone <-chan struct{}) {
	l.mu, l.ready, l.gone, l.wake = mu, ready, gone, make(chan struct{}, 1)
	l.onEnd = l.rouse
	l.groups.Store(new([]served))
}

// attach says that g serves by more of what completes here, or less if that is negative.
// The caller has mu.
func (l *waitQueue) attach(g *group, by int) {
	var list []served
	for _, s := range *l.groups.Load() {
		if s.group == g {
			s.users += by
			by = 0
		}
		if s.users > 0 {
			list = append(list, s)
		} else {
			g.awaits.Add(-int32(l.awaits))
		}
	}
	if by > 0 {
		list = append(list, served{g, by})
		g.awaits.Add(int32(l.awaits))
	}
	l.groups.Store(&list)
}

// drive handles what has arrived for the queue, and reports whether there was anything. The
// caller does not have mu.
func (l *waitQueue) drive() (got bool) {
	list := *l.groups.Load()
	if len(list) == 1 {
		return list[0].Drive()
	}
	for range min(len(list), maxVisits) {
		got = list[int(l.visit.Add(1))%len(list)].Drive() || got
	}
	return got
}

// wait returns when there may be something, or an error when ctx has ended. Where that is so from the beginning it is a poll.
func (l *waitQueue) wait(ctx context.Context) error {
	if ctx.Err() != nil {
		l.drive()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.ready() {
			return nil
		}
		return ended(ctx)
	}
	if list := *l.groups.Load(); len(list) == 1 {
		if g := list[0].group; g.Claim() {
			err, slept := l.sleep(ctx, g)
			g.Leave()
			if slept {
				return err
			}
		}
	}
	return l.block(ctx)
}

// sleep is wait in g, which the caller has claimed. It reports false if that cannot be, or
// cannot be any more.
func (l *waitQueue) sleep(ctx context.Context, g *group) (err error, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sleeper != nil {
		return nil, false
	}
	l.sleeper = g
	l.watch(ctx)
	for ok = true; ok && err == nil && !l.ready(); {
		if err = ctx.Err(); err == nil {
			l.mu.Unlock()
			ok = g.Sleep() // who completes something rouses it
			l.mu.Lock()
		}
	}
	l.sleeper = nil
	if err != nil {
		err = ended(ctx)
	}
	if ok {
		l.pass()
	}
	return err, ok
}

// block is wait for a token.
func (l *waitQueue) block(ctx context.Context) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ready() {
		return nil
	}
	l.waiters++
	l.await(1)
	l.mu.Unlock()
	l.yield()
	select {
	case <-l.wake:
	case <-l.gone:
	case <-ctx.Done():
		err = ended(ctx)
	}
	l.mu.Lock()
	l.waiters--
	l.await(-1)
	if err != nil {
		l.pass() // the token may have been for this one
	}
	return err
}

// await says that there are n more waiters for a token or handlers. The caller has mu.
func (l *waitQueue) await(n int) {
	l.awaits += n
	for _, s := range *l.groups.Load() {
		s.awaits.Add(int32(n))
	}
}

// yield says that nobody looks from here on: what arrives is handled all the same. The caller
// does not have mu.
func (l *waitQueue) yield() {
	for _, s := range *l.groups.Load() {
		s.Yield()
	}
}

// tell says that something is there, or that the queue is gone. The caller has mu.
func (l *waitQueue) notify() {
	if l.waiters > 0 {
		l.signal()
	}
	if l.sleeper != nil {
		l.sleeper.Rouse()
	}
}

// pass tells another waiter of what is left. The caller has mu.
func (l *waitQueue) pass() {
	if l.waiters > 0 && l.ready() {
		l.signal()
	}
}

func (l *waitQueue) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// watch makes the end of ctx rouse the sleeper. Waits in a row usually have the same context:
// it is told once. The caller has mu.
func (l *waitQueue) watch(ctx context.Context) {
	done := ctx.Done()
	if done == l.watched {
		return
	}
	l.unwatch()
	if done != nil {
		l.watched, l.stopWatch = done, context.AfterFunc(ctx, l.onEnd)
	}
}

// count tells what there is. The caller has mu.
func (l *waitQueue) count(tell inventory.Tell) {
	tell(l.waiters, "waiter")
	tell(l.awaits, "waiter or handler")
	if l.sleeper != nil {
		tell(1, "sleeper")
	}
	if l.stopWatch != nil {
		tell(1, "watch of a context")
	}
}

// unwatch ends watch. The caller has mu.
func (l *waitQueue) unwatch() {
	if l.stopWatch != nil {
		l.stopWatch()
	}
	l.watched, l.stopWatch = nil, nil
}

// rouse ends the sleep of the sleeper.
func (l *waitQueue) rouse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sleeper != nil {
		l.sleeper.Rouse()
	}
}
