package vitcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// Filter says which requests to wait for: those to one discriminator, from
// anywhere or from a certain VI (VI Architecture 4.3).
type Filter struct {
	// Called is the discriminator that must have been called.
	Called segment.Discriminator
	// At, if it is an address, is the only one of this host's that requests may have come
	// to; 0.0.0.0 stands for all IPv4 addresses, :: for all.
	At netip.Addr
	// From, if it is an address, is the only one that requests may come from.
	From netip.Addr
	// Calling, if not nil, is the only discriminator that may call.
	Calling *segment.Discriminator
	// PeerToPeer is what the peer-to-peer bit must be; a request that fits but
	// for this is rejected (VT-3.3-M2), at once, whether it or the Wait came first.
	PeerToPeer bool
}

// matches reports whether f is for a request, its peer-to-peer bit aside.
func (f *Filter) matches(r *Pending) bool {
	return f.Called == r.ce.Called &&
		(f.Calling == nil || *f.Calling == r.ce.Calling) &&
		(!f.From.IsValid() || plain(f.From) == r.host) &&
		(!f.At.IsValid() || Covers(f.At, r.at))
}

// Covers reports whether a socket at an address of this host, at, gets what comes to addr
// as well: at is addr, or stands for all.
func Covers(at, addr netip.Addr) bool {
	at, addr = plain(at), plain(addr)
	return at == addr || at.IsUnspecified() && (at.Is6() || addr.Is4())
}

// plain is an IP address in the form in which two are compared.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// hostOf is the IP address of one end of a connection; invalid if that is not of IP.
func hostOf(a net.Addr) netip.Addr {
	if a != nil {
		if ap, err := netip.ParseAddrPort(a.String()); err == nil {
			return plain(ap.Addr())
		}
	}
	return netip.Addr{}
}

// Pending is a peer's wish to connect, which somebody waited for: it is in
// Pending Accept of figure 4.3. It has to be answered, with Accept, Reject or
// Close; until then it watches the peer. It is for one goroutine at a time.
type Pending struct {
	progress
	nc    net.Conn
	host  netip.Addr // the peer's
	at    netip.Addr // of this host, to which it came
	seg   segment.Segment
	ce    segment.CE
	watch *watch // from Matching on, until the answer
	leave func() // gives its place at the listener back when a Wait has found it; nil if it has none

	counted *inventory.Object // as long as there is a watch
}

// CE is what the request says: the peer's attributes, its proposals, and both
// discriminators.
func (r *Pending) CE() segment.CE { return r.ce }

// Level is the reliability level that it asks for.
func (r *Pending) Level() segment.Level {
	level, _ := r.ce.Attributes.Level()
	return level
}

// peerToPeer is its peer-to-peer bit.
func (r *Pending) peerToPeer() bool { return r.ce.Attributes&segment.PeerToPeer != 0 }

// RemoteAddr is the address of the peer's end of the TCP connection.
func (r *Pending) RemoteAddr() net.Addr { return r.nc.RemoteAddr() }

// Accept accepts the request with what cfg wants of the connection. If cfg does
// not fit, the error is a *MismatchError or ErrInvalid, the peer is told
// nothing and the request stands (VI Architecture 4.1): accept it otherwise, or
// reject it. After any other error the connection is closed. ErrAnswered says
// that the request is over.
func (r *Pending) Accept(ctx context.Context, cfg Config) (*Agreed, error) {
	if r.state != statePendingAccept {
		return nil, ErrAnswered
	}
	cfg, err := cfg.resolved()
	if err != nil {
		return nil, err
	}
	acc, err := cfg.accept(&r.ce)
	if err != nil {
		r.on(trigMisfit)
		return nil, err
	}
	if err := r.watch.over(); err != nil {
		_ = r.finish(stirred(err))
		return nil, fmt.Errorf("vitcp: accept %v: the peer has not waited: %w", r.RemoteAddr(), err)
	}
	defer tie(ctx, r.nc)()
	h := segment.Header{Type: segment.ConnectAccept, Number: cfg.Number, Ack: r.seg.Number, RxPosted: cfg.RxPosted}
	if event, err := send(ctx, r.nc, acc.Append(nil, h)); err != nil {
		_ = r.finish(event)
		return nil, fmt.Errorf("vitcp: accept %v: %w", r.RemoteAddr(), err)
	}
	r.on(trigVipAccept) // now that its action is done
	r.counted.Close()
	agr := agreed(&acc, &r.ce, &h, &r.seg.Header)
	agr.Conn = r.nc
	return agr, nil
}

// Release gives the request to another process: nothing has been read of the connection
// but its octets, which are for Listener.Offer there. It is over here then, and the caller
// owns the connection. Errors: ErrAnswered; that the peer has gone.
func (r *Pending) Release() (nc net.Conn, request []byte, err error) {
	if r.state != statePendingAccept {
		return nil, nil, ErrAnswered
	}
	if err := r.watch.over(); err != nil {
		_ = r.finish(stirred(err))
		return nil, nil, fmt.Errorf("vitcp: pass on %v: the peer has not waited: %w", r.RemoteAddr(), err)
	}
	r.state = stateDisconnected // of this process's machine; that of the other one begins anew
	r.counted.Close()
	return r.nc, r.seg.Octets(), nil
}

