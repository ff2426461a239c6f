package trace

import (
	"fmt"
	"io"
	"sync"
)

// Ring keeps the last records. Its methods may be called from any goroutine; Add does not allocate, and waits for nothing but
// another Add.
type Ring struct {
	mu   sync.Mutex
	list []Record // guarded by mu, as next
	next uint64   // how many there have been
}

// NewRing makes a Ring of n records, at least 1.
func NewRing(n int) *Ring { return &Ring{list: make([]Record, max(n, 1))} }

// Add keeps r, in place of the oldest.
func (g *Ring) Add(r Record) {
	g.mu.Lock()
	g.list[g.next%uint64(len(g.list))] = r
	g.next++
	g.mu.Unlock()
}

// Records are those that are kept, oldest first, and how many there were before.
func (g *Ring) Records() (kept []Record, gone uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := uint64(len(g.list))
	if g.next <= n {
		return append(kept, g.list[:g.next]...), 0
	}
	at := g.next % n
	return append(append(kept, g.list[at:]...), g.list[:at]...), g.next - n
}

// Dump writes them as text: see Timeline.
func (g *Ring) Dump(w io.Writer) error {
	kept, gone := g.Records()
	if gone > 0 {
		if _, err := fmt.Fprintf(w, "(%d records before these are gone)\n", gone); err != nil {
			return err
		}
	}
	return Timeline(w, kept)
}
