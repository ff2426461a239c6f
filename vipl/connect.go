package vipl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// ConnectRequest is VipConnectRequest (VI Architecture 9.4.4): it connects the VI with one
// whose program waits at remote, and returns that one's attributes. The VI then has the
// address local, of which the host may be left out. Pre-posted Receive Descriptors stay.
//
// Errors: ErrTimeout (a deadline that has passed already too); a cancelled context's;
// ErrReject (rejected; or nobody waits for that discriminator, which also matches
// vitcp.ErrNoMatch); ErrResource (unreachable, or disconnected meanwhile);
// ErrInvalidParameter (an address; not StateIdle; destroyed); and those of ConnectAccept if
// the two VIs do not fit. The VI is in StateIdle then, and in StateError if the answer
// made no sense, with ErrorConnLost to the error handler (5.2).
func (v *Vi) ConnectRequest(ctx context.Context, local, remote *NetAddress) (*ViAttributes, error) {
	from, err := v.nic.localAddress(local)
	if err != nil {
		return nil, err
	}
	to, err := remoteAddress(remote)
	if err != nil {
		return nil, err
	}
	a, err := v.begin(ctx, EventConnectRequest)
	if err != nil {
		return nil, err
	}
	a.local, a.peer = named(from), named(to)
	return a.finish(a.dial(from, to))
}

// localAddress checks an address that a VI of this Nic is to have.
func (n *Nic) localAddress(a *NetAddress) (vitcp.Address, error) {
	local := vitcp.Address{Host: n.host}
	if a == nil {
		return local, nil
	}
	if err := a.fits(); err != nil {
		return local, err
	}
	local.Discriminator = segment.Discriminator(a.Discriminator)
	if len(a.HostAddress) == 0 {
		return local, nil
	}
	host, err := a.check()
	switch {
	case err != nil:
		return local, err
	case !n.host.Addr().IsUnspecified() && host.Addr() != n.host.Addr(),
		host.Port() != 0 && host.Port() != n.host.Port():
		return local, invalid("%v is not an address of this NIC", a)
	}
	return local, nil
}

func remoteAddress(a *NetAddress) (vitcp.Address, error) {
	host, err := a.check()
	if err != nil {
		return vitcp.Address{}, err
	}
	if host.Port() == 0 {
		host = netip.AddrPortFrom(host.Addr(), vitcp.DefaultPort)
	}
	return vitcp.Address{Host: host, Discriminator: segment.Discriminator(a.Discriminator)}, nil
}

// named is an address as a program has it.
func named(a vitcp.Address) *NetAddress {
	host := a.Host
	if host.Port() == vitcp.DefaultPort { // which goes without saying
		host = netip.AddrPortFrom(host.Addr(), 0)
	}
	return NewNetAddress(host, []byte(a.Discriminator))
}

// dial is the active end of the VI/TCP draft 4.2.
func (a *attempt) dial(from, to vitcp.Address) (*vitcp.Agreed, error) {
	n := a.vi.nic
	if n.config.Dial == nil {
		return vitcp.Dial(a.ctx, from, to, a.config())
	}
	conn, err := n.config.Dial(a.ctx, "tcp", to.Host.String())
	if err != nil {
		return nil, err
	}
	return vitcp.Connect(a.ctx, conn, from.Discriminator, to.Discriminator, a.config())
}

// config is what this end wants of the connection.
func (a *attempt) config() vitcp.Config {
	n := a.vi.nic
	return vitcp.Config{
		Level:      segment.Level(a.want.ReliabilityLevel),
		Enable:     a.want.wire(),
		MTU:        a.want.MaxTransferSize,
		ReadWindow: n.config.ReadWindow,
		CRC:        a.want.CRC,
		RequireCRC: n.config.RequireCRC,
		RxPosted:   a.posted,
	}
}