// Reject rejects the request and closes the connection. An error, other than
// ErrAnswered, says that the peer may not know.
func (r *Pending) Reject(ctx context.Context, reason Reason) error {
	if r.state != statePendingAccept {
		return ErrAnswered
	}
	_ = r.watch.over() // what the peer did makes no difference now
	return r.refuse(ctx, trigVipReject, reason)
}

// Close ends the connection without an answer, if there was none yet.
func (r *Pending) Close() error {
	if r.state != statePendingAccept {
		return nil
	}
	_ = r.watch.over()
	return r.finish(trigVipDisconnect)
}

// stirred is the trigger of a peer that did not wait for the answer.
func stirred(err error) trigger {
	if errors.Is(err, ErrUnexpected) {
		return trigViolation
	}
	return trigTCPClosed
}

// refuse takes an event that may send a last segment, and closes the connection.
func (r *Pending) refuse(ctx context.Context, e trigger, reason Reason) error {
	do := r.on(e)
	defer r.counted.Close()
	defer r.nc.Close()
	defer tie(ctx, r.nc)()
	var err error
	switch {
	case do&actSendReject != 0:
		_, err = send(ctx, r.nc, appendAnswer(nil, segment.ConnectReject, &r.seg, reason))
	case do&actSendNoMatch != 0:
		_, err = send(ctx, r.nc, appendAnswer(nil, segment.ConnectNoMatch, &r.seg, 0))
	}
	return err
}

// finish takes an event that closes the connection and sends nothing.
func (r *Pending) finish(e trigger) error {
	r.on(e)
	r.counted.Close()
	return r.nc.Close()
}

// await runs the passive machine on nc up to Matching, and from there on watches
// the peer. After an error nc is closed.
func await(ctx context.Context, nc net.Conn, listener *inventory.Object) (*Pending, error) {
	return begin(ctx, nc, listener, func() (segment.Segment, trigger, error) { return receive(ctx, nc) })
}

// adopt is await of a connection whose request another process has read.
func adopt(nc net.Conn, request []byte, listener *inventory.Object) (*Pending, error) {
	ctx, cancel := context.WithTimeout(context.Background(), rejectTimeout)
	defer cancel()
	return begin(ctx, nc, listener, func() (segment.Segment, trigger, error) {
		seg, err := parseConnect(request)
		if err != nil {
			return seg, trigViolation, err
		}
		return seg, trigRequest + trigger(seg.Type-segment.ConnectRequest), nil
	})
}

// begin is await with a request that read has.
func begin(
	ctx context.Context, nc net.Conn, listener *inventory.Object, read func() (segment.Segment, trigger, error),
) (*Pending, error) {
	r := &Pending{
		progress: progress{machine: passiveMachine, state: stateListening},
		nc:       nc, host: hostOf(nc.RemoteAddr()), at: hostOf(nc.LocalAddr()),
	}
	r.on(trigTCPUp)
	tcpsock.Prepare(nc)
	if err := r.take(ctx, read); err != nil {
		return nil, err
	}
	r.watch = newWatch(nc)
	r.counted = inventory.Open(listener, "vitcp request from", nc.RemoteAddr(), r)
	return r, nil
}

// Count implements inventory.Counter: there is nothing to count of a request but that it is there.
func (r *Pending) Count(inventory.Tell) {}

// take takes the request, and rejects one that nobody could accept.
func (r *Pending) take(ctx context.Context, read func() (segment.Segment, trigger, error)) error {
	defer tie(ctx, r.nc)()
	seg, event, err := read()
	if err == nil && event != trigRequest {
		err = fmt.Errorf("%w: %v, from the active end", ErrUnexpected, seg.Type)
	}
	if do := r.on(event); do&actCloseTCP != 0 {
		_ = r.nc.Close()
		return err
	}
	r.seg, r.ce = seg, seg.CE()
	if reason, bad := unfit(&r.ce); bad {
		_ = r.refuse(ctx, trigMisfit, reason)
		return &MismatchError{Reason: reason, Peer: r.ce}
	}
	return nil
}

// Await is a Listener's Wait over a connection that the caller made: it reads
// the request, and answers ConnectNoMatch, or ConnectReject if it is for the
// peer-to-peer bit alone, if it is not for the filter. ctx is the timeout of
// figure 4.3. After an error nc is closed; those are a ParseFault, ErrUnexpected,
// ErrNoMatch, a *MismatchError, the context's and the transport's.
func Await(ctx context.Context, nc net.Conn, f Filter) (*Pending, error) {
	r, err := await(ctx, nc, nil)
	if err == nil {
		err = r.settle(ctx, f.matches(r), f.PeerToPeer)
	}
	if err != nil {
		return nil, fmt.Errorf("vitcp: connection from %v: %w", nc.RemoteAddr(), err)
	}
	return r, nil
}

// settle ends Matching: found tells whether somebody waits for the request, and
// peerToPeer what that one's bit is. It returns why the request was refused.
func (r *Pending) settle(ctx context.Context, found, peerToPeer bool) error {
	switch {
	case !found:
		_ = r.watch.over()
		_ = r.refuse(ctx, trigNotFound, 0)
		return ErrNoMatch
	case peerToPeer != r.peerToPeer(): // VT-3.3-M2
		_ = r.watch.over()
		_ = r.refuse(ctx, trigMisfit, ReasonPeerToPeer)
		return &MismatchError{Reason: ReasonPeerToPeer, Peer: r.ce}
	default:
		r.on(trigFound)
		return nil
	}
}
