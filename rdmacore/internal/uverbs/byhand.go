//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/cm"
)

// Queue pairs that programs bring up by hand, with the peer's GID and queue pair number told out of band
// and MODIFY_QP to RTR, find each other by the number alone:
//
//	queue pair number = TCP port << 8 | index
//
// Each 256 queue pairs of a device share a port, at which there is a listener on each address of the device. Of two queue pairs the one with the lower (address,
// number) dials the port that the other's number has; MODIFY_QP returns at once, and what is posted meanwhile
// waits (byhand_trials.go). docs/c-programs.md tells programs what that means.

const (
	// qpsPerPort is how many queue pairs share a listener.
	qpsPerPort = 1 << 8
	// maxEarly is how many Requests of all queue pairs wait for their own change to RTR.
	maxEarly = 256
)

// byHand is what a device knows of its queue pairs' numbers.
type byHand struct {
	least atomic.Int64 // nanoseconds; 0 stands for leastPatience

	mu    sync.Mutex
	ports map[uint16]*handPort // guarded by mu, as below
	early int                  // Requests that wait
}

// handPort is a port and the queue pairs that share it.
type handPort struct {
	number    uint16
	listeners []*cm.Listener // of each address
	datagrams udpConns       // of UD queue pairs; nil without any
	used      int
	next      uint8 // the index to try first, so that one is not soon another's
	qps       [qpsPerPort]*handQP
}

// handQP is a queue pair that has a number.
type handQP struct {
	qp    *QP
	link  *link         // from a change to RTR on, until one to RESET
	early []*cm.Request // that came before it, one of an address
}

// newQPN gives a queue pair its number, before it is made. It is called once. Errors: of listening.
func (d *Device) newQPN(q *QP) (uint32, error) {
	h := &d.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.ports {
		if p.used < qpsPerPort && (q.ud == nil || p.datagrams != nil) {
			return p.add(q), nil
		}
	}
	p, err := d.newPort(q.ud != nil)
	if err != nil {
		r := refusal(err)
		d.Report("listen", "a queue pair needs a port on %v, the device's address: %v", d.config.Addr, err)
		return 0, r
	}
	if h.ports == nil {
		h.ports = map[uint16]*handPort{}
	}
	h.ports[p.number] = p
	for _, l := range p.listeners {
		go d.serve(p, l)
	}
	for i, c := range p.datagrams {
		go d.serveUDP(p, c, d.addrs[i])
	}
	return p.add(q), nil
}

// newPort listens on a TCP port, and with datagrams on the UDP ports of the same number.
func (d *Device) newPort(datagrams bool) (*handPort, error) {
	for try := 1; ; try++ {
		listeners, err := d.listenAll()
		if err == nil {
			p := &handPort{number: listeners[0].Addr().(*net.TCPAddr).AddrPort().Port()}
			if datagrams {
				p.datagrams, err = d.listenUDPs(p.number)
			}
			if err == nil {
				for _, l := range listeners {
					p.listeners = append(p.listeners, cm.NewListener(d.Owning(l), cm.ListenConfig{}))
				}
				return p, nil
			}
			closeAll(listeners)
		}
		if try == portTries || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
	}
}

// listenAll listens on a free port of the device's address, and on that of each further address that there is still. Errors:
// EADDRINUSE among others.
func (d *Device) listenAll() (list []net.Listener, err error) {
	port := uint16(0)
	for _, a := range d.addrs {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, port)))
		if len(list) > 0 && errors.Is(err, syscall.EADDRNOTAVAIL) {
			continue // the interface has lost it
		}
		if err != nil {
			closeAll(list)
			return nil, err
		}
		list = append(list, l)
		port = l.Addr().(*net.TCPAddr).AddrPort().Port()
	}
	return list, nil
}

func closeAll(list []net.Listener) {
	for _, l := range list {
		_ = l.Close()
	}
}

// add finds a place, of which there is one; byHand.mu is held.
func (p *handPort) add(q *QP) uint32 {
	for p.qps[p.next] != nil {
		p.next++
	}
	n := uint32(p.number)<<8 | uint32(p.next)
	p.qps[p.next] = &handQP{qp: q}
	p.next++
	p.used++
	return n
}

// find is the queue pair of a number; nil if there is none; mu is held.
func (h *byHand) find(qpn uint32) *handQP {
	p := h.ports[uint16(qpn>>8)]
	if p == nil || qpn>>24 != 0 {
		return nil
	}
	return p.qps[qpn&(qpsPerPort-1)]
}

// freeQPN is told that the queue pair is gone. The listener closes with the last of its queue pairs.
func (d *Device) freeQPN(q *QP) {
	h := &d.hand
	h.mu.Lock()
	p, o := h.ports[uint16(q.qpn>>8)], h.find(q.qpn)
	if o == nil || o.qp != q {
		h.mu.Unlock()
		return
	}
	p.qps[q.qpn&(qpsPerPort-1)] = nil
	p.used--
	h.early -= len(o.early)
	last := p.used == 0
	if last {
		delete(h.ports, p.number)
	}
	h.mu.Unlock()
	d.refuseAll(o.early, sayNone)
	if o.link != nil {
		o.link.cancel(errGone)
	}
	if last {
		for _, l := range p.listeners {
			_ = l.Close()
		}
		p.datagrams.close()
	}
}

// refuseAll rejects Requests with a word for the peer, in the background.
func (d *Device) refuseAll(rs []*cm.Request, why string) {
	for _, r := range rs {
		d.Reject(r, []byte(why))
	}
}

var errGone error = &Refusal{syscall.EINVAL, "the program has given the queue pair up"}
