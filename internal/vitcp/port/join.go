package port

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/softrnic/softrnic/internal/ownsock"
	"github.com/softrnic/softrnic/internal/vitcp"
)

// place is a process's at a port: the one that accepts, or a session there.
type place struct {
	nl *net.TCPListener
	// door is where other processes find the one that accepts, at path; nil if the port is not shared with any.
	door *net.UnixListener
	path string
	// session is with the process that accepts, if that is another one.
	session *ownsock.Conn
}

// errSoon is of a moment in which another process comes or goes.
var errSoon = errors.New("the process that had the port has ended or is hard pressed, and no other has taken its place yet")

// join finds this process's place. One that has just ended has no successor for a moment.
func (s *shared) join(within time.Duration) (place, error) {
	for end := time.Now().Add(within); ; {
		p, err := s.try()
		if err == nil || !errors.Is(err, errSoon) || time.Now().After(end) {
			return p, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-s.life.Done():
			return place{}, net.ErrClosed
		}
	}
}

// address is what the port is known by among processes: that of the socket, if there is one.
func (s *shared) address() netip.AddrPort {
	if s.bound.IsValid() {
		return s.bound
	}
	return s.at
}

// try looks once.
func (s *shared) try() (place, error) {
	at := s.address()
	if !ownsock.Passes || at.Port() == 0 {
		nl, err := listen(at)
		if inUse(err) {
			err = fmt.Errorf("%w: %w; this system cannot pass connections from one process to another: "+
				"have one process for all VIs of the port, or an address or a port for each", ErrInUse, err)
		}
		return place{nl: nl}, err
	}
	unlock, err := ownsock.Lock(s.life, s.ports.patience)
	if s.life.Err() != nil {
		if err == nil {
			unlock()
		}
		return place{}, net.ErrClosed
	}
	if err != nil {
		return s.alone(at, err)
	}
	p, c, err := s.look(at)
	unlock()
	if err != nil || c == nil {
		return p, err
	}
	return s.introduce(c)
}

// alone is a place at a port that cannot be shared, which may be nobody's.
func (s *shared) alone(at netip.AddrPort, why error) (place, error) {
	if s.nl != nil {
		return place{}, fmt.Errorf("vitcp: the process that had port %v has ended, and this one cannot take its place: %w", at, why)
	}
	nl, err := listen(at)
	if inUse(err) {
		err = fmt.Errorf("%w: %w; it cannot be shared: %w", ErrInUse, err, why)
	}
	return place{nl: nl}, err
}

// look is try with the lock: a place, or a connection to the process that has it.
func (s *shared) look(at netip.AddrPort) (p place, c *net.UnixConn, err error) {
	p.path = doorOf(at)
	c, stale, err := knock(p.path)
	switch {
	case errors.Is(err, errSoon):
		return p, nil, err
	case err != nil: // of the system, as for a path that is too long
		p, err = s.alone(at, err)
		return p, nil, err
	case c != nil:
		return p, c, nil
	}
	if p.nl = s.nl; p.nl == nil {
		if p.nl, err = listen(at); inUse(err) {
			return s.lookWide(at, stale, err)
		}
		if err != nil {
			return p, nil, err
		}
	}
	if p.door, err = ownsock.Listen(p.path); err != nil && s.nl != nil { // else it has the port for itself
		return p, nil, fmt.Errorf("vitcp: taking port %v over from a process that has ended: %w", at, err)
	}
	return p, nil, nil
}

// lookWide is look for a process that has the port at all addresses.
func (s *shared) lookWide(at netip.AddrPort, stale bool, taken error) (p place, c *net.UnixConn, err error) {
	for _, wide := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		if wide == at.Addr() || !vitcp.Covers(wide, at.Addr()) {
			continue
		}
		c, old, err := knock(doorOf(netip.AddrPortFrom(wide, at.Port())))
		if c != nil || err != nil {
			return p, c, err
		}
		stale = stale || old
	}
	if stale {
		return p, nil, fmt.Errorf("%w: %w: %w", ErrInUse, errSoon, taken)
	}
	return p, nil, fmt.Errorf("%w: %w; the program that has it is another user's, has another folder than %s "+
		"(XDG_RUNTIME_DIR), or does not share it: end that one, or use another address or port",
		ErrInUse, taken, ownsock.Folder())
}