// explain turns an error of an attempt into one of the appendix.
func (a *attempt) explain(err error) error {
	var rejected *vitcp.RejectedError
	var mismatch *vitcp.MismatchError
	switch {
	case a.vi.nic.life.Err() != nil:
		return errNicClosed
	case a.ctx.Err() != nil && errors.Is(err, context.Cause(a.ctx)): // PT-4-M2: of many attempts the last may have met nobody
		return ended(a.ctx)
	case errors.As(err, &rejected), errors.Is(err, vitcp.ErrNoMatch):
		return fmt.Errorf("%w: %w", ErrReject, err)
	case errors.As(err, &mismatch):
		return fmt.Errorf("%w: %w", mismatchCode(mismatch.Reason), err)
	case errors.Is(err, vitcp.ErrInvalid), errors.Is(err, vitcp.ErrAnswered):
		return fmt.Errorf("%w: %w", ErrInvalidParameter, err)
	case over(a.ctx): // VA-9.4.4-M1
		return ended(a.ctx)
	case tcpsock.IsRefused(err):
		return fmt.Errorf("%w: nothing listens at that address and port: %w", ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", ErrResource, err)
}

// mismatchCode is the code for attributes of two VIs that do not fit (9.4.2).
func mismatchCode(r vitcp.Reason) Return {
	switch r {
	case vitcp.ReasonLevel:
		return ErrInvalidReliabilityLevel
	case vitcp.ReasonMTU:
		return ErrInvalidMTU
	default:
		return ErrInvalidParameter
	}
}

// ConnectWait is VipConnectWait (VI Architecture 9.4.1): it waits until ctx ends for a
// connection request to the discriminator of local. The host of local may be left out.
//
// Errors: ErrTimeout; a cancelled context's; ErrResource (the Nic cannot listen);
// ErrInvalidParameter (an address that is not the Nic's; the Nic is closed).
func (n *Nic) ConnectWait(ctx context.Context, local *NetAddress) (*Conn, error) {
	return n.ConnectWaitFrom(ctx, local, nil)
}

// ConnectWaitFrom (extension; VA-4.1-S1) is ConnectWait for requests of a certain remote
// VI, which are left to other waits otherwise. A remote without HostAddress is on any host;
// the port of one does not matter, as a request comes from any. A remote whose
// Discriminator is nil is any VI there; an empty one is a discriminator like others. A nil
// remote is anybody. Errors: those of ConnectWait.
func (n *Nic) ConnectWaitFrom(ctx context.Context, local, remote *NetAddress) (*Conn, error) {
	at, err := n.localAddress(local)
	if err != nil {
		return nil, err
	}
	f := vitcp.Filter{Called: at.Discriminator}
	if err := remote.only(&f); err != nil {
		return nil, err
	}
	return n.passive.wait(ctx, f)
}

// only narrows f down to what a names.
func (a *NetAddress) only(f *vitcp.Filter) error {
	if a == nil {
		return nil
	}
	if len(a.HostAddress) > 0 {
		host, err := a.AddrPort()
		if err != nil {
			return err
		}
		f.From = host.Addr()
	}
	if a.Discriminator != nil {
		d := segment.Discriminator(a.Discriminator)
		f.Calling = &d
	}
	return a.fits()
}

// Conn is a VIP_CONN_HANDLE: a connection request that ConnectWait found. It is answered
// once, with ConnectAccept or ConnectReject (VA-4.1-M6).
type Conn struct {
	nic     *Nic
	remote  *NetAddress  // constant, as the next
	attribs ViAttributes // of the remote VI

	mu      lockorder.Mutex[lockorder.VIConn]
	pending *vitcp.Pending // guarded by mu; nil once answered
}

// RemoteAddr is the address of the remote VI: its host, and its own discriminator.
func (c *Conn) RemoteAddr() *NetAddress {
	a := *c.remote
	a.HostAddress, a.Discriminator = bytes.Clone(a.HostAddress), bytes.Clone(a.Discriminator)
	return &a
}

// RemoteViAttribs are the attributes of the remote VI. Its MaxTransferSize and its CRC are
// what it proposes.
func (c *Conn) RemoteViAttribs() *ViAttributes {
	a := c.attribs
	return &a
}

// newConn makes the handle of a request.
func newConn(n *Nic, p *vitcp.Pending) *Conn {
	ce := p.CE()
	var host netip.AddrPort
	if tcp, ok := p.RemoteAddr().(*net.TCPAddr); ok { // its port is not the provider's
		host = netip.AddrPortFrom(tcp.AddrPort().Addr(), 0)
	}
	return &Conn{
		nic: n, pending: p,
		remote:  NewNetAddress(host, []byte(ce.Calling)),
		attribs: *attributesOf(ce.Attributes, ce.MTU, ce.Options&segment.OptionCRC != 0),
	}
}

// ConnectAccept is VipConnectAccept (VI Architecture 9.4.2): it connects vi, which is in
// StateIdle. If the attributes of the two VIs do not fit the remote end is not told, and
// the request stands: accept it with other ones, or reject it.
//
// Errors: ErrInvalidReliabilityLevel and ErrInvalidMTU, the request stands;
// ErrInvalidParameter (vi is not of this Nic, not in StateIdle or destroyed: the request
// stands; or it has been answered); ErrResource (the remote end has gone).
func (c *Conn) ConnectAccept(vi *Vi) error {
	if vi == nil || vi.nic != c.nic { // VA-3.1-M1
		return invalid("a VI of another NIC, or none")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		return errAnswered
	}
	a, err := vi.begin(context.Background(), EventConnectAccept)
	if err != nil {
		return err
	}
	ce := c.pending.CE()
	a.local, a.peer = named(vitcp.Address{Host: c.nic.host, Discriminator: ce.Called}), c.RemoteAddr()
	agreed, err := c.pending.Accept(a.ctx, a.config())
	var mismatch *vitcp.MismatchError
	if !errors.As(err, &mismatch) { // VA-4.1-M6
		c.nic.passive.forget(c)
		c.pending = nil
	}
	_, err = a.finish(agreed, err)
	return err
}

// ConnectReject is VipConnectReject (VI Architecture 9.4.3). The remote end's attempt
// fails with ErrReject. Errors: ErrInvalidParameter (answered already).
func (c *Conn) ConnectReject() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		return errAnswered
	}
	_ = c.pending.Reject(c.nic.life, vitcp.ReasonConsumer) // if it cannot be told, it has gone
	c.nic.passive.forget(c)
	c.pending = nil
	return nil
}

// drop ends a request that nobody has answered, and reports whether there was one.
func (c *Conn) drop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		return false
	}
	_ = c.pending.Close()
	c.pending = nil
	return true
}

var errAnswered = invalid("the connection request has been answered")
