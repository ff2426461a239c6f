package netpoll

import "github.com/softrnic/softrnic/internal/proflabel"

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
	b := &g.back
	if !s.holding {
		s.holding = true
		b.list = append(b.list, s)
		g.on(evHold)
	}
	if burst && b.over != nil {
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
	s.Hold(false)
	s.g.mu.Lock()
	s.awake = s.holding
	s.g.mu.Unlock()
}

// flushAwake sends what HoldAwake has held back.
func (g *Group) flushAwake() {
	if !g.now().has(held) {
		return
	}
	var list []*Socket
	g.mu.Lock()
	for _, s := range g.back.list {
		if s.awake {
			s.awake = false
			list = append(list, s)
		}
	}
	g.mu.Unlock()
	for _, s := range list { // they stay in the list: one look more is for nothing
		s.stream.Flush(false)
	}
}

// flush sends all that is held back.
func (g *Group) flush(looked bool) {
	g.mu.Lock()
	list := g.back.list
	g.back.list, g.back.free = g.back.free, nil
	g.on(evFlush)
	for _, s := range list {
		s.holding, s.awake = false, false
	}
	g.mu.Unlock()
	for _, s := range list {
		s.stream.Flush(looked)
	}
	clear(list)
	g.mu.Lock()
	g.back.free = list[:0]
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
