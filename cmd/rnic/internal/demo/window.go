package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/verbs"
)

// The life of the memory window: the server binds it, the client invalidates it,
// and then shows that nothing gets through it any more.

// demoRights are the access rights of the window.
const demoRights = verbs.RemoteRead | verbs.RemoteWrite

// demoKey is the server's part of the window's STag.
const demoKey = 1

// demoProbe is the message that is to be refused.
var demoProbe = message{length: 4096}

// demoRefusal is the Terminate code for a tagged message to an STag in the
// Invalid state (RFC 5041 7.2).
const demoRefusal = rdmap.TermCode(ddp.CodeInvalidSTag)

// openWindow binds the window to the slots, for the client's connection, and
// sends the client their address. The Send begins when the Bind is done (verbs
// draft 8.2.2.1): the client cannot be early.
func (s *demoServer) openWindow() error {
	bind := s.window.BindRequest(s.slotsMR, 0, len(s.slots), demoRights, demoKey)
	s.bound = verbs.BindBuffer(bind)
	if err := s.PostSend(verbs.Request{Op: verbs.OpBind, Flags: verbs.Unsignaled, Bind: bind}); err != nil {
		return err
	}
	address := endpoint.FromRemote(s.bound.Remote(0))
	return s.sendNote(newDemoNote(&address, ""))
}

// awaitWindow waits for the address of the window.
func (c *demoClient) awaitWindow(ctx context.Context, row *demoResult) error {
	for c.remote == nil {
		if err := c.step(ctx); err != nil {
			return err
		}
	}
	row.Messages, row.Outcome = 1, "valid"
	return nil
}

// invalidate invalidates the window by a Send, and waits until the server has
// seen that.
func (c *demoClient) invalidate(ctx context.Context, row *demoResult) error {
	if err := c.PostSend(verbs.Request{Op: verbs.OpSendInvalidate, Invalidate: verbs.STag(c.remote.STag)}); err != nil {
		return err
	}
	for min(c.done, c.credits) < 1 {
		if err := c.step(ctx); err != nil {
			return err
		}
	}
	row.Messages, row.Outcome = 1, "invalid"
	return nil
}

// letInvalidate checks that the client's Send has invalidated the window, and
// clears the memory that the last Write is to leave alone.
func (s *demoServer) letInvalidate(ctx context.Context) error {
	wc, err := s.NextRecv(ctx)
	if err != nil {
		return err
	}
	if !wc.HasInvalidated || wc.Invalidated != s.bound.STag {
		return s.fail(ctx, fmt.Errorf("the Send did not invalidate the window's STag %v", s.bound.STag))
	}
	if info, err := s.window.Query(); err != nil || info.Valid {
		return s.fail(ctx, errors.Join(errors.New("the window is still valid"), err))
	}
	clear(s.slot(demoProbe))
	if err := s.postSlot(wc.ID); err != nil {
		return err
	}
	return s.sendCredit()
}

// writeAgain writes through the window that is no more, as it did before. That
// has to end the connection. Should the server let the Write pass, then the Send
// after it, too, and the server says so.
func (c *demoClient) writeAgain(ctx context.Context, row *demoResult) error {
	c.plan.pattern(len(demoOps)).Fill(c.slot(demoProbe), 0)
	err := c.pushOne(verbs.OpWrite, demoProbe)
	for err == nil {
		err = c.step(ctx)
	}
	if !errors.Is(err, endpoint.ErrDisconnected) {
		return err
	}
	code, err := c.refused(verbs.STag(c.remote.STag))
	row.Messages, row.Outcome, row.Terminate = 1, "refused", code.String()
	if why := (*verbs.Reason)(nil); errors.As(c.Conn.Err(), &why) {
		row.Why = why.WithoutQP().String()
	}
	return err
}

// refuse waits for that Write to end the connection, and checks that it has
// changed nothing.
func (s *demoServer) refuse(ctx context.Context) error {
	switch _, err := s.NextRecv(ctx); {
	case err == nil:
		return s.fail(ctx, errors.New("the Write through the invalidated window was not refused"))
	case !errors.Is(err, endpoint.ErrDisconnected):
		return err
	}
	if _, err := s.refused(s.bound.STag); err != nil {
		return err
	}
	for i, c := range s.slot(demoProbe) {
		if c != 0 {
			return fmt.Errorf("the Write through the invalidated window was refused, but has changed octet %d", i)
		}
	}
	return nil
}

// refused checks that the connection ended with the Terminate Message about a
// tagged message to s. It waits until the connection is gone, which takes no
// longer than the queue pair's CloseTimeout.
func (d *demoEnd) refused(s verbs.STag) (rdmap.TermCode, error) {
	<-d.Conn.Done()
	a, err := d.QP.Query()
	if err != nil {
		return 0, err
	}
	t := a.Terminate
	if t == nil {
		const missing = "%w, not by the Terminate Message that the Write through the invalidated window is due"
		return 0, fmt.Errorf(missing, d.Lost())
	}
	if rdmap.TermCode(t.Code) != demoRefusal || !names(t.Raw, s) {
		return 0, fmt.Errorf("the connection ended with Terminate %v, want %v about STag %v", t.Code, demoRefusal, s)
	}
	d.Over = true
	return demoRefusal, nil
}

// names reports whether a Terminate header repeats that of a tagged segment to s
// (RFC 5040 4.8).
func names(raw []byte, s verbs.STag) bool {
	t, ok := rdmap.ParseTerminate(raw)
	if !ok {
		return false
	}
	segment, code := ddp.Parse(t.DDPHeader)
	return code == ddp.CodeOK && segment.Tagged() && verbs.STag(segment.STag()) == s
}
