package verbs

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/wr"
)

// maxOpen is how many RNICs can be open in a process at a time.
const maxOpen = 1024

// registry knows which RNICs are open: each once (verbs draft 5.1.2).
type registry struct {
	mu   lockorder.Mutex[lockorder.Registry]
	open map[RNICID]struct{} // guarded by mu
}

var instances = registry{open: map[RNICID]struct{}{}}

// take marks id as open; the zero UUID stands for a random one.
func (g *registry) take(id RNICID) (RNICID, error) {
	if id == (RNICID{}) {
		id = NewRNICID()
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

func (g *registry) release(id RNICID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, id)
}
