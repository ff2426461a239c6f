package admission

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// order lets the Startups of each source pass in the order in which they came. One that does
// not get as far as to ask is passed over when another has waited for long enough: it passes
// when it asks.
type order struct {
	wait  time.Duration
	mu    sync.Mutex
	lines map[netip.Prefix][]*turn // guarded by mu, as the turns; the first came first
}

// turn is a Startup's place in the line of its source.
type turn struct {
	o     *order
	name  netip.Prefix
	state turnState
	long  bool          // it has waited for long enough
	comes chan struct{} // closed when it does
}

type turnState uint8

const (
	absent   turnState = iota // it has not asked
	waiting                   // it has
	admitted                  // it may do what is done in order
	past                      // it has done so, or has ended
	skipped                   // it is in no line any more
)

func newOrder(wait time.Duration) *order {
	return &order{wait: wait, lines: make(map[netip.Prefix][]*turn)}
}

// enter gives a Startup its place. A nil order gives none.
func (o *order) enter(name netip.Prefix) *turn {
	if o == nil {
		return nil
	}
	t := &turn{o: o, name: name, comes: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines[name] = append(o.lines[name], t)
	return t
}

// await returns when it is t's turn, or ctx has ended.
func (t *turn) await(ctx context.Context) {
	if t == nil || !t.ask() {
		return
	}
	long := time.AfterFunc(t.o.wait, func() { t.change(func() { t.long = true }) })
	defer long.Stop()
	select {
	case <-t.comes:
	case <-ctx.Done():
	}
}

// ask reports whether t has to wait.
func (t *turn) ask() bool {
	t.o.mu.Lock()
	defer t.o.mu.Unlock()
	if t.state == skipped {
		return false
	}
	t.state = waiting
	t.o.advance(t.name)
	return t.state == waiting
}

// end says that t stands in nobody's way any more.
func (t *turn) end() {
	if t != nil {
		t.change(func() { t.state = past })
	}
}

func (t *turn) change(f func()) {
	t.o.mu.Lock()
	defer t.o.mu.Unlock()
	f()
	t.o.advance(t.name)
}

// advance lets the next of a line pass whose turn it is. With mu held.
func (o *order) advance(name netip.Prefix) {
	line := o.lines[name]
	for ; len(line) > 0; line = line[1:] {
		t := line[0]
		if t.state == waiting {
			t.state = admitted
			close(t.comes)
		}
		if t.state == admitted || t.state == absent && !slices.ContainsFunc(line, func(t *turn) bool { return t.long }) {
			o.lines[name] = line
			return
		}
		if t.state == absent {
			t.state = skipped
		}
	}
	delete(o.lines, name)
}
