//go:build linux && (amd64 || arm64)

package portmap

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patience is how long another host's mapper has for an answer. A request is sent tries times in it.
	patience = 150 * time.Millisecond
	tries    = 3
	// silence is how long a host that said nothing is not asked again: its firewall drops UDP, or there is no host.
	silence = 30 * time.Second
	// maxSilent bounds the hosts that are remembered.
	maxSilent = 1024
)

// Find is where a number is served: dst, or the same address with the TCP port that stands for it. A connection to it will come
// from src. A host that has no port mapper says so at once; one that is silent costs 150 ms, once in a while.
func (s *Space) Find(ctx context.Context, src, dst netip.AddrPort) netip.AddrPort {
	a := dst.Addr().Unmap()
	if a.IsLoopback() || a == src.Addr().Unmap() {
		if tcp, ok := s.local(ctx, dst); ok {
			return netip.AddrPortFrom(dst.Addr(), tcp)
		}
		return dst
	}
	if tcp := s.elsewhere(ctx, src, netip.AddrPortFrom(a, dst.Port())); tcp != 0 {
		return netip.AddrPortFrom(dst.Addr(), tcp)
	}
	return dst
}

// elsewhere is the TCP port of a number at another host; 0 is not known.
func (s *Space) elsewhere(ctx context.Context, src, dst netip.AddrPort) uint16 {
	a := dst.Addr()
	s.mu.Lock()
	quiet := time.Now().Before(s.silent[a])
	s.mu.Unlock()
	if quiet {
		return 0
	}
	tcp, err := s.remote(ctx, src, dst)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.mu.Lock()
		if len(s.silent) >= maxSilent {
			clear(s.silent)
		}
		s.silent[a] = time.Now().Add(silence)
		s.mu.Unlock()
	}
	return tcp
}

// local is the TCP port of a number at an address of this host.
func (s *Space) local(ctx context.Context, at netip.AddrPort) (uint16, bool) {
	a := at.Addr().Unmap().WithZone("")
	addrs := []string{a.String(), "::", both}
	if a.Is4() {
		addrs[1] = "0.0.0.0"
	}
	for _, addr := range addrs {
		if tcp, ok := s.ask(ctx, addr, at.Port()); ok {
			return tcp, true
		}
	}
	return 0, false
}

// ask reads what a claim's owner says, if the port is one that he may have: those below 1024 are root's, and this user's.
func (s *Space) ask(ctx context.Context, addr string, port uint16) (uint16, bool) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	c, err := s.dial(ctx, nameOf(addr, port))
	if err != nil {
		return 0, false
	}
	defer c.Close()
	limit, _ := ctx.Deadline()
	_ = c.SetDeadline(limit)
	var b [2]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return 0, false
	}
	tcp := binary.BigEndian.Uint16(b[:])
	return tcp, tcp != 0 && (port >= 1024 || trusted(c))
}

// trusted reports whether the other end is root's, or of this user.
func trusted(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	err = raw.Control(func(fd uintptr) {
		u, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		ok = err == nil && (u.Uid == 0 || int(u.Uid) == os.Getuid())
	})
	return ok && err == nil
}

// remote asks the mapper of another host. 0 says that it knows of no such number. os.ErrDeadlineExceeded says that nothing
// was heard, other errors that there is no mapper.
func (s *Space) remote(ctx context.Context, src, dst netip.AddrPort) (uint16, error) {
	d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(src.Addr().Unmap(), 0)), Control: s.control(nil)}
	c, err := d.DialContext(ctx, "udp", netip.AddrPortFrom(dst.Addr(), s.port).String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	q := message{handle: rand.Uint64(), accepting: dst, connecting: netip.AddrPortFrom(src.Addr().Unmap(), src.Port())}
	b := make([]byte, requestSize+1)
	for range tries {
		if _, err = c.Write(q.append(nil)); err != nil {
			return 0, err
		}
		_ = c.SetReadDeadline(time.Now().Add(patience / tries))
		var n int
		for err == nil {
			if n, err = c.Read(b); err != nil {
				break
			}
			m, wrong := decode(b[:n])
			switch {
			case wrong != nil || m.handle != q.handle:
			case m.kind == kindAccept:
				m.kind = kindAck
				_, _ = c.Write(m.append(nil))
				return m.accepting.Port(), nil
			case m.kind == kindReject:
				return 0, nil
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
	}
	return 0, err
}
