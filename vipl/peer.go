package vipl

import (
	"context"

	"github.com/softrnic/softrnic/internal/vitcp"
)

// ConnectPeerRequest (extension; VI/TCP chapter 4) begins to connect the VI with one whose
// program calls it too, each with its own address first. It returns at once; the attempt
// goes on until ctx ends. What comes of it is told by ConnectPeerDone and ConnectPeerWait.
// The one with the higher IP address is the active end, and tries again while it meets
// nobody; Config.Dial is not used.
//
// Errors: ErrInvalidParameter (an address; not StateIdle; destroyed), ErrResource (the
// Nic cannot listen).
func (v *Vi) ConnectPeerRequest(ctx context.Context, local, remote *NetAddress) error {
	from, err := v.nic.localAddress(local)
	if err != nil {
		return err
	}
	to, err := remoteAddress(remote)
	if err != nil {
		return err
	}
	l, err := v.nic.passive.listen(ctx)
	if err != nil {
		return err
	}
	a, err := v.beginPeer(ctx)
	if err != nil {
		return err
	}
	a.local, a.peer = named(from), named(to)
	started := v.nic.task(func() {
		defer close(a.done)
		a.remote, a.err = a.finish(vitcp.Peer(a.ctx, l, from, to, a.config()))
	})
	if !started {
		defer close(a.done)
		a.remote, a.err = a.finish(nil, errNicClosed)
	}
	return nil
}

// beginPeer is begin of an attempt whose end is told later. Both are one step: a Disconnect and
// another attempt may follow at once.
func (v *Vi) beginPeer(ctx context.Context) (*attempt, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	a, err := v.beginLocked(ctx, EventConnectRequest)
	if err != nil {
		return nil, err
	}
	a.done = make(chan struct{})
	v.peer = a
	return a, nil
}

// ConnectPeerDone (extension) tells the attributes of the remote VI once the attempt of
// ConnectPeerRequest is over, or why it failed; it tells it once. Errors: ErrNotDone;
// those of ConnectRequest; ErrInvalidParameter (there was no ConnectPeerRequest).
func (v *Vi) ConnectPeerDone() (*ViAttributes, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := v.peer
	if a == nil {
		return nil, errNoPeer
	}
	select {
	case <-a.done:
		return v.takeOutcome(a)
	default:
		return nil, ErrNotDone
	}
}

// takeOutcome returns once what came of a, which is over. The caller has mu.
func (v *Vi) takeOutcome(a *attempt) (*ViAttributes, error) {
	if v.peer != a {
		return nil, errNoPeer
	}
	v.peer = nil
	return a.remote, a.err
}

// ConnectPeerWait (extension) is ConnectPeerDone, with a wait for the end of the attempt
// until ctx ends. Errors: ErrTimeout (of ctx, or of the attempt), a cancelled context's, and
// those of ConnectPeerDone.
func (v *Vi) ConnectPeerWait(ctx context.Context) (*ViAttributes, error) {
	v.mu.Lock()
	a := v.peer
	v.mu.Unlock()
	if a == nil {
		return nil, errNoPeer
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.takeOutcome(a)
}

var errNoPeer = invalid("no ConnectPeerRequest has been made, or its end has been told")
