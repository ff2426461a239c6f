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
	stream  *mpa.Stream
	qp      *verbs.QP
	ird     int
	done    <-chan struct{}
	timeout time.Duration

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

// P2P reports whether the connection is in peer-to-peer mode.
func (c *Conn) P2P() bool { return c.stream.P2P }

// Rev is the MPA revision in use.
func (c *Conn) Rev() uint8 { return c.stream.Rev }

// Done is closed when the connection is gone, whoever ended it. The queue pair
// is Idle after a good close, else in Error.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close waits until the Send Queue is empty and the peer's RDMA Reads are
// answered, closes, and waits for the peer's close. It returns nil if the queue
// pair ended in Idle. A peer that still sends makes it a bad close: programs
// agree on the end before (verbs draft 6.6.2.1). Closing twice is closing once.
func (c *Conn) Close() error {
	c.closing.Do(func() { c.err = c.end() })
	return c.err
}

func (c *Conn) end() error {
	select {
	case <-c.done: // the queue pair may have another connection by now
		return c.result()
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	if err := c.qp.Drain(ctx); err != nil {
		_ = c.Abort()
		return fmt.Errorf("cm: close: the Send Queue did not empty within %v: connection reset", c.timeout)
	}
	// Refused if the connection has ended already, or ends in this moment.
	_ = c.qp.Modify(verbs.ModifyQP{Next: verbs.Closing})
	<-c.done
	return c.result()
}

// Abort resets the connection; what is posted completes as flushed. The queue
// pair is in Error then, unless it had closed before.
func (c *Conn) Abort() error {
	select {
	case <-c.done:
		return nil
	default:
	}
	// Refused if the connection has ended already, or ends in this moment.
	_ = c.qp.Modify(verbs.ModifyQP{Next: verbs.Error})
	<-c.done
	return nil
}

// result says how the connection ended.
func (c *Conn) result() error {
	a, err := c.qp.Query()
	switch {
	case err != nil: // destroyed, or its RNIC closed, with the connection up
		return fmt.Errorf("cm: the connection was reset: %w: %w", net.ErrClosed, err)
	case a.State == verbs.Idle, a.State == verbs.RTS: // RTS: it went on to another connection
		return nil
	case a.Terminate != nil && a.Terminate.Sent:
		return fmt.Errorf("cm: the connection ended with a Terminate Message to the peer: %v", a.Terminate.Code)
	case a.Terminate != nil:
		return fmt.Errorf("cm: the peer ended the connection with a Terminate Message: %v", a.Terminate.Code)
	}
	return fmt.Errorf("cm: the connection was lost or reset, or not closed in order: %w", net.ErrClosed)
}
