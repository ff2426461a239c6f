package box

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/layout"
)

// Box is the hosts, switches and cables of a fabric. The keeper's calls come one at a time.
type Box struct {
	f     *layout.Fabric
	nl    *netlink.Handle // of the network in which the switches are
	hosts []*host
	links []*link
	netem bool
	tbf   bool
}

// link is a cable as it is now.
type link struct {
	layout.Properties
	up    bool
	ports []*port // one an end at a NIC; of a trunk one, at A
}

// New makes it in the network, mount and UTS namespace of this process, which has to have them for itself: Unshared. dir
// is a folder for the hosts' files.
func New(f *layout.Fabric, dir string) (b *Box, err error) {
	b = &Box{f: f}
	if err = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("having switches send nothing of their own: %w", err)
	}
	if b.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, err
	}
	for i := range f.Switches {
		snooping := false
		br := &netlink.Bridge{LinkAttrs: attrs(switchName(i)), MulticastSnooping: &snooping}
		if err := b.nl.LinkAdd(br); err != nil {
			return nil, fmt.Errorf("making the switch %s: %w", f.Switches[i], err)
		}
		if err := b.nl.LinkSetUp(br); err != nil {
			return nil, err
		}
	}
	for i := range f.Hosts {
		h, err := newHost(f.Hosts[i].Name, filepath.Join(dir, f.Hosts[i].Name), f.Etc(i))
		if err != nil {
			return nil, fmt.Errorf("making the host %s: %w", f.Hosts[i].Name, err)
		}
		b.hosts = append(b.hosts, h)
	}
	b.probe()
	for i := range f.Links {
		if err := b.cable(i); err != nil {
			return nil, fmt.Errorf("making the link %s: %w", f.Links[i].Name, err)
		}
	}
	return b, nil
}

func switchName(i int) string { return fmt.Sprintf("s%d", i) }

func attrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	a.NumTxQueues, a.NumRxQueues = 1, 1 // one a processor costs memory and time, for 100 of them
	return a
}

// cable makes link i.
func (b *Box) cable(i int) error {
	l := &b.f.Links[i]
	made := &link{up: true}
	b.links = append(b.links, made)
	if len(l.Ends) == 0 {
		p := &port{b: b, name: fmt.Sprintf("t%d", i), bridge: l.A, far: end{nl: b.nl, name: fmt.Sprintf("u%d", i)}}
		veth := &netlink.Veth{LinkAttrs: attrs(p.name), PeerName: p.far.name}
		if err := b.nl.LinkAdd(veth); err != nil {
			return err
		}
		made.ports = []*port{p}
		if err := b.join(p.far.name, l.B); err != nil {
			return err
		}
		return b.begin(made, l.Properties)
	}
	for n, e := range l.Ends {
		h := b.hosts[e.Host]
		nic := b.f.Hosts[e.Host].NICs[e.NIC]
		p := &port{b: b, name: fmt.Sprintf("p%d_%d", i, n), bridge: nic.Switch, far: end{nl: h.nl, name: nic.Name}}
		veth := &netlink.Veth{LinkAttrs: attrs(p.name), PeerName: nic.Name, PeerNamespace: netlink.NsFd(h.net.Fd())}
		if err := b.nl.LinkAdd(veth); err != nil {
			return err
		}
		made.ports = append(made.ports, p)
		at, err := h.nl.LinkByName(nic.Name)
		if err == nil {
			err = h.nl.AddrAdd(at, &netlink.Addr{IPNet: &net.IPNet{IP: nic.Addr.Addr().AsSlice(), Mask: net.CIDRMask(nic.Addr.Bits(), nic.Addr.Addr().BitLen())}})
		}
		if err == nil {
			err = h.nl.LinkSetUp(at)
		}
		if err != nil {
			return err
		}
	}
	return b.begin(made, l.Properties)
}

// begin joins the near ends of a new cable with their switches.
func (b *Box) begin(l *link, p layout.Properties) error {
	for _, port := range l.ports {
		if err := b.join(port.name, port.bridge); err != nil {
			return err
		}
	}
	return b.set(l, p)
}

// join has an end of a cable be a port of a switch, and up.
func (b *Box) join(name string, bridge int) error {
	l, err := b.nl.LinkByName(name)
	if err != nil {
		return err
	}
	br, err := b.nl.LinkByName(switchName(bridge))
	if err == nil {
		err = b.nl.LinkSetMaster(l, br)
	}
	if err == nil {
		err = b.nl.LinkSetUp(l)
	}
	return err
}

// Change changes a link.
func (b *Box) Change(i int, c layout.Change) error {
	l := b.links[i]
	err := b.change(l, &b.f.Links[i], c)
	if err != nil {
		return fmt.Errorf("link %s: %w", b.f.Links[i].Name, err)
	}
	return nil
}

func (b *Box) change(l *link, as *layout.Link, c layout.Change) error {
	switch c.Verb {
	case layout.Down:
		return b.plug(l, false)
	case layout.Up:
		return b.plug(l, true)
	case layout.Mend:
		return errors.Join(b.set(l, as.Properties), b.plug(l, true))
	case layout.Delay, layout.Rate, layout.Loss:
	}
	return b.set(l, c.Apply(l.Properties))
}

// plug has a cable be in, or not: then the NIC at its other end has no carrier.
func (b *Box) plug(l *link, in bool) error {
	for _, p := range l.ports {
		at, err := b.nl.LinkByName(p.name)
		if err == nil && in {
			err = b.nl.LinkSetUp(at)
		} else if err == nil {
			err = b.nl.LinkSetDown(at)
		}
		if err != nil {
			return err
		}
	}
	l.up = in
	return nil
}

// set gives a link properties. A pair has two ends at NICs and one cable, so the first end has them alone.
func (b *Box) set(l *link, p layout.Properties) error {
	if err := l.ports[0].set(p); err != nil {
		return err
	}
	l.Properties = p
	return nil
}

// State is that of link i.
func (b *Box) State(i int) State {
	l := b.links[i]
	return State{b.f.Links[i].Name, l.up, l.Properties, l.ports[0].medium}
}

// Close ends what this process does for it. The namespaces end with the process.
func (b *Box) Close() {
	for _, l := range b.links {
		for _, p := range l.ports {
			p.stop()
		}
	}
	for _, h := range b.hosts {
		h.close()
	}
	b.nl.Close()
}
