package vipl

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// attempt is one attempt to connect a VI: StateConnectPending.
type attempt struct {
	vi     *Vi
	ctx    context.Context // ends with the caller's, by Disconnect, and by CloseNic
	cancel context.CancelFunc

	// want is what the VI had when it began, posted how many Receive Descriptors wait.
	want   ViAttributes
	posted uint16
	// local and peer name the two VIs.
	local, peer *NetAddress

	// Of ConnectPeerRequest: done is closed when the others are set.

	done   chan struct{}
	remote *ViAttributes
	err    error
}

// begin takes a VI into StateConnectPending, on a call (VI Architecture 5.1).
func (v *Vi) begin(ctx context.Context, event Event) (*attempt, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.beginLocked(ctx, event)
}

func (v *Vi) beginLocked(ctx context.Context, event Event) (*attempt, error) {
	switch {
	case v.destroyed:
		return nil, errViGone
	case v.nic.life.Err() != nil: // CloseNic may be past the end of this VI's connection
		return nil, errNicClosed
	}
	t := On(v.state, event)
	if t.Code != Success { // VA-5-M1
		return nil, fmt.Errorf("%w: the VI is %v", t.Code, v.state)
	}
	for _, e := range v.deferred { // 5.1, last paragraph
		v.nic.report(e)
	}
	v.deferred = nil
	a := &attempt{vi: v, want: v.attributes, posted: uint16(v.recv.tail - v.recv.done)}
	var cancel context.CancelFunc
	a.ctx, cancel = context.WithCancel(ctx)
	stop := context.AfterFunc(v.nic.life, cancel)
	a.cancel = func() { stop(); cancel() }
	v.state, v.attempt = t.Next, a
	return a, nil
}

// finish ends an attempt with what came of it: a connection or an error.
func (a *attempt) finish(g *vitcp.Agreed, err error) (*ViAttributes, error) {
	defer a.cancel()
	if err == nil {
		return a.established(g)
	}
	v := a.vi
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.attempt != a {
		return nil, errDisconnected
	}
	v.attempt = nil
	if malformed(err) {
		v.happens(EventConnLost, ErrorDescriptor{
			ResourceCode: ResourceVi, ErrorCode: ErrorConnLost, LocalAddr: a.local, RemoteAddr: a.peer, Err: err,
		})
		v.flush(&v.recv)
	} else {
		v.state = On(v.state, EventConnectFailed).Next
	}
	return nil, a.explain(err)
}

// established takes the VI into StateConnected.
func (a *attempt) established(g *vitcp.Agreed) (*ViAttributes, error) {
	v := a.vi
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.attempt != a { // Disconnect came first
		_ = g.Conn.Close()
		return nil, errDisconnected
	}
	v.attempt = nil
	l := &link{
		vi: v, told: ErrorConnLost, reliable: a.want.ReliabilityLevel.reliable(), local: a.local, peer: a.peer,
	}
	end, err := endpoint.New(g.Conn, a.endpointConfig(g, l))
	if err != nil {
		_ = g.Conn.Close()
		v.state = On(v.state, EventConnectFailed).Next
		return nil, resource("%v", err)
	}
	l.endpoint = end
	v.state = On(v.state, EventEstablished).Next
	v.link, v.granted = l, grant{g.MTU, g.CRC}
	l.feedAll(&v.recv)
	if a.want.CRC && !g.CRC {
		v.nic.report(ErrorDescriptor{
			ViHandle: v, ResourceCode: ResourceVi, ErrorCode: ErrorNoCRC, LocalAddr: a.local, RemoteAddr: a.peer,
		})
	}
	end.Start()
	return attributesOf(g.Peer, g.MTU, g.CRC), nil
}

// endpointConfig is what was agreed, and what this end has for it.
func (a *attempt) endpointConfig(g *vitcp.Agreed, l *link) endpoint.Config {
	n := a.vi.nic
	c := g.EndpointConfig()
	c.Posted = a.posted
	c.STags = n.stags
	c.User = stag.User{PD: wr.PDID(a.want.Ptag)}      // VA-6.3.2-M1
	c.SendDepth = n.config.MaxDescriptorsPerQueue + 1 // one is given back while its result is told
	c.ReceiveDepth = c.SendDepth
	c.Segment = n.config.Segment
	c.Linger = n.config.Linger
	c.Handler = l
	c.Group = &a.vi.group.Group
	c.Inventory = a.vi.counted
	return c
}

// wire are the attributes that travel.
func (a *ViAttributes) wire() segment.Attributes {
	var w segment.Attributes
	if a.EnableRdmaWrite {
		w |= segment.WriteEnable
	}
	if a.EnableRdmaRead {
		w |= segment.ReadEnable
	}
	if a.FlowControl {
		w |= segment.FlowControl
	}
	return w.WithLevel(segment.Level(a.ReliabilityLevel))
}

// attributesOf are a remote VI's.
func attributesOf(w segment.Attributes, transfer uint32, crc bool) *ViAttributes {
	level, _ := w.Level() // it was checked when the connection was made
	return &ViAttributes{
		ReliabilityLevel: ReliabilityLevel(level),
		MaxTransferSize:  transfer,
		EnableRdmaWrite:  w&segment.WriteEnable != 0,
		EnableRdmaRead:   w&segment.ReadEnable != 0,
		FlowControl:      w&segment.FlowControl != 0,
		CRC:              crc,
	}
}

var errDisconnected = resource("the VI was disconnected meanwhile")

// Disconnect is VipDisconnect (VI Architecture 9.4.5): it ends the connection, or the
// attempt at one, and completes all that is posted, as flushed. When it returns the VI is
// in StateIdle and nothing of the connection touches memory any more. What was sent and
// is on its way gets Config.Linger to leave. Errors: ErrInvalidParameter (the VI is
// destroyed).
func (v *Vi) Disconnect() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.destroyed {
		return errViGone
	}
	if l := v.link; l != nil {
		v.mu.Unlock()
		l.endpoint.Close() // gives all results
		v.mu.Lock()
		if v.link != l { // somebody else has done the rest
			return nil
		}
		v.link = nil
	}
	t := On(v.state, EventDisconnect)
	v.state = t.Next
	if t.Actions&ActAbandon != 0 {
		v.attempt.cancel()
		v.attempt = nil
	}
	v.flush(&v.recv) // the Send Queue has nothing that is not done
	return nil
}

// malformed reports whether an attempt failed because what the remote end sent makes no
// sense: a transport error, not an answer (VI Architecture 5.2).
func malformed(err error) bool {
	var f segment.ParseFault
	return errors.As(err, &f) || errors.Is(err, vitcp.ErrUnexpected)
}
