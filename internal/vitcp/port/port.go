// Package port is a VI port that several Nics of a process, and several processes of a user, listen on: VIs are told
// apart by their discriminators, and a host has one port for all of them (2.2.2.2.1).
//
//	Use -- Wait --> [ shared: the port, in this process ] -- vitcp.Listener
//	                  | accepts itself, and is the owner:       <- TCP
//	                  |   owner.go: sessions of other processes, their Waits, and the sockets that they get
//	                  | or another process does:                <- a session there
//	                  |   member.go: mirrors its Waits, and gets sockets for them
//	                  join.go: which of the two; and again when that other process has ended
//
// All of them have the listening socket, and one accepts. When that one ends, in whatever way, the others see their
// sessions end, and one of them goes on accepting from the same socket: what waits there to be accepted is not lost.
// Who it is, is decided under a lock of the folder that the sockets between the processes are in (package ownsock).
//
// A port of which the number was not given, but any free one, is this process's alone; so is any where sockets cannot
// be passed from process to process.
package port

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/vitcp"
)

// Config is what a Use needs to know.
type Config struct {
	// MatchTimeout is vitcp.ListenConfig.MatchTimeout. The longest of those who share a port counts for all: before a
	// request has met a Wait nobody knows whose it is.
	MatchTimeout time.Duration
	// Failed, if set, is told of what the port survives: errors of accept, or of the process that accepts. It is
	// called from several goroutines, and must not close the Use.
	Failed func(err error)
}

// Errors of Open, to compare with errors.Is.
var (
	// ErrInUse: the port is another program's, or another user's, or shared by as many as may.
	ErrInUse = errors.New("the port is in use")
	// ErrStill: the process that accepts at the port does not answer.
	ErrStill = errors.New("the process that has the port does not answer")
)

// maxWaits is how many Waits a process may have under way at another one.
const maxWaits = 1024

// errWaits says so.
var errWaits = fmt.Errorf("vitcp: %d waits are under way at the process that has the port, and there may be no more: "+
	"give this process a port of its own, or start it first", maxWaits)

// Ports is the ports of a process.
type Ports struct {
	patience time.Duration // for another process: for each answer, and to take a port that it has left

	mu  sync.Mutex
	all []*shared // guarded by mu
}

// NewPorts is for a process: that one has, for a program, and one of several that a test plays. patience is how long another
// process is waited for, for each answer, and to take a port that it has left.
func NewPorts(patience time.Duration) *Ports { return &Ports{patience: patience} }

// here is this process's.
var here = NewPorts(5 * time.Second)

// Open opens a port at an address of this host, of which :: stands for all. 0 is any free port, for this process
// alone; any other one is shared with the processes of this user that have it, at the same address or at all. Errors:
// ErrInUse, ErrStill; the system's; ctx's, which ends the attempt unless others wait for it.
func Open(ctx context.Context, at netip.AddrPort, cfg Config) (*Use, error) {
	return here.Open(ctx, at, cfg)
}

// Open is Open in one of several processes that a test plays.
func (ps *Ports) Open(ctx context.Context, at netip.AddrPort, cfg Config) (*Use, error) {
	for {
		s, fresh := ps.find(at)
		u := s.use(at.Addr(), cfg)
		if fresh {
			go s.start()
		}
		wait := s.gone // it is closing
		if u != nil {
			wait = s.ready
		}
		select {
		case <-wait:
		case <-ctx.Done():
			if u != nil {
				u.end()
				s.leave(u)
			}
			return nil, fmt.Errorf("vitcp: port %v: no answer yet of the process that has it: %w", at, ctx.Err())
		}
		if u == nil {
			continue
		}
		if s.failed != nil {
			u.end()
			return nil, s.failed
		}
		return u, nil
	}
}

// find is the port that covers an address, or a fresh one.
func (ps *Ports) find(at netip.AddrPort) (s *shared, fresh bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if at.Port() != 0 {
		for _, s := range ps.all {
			if s.at == at || s.bound.Port() == at.Port() && vitcp.Covers(s.bound.Addr(), at.Addr()) {
				return s, false
			}
		}
	}
	s = newShared(ps, at)
	ps.all = append(ps.all, s)
	return s, true
}

// Use is one Nic's part in a port.
type Use struct {
	s    *shared
	at   netip.Addr
	cfg  Config
	life context.Context
	end  context.CancelFunc
}

// Addr is the address listened on.
func (u *Use) Addr() net.Addr { return net.TCPAddrFromAddrPort(u.s.bound) }

// Wait is vitcp.Listener.Wait, for requests that came to the address of the Use. Errors: those; net.ErrClosed after
// Close; too many.
func (u *Use) Wait(ctx context.Context, f vitcp.Filter) (*vitcp.Pending, error) {
	f.At = u.at
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(u.life, cancel)()
	r, err := u.s.wait(ctx, f)
	if u.life.Err() != nil {
		if r != nil {
			_ = r.Close()
		}
		return nil, fmt.Errorf("vitcp: wait for %v: %w", f.Called, net.ErrClosed)
	}
	return r, err
}

// Close ends the Waits of the Use; the last one's ends the port in this process, and waits until nothing is left of
// it. Requests that Wait has returned stay.
func (u *Use) Close() {
	u.end()
	if u.s.leave(u) {
		<-u.s.gone
	}
}
