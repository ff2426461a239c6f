package nvmeof

import (
	"container/list"
	"context"
	"net"
	"net/netip"
)

// places are Config.Connections of them. A connection is mute until a Connect of it has succeeded. For one more than there
// are places the oldest mute one goes, of the host that has most of them, as in internal/admission: hosts that are mute keep
// nobody out. Connected ones stay; of those a host has as many as places are left that no connected one has, so that one
// host alone has half, and there is a place for the next.
type places struct {
	most int

	mute      list.List // of *seat, the oldest first
	connected int
	came      uint64 // so far
	hosts     map[netip.Prefix]*guest
}

// guest is what one host has.
type guest struct{ mute, connected int }

// seat is the place of a connection. All but gone, ctx and cancel is guarded by Target.mu.
type seat struct {
	host   netip.Prefix
	number uint64          // of its coming
	in     *list.Element   // of places.mute; nil if it is not mute, or has gone
	has    bool            // it is counted
	ctx    context.Context // ends when the place is another's
	cancel context.CancelFunc
	gone   chan struct{} // closed when nothing is left of the connection
}

func (p *places) init(most int) { p.most, p.hosts = most, map[netip.Prefix]*guest{} }

// held is how many are taken.
func (p *places) held() int { return p.mute.Len() + p.connected }

// share reports whether a host may have one connected queue more.
func (p *places) share(host netip.Prefix) bool {
	has := 0
	if g := p.hosts[host]; g != nil {
		has = g.connected
	}
	return has < p.most-p.connected
}

// crowded is the oldest mute one of the host that has most of them; hosts with no more than a 32nd of the places are no
// crowd.
func (p *places) crowded() (out *seat) {
	worst := 0
	for e := p.mute.Front(); e != nil; e = e.Next() {
		s := e.Value.(*seat)
		if crowd := max(p.hosts[s.host].mute, p.most/32, 1); crowd > worst {
			out, worst = s, crowd
		}
	}
	return out
}

// leave counts s out, once.
func (p *places) leave(s *seat) {
	g := p.hosts[s.host]
	switch {
	case !s.has:
		return
	case s.in != nil:
		p.mute.Remove(s.in)
		s.in = nil
		g.mute--
	default:
		p.connected--
		g.connected--
	}
	s.has = false
	if *g == (guest{}) {
		delete(p.hosts, s.host)
	}
}

// place gives a connection from a host its place, when the one whose place it was has gone; nil if there is none.
func (t *Target) place(ctx context.Context, host netip.Prefix) *seat {
	s := &seat{host: host, has: true, gone: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	out := t.enter(s)
	if !s.has {
		s.cancel()
		return nil
	}
	if out == nil {
		return s
	}
	t.log.Warn("nvmeof: a connection ends: it has sent no Connect, and another one needs its place", "from", out.host)
	out.cancel()
	select {
	case <-out.gone:
		return s
	case <-s.ctx.Done():
		t.leave(s)
		return nil
	}
}

// enter counts s in, and the one that has to go for it out. has tells whether there is a place.
func (t *Target) enter(s *seat) (out *seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &t.places
	if s.has = p.share(s.host); !s.has {
		return nil
	}
	g := p.hosts[s.host]
	if g == nil {
		g = &guest{}
	}
	if p.held() == p.most || g.mute >= max(p.most/2, 1) {
		out = p.crowded()
		p.leave(out)
	}
	p.hosts[s.host] = g
	g.mute++
	p.came++
	s.number, s.in = p.came, p.mute.PushBack(s)
	return out
}

// leave gives the place back, when nothing is left of the connection.
func (t *Target) leave(s *seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.places.leave(s)
	s.cancel()
	close(s.gone)
}

// settle has a mute one be a connected one, if its host may have one more.
func (t *Target) settle(s *seat) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &t.places
	if s.in == nil || !p.share(s.host) {
		return false
	}
	p.mute.Remove(s.in)
	s.in = nil
	p.connected++
	p.hosts[s.host].mute--
	p.hosts[s.host].connected++
	return true
}

// unsettle has one be mute again, as old as it is, whose Connect has failed.
func (t *Target) unsettle(s *seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &t.places
	if !s.has {
		return
	}
	p.connected--
	p.hosts[s.host].mute++
	p.hosts[s.host].connected--
	for e := p.mute.Front(); e != nil; e = e.Next() {
		if e.Value.(*seat).number > s.number {
			s.in = p.mute.InsertBefore(s, e)
			return
		}
	}
	s.in = p.mute.PushBack(s)
}

// hostOf is the IPv4 address, or the IPv6 /64, that a connection comes from: a host has all the addresses of its /64.
func hostOf(remote net.Addr) netip.Prefix {
	at, err := netip.ParseAddrPort(remote.String())
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