// knock connects to the process that has a door; stale tells of one that had it.
func knock(path string) (c *net.UnixConn, stale bool, err error) {
	c, err = ownsock.Dial(path)
	switch {
	case err == nil:
		return c, false, nil
	case errors.Is(err, os.ErrNotExist):
		return nil, false, nil
	case ownsock.Refused(err):
		return nil, true, nil
	case ownsock.Busy(err):
		return nil, false, fmt.Errorf("%w: %w: many connections at %s", ErrInUse, errSoon, path)
	}
	return nil, false, err
}

// doorOf is the path of the socket at which the process is found that accepts at an address. It tells network
// namespaces apart, whose addresses may be the same; and it is short, as paths of sockets have to be.
func doorOf(at netip.AddrPort) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %v", namespace(), at)
	return filepath.Join(ownsock.Folder(), fmt.Sprintf("vi-%d-%016x", at.Port(), h.Sum64()))
}

// namespace is this process's of networks, where systems have those.
func namespace() string {
	name, _ := os.Readlink("/proc/self/ns/net")
	return name
}

// listen makes the socket. At all addresses of IPv6 it has IPv4's as well, or those alone where there is no IPv6.
func listen(at netip.AddrPort) (*net.TCPListener, error) {
	address := at.String()
	if at.Addr() == netip.IPv6Unspecified() {
		address = fmt.Sprintf(":%d", at.Port())
	}
	nl, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("vitcp: %w", err)
	}
	return nl.(*net.TCPListener), nil
}

// introduce has the process at the other end of c let this one in.
func (s *shared) introduce(c *net.UnixConn) (p place, err error) {
	session, err := ownsock.NewConn(c, s.ports.patience)
	if err != nil {
		return p, fmt.Errorf("%w: %w", ErrInUse, err)
	}
	defer context.AfterFunc(s.life, func() { _ = session.Close() })()
	defer func() {
		if err != nil {
			_ = session.Close()
		}
	}()
	if err = session.Write(msgHello, appendHello(nil, 0), nil); err != nil {
		return p, fmt.Errorf("%w: %w", errSoon, err)
	}
	m, err := session.Read(s.ports.patience)
	defer m.Discard()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return p, fmt.Errorf("%w for %v: end it", ErrStill, s.ports.patience)
	case errors.Is(err, ownsock.ErrNoDescriptors):
		return p, fmt.Errorf("vitcp: %w", err)
	case ownsock.Malformed(err):
		return p, fmt.Errorf("%w: %w", ErrInUse, err)
	case err != nil:
		return p, fmt.Errorf("%w: %w", errSoon, err)
	case m.Type == msgRefusal && m.File == nil:
		return p, fmt.Errorf("%w: %s", ErrInUse, parseRefusal(m.Body))
	case m.Type != msgWelcome || m.File == nil:
		return p, fmt.Errorf("%w: what has it is no VI NIC of this version: %w", ErrInUse, malformed("no welcome"))
	}
	nl, err := s.listening(m.File)
	if err != nil {
		return p, err
	}
	if s.nl != nil { // this process has it already
		_ = nl.Close()
		nl = s.nl
	}
	return place{nl: nl, session: session}, nil
}

// listening is the listening socket that came with a welcome, which has to be one that the address belongs to.
func (s *shared) listening(f *os.File) (*net.TCPListener, error) {
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: %w", ErrInUse, malformed("no listening socket"), err)
	}
	nl, ok := l.(*net.TCPListener)
	ok = ok && ownsock.Listens(f)
	at := s.address()
	if ok {
		has := nl.Addr().(*net.TCPAddr).AddrPort()
		ok = has.Port() == at.Port() && vitcp.Covers(has.Addr(), at.Addr())
	}
	if !ok {
		_ = l.Close()
		return nil, fmt.Errorf("%w: %w", ErrInUse, malformed("no listening socket of that address"))
	}
	return nl, nil
}
