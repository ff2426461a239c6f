package vitcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// Dial establishes a connection to the VI that waits at remote, as the active
// end (figure 4.2). If local has an IP address, the TCP connection is made from
// there. If TCP closes before the peer has answered, Dial connects again, after
// a pause that grows; that goes on until ctx ends.
//
// Errors: a *RejectedError; ErrNoMatch; a *MismatchError if the answer does not
// fit; a segment.ParseFault or ErrUnexpected if it is none; ErrInvalid; the context's, with
// the last failure; the Dialer's. The TCP connection is closed then.
func Dial(ctx context.Context, local, remote Address, cfg Config) (*Agreed, error) {
	return dial(ctx, local, remote.withPort(), cfg, false)
}

// Connect is Dial over a connection that the caller made, and that it owns: if
// TCP closes, there is no other. calling is this end's discriminator, called the
// peer's.
func Connect(ctx context.Context, nc net.Conn, calling, called segment.Discriminator, cfg Config) (*Agreed, error) {
	a := active{
		setup: func(context.Context) (net.Conn, error) {
			c := nc
			nc = nil
			if c == nil {
				return nil, net.ErrClosed
			}
			return c, nil
		},
		calling: calling, called: called,
	}
	agr, err := a.establish(ctx, cfg)
	if err != nil {
		if nc != nil { // not even begun
			_ = nc.Close()
		}
		return nil, fmt.Errorf("vitcp: connect to %v: %w", called, err)
	}
	return agr, nil
}

// dial is Dial with the peer-to-peer bit.
func dial(ctx context.Context, local, remote Address, cfg Config, peerToPeer bool) (*Agreed, error) {
	a := active{setup: tcpTo(local, remote), calling: local.Discriminator, called: remote.Discriminator, peerToPeer: peerToPeer}
	agr, err := a.establish(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("vitcp: connect to %v: %w", remote, err)
	}
	return agr, nil
}

// tcpTo makes TCP connections from local, if it is an address, to remote.
func tcpTo(local, remote Address) func(context.Context) (net.Conn, error) {
	var d net.Dialer
	if ip := local.Host.Addr(); ip.IsValid() && !ip.IsUnspecified() {
		d.LocalAddr = &net.TCPAddr{IP: ip.AsSlice(), Zone: ip.Zone()}
	}
	return func(ctx context.Context) (net.Conn, error) {
		nc, err := d.DialContext(ctx, "tcp", remote.Host.String())
		return nc, tcpsock.NoPort(err)
	}
}

// active runs the active machine. It lives as long as the call that made it.
type active struct {
	progress
	setup           func(context.Context) (net.Conn, error)
	calling, called segment.Discriminator
	peerToPeer      bool
}

// establish goes from Disconnected to Connected, or back with an error.
func (a *active) establish(ctx context.Context, cfg Config) (*Agreed, error) {
	cfg, err := cfg.resolved()
	if err = errors.Join(err, valid(a.calling, a.called)); err != nil {
		return nil, err
	}
	a.progress = progress{machine: activeMachine, state: stateDisconnected}
	request := cfg.request(a.calling, a.called, a.peerToPeer)
	a.on(trigVipRequest)
	var last error // why the connection before was lost
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		nc, err := a.setup(ctx)
		if err != nil {
			if ctx.Err() != nil {
				a.on(trigTimeout)
				return nil, errors.Join(context.Cause(ctx), last)
			}
			a.on(trigTCPFailed)
			return nil, errors.Join(last, err)
		}
		a.on(trigTCPUp)
		agr, event, err := a.exchange(ctx, nc, &request, &cfg)
		do := a.on(event)
		if do&actCloseTCP != 0 {
			_ = nc.Close()
		}
		if do&actSetupTCP == 0 {
			return agr, err
		}
		if last = err; !sleep(ctx, pause) {
			a.on(trigTimeout)
			return nil, errors.Join(context.Cause(ctx), last)
		}
	}
}

// exchange sends the request over nc and reads the answer.
func (a *active) exchange(ctx context.Context, nc net.Conn, req *segment.CE, cfg *Config) (*Agreed, trigger, error) {
	tcpsock.Prepare(nc)
	defer tie(ctx, nc)()
	h := segment.Header{Type: segment.ConnectRequest, Number: cfg.Number, RxPosted: cfg.RxPosted}
	if event, err := send(ctx, nc, req.Append(nil, h)); err != nil {
		return nil, event, err
	}
	s, event, err := receive(ctx, nc)
	switch {
	case err != nil:
		return nil, event, err
	case event == trigReject:
		return nil, event, &RejectedError{Reason: Reason(s.Code.IS()), Code: s.Code}
	case event == trigNoMatch:
		return nil, event, ErrNoMatch
	case event == trigRequest:
		return nil, event, fmt.Errorf("%w: %v, from the passive end", ErrUnexpected, s.Type)
	}
	acc := s.CE()
	if err := check(req, &acc, cfg.RequireCRC); err != nil {
		return nil, trigMisfit, err
	}
	agr := agreed(req, &acc, &h, &s.Header)
	agr.Conn = nc
	return agr, trigAccept, nil
}

// sleep waits for d; it reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
