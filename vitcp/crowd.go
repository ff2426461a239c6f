package vitcp

import (
	"context"
	"net/netip"
	"slices"
	"sync"
)

// crowd bounds the connections that have come in and belong to nobody yet. A
// host that opens many is served last: the one that has to go for a new one is
// the oldest of the host that has the most. So a hostile host drives out only
// its own.
type crowd struct {
	most int
	mu   sync.Mutex
	in   []*guest // oldest first
}

// guest is one such connection.
type guest struct {
	host   netip.Addr
	cancel context.CancelCauseFunc
}

// enter counts a connection in. Its context ends with parent, or with ErrCrowded
// when it has to go; leave counts it out.
func (c *crowd) enter(parent context.Context, host netip.Addr) (ctx context.Context, leave func()) {
	ctx, cancel := context.WithCancelCause(parent)
	g := &guest{host: host, cancel: cancel}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in = append(c.in, g)
	if len(c.in) > c.most {
		out := c.victim()
		c.in[out].cancel(ErrCrowded)
		c.in = slices.Delete(c.in, out, out+1)
	}
	return ctx, func() {
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		if i := slices.Index(c.in, g); i >= 0 {
			c.in = slices.Delete(c.in, i, i+1)
		}
	}
}

// victim is the index of the oldest guest of the host that has the most; of
// several such hosts, the one whose oldest came first.
func (c *crowd) victim() int {
	count := make(map[netip.Addr]int)
	for _, g := range c.in {
		count[g.host]++
	}
	out := 0
	for i, g := range c.in {
		if count[g.host] > count[c.in[out].host] {
			out = i
		}
	}
	return out
}
