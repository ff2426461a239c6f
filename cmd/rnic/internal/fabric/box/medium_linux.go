package box

import (
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/layout"
)

// port is the end of a cable at a switch, with what makes the properties of the cable.
type port struct {
	b      *Box
	name   string // of its interface, in the switches' network
	bridge int
	far    end // the other end
	medium Medium
	wire   *wire
}

// end is an interface in some network.
type end struct {
	nl   *netlink.Handle
	name string
}

// probe finds out which disciplines this kernel has, by giving them to the loopback of the switches.
func (b *Box) probe() {
	lo := end{b.nl, "lo"}
	p := layout.Properties{Delay: time.Millisecond, Rate: 1e9}
	b.netem = lo.discipline(Netem, p) == nil
	b.tbf = lo.discipline(TBF, p) == nil
	_ = lo.discipline(Plain, p) // there is none, if neither is
}

// Has reports what the kernel has.
func (b *Box) Has() (netem, tbf bool) { return b.netem, b.tbf }

// mediumFor is what makes such properties, with these disciplines.
func mediumFor(p layout.Properties, netem, tbf bool) Medium {
	switch {
	case p == layout.Properties{}:
		return Plain
	case netem:
		return Netem
	case p.Delay == 0 && p.Loss == 0 && tbf:
		return TBF
	}
	return Wire
}

// set gives the cable properties, each way.
func (p *port) set(to layout.Properties) error {
	m := mediumFor(to, p.b.netem, p.b.tbf)
	if m == Wire {
		if p.wire != nil {
			p.wire.set(to)
			return nil
		}
		if err := errors.Join(p.discipline(Plain, to), p.rewire(to)); err != nil {
			return fmt.Errorf("this kernel has no netem, and carrying packets in user space failed: %w", err)
		}
		p.medium = m
		return nil
	}
	if p.wire != nil {
		if err := p.unwire(); err != nil {
			return err
		}
	}
	err := p.discipline(m, to)
	if err == nil {
		p.medium = m
	}
	return err
}

// discipline has the queues of both ends be so.
func (p *port) discipline(m Medium, to layout.Properties) error {
	if m == Plain && (p.medium == "" || p.medium == Plain || p.medium == Wire) {
		return nil
	}
	return errors.Join((end{p.b.nl, p.name}).discipline(m, to), p.far.discipline(m, to))
}

// The queue of a discipline holds what comes in so long a time at its rate, beyond what is under way.
const (
	queueTime  = 50 * time.Millisecond
	leastQueue = 128 << 10 // octets: two bursts of a socket
	packet     = 1500
)

func queueOctets(p layout.Properties) uint64 {
	return max(uint64(float64(p.Rate)/8*(queueTime+p.Delay).Seconds()), leastQueue)
}

// discipline has the interface's queue be of that kind.
func (e end) discipline(m Medium, p layout.Properties) error {
	l, err := e.nl.LinkByName(e.name)
	if err != nil {
		return err
	}
	at := netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)}
	var q netlink.Qdisc
	switch m {
	case Netem:
		limit := uint32(100_000) // packets; without a rate nothing waits but for the delay
		if p.Rate > 0 {
			limit = uint32(queueOctets(p)/packet) + 1
		}
		q = netlink.NewNetem(at, netlink.NetemQdiscAttrs{
			Latency: uint32(p.Delay.Microseconds()), Loss: float32(p.Loss * 100), Rate64: p.Rate / 8, Limit: limit,
		})
	case TBF:
		octets := p.Rate / 8
		burst := max(uint32(octets/250), 64<<10) // what comes between two ticks of a slow clock, and a burst of a socket
		q = &netlink.Tbf{
			QdiscAttrs: at, Rate: octets, Limit: uint32(min(queueOctets(p)+uint64(burst), 1<<31)), Buffer: netlink.Xmittime(octets, burst),
		}
	case Plain, Wire:
		err := e.nl.QdiscDel(&netlink.GenericQdisc{QdiscAttrs: at})
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) {
			return nil // there was none
		}
		return err
	}
	return e.nl.QdiscReplace(q)
}

// rewire takes the end from its switch, and has this process carry packets between it and a new end there.
func (p *port) rewire(to layout.Properties) error {
	near, far := "w"+p.name, "v"+p.name
	if err := p.b.nl.LinkAdd(&netlink.Veth{LinkAttrs: attrs(near), PeerName: far}); err != nil {
		return err
	}
	l, err := p.b.nl.LinkByName(p.name)
	if err == nil {
		err = p.b.nl.LinkSetNoMaster(l)
	}
	if err == nil {
		err = p.b.join(far, p.bridge)
	}
	var carried netlink.Link
	if err == nil {
		carried, err = p.b.nl.LinkByName(near)
	}
	if err == nil {
		err = p.b.nl.LinkSetUp(carried)
	}
	for _, e := range []end{p.far, {p.b.nl, far}} { // a packet at a time, or a loss would be that of 64 KiB
		if err == nil {
			err = e.segments(1)
		}
	}
	if err == nil {
		p.wire, err = newWire(l.Attrs().Index, carried.Attrs().Index, to)
	}
	if err != nil {
		_ = p.unwire()
	}
	return err
}

// unwire undoes rewire.
func (p *port) unwire() error {
	p.stop()
	if l, err := p.b.nl.LinkByName("w" + p.name); err == nil {
		if err := p.b.nl.LinkDel(l); err != nil {
			return err
		}
	}
	l, err := p.b.nl.LinkByName(p.name)
	if err != nil {
		return err
	}
	br, err := p.b.nl.LinkByName(switchName(p.bridge))
	if err != nil {
		return err
	}
	return errors.Join(p.b.nl.LinkSetMaster(l, br), p.far.segments(65535))
}

// segments is how many packets one send of a socket may be there.
func (e end) segments(n int) error {
	l, err := e.nl.LinkByName(e.name)
	if err != nil {
		return err
	}
	return e.nl.LinkSetGSOMaxSegs(l, n)
}

func (p *port) stop() {
	if p.wire != nil {
		p.wire.close()
		p.wire = nil
	}
}
