//go:build linux && (amd64 || arm64)

package portmap

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Claim is a number of the space at an address, and the TCP port that serves it: the name of an abstract socket, at which
// the owner says the port, two octets, big endian.
type Claim struct {
	space *Space
	at    netip.AddrPort
	name  *net.UnixListener
	done  chan struct{}

	serving sync.WaitGroup
}

// answerTime bounds a conversation over an abstract socket, whose other end may be stopped.
const answerTime = 100 * time.Millisecond

// names of claims begin so.
const prefix = "@softrnic-port-"

// both is the address of a listener for IPv6 and IPv4; "::" is one of IPv6 alone.
const both = "*"

// nameOf is the socket's name of a number at an address.
func nameOf(addr string, port uint16) string {
	return prefix + net.JoinHostPort(addr, strconv.Itoa(int(port)))
}

// Take claims a number at an address; dual makes "::" an address of both families. Errors: syscall.EADDRINUSE if the number is
// another's there, or overlaps with another's; others if this system has no abstract sockets.
func (s *Space) Take(at netip.AddrPort, dual bool) (*Claim, error) {
	addr := at.Addr().Unmap().WithZone("").String()
	if dual && at.Addr() == netip.IPv6Unspecified() {
		addr = both
	}
	for _, other := range claimed(at.Port()) {
		if covers(addr, other) || covers(other, addr) {
			return nil, &net.OpError{Op: "claim", Net: "rdma_cm", Err: os.NewSyscallError(nameOf(other, at.Port()), syscall.EADDRINUSE)}
		}
	}
	l, err := s.listen(nameOf(addr, at.Port()))
	if err != nil {
		return nil, err
	}
	return &Claim{space: s, at: at, name: l, done: make(chan struct{})}, nil
}

// covers reports whether a listener at a has what is for b.
func covers(a, b string) bool {
	four := strings.Contains(b, ".")
	return a == b || a == both || a == "0.0.0.0" && four || a == "::" && !four && b != both
}

// claimed are the addresses at which a port is claimed. Where /proc does not say, the names alone keep order.
func claimed(port uint16) []string {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	var addrs []string
	for line := range strings.Lines(string(text)) {
		_, rest, ok := strings.Cut(line, prefix)
		if !ok || !strings.Contains(line, " 00010000 ") { // not one that listens, but what it has accepted
			continue
		}
		if addr, p, err := net.SplitHostPort(strings.TrimSpace(rest)); err == nil && p == strconv.Itoa(int(port)) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// Serve tells those who ask that the number is served by a TCP port, until Close. If the two differ, peers on other hosts
// are told as well.
func (c *Claim) Serve(tcp uint16) {
	c.serving.Go(func() { c.answer(tcp) })
	if tcp != c.at.Port() {
		c.serving.Go(c.mapper)
	}
}

// answer is the owner's end of Space.ask.
func (c *Claim) answer(tcp uint16) {
	for {
		s, err := c.name.AcceptUnix()
		switch {
		case err == nil:
			_ = s.SetDeadline(time.Now().Add(answerTime))
			_, _ = s.Write(binary.BigEndian.AppendUint16(nil, tcp))
			_ = s.Close()
		case errors.Is(err, net.ErrClosed) || !c.pause(answerTime): // else this process is short of descriptors
			return
		}
	}
}

// pause waits for a while, unless the claim ends: then it reports false.
func (c *Claim) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.done:
		return false
	case <-t.C:
		return true
	}
}

// Close gives the number up, which is free when it returns; nil has none. It waits for nobody.
func (c *Claim) Close() {
	if c != nil {
		close(c.done)
		_ = c.name.Close()
		c.serving.Wait()
	}
}
