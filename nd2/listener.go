package nd2

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"github.com/softrnic/softrnic/cm"
)

// A listener that names no limit has the greatest backlog. In one of less than the
// least, the requests of one host would leave no place for those of others.
const (
	minBacklog = 16
	maxBacklog = 4096
)

// Listener takes requests to connect (IND2Listener).
type Listener struct {
	a *Adapter

	mu     sync.Mutex
	bound  net.Listener // by Bind; guarded by mu, as below
	cm     *cm.Listener // by Listen
	closed bool
}

// Bind chooses the local address; port 0 stands for a free one. TCP reserves the
// address from here on, so that a peer that connects before Listen waits. Errors:
// ErrSharingViolation (it is in use), ErrInvalidAddress (it is not the adapter's),
// ErrInvalidDeviceState (the listener has an address, or is closed),
// ErrInsufficientResources.
func (l *Listener) Bind(local netip.AddrPort) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.bound != nil || l.closed:
		return refuse(ErrInvalidDeviceState, "the listener has an address, or is closed")
	case !local.IsValid():
		return refuse(ErrInvalidAddress, "no address")
	}
	bound, err := net.Listen("tcp", local.String())
	switch {
	case err == nil:
		l.bound = bound
		return nil
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS):
		return refuse(ErrInsufficientResources, "%v", err)
	}
	return connectError(context.Background(), err)
}

// Listen begins to take requests; up to backlog of them, 16 at least, wait for
// GetConnectionRequest. 0 stands for many. One host has half of them at most; those
// beyond are refused, which their Connect reports as ErrConnectionRefused. Peers that
// have not sent their request do not count. Errors:
// ErrInvalidDeviceState (without Bind, or a second time).
func (l *Listener) Listen(backlog int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bound == nil || l.cm != nil || l.closed {
		return refuse(ErrInvalidDeviceState, "the listener has no address, or listens, or is closed")
	}
	if backlog <= 0 {
		backlog = maxBacklog
	}
	c := l.a.provider.CM
	l.cm = cm.NewListener(l.bound, cm.ListenConfig{
		Rev: c.Rev, Timeout: c.Timeout, Backlog: min(max(backlog, minBacklog), maxBacklog),
	})
	return nil
}

// GetLocalAddress is the address listened on. Errors: ErrInvalidDeviceState (it does
// not listen).
func (l *Listener) GetLocalAddress() (netip.AddrPort, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cm == nil || l.closed {
		return netip.AddrPort{}, refuse(ErrInvalidDeviceState, "the listener does not listen")
	}
	return addrPort(l.cm.Addr())
}

// GetConnectionRequest waits for the next request and gives it to connector, which is
// unused, to Accept or Reject. Several may wait, each for a request. Errors:
// ErrCanceled if ctx ends or the listener is closed; ErrInvalidDeviceState (it does
// not listen); ErrInvalidParameter1 (the connector is another adapter's);
// ErrConnectionActive (it is in use); ErrUnsuccessful (the system fails to accept).
func (l *Listener) GetConnectionRequest(ctx context.Context, connector *Connector) error {
	l.mu.Lock()
	from := l.cm
	l.mu.Unlock()
	switch {
	case from == nil:
		return refuse(ErrInvalidDeviceState, "the listener does not listen")
	case connector == nil || connector.a != l.a:
		return refuse(ErrInvalidParameter1, "the connector is not this adapter's")
	}
	if err := connector.enter(unused, connecting, ErrConnectionActive); err != nil {
		return err
	}
	ctx, leave := connector.within(ctx)
	defer leave()
	req, err := from.Accept(ctx)
	if err != nil {
		connector.set(unused)
		switch {
		case ctx.Err() != nil:
			return canceled(ctx)
		case errors.Is(err, net.ErrClosed):
			return refuse(ErrCanceled, "the listener was closed")
		}
		return refuse(ErrUnsuccessful, "%v", err)
	}
	connector.mu.Lock()
	defer connector.mu.Unlock()
	if connector.life.Err() != nil { // Close was faster, and has found nothing to reject
		connector.state = disconnected
		_ = req.Reject(nil)
		return canceled(connector.life)
	}
	connector.state, connector.req = requested, req
	connector.heard(req.PrivateData(), req.PeerIRD(), req.PeerORD())
	return nil
}

// Close stops listening; peers whose requests were not retrieved are refused, and who
// waits gets ErrCanceled. Connections go on.
func (l *Listener) Close() error {
	l.mu.Lock()
	bound, from := l.bound, l.cm
	l.closed = true
	l.mu.Unlock()
	l.a.mu.Lock()
	delete(l.a.listeners, l)
	l.a.mu.Unlock()
	switch {
	case from != nil:
		return from.Close()
	case bound != nil:
		return bound.Close()
	}
	return nil
}
