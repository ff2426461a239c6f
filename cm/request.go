package cm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// Await is the Responder's side over a connection that the caller made: it
// reads the peer's MPA Request. Its error is a *ConnectError; nc is closed then.
func Await(ctx context.Context, nc net.Conn, cfg Config) (*Request, error) {
	return await(ctx, nc, cfg, nil)
}

// awaits is what mpa.Await is to know.
func (c *Config) awaits() mpa.Config {
	return mpa.Config{Rev: c.Rev, Timeout: c.Timeout, IRD: c.IRD, ORD: c.ORD, NoCRC: c.NoCRC, Markers: c.Markers}
}

// await is Await, with ListenConfig.Answer.
func await(ctx context.Context, nc net.Conn, cfg Config, answer func(speaks string) []byte) (*Request, error) {
	mc := cfg.awaits()
	mc.Answer = answer
	o, err := mpa.Await(ctx, nc, mc)
	if err != nil {
		_ = nc.Close()
		return nil, connectError(Awaiting, fmt.Sprint(nc.RemoteAddr()), StepConfig, err)
	}
	r := &Request{nc: nc, offer: o}
	o.Request.PrivateData, r.extensions = cutOffer(o.Request.PrivateData, false)
	return r, nil
}

// Request is a peer's wish to connect. Of several answers at once the first counts.
type Request struct {
	nc       net.Conn
	offer    *mpa.Offer
	answered atomic.Bool
	// extensions says that the peer offers RFC 7306.
	extensions bool
	out        *handed    // of the Listener that it came from, if one
	decision   *undecided // in out
}

// errAnswered is returned for a second answer, which leaves the connection alone.
var errAnswered = errors.New("cm: the request has been accepted or rejected already")

// PrivateData is what the peer's program sent along.
func (r *Request) PrivateData() []byte { return r.offer.Request.PrivateData }

// PeerIRD and PeerORD are the peer's limits on RDMA Reads; -1 if it did not say.
func (r *Request) PeerIRD() int { return r.offer.PeerIRD() }

// PeerORD is the peer's limit on outbound RDMA Reads; -1 if it did not say.
func (r *Request) PeerORD() int { return r.offer.PeerORD() }

// Extensions reports whether the peer asks for RFC 7306; Accept agrees with Config.Extensions.
func (r *Request) Extensions() bool { return r.extensions }

// P2P reports whether the peer asks for peer-to-peer mode.
func (r *Request) P2P() bool { return r.offer.Request.P2P }

// LocalAddr is the address of this side that the peer has connected to: of a Listener on all
// addresses, the one.
func (r *Request) LocalAddr() net.Addr { return r.nc.LocalAddr() }

// Gone reports whether the peer has given up meanwhile, as far as the system tells: Linux does, of TCP.
func (r *Request) Gone() (gone bool) {
	sc, ok := r.nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true // it is closed here
	}
	_ = raw.Control(func(fd uintptr) {
		h, known := tcpsock.HeardOf(fd)
		gone = known && h.Closed
	})
	return gone
}

// RemoteAddr is the peer's address.
func (r *Request) RemoteAddr() net.Addr { return r.nc.RemoteAddr() }

// Accept accepts: it sends the MPA Reply and brings qp, which is Idle, to RTS.
// Receives that the peer's first Sends need should have been posted. Its error is a *ConnectError, but for a Request that
// has been answered. After an error the connection is closed, unless qp is not Idle, ctx is done, or with Config.Extensions
// there is too much private data: then the Request stands.
func (r *Request) Accept(ctx context.Context, qp *verbs.QP, cfg Config) (*Conn, error) {
	if r.answered.Load() {
		return nil, errAnswered
	}
	remote := fmt.Sprint(r.nc.RemoteAddr())
	a, err := idle(qp)
	if err != nil {
		return nil, connectError(Accepting, remote, StepQP, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, connectError(Accepting, remote, StepWriteReply, err)
	}
	mc, agreed := cfg.mpaConfig(&a), cfg.Extensions && r.extensions
	if agreed {
		if mc.PrivateData, err = withOffer(offerReply|offerRequest, cfg.PrivateData, r.offer.Request.Rev); err != nil {
			return nil, connectError(Accepting, remote, StepConfig, err)
		}
	}
	if !r.answered.CompareAndSwap(false, true) { // since the look above
		return nil, errAnswered
	}
	defer r.decided()
	var st *mpa.Stream
	if err = cfg.check(); err == nil {
		st, err = r.offer.Accept(mc)
	}
	verbsinternal.Step(qp, "MPA startup, Responder", err)
	if err != nil {
		countAttempt(qp, err)
		_ = r.nc.Close()
		return nil, connectError(Accepting, remote, StepConfig, err)
	}
	c, err := start(ctx, st, qp, a.IRD, agreed, cfg, Accepting)
	if err == nil && r.out != nil && !r.out.conn(c) {
		_ = c.Abort()
		return nil, connectError(Accepting, remote, StepQP, fmt.Errorf("the Listener has been shut down: %w", net.ErrClosed))
	}
	return c, err
}

// Reject refuses, with up to 508 octets for the peer's program, and closes the
// connection.
func (r *Request) Reject(privateData []byte) error {
	if !r.answered.CompareAndSwap(false, true) {
		return errAnswered
	}
	defer r.decided()
	err := r.offer.Reject(privateData)
	if cerr := r.nc.Close(); err == nil && !errors.Is(cerr, net.ErrClosed) {
		err = cerr
	}
	return err
}

// decided tells the Listener that the Request has been answered.
func (r *Request) decided() {
	if r.decision != nil {
		close(r.decision.done)
		r.out.remove(r.decision)
	}
}
