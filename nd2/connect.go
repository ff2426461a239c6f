package nd2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/tcpsock"
)

// noTimeout is what an MPA startup is given: how long to wait is ctx's to say
// (NetworkDirect wants no limit on how long a listener takes to accept).
const noTimeout = 365 * 24 * time.Hour

// Connect asks the peer at remote to connect, with limits on Reads that are cut to
// what the adapter has, and up to MaxCallerData octets for the peer's program. It
// returns when the peer has accepted: see its answer with GetReadLimits and
// GetPrivateData, then call CompleteConnect or Reject. Receives for the peer's first
// Sends should have been posted before.
//
// After an error connector and queue pair are as before, and Connect may be called
// again. Errors: ErrConnectionRefused (no listener there, or it rejects: then
// GetPrivateData has what it said), ErrConnectionActive (the connector or the queue
// pair is in use), ErrInvalidBufferSize, ErrInvalidAddress, ErrInvalidParameter1 (the
// queue pair), ErrNetworkUnreachable, ErrHostUnreachable, ErrSharingViolation (the
// local address is in use), ErrIOTimeout, ErrCanceled.
func (c *Connector) Connect(ctx context.Context, qp *QueuePair, remote netip.AddrPort,
	inboundReadLimit, outboundReadLimit int, privateData []byte,
) error {
	switch {
	case len(privateData) > maxPrivateData:
		return refuse(ErrInvalidBufferSize, "%d octets of private data, at most %d", len(privateData), maxPrivateData)
	case !remote.IsValid() || remote.Port() == 0 || remote.Addr().IsUnspecified() || remote.Addr().IsMulticast():
		return refuse(ErrInvalidAddress, "%v is no address to connect to: it needs a host and a port", remote)
	}
	if err := c.enter(unused, connecting, ErrConnectionActive); err != nil {
		return err
	}
	if err := qp.claim(c.a, inboundReadLimit, outboundReadLimit); err != nil {
		c.set(unused)
		return err
	}
	ctx, leave := c.within(ctx)
	defer leave()
	conn, err := c.dial(ctx, qp, remote, privateData)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.life.Err() != nil { // Close was faster, and has found nothing to abandon
		c.state = disconnected
		_ = conn.Abort()
		return canceled(c.life)
	}
	if err != nil {
		c.state = unused
		qp.taken.Store(false)
		if rejected := new(cm.RejectedError); errors.As(err, &rejected) {
			c.private = append([]byte{}, rejected.PrivateData...)
		}
		return connectError(ctx, err)
	}
	c.state, c.qp, c.conn = accepted, qp, conn
	c.heard(conn.PrivateData(), conn.PeerIRD(), conn.PeerORD())
	return nil
}

func (c *Connector) dial(ctx context.Context, qp *QueuePair, remote netip.AddrPort, private []byte) (*cm.Conn, error) {
	c.mu.Lock()
	local := c.local
	c.mu.Unlock()
	var d net.Dialer
	if local.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(local)
	}
	nc, err := d.DialContext(ctx, "tcp", remote.String())
	if err != nil {
		return nil, tcpsock.NoPort(err)
	}
	cfg := c.a.cmConfig(private)
	cfg.Timeout = noTimeout
	conn, err := cm.Connect(ctx, nc, qp.v, cfg)
	if err != nil {
		_ = nc.Close()
	}
	return conn, err
}

