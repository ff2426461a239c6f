package verbs

import (
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/softrnic/softrnic/wr"
)

// maxOpen is how many RNICs can be open in a process at a time.
const maxOpen = 1024

// registry knows which RNICs are open: each once (verbs draft 5.1.2).
type registry struct {
	mu   sync.Mutex
	open map[uuid.UUID]struct{} // guarded by mu
}

var instances = registry{open: map[uuid.UUID]struct{}{}}

// take marks id as open; the zero UUID stands for a random one.
func (g *registry) take(id uuid.UUID) (uuid.UUID, error) {
	if id == (uuid.UUID{}) {
		id = uuid.New()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.open[id]; ok {
		return id, &wr.Reason{Err: wr.ErrRNICInUse, What: fmt.Sprintf("%v is open in this process", id)}
	}
	if len(g.open) >= maxOpen {
		return id, &wr.Reason{Err: wr.ErrInsufficientResources, What: fmt.Sprintf("%d RNICs are open", maxOpen), Remedy: "close some that are not needed"}
	}
	g.open[id] = struct{}{}
	return id, nil
}

func (g *registry) release(id uuid.UUID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, id)
}
