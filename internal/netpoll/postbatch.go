package netpoll

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/proflabel"
)

// held are the streams of a group that hold requests back for company. They go out when
// the program looks for completions, at any queue of the group, or when flushLoop runs,
// which a burst makes runnable: as soon as the poster sleeps, wherever that is. A group has
// that goroutine from its first burst on.
type held struct {
	looks atomic.Uint64 // how often the program has looked
	some  atomic.Bool

	mu    sync.Mutex
	list  []*Socket // guarded by mu, as what follows
	free  []*Socket
	burst chan struct{}   // a token for flushLoop; nil without one
	over  <-chan struct{} // ends it; nil: the group has ended
	done  chan struct{}   // it has
}

// Looks counts the looks of the program for completions of this group.
func (s *Socket) Looks() uint64 { return s.g.held.looks.Load() }

// Hold says that the stream has begun to hold something back: Flush is called when the
// program looks or, of a burst, soon.
func (s *Socket) Hold(burst bool) {
	h := &s.g.held
	h.mu.Lock()
	if !s.holding {
		s.holding = true
		h.list = append(h.list, s)
		h.some.Store(true)
	}
	if burst && h.over != nil {
		if h.burst == nil {
			h.burst, h.done = make(chan struct{}, 1), make(chan struct{})
			go s.g.flushLoop(h.burst, h.over, h.done)
		}
		signal(h.burst)
	}
	h.mu.Unlock()
}

// start says that the group serves, until over.
func (h *held) start(over <-chan struct{}) {
	h.mu.Lock()
	h.over = over
	h.mu.Unlock()
}

// end waits for flushLoop. The group is over.
func (h *held) end() {
	h.mu.Lock()
	done := h.done
	h.burst, h.over, h.done = nil, nil, nil
	h.mu.Unlock()
	if done != nil {
		<-done
	}
}

// looked says that the program looks for completions.
func (h *held) looked(g *Group) {
	h.looks.Add(1)
	if h.some.Load() {
		g.flush(true)
	}
}

// flush sends all that is held back.
func (g *Group) flush(looked bool) {
	h := &g.held
	h.mu.Lock()
	list := h.list
	h.list, h.free = h.free, nil
	h.some.Store(false)
	for _, s := range list {
		s.holding = false
	}
	h.mu.Unlock()
	for _, s := range list {
		s.stream.Flush(looked)
	}
	clear(list)
	h.mu.Lock()
	h.free = list[:0]
	h.mu.Unlock()
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
