package admission

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"sync"
)

// table bounds the connections that belong to nobody yet.
type table struct {
	most, backlog int

	mu       sync.Mutex
	sources  map[netip.Prefix]*source // guarded by mu, as all below
	startups list.List                // of *Startup, the oldest first
	queued   int
}

// source is where connections come from.
type source struct {
	name             netip.Prefix
	startups, queued int
}

func newTable(most, backlog int) table {
	return table{most: most, backlog: backlog, sources: make(map[netip.Prefix]*source)}
}

// sourceOf is the IPv4 address or the IPv6 /64 that nc comes from: a host has
// all the addresses of its /64. What is not of IP is one source.
func sourceOf(nc net.Conn) netip.Prefix {
	a := nc.RemoteAddr()
	if a == nil {
		return netip.Prefix{}
	}
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits) // of an address of that length
	return p
}

// enter counts a connection in. If there are too many now, one of them goes.
func (t *table) enter(parent context.Context, nc net.Conn) *Startup {
	s := &Startup{Conn: nc, table: t}
	s.ctx, s.cancel = context.WithCancelCause(parent)
	name := sourceOf(nc)
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.from = t.sources[name]; s.from == nil {
		s.from = &source{name: name}
		t.sources[name] = s.from
	}
	s.from.startups++
	s.place = t.startups.PushBack(s)
	if t.startups.Len() > t.most {
		t.evict()
	}
	return s
}

// evict ends the oldest startup of the most crowded source. Sources with no more
// than a 32nd of the places are no crowd, so that against many sources of one
// connection each a host that has several is not the first to go: then the oldest
// of all goes.
func (t *table) evict() {
	var out *Startup
	worst := 0
	for e := t.startups.Front(); e != nil; e = e.Next() {
		s := e.Value.(*Startup)
		if crowd := max(s.from.startups, t.most/32, 1); crowd > worst {
			out, worst = s, crowd
		}
	}
	if out == nil {
		return
	}
	t.forget(out)
	// A silent peer would not take a close in: nothing of it stays.
	if c, ok := out.Conn.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0) // of a connection that has ended already
	}
	out.cancel(errEvicted)
}

// relieve ends an eighth of the startups, at least one if there is one: the system
// is short of something that they hold.
func (t *table) relieve() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range (t.startups.Len() + 7) / 8 {
		t.evict()
	}
}

// queue moves s to the backlog, if its source has fewer there than there are
// places free: a source alone gets half of them, n sources all but one part of
// n+1, and there is a place for the next.
func (t *table) queue(s *Startup) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case s.state != starting:
		return errEvicted
	case s.from.queued >= t.backlog-t.queued:
		return errFull
	}
	from := s.from
	from.queued++
	t.queued++
	t.forget(s)
	s.state, s.from = queued, from
	return nil
}

// leave counts s out, wherever it is, and returns whether it was anywhere.
func (t *table) leave(s *Startup) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := s.state != gone
	t.forget(s)
	return was
}

// held is how many are counted in.
func (t *table) held() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.startups.Len() + t.queued
}

// forget counts s out.
func (t *table) forget(s *Startup) {
	switch s.state {
	case starting:
		t.startups.Remove(s.place)
		s.from.startups--
	case queued:
		s.from.queued--
		t.queued--
	case gone:
		return
	}
	if s.from.startups == 0 && s.from.queued == 0 {
		delete(t.sources, s.from.name)
	}
	s.state, s.from, s.place = gone, nil, nil
}
