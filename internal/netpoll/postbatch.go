package netpoll

import (
	"slices"

	"github.com/softrnic/softrnic/internal/proflabel"
)

// postBatches are the streams of a group that hold requests back for company. They go out when
// the program looks for completions, at any queue of the group, or when flushLoop runs,
// which a burst makes runnable: as soon as the poster sleeps, wherever that is. A group has
// that goroutine from its first burst on. Guarded by Group.mu.
type postBatches struct {
	list  []*Socket
	free  []*Socket       // room for the next list
	burst chan struct{}   // a token for flushLoop; nil without one
	over  <-chan struct{} // ends it; nil: the group has ended
	done  chan struct{}   // it has
}

// Looks counts the looks of the program for completions of this group.
func (s *Socket) Looks() uint64 { return s.g.looks.Load() }

// Hold says that the stream has begun to hold something back: Flush is called when the
// program looks or, of a burst, soon.
func (s *Socket) Hold(burst bool) {
	g := s.g
	g.mu.Lock()
	defer g.mu.Unlock()
	s.hold()
	if b := &g.back; burst && b.over != nil {
		if b.burst == nil {
			b.burst, b.done = make(chan struct{}, 1), make(chan struct{})
			go g.flushLoop(b.burst, b.over, b.done)
		}
		signal(b.burst)
	}
}

// endFlush waits for flushLoop. The group is over.
func (g *Group) endFlush() {
	g.mu.Lock()
	done := g.back.done
	g.back.burst, g.back.over, g.back.done = nil, nil, nil
	g.mu.Unlock()
	if done != nil {
		<-done
	}
}

// looked says that the program looks for completions. It returns the state.
func (g *Group) looked() state {
	g.looks.Add(1)
	s := g.now()
	if s.has(held) {
		g.flush(true)
	}
	return s
}

// HoldAwake is Hold of what is not to wait for a program that does not look: Flush is called, too, when nobody is left to, before
// a sleep and behind what the background poller drives.
func (s *Socket) HoldAwake() {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	s.hold()
	s.awake = true
}

// hold puts s in g.back. With g.mu held.
func (s *Socket) hold() {
	if !s.holding {
		s.holding = true
		s.g.back.list = append(s.g.back.list, s)
		s.g.on(evHold)
	}
}

// flush sends all that is held back.
func (g *Group) flush(looked bool) { g.send(looked, func(*Socket) bool { return true }) }

// flushAwake sends what HoldAwake has held back.
func (g *Group) flushAwake() {
	if g.now().has(held) {
		g.send(false, func(s *Socket) bool { return s.awake })
	}
}

// send sends what is held back on the streams of which which says so, with g.mu held.
func (g *Group) send(looked bool, which func(*Socket) bool) {
	g.mu.Lock()
	b := &g.back
	list := b.free
	b.free = nil
	b.list = slices.DeleteFunc(b.list, func(s *Socket) bool {
		if !which(s) {
			return false
		}
		s.holding, s.awake = false, false
		list = append(list, s)
		return true
	})
	if len(b.list) == 0 {
		g.on(evFlush)
	}
	g.mu.Unlock()
	for _, s := range list {
		s.stream.Flush(looked)
	}
	clear(list)
	g.mu.Lock()
	b.free = list[:0]
	g.mu.Unlock()
}

// flushLoop sends what bursts hold back. One goroutine a group.
func (g *Group) flushLoop(burst, over <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	g.Labels.With(proflabel.Work, "flush").Wear()
	for {
		select {
		case <-burst:
			g.flush(false)
		case <-over:
			return
		}
	}
}
