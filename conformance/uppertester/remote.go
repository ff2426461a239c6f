package uppertester

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"time"
)

// Remote is an upper tester elsewhere. What it answers is not trusted: an answer that is too long, is
// none, or does not come ends the session.
type Remote struct {
	ctx    context.Context
	conn   io.Closer
	client *rpc.Client
	stop   func() bool
}

var _ Tester = (*Remote)(nil)

// Dial connects to what Serve serves. When ctx is done the connection is closed.
func Dial(ctx context.Context, addr string) (*Remote, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("uppertester: %w", err)
	}
	return newRemote(ctx, conn), nil
}

func newRemote(ctx context.Context, conn net.Conn) *Remote {
	r := &Remote{ctx: ctx, conn: conn, client: rpc.NewClientWithCodec(newClientCodec(conn))}
	r.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	return r
}

// Close ends the Service at the other side.
func (c *Remote) Close() error {
	c.stop()
	err := c.client.Close()
	if errors.Is(err, rpc.ErrShutdown) {
		return nil
	}
	return err
}

func (c *Remote) call(method string, args, reply any) error { return c.wait(method, 0, args, reply) }

// wait is a call that may be answered after a while.
func (c *Remote) wait(method string, while time.Duration, args, reply any) error {
	late := time.NewTimer(while + answerTime)
	defer late.Stop()
	call := c.client.Go(service+"."+method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-late.C:
		_ = c.conn.Close()
		<-call.Done // nobody writes to reply from here on
		return fmt.Errorf("uppertester: %s: no answer within %v", method, while+answerTime)
	}
	err := call.Error
	var told rpc.ServerError
	switch {
	case errors.As(err, &told):
		return arrived(string(told))
	case err != nil && c.ctx.Err() != nil:
		return fmt.Errorf("uppertester: %s: no answer: %w", method, c.ctx.Err())
	case errors.Is(err, rpc.ErrShutdown), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("uppertester: %s: the session is over: %w", method, err)
	case err != nil:
		return fmt.Errorf("uppertester: %s: %w", method, err)
	}
	return nil
}

// Open is Service.Open.
func (c *Remote) Open(a OpenArgs, r *Opened) error { return c.call("Open", a, r) }

// Destroy is Service.Destroy.
func (c *Remote) Destroy(a int, r *None) error { return c.call("Destroy", a, r) }

// Listen is Service.Listen.
func (c *Remote) Listen(a ConnectArgs, r *Listening) error { return c.call("Listen", a, r) }

// Dial is Service.Dial.
func (c *Remote) Dial(a ConnectArgs, r *None) error { return c.call("Dial", a, r) }

// Connected is Service.Connected.
func (c *Remote) Connected(a Wait, r *Connection) error { return c.wait("Connected", a.Timeout, a, r) }

// Ended is Service.Ended.
func (c *Remote) Ended(a Wait, r *QPState) error { return c.wait("Ended", a.Timeout, a, r) }

// Query is Service.Query.
func (c *Remote) Query(a int, r *QPState) error { return c.call("Query", a, r) }

// Modify is Service.Modify.
func (c *Remote) Modify(a ModifyArgs, r *None) error { return c.call("Modify", a, r) }

// Register is Service.Register.
func (c *Remote) Register(a RegisterArgs, r *Region) error { return c.call("Register", a, r) }

// Allocate is Service.Allocate.
func (c *Remote) Allocate(a RegisterArgs, r *Region) error { return c.call("Allocate", a, r) }

// Share is Service.Share.
func (c *Remote) Share(a ShareArgs, r *Region) error { return c.call("Share", a, r) }

// Reregister is Service.Reregister.
func (c *Remote) Reregister(a ReregisterArgs, r *Region) error { return c.call("Reregister", a, r) }

// Deregister is Service.Deregister.
func (c *Remote) Deregister(a int, r *None) error { return c.call("Deregister", a, r) }

// QueryRegion is Service.QueryRegion.
func (c *Remote) QueryRegion(a int, r *RegionState) error { return c.call("QueryRegion", a, r) }

// Memory is Service.Memory.
func (c *Remote) Memory(a int, r *Octets) error { return c.call("Memory", a, r) }

// Fill is Service.Fill.
func (c *Remote) Fill(a FillArgs, r *None) error { return c.call("Fill", a, r) }

// AllocateWindow is Service.AllocateWindow.
func (c *Remote) AllocateWindow(a int, r *Window) error { return c.call("AllocateWindow", a, r) }

// DeallocateWindow is Service.DeallocateWindow.
func (c *Remote) DeallocateWindow(a int, r *None) error { return c.call("DeallocateWindow", a, r) }

// QueryWindow is Service.QueryWindow.
func (c *Remote) QueryWindow(a int, r *WindowState) error { return c.call("QueryWindow", a, r) }

// PostSend is Service.PostSend.
func (c *Remote) PostSend(a PostSendArgs, r *Posted) error { return c.call("PostSend", a, r) }

// PostRecv is Service.PostRecv.
func (c *Remote) PostRecv(a PostRecvArgs, r *Posted) error { return c.call("PostRecv", a, r) }

// Poll is Service.Poll.
func (c *Remote) Poll(a PollArgs, r *Completions) error { return c.wait("Poll", a.Timeout, a, r) }

// Notify is Service.Notify.
func (c *Remote) Notify(a NotifyArgs, r *None) error { return c.call("Notify", a, r) }

// Notified is Service.Notified.
func (c *Remote) Notified(a Wait, r *Answer) error { return c.wait("Notified", a.Timeout, a, r) }

// Events is Service.Events.
func (c *Remote) Events(a EventsArgs, r *Events) error { return c.wait("Events", a.Timeout, a, r) }

// Ping is Service.Ping.
func (c *Remote) Ping(a ConnectArgs, r *Listening) error { return c.call("Ping", a, r) }
