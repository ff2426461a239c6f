package nd2

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
)

// lingering is how long Disconnect lets requests that are under way end.
const lingering = 100 * time.Millisecond

// connectorState is how far a connector is.
type connectorState uint8

const (
	unused     connectorState = iota
	connecting                // in Connect or Accept
	requested                 // by GetConnectionRequest: to be accepted or rejected
	accepted                  // by the peer: to be completed or rejected
	connected
	disconnected
)

// String is the state in words.
func (s connectorState) String() string {
	return [...]string{"unused", "connecting", "given a request", "accepted by its peer", "connected", "disconnected"}[s]
}

// Connector connects a queue pair to a peer, once (IND2Connector).
//
//	active side: Connect, CompleteConnect       passive side: GetConnectionRequest, Accept
//
// A Connect that failed may be tried again, with the same queue pair.
type Connector struct {
	a *Adapter
	// life ends with Close, and what waits in the connector with it.
	life context.Context
	end  context.CancelFunc

	mu                sync.Mutex
	state             connectorState // guarded by mu, as all below
	local             netip.AddrPort // by Bind; zero: any
	qp                *QueuePair     // from Connect or Accept on
	req               *cm.Request    // of the passive side
	conn              *cm.Conn       // from accepted or connected on
	private           []byte         // of the peer
	inbound, outbound int            // the peer's limits on Reads, seen from here
}

// Bind chooses the local address of Connect; port 0 stands for any. Whether it is
// free shows in Connect. Errors: ErrInvalidAddress (it is not the adapter's),
// ErrAddressAlreadyExists (the connector is in use).
func (c *Connector) Bind(local netip.AddrPort) error {
	if !local.IsValid() {
		return refuse(ErrInvalidAddress, "no address")
	}
	if !local.Addr().IsUnspecified() {
		if _, err := c.a.provider.ResolveAddress(local.Addr()); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != unused {
		return refuse(ErrAddressAlreadyExists, "the connector has an address")
	}
	c.local = local
	return nil
}

// enter goes to state to, if the connector is in state from; refused is the error
// else.
func (c *Connector) enter(from, to connectorState, refused Status) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != from {
		return refuse(refused, "the connector is %v, and has to be %v", c.state, from)
	}
	c.state = to
	return nil
}

// within is ctx until Close.
func (c *Connector) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.life, cancel)
	return ctx, func() { stop(); cancel() }
}

func (c *Connector) set(s connectorState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
}

// GetReadLimits are the limits on Reads that the peer's Connect or Accept named:
// inbound is how many Reads it wants to have outstanding, outbound how many it
// answers, each as far as both adapters can. Errors: ErrConnectionInvalid (no peer
// has been heard of).
func (c *Connector) GetReadLimits() (inbound, outbound int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state < requested {
		return 0, 0, ErrConnectionInvalid
	}
	return c.inbound, c.outbound, nil
}

// heard notes what the peer said, with mu held. An MPA frame need not have limits.
func (c *Connector) heard(private []byte, peerIRD, peerORD int) {
	known := func(n, most int) int {
		if n < 0 {
			return most
		}
		return min(n, most)
	}
	c.private = private
	c.inbound = known(peerORD, c.a.info.MaxInboundReadLimit)
	c.outbound = known(peerIRD, c.a.info.MaxOutboundReadLimit)
}

// GetPrivateData is what the peer's Connect, Accept or Reject sent along; valid until
// the program changes it. Errors: ErrConnectionInvalid (no peer has been heard of).
func (c *Connector) GetPrivateData() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state < requested && c.private == nil {
		return nil, ErrConnectionInvalid
	}
	return c.private, nil
}

// GetLocalAddress is this side's address. Errors: ErrConnectionInvalid (not
// connected).
func (c *Connector) GetLocalAddress() (netip.AddrPort, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return netip.AddrPort{}, ErrConnectionInvalid
	}
	return addrPort(c.conn.LocalAddr())
}

// GetPeerAddress is the peer's address. Errors: ErrConnectionInvalid (not
// connected, nor asked to).
func (c *Connector) GetPeerAddress() (netip.AddrPort, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.conn != nil:
		return addrPort(c.conn.RemoteAddr())
	case c.req != nil:
		return addrPort(c.req.RemoteAddr())
	}
	return netip.AddrPort{}, ErrConnectionInvalid
}

func addrPort(a net.Addr) (netip.AddrPort, error) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, refuse(ErrInvalidAddress, "%v is no TCP address", a)
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port()), nil
}

// NotifyDisconnect waits until the connection has ended, by either side. Errors:
// ErrCanceled if ctx ends, or by Close; ErrConnectionInvalid (never connected).
func (c *Connector) NotifyDisconnect(ctx context.Context) error {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn == nil {
		return ErrConnectionInvalid
	}
	ctx, done := c.within(ctx)
	defer done()
	select {
	case <-conn.Done():
		return nil
	case <-ctx.Done():
		return canceled(ctx)
	}
}

// Disconnect ends the connection and waits until the peer knows. What has been sent
// arrives; requests that are still outstanding after a moment are canceled
// (ND-Flush-M2), and so are those of the peer. It succeeds also if the peer was
// first. The queue pair cannot be connected again. Errors: ErrCanceled if ctx ends:
// with requests outstanding the connection was reset, else it goes on to close, for the
// CloseTimeout of Provider.CM at most; ErrConnectionInvalid (not connected, or a second
// Disconnect).
func (c *Connector) Disconnect(ctx context.Context) error {
	c.mu.Lock()
	if c.state != accepted && c.state != connected {
		c.mu.Unlock()
		return ErrConnectionInvalid
	}
	c.state = disconnected
	q := c.qp
	c.mu.Unlock()
	return q.disconnect(ctx)
}

// Close releases the connector. Who waits in it gets ErrCanceled. A request that was not
// answered is rejected, a connection that was not completed is abandoned; one that is
// established goes on until its queue pair is closed.
func (c *Connector) Close() error {
	c.end() // first: what comes of a Connect under way finds that, or state tells of it here
	c.mu.Lock()
	state := c.state
	c.mu.Unlock()
	if state == requested || state == accepted {
		return c.Reject(nil)
	}
	return nil
}
