package cm

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// Conn is a connection of a queue pair. All methods may be called from any
// goroutine.
type Conn struct {
	stream *mpa.Stream
	qp     *verbs.QP
	ird    int
	// extensions were agreed on.
	extensions bool
	llp        *verbs.LLPStream
	timeout    time.Duration

	closing sync.Once
	err     error // of Close; written in closing
}

// QP is the queue pair.
func (c *Conn) QP() *verbs.QP { return c.qp }

// PrivateData is what the peer's program sent with its Request or Reply.
func (c *Conn) PrivateData() []byte { return c.stream.PrivateData }

// LocalAddr is this side's address.
func (c *Conn) LocalAddr() net.Addr { return c.stream.Conn.LocalAddr() }

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() net.Addr { return c.stream.Conn.RemoteAddr() }

// IRD is this side's limit on inbound RDMA Reads, as agreed.
func (c *Conn) IRD() int { return c.ird }

// ORD is this side's limit on outbound RDMA Reads: as agreed, or as Modify QP has
// changed it since; 0 if the queue pair has been destroyed.
func (c *Conn) ORD() int {
	a, _ := c.qp.Query()
	return a.ORD
}

// PeerIRD and PeerORD are the peer's limits on RDMA Reads, as its MPA frame states
// them; -1 if it did not (RFC 6581 9.1).
func (c *Conn) PeerIRD() int { return c.stream.PeerIRD }

// PeerORD is the peer's limit on outbound RDMA Reads; -1 if it did not say.
func (c *Conn) PeerORD() int { return c.stream.PeerORD }

// CRC reports whether CRCs are in use.
func (c *Conn) CRC() bool { return c.stream.CRC }

// Markers reports whether this side and the peer insert markers.
func (c *Conn) Markers() (out, in bool) { return c.stream.MarkersOut, c.stream.MarkersIn }

// Extensions reports whether both programs have asked for RFC 7306: see Config.Extensions.
func (c *Conn) Extensions() bool { return c.extensions }

// P2P reports whether the connection is in peer-to-peer mode.
func (c *Conn) P2P() bool { return c.stream.P2P }

// Rev is the MPA revision in use.
func (c *Conn) Rev() uint8 { return c.stream.Rev }

// Done is closed when the connection is gone, by either side's doing. The queue pair
// is Idle after a good close, else in Error.
func (c *Conn) Done() <-chan struct{} { return c.llp.Done() }

// Err says why the connection ended: nil until Done is closed, and after a close
// that both sides wanted; else it wraps a *verbs.StreamError, which has the
// Terminate Message, the request at fault, and what errors.Is tells apart.
func (c *Conn) Err() error {
	if err := c.llp.Err(); err != nil {
		return fmt.Errorf("cm: connection to %v: %w", c.RemoteAddr(), err)
	}
	return nil
}

// Close is CloseContext with Config.CloseTimeout.
func (c *Conn) Close() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.timeout,
		fmt.Errorf("%w: CloseTimeout is %v", context.DeadlineExceeded, c.timeout))
	defer cancel()
	return c.CloseContext(ctx)
}

// CloseContext waits until the Send Queue is empty and the peer's RDMA Reads are
// answered, closes, and waits for the peer's close. If ctx ends before the Send Queue
// is empty, it resets the connection and returns ctx's cause, wrapped; the wait for
// the peer is bounded by the queue pair's CloseTimeout. Else it returns Err: nil if
// the queue pair ended in Idle. A peer that still sends makes it a bad close:
// programs agree on the end before (verbs draft 6.6.2.1). Closing twice is closing
// once: a later caller waits for the first.
func (c *Conn) CloseContext(ctx context.Context) error {
	c.closing.Do(func() { c.err = c.end(ctx) })
	return c.err
}

// end speaks of the stream, not of the queue pair, which may have its next connection
// at any time.
func (c *Conn) end(ctx context.Context) error {
	if err := c.llp.Drain(ctx); err != nil {
		_ = c.Abort()
		return fmt.Errorf("cm: connection to %v: reset, because the Send Queue did not empty in time: %w",
			c.RemoteAddr(), context.Cause(ctx))
	}
	// Refused if the connection has ended already, or ends in this moment.
	_ = c.llp.Close()
	<-c.Done()
	return c.Err()
}

// Abort resets the connection; what is posted completes as flushed. The queue
// pair is in Error then, unless it had closed before. A close that has begun, by Modify
// QP or by the peer, goes on instead (verbs draft figures 9 and 11), for the queue pair's
// CloseTimeout at most, and Abort waits for its end.
func (c *Conn) Abort() error {
	// Refused if the connection has ended already, or ends in this moment.
	_ = c.llp.Reset()
	<-c.Done()
	return nil
}
