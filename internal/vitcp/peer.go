package vitcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Passive is what Peer waits with: a Listener, or a place at one.
type Passive interface {
	Addr() net.Addr
	Wait(ctx context.Context, f Filter) (*Pending, error)
}

// Peer establishes a connection peer to peer: both ends call it, each with its
// own address first. The end with the higher IP address is the active one
// (section 4); if its ConnectRequest finds no match, because the other end has
// not called yet, it tries again until ctx ends. The other end waits at l. Both
// ends have a Listener, on the port that the other's remote names.
//
// If local has no IP address, it is the Listener's, or else the one that reaches
// the peer. If both addresses are equal, as on one machine, the ports of the
// Listeners decide, and then the discriminators: the draft does not say.
//
// Errors are Dial's and Wait's; the passive end has a *MismatchError too, having
// rejected the request.
func Peer(ctx context.Context, l Passive, local, remote Address, cfg Config) (*Agreed, error) {
	cfg, err := cfg.resolved()
	if err = errors.Join(err, valid(local.Discriminator, remote.Discriminator)); err != nil {
		return nil, err
	}
	if !remote.Host.Addr().IsValid() {
		return nil, fmt.Errorf("%w: the peer has no IP address", ErrInvalid)
	}
	remote = remote.withPort()
	if local, err = self(l, local, remote); err != nil {
		return nil, err
	}
	switch order := compare(local, remote); {
	case order > 0:
		return insist(ctx, local, remote, cfg)
	case order < 0:
		return expect(ctx, l, local, remote, cfg)
	default:
		return nil, fmt.Errorf("%w: %v is both ends", ErrInvalid, local)
	}
}

// compare orders two ends: IP addresses as unsigned numbers, then what else
// tells them apart. An IPv6 form of an IPv4 address is that IPv4 address.
func compare(a, b Address) int {
	return cmp.Or(
		plain(a.Host.Addr()).Compare(plain(b.Host.Addr())),
		cmp.Compare(a.Host.Port(), b.Host.Port()),
		cmp.Compare(a.Discriminator, b.Discriminator),
	)
}

// self is local as the peer sees it: with an IP address and the Listener's port.
func self(l Passive, local, remote Address) (Address, error) {
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return local, fmt.Errorf("%w: the Listener's address %v is not of TCP", ErrInvalid, l.Addr())
	}
	ip := local.Host.Addr()
	if !ip.IsValid() || ip.IsUnspecified() {
		ip = at.Addr()
	}
	if ip.IsUnspecified() {
		nc, err := net.Dial("udp", remote.Host.String()) // sends nothing: it only looks for the way
		if err != nil {
			return local, fmt.Errorf("vitcp: no way to %v: %w", remote, err)
		}
		defer nc.Close()
		ip = netip.MustParseAddrPort(nc.LocalAddr().String()).Addr()
	}
	local.Host = netip.AddrPortFrom(ip, at.Port())
	return local, nil
}

// insist is the active end: ConnectNoMatch is a reason to try again (section 4).
func insist(ctx context.Context, local, remote Address, cfg Config) (*Agreed, error) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		agr, err := dial(ctx, local, remote, cfg, true)
		if !errors.Is(err, ErrNoMatch) {
			return agr, err
		}
		if !sleep(ctx, pause) {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

// expect is the passive end: it accepts the one request that is meant for it. If
// that one's connection is lost before the Accept is out, the active end
// connects again (figure 4.2).
func expect(ctx context.Context, l Passive, local, remote Address, cfg Config) (*Agreed, error) {
	f := Filter{Called: local.Discriminator, Calling: &remote.Discriminator, From: remote.Host.Addr(), PeerToPeer: true}
	for {
		r, err := l.Wait(ctx, f)
		if err != nil {
			return nil, err
		}
		agr, err := r.Accept(ctx, cfg)
		var mismatch *MismatchError
		switch {
		case err == nil:
			return agr, nil
		case errors.As(err, &mismatch):
			soon, cancel := context.WithTimeout(ctx, rejectTimeout)
			_ = r.Reject(soon, mismatch.Reason) // that it failed would add nothing
			cancel()
			return nil, err
		case ctx.Err() != nil:
			return nil, err
		}
	}
}

// rejectTimeout bounds how long a rejected peer may take to take that in.
const rejectTimeout = 10 * time.Second
