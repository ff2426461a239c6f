package port

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/vitcp"
)

// shared is a port in this process.
type shared struct {
	ports *Ports          // constant, as the next five
	at    netip.AddrPort  // as it was asked for
	l     *vitcp.Listener // has the Waits, whoever accepts
	life  context.Context // ends with the last Use
	end   context.CancelFunc
	gone  chan struct{} // closed when nothing is left

	ready  chan struct{}    // closed by start, which sets the next three
	failed error            // if not nil, there is no port
	bound  netip.AddrPort   // the address listened on; also guarded by ports.mu
	nl     *net.TCPListener // the listening socket; used by run only from then on

	mu      sync.Mutex
	closing bool                // guarded by mu, as all below
	uses    map[*Use]struct{}   //
	waits   map[uint32]*waiting // of this process, by number
	last    uint32              // number
	member  *member             // the session at the process that accepts; nil if there is none
	owner   *owner              // the sessions of others; nil if another process accepts
}

// waiting is a Wait of this process.
type waiting struct {
	filter vitcp.Filter // constant, as waiter
	waiter *vitcp.Waiter
	over   bool // guarded by mu
}

func newShared(ps *Ports, at netip.AddrPort) *shared {
	s := &shared{
		ports: ps, at: at, gone: make(chan struct{}), ready: make(chan struct{}),
		uses: make(map[*Use]struct{}), waits: make(map[uint32]*waiting),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.l = vitcp.New(vitcp.ListenConfig{OnRefused: func(remote net.Addr, err error) {
		if remote == nil {
			s.tell(err)
		}
	}})
	return s
}

// start finds this process's place at the port, and keeps it until the last Use has gone. That may be before there is a
// place.
func (s *shared) start() {
	p, err := s.join(s.ports.patience)
	if err != nil {
		s.failed = err
		s.drop()
		s.end()
		_ = s.l.Close()
		close(s.ready)
		close(s.gone)
		return
	}
	s.nl = p.nl
	s.ports.mu.Lock()
	s.bound = p.nl.Addr().(*net.TCPAddr).AddrPort()
	s.bound = netip.AddrPortFrom(s.bound.Addr().Unmap(), s.bound.Port())
	s.ports.mu.Unlock()
	close(s.ready)
	s.run(p)
}

// drop takes the port out of its process's.
func (s *shared) drop() {
	s.ports.mu.Lock()
	defer s.ports.mu.Unlock()
	s.ports.all = slices.DeleteFunc(s.ports.all, func(o *shared) bool { return o == s })
}

// run is the life of the port, in one place after the other.
func (s *shared) run(p place) {
	defer func() {
		s.drop()
		close(s.gone)
	}()
	for p.session != nil {
		s.attend(p.session)
		var ok bool
		if p, ok = s.again(); !ok {
			_ = s.nl.Close()
			_ = s.l.Close()
			return
		}
	}
	s.own(p)
}

// again is join after the process that accepted has gone: until there is a place, or the port is closed here.
func (s *shared) again() (p place, ok bool) {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if s.life.Err() != nil {
			return p, false
		}
		p, err := s.join(s.ports.patience)
		if err == nil {
			return p, true
		}
		s.tell(err)
		select {
		case <-time.After(pause):
		case <-s.life.Done():
		}
	}
}

// tell tells all Uses of an error.
func (s *shared) tell(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for u := range s.uses {
		if u.cfg.Failed != nil {
			u.cfg.Failed(err)
		}
	}
}

// use is another Use of the port, unless that is being closed.
func (s *shared) use(at netip.Addr, cfg Config) *Use {
	u := &Use{s: s, at: at, cfg: cfg}
	u.life, u.end = context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		u.end()
		return nil
	}
	s.uses[u] = struct{}{}
	s.setTimeout()
	return u
}

// leave ends a Use, and reports the last one: with that the port ends, and gone tells when.
func (s *shared) leave(u *Use) (last bool) {
	s.mu.Lock()
	delete(s.uses, u)
	s.closing = len(s.uses) == 0
	last = s.closing
	s.setTimeout()
	s.mu.Unlock()
	if last {
		s.end()
	}
	return last
}

// setTimeout has the longest match timeout count, and tells the process that accepts. The caller has mu.
func (s *shared) setTimeout() {
	var most time.Duration
	for u := range s.uses {
		most = max(most, u.cfg.MatchTimeout)
	}
	if s.member != nil {
		s.member.push(msgHello, appendHello(nil, most))
	}
	if s.owner != nil {
		most = max(most, s.owner.timeout())
	}
	s.l.SetMatchTimeout(most)
}

// wait is Use.Wait.
func (s *shared) wait(ctx context.Context, f vitcp.Filter) (*vitcp.Pending, error) {
	id, w, err := s.enter(f)
	if err != nil {
		return nil, err
	}
	defer s.exit(id, w)
	return w.waiter.Wait(ctx)
}

// enter begins a Wait here, and at the process that accepts.
func (s *shared) enter(f vitcp.Filter) (uint32, *waiting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.member != nil && len(s.waits)+len(s.member.leaving) >= maxWaits {
		return 0, nil, errWaits
	}
	begun, err := s.l.Begin(f)
	if err != nil {
		return 0, nil, err
	}
	w := &waiting{filter: f, waiter: begun}
	for s.last++; s.waits[s.last] != nil || s.member != nil && s.member.left(s.last); s.last++ {
	}
	s.waits[s.last] = w
	if s.member != nil {
		s.member.wait(s.last, &f)
	}
	return s.last, w, nil
}

// exit ends it.
func (s *shared) exit(id uint32, w *waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.over = true
	if s.waits[id] != w { // the process that accepts has answered it
		return
	}
	delete(s.waits, id)
	if s.member != nil {
		s.member.leave(id)
	}
}
