//go:build linux && (amd64 || arm64)

package portmap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// again is the pause before a claim tries once more to be the mapper, or to follow one that it could not watch.
const again = time.Second

// leastRest is the pause behind the end of a mapper that is followed, if there was none before; each is twice the last, up to again.
const leastRest = time.Millisecond

// asked is how many requests a mapper looks at, at once; more are dropped, and come again.
const asked = 16

// mapper has one claim of all on a host answer requests for all of them: the one that has the mapper's abstract socket. The
// others wait for its end in that socket's queue, and the first takes its place. A claim that cannot have the UDP port says so
// once, and tries again: iwpmd may end, and a child that its owner forked has the port until it runs another program.
func (c *Claim) mapper() {
	name := "@softrnic-portmapper-" + strconv.Itoa(int(c.space.port))
	said, rest := false, leastRest
	for {
		l, err := c.space.listen(name)
		begun := time.Now()
		switch {
		case err == nil:
			err = c.space.serve(c.done)
			_ = l.Close()
			if err != nil && !said {
				said = true
				c.space.report(fmt.Errorf("programs on other hosts do not find the port that stands for %v: %w", c.at, err))
			}
		case !errors.Is(err, syscall.EADDRINUSE):
			c.space.report(err)
			return
		case c.follow(name):
			// One that takes nobody, which none of ours is, is not asked all the time.
			if rest = min(2*rest, again); time.Since(begun) > again {
				rest = leastRest
			}
			if !c.pause(rest) {
				return
			}
			continue
		}
		if !c.pause(again) {
			return
		}
	}
}

// follow waits until the mapper ends, or the claim; it reports false if it cannot.
func (c *Claim) follow(name string) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := c.space.dial(ctx, name)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED) // it has just ended
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, s)
	}()
	select {
	case <-over:
		_ = s.Close()
	case <-c.done:
		_ = s.Close()
		<-over
		return false // pause ends the loop
	}
	return true
}

// serve answers requests at the mapper's UDP port until done. An error is that of the port, for instance that iwpmd has it.
func (s *Space) serve(done <-chan struct{}) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	four, err := s.listenUDP(ctx, "udp4", func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1) })
	if err != nil {
		return err
	}
	room := make(chan struct{}, asked)
	var answering sync.WaitGroup
	answering.Go(func() { s.answer(ctx, four, room) })
	six, err := s.listenUDP(ctx, "udp6", func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1) })
	if err == nil { // not every host has IPv6
		answering.Go(func() { s.answer(ctx, six, room) })
	}
	<-done
	cancel()
	_ = four.Close()
	if err == nil {
		_ = six.Close()
	}
	answering.Wait()
	return nil
}

func (s *Space) listenUDP(ctx context.Context, network string, options func(fd int) error) (*net.UDPConn, error) {
	c := net.ListenConfig{Control: s.control(options)}
	l, err := c.ListenPacket(ctx, network, ":"+strconv.Itoa(int(s.port)))
	if err != nil {
		return nil, err
	}
	return l.(*net.UDPConn), nil
}

// answer takes requests of one socket until it is closed.
func (s *Space) answer(ctx context.Context, u *net.UDPConn, room chan struct{}) {
	var answers sync.WaitGroup
	defer answers.Wait()
	b, control := make([]byte, requestSize+1), make([]byte, 64)
	for {
		n, k, _, from, err := u.ReadMsgUDPAddrPort(b, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		m, wrong := decode(b[:n])
		if err != nil || wrong != nil || m.kind != kindRequest {
			continue
		}
		select {
		case room <- struct{}{}:
		default:
			continue
		}
		back := sameWay(control[:k])
		answers.Go(func() {
			defer func() { <-room }()
			m.kind = kindReject
			if tcp, ok := s.local(ctx, m.accepting); ok {
				m.kind, m.accepting = kindAccept, netip.AddrPortFrom(m.accepting.Addr(), tcp)
			}
			_, _, _ = u.WriteMsgUDPAddrPort(m.append(nil), back, from)
		})
	}
}

// sameWay makes of the control message that came with a datagram the one for its answer: from the address that it was sent
// to. The way is the routing table's.
func sameWay(control []byte) []byte {
	ms, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(ms) != 1 {
		return nil
	}
	switch m := ms[0]; {
	case m.Header.Type == unix.IP_PKTINFO && len(m.Data) == unix.SizeofInet4Pktinfo:
		p := unix.Inet4Pktinfo{Spec_dst: [4]byte(m.Data[4:8])}
		return unix.PktInfo4(&p)
	case m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) == unix.SizeofInet6Pktinfo:
		p := unix.Inet6Pktinfo{Addr: [16]byte(m.Data[:16])}
		return unix.PktInfo6(&p)
	}
	return nil
}