// connectError makes an error of connecting match a status.
func connectError(ctx context.Context, err error) error {
	s := ErrUnsuccessful
	isAny := func(of ...error) bool {
		return slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) })
	}
	switch {
	case ctx.Err() != nil:
		s = ErrCanceled
	case errors.As(err, new(*cm.RejectedError)),
		// A listener that closes lets go of the requests that wait.
		isAny(syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF,
			winsock(10061), winsock(10054), winsock(10053)):
		s = ErrConnectionRefused
	case isAny(syscall.ENETUNREACH, winsock(10051)):
		s = ErrNetworkUnreachable
	case isAny(syscall.EHOSTUNREACH, winsock(10065)):
		s = ErrHostUnreachable
	case tcpsock.IsNoPort(err): // IND2Connector::Bind: a local port of zero, and no ephemeral port to be had
		s = ErrTooManyAddresses
	case isAny(syscall.EADDRINUSE, winsock(10048)):
		s = ErrSharingViolation
	case isAny(syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.EINVAL, winsock(10049), winsock(10047)):
		s = ErrInvalidAddress
	case isAny(os.ErrDeadlineExceeded, context.DeadlineExceeded, syscall.ETIMEDOUT, winsock(10060)):
		s = ErrIOTimeout
	default:
		if t := statusOf(err); t != ErrInternalError {
			s = t
		}
	}
	return fmt.Errorf("nd2: %w: %w", s, err)
}

// winsock is an error of Windows Sockets, whose numbers no other system uses.
func winsock(n int) error { return syscall.Errno(n) }

// CompleteConnect makes the queue pair ready after Connect. It does not wait. Errors:
// ErrConnectionInvalid (there is no Connect to complete), ErrConnectionAborted (the
// connection has ended since).
func (c *Connector) CompleteConnect(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != accepted {
		return ErrConnectionInvalid
	}
	select {
	case <-c.conn.Done():
		c.state = disconnected
		return ErrConnectionAborted
	default:
	}
	c.state = connected
	c.qp.open.Store(true)
	return nil
}

// Accept accepts the request that Listener.GetConnectionRequest got, with limits on
// Reads that are cut to what both adapters have, and up to MaxCalleeData octets for
// the peer's program. When it returns the queue pair is connected; over iWARP that is
// before the peer's CompleteConnect. Receives for the peer's first Sends should have
// been posted before.
//
// Errors: ErrConnectionInvalid (there is no request), ErrConnectionActive (the queue
// pair is in use), ErrInvalidBufferSize and ErrInvalidParameter1 (the queue pair)
// leave the request as it was; after ErrConnectionAborted (the peer has given up),
// ErrIOTimeout and ErrCanceled the connector is of no more use.
func (c *Connector) Accept(ctx context.Context, qp *QueuePair, inboundReadLimit, outboundReadLimit int, privateData []byte) error {
	if len(privateData) > maxPrivateData {
		return refuse(ErrInvalidBufferSize, "%d octets of private data, at most %d", len(privateData), maxPrivateData)
	}
	if err := c.enter(requested, connecting, ErrConnectionInvalid); err != nil {
		return err
	}
	if err := qp.claim(c.a, inboundReadLimit, outboundReadLimit); err != nil { // cm cuts them to the peer's
		c.set(requested)
		return err
	}
	ctx, leave := c.within(ctx)
	defer leave()
	conn, err := c.req.Accept(ctx, qp.v, c.a.cmConfig(privateData))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		qp.taken.Store(false)
		c.state = disconnected
		_ = c.req.Reject(nil) // refused if it was answered
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		return fmt.Errorf("nd2: %w: %w", ErrConnectionAborted, err)
	}
	c.state, c.qp, c.conn = connected, qp, conn
	qp.open.Store(true)
	return nil
}

// Reject refuses: on the passive side the request, with up to MaxCalleeData octets for
// the peer's program; on the active side a connection that the peer has accepted,
// whose answer does not suit. There MPA has no message left to carry privateData, and
// the peer sees the connection end. Errors: ErrConnectionInvalid (there is nothing to
// reject), ErrInvalidBufferSize, ErrConnectionAborted (the peer has gone).
func (c *Connector) Reject(privateData []byte) error {
	if len(privateData) > maxPrivateData {
		return refuse(ErrInvalidBufferSize, "%d octets of private data, at most %d", len(privateData), maxPrivateData)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.state
	switch state {
	case requested:
		c.state = disconnected
		if err := c.req.Reject(privateData); err != nil {
			return fmt.Errorf("nd2: %w: %w", ErrConnectionAborted, err)
		}
		return nil
	case accepted:
		c.state = disconnected
		return c.conn.Abort()
	default:
		return ErrConnectionInvalid
	}
}
