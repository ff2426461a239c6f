package conformance

import (
	"context"
	"fmt"
	"net"

	"github.com/softrnic/softrnic/conformance/uppertester"
)

// Remote is a target on another machine, with `rnic conform serve` beside it as its
// upper tester.
type Remote struct {
	addr string
	role Role
	here string
}

// NewRemote is the target whose upper tester serves addr. Cases that do not care
// play role; Either stands for Initiator. It fails at once if nobody answers.
func NewRemote(ctx context.Context, addr string, role Role) (*Remote, error) {
	c, err := dialTCP(ctx, addr)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	_ = c.Close()
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	r := &Remote{addr: addr, role: role, here: host}
	u, err := r.Upper(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = u.Close() }()
	var o uppertester.Opened
	if err := u.Open(uppertester.OpenArgs{}, &o); err != nil {
		return nil, fmt.Errorf("conformance: %s is no upper tester: %w", addr, err)
	}
	return r, nil
}

// Name tells where it is.
func (r *Remote) Name() string { return "upper tester at " + r.addr }

// Lacks the verbs.
func (r *Remote) Lacks(n Need) string {
	if n == NeedAPI {
		return "this target has no verbs here"
	}
	return ""
}

// Role is as chosen.
func (r *Remote) Role() Role {
	if r.role == Either {
		return Initiator
	}
	return r.role
}

// Here is this machine's end of a connection to it.
func (r *Remote) Here() string { return r.here }

// Upper begins a session.
func (r *Remote) Upper(ctx context.Context) (uppertester.Tester, error) {
	u, err := uppertester.Dial(ctx, r.addr)
	if err != nil {
		return nil, err
	}
	return u, nil
}

// Stream has the upper tester talk as rping does.
func (r *Remote) Stream(ctx context.Context, play Role) (net.Conn, error) {
	u, err := r.Upper(ctx)
	if err != nil {
		return nil, err
	}
	return pingStream(ctx, u, play, r.here)
}

// Close does nothing: sessions end by themselves.
func (r *Remote) Close() error { return nil }
