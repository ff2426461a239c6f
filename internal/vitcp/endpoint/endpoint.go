package endpoint

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/stag"
)

// Errors of the endpoint's methods.
var (
	// ErrEnded: the connection is over and everything posted before has had its result. What was to be posted was not.
	ErrEnded = errors.New("vitcp: endpoint ended")
	// ErrQueueFull: as many are outstanding as Config.SendDepth or ReceiveDepth say.
	ErrQueueFull = errors.New("vitcp: queue full")
	// ErrConfig: a Config that cannot be.
	ErrConfig = errors.New("vitcp: bad endpoint configuration")
)

// Config is what an endpoint goes by: what the two ends agreed, and what this end allows. Level to Early
// come from connection establishment.
type Config struct {
	Level segment.Level
	// MTU is the longest message in octets, in both directions (agreed, VT-3.3-M4); not zero.
	MTU uint32
	// CRC: each segment has a trailer (VT-3.6-M3).
	CRC bool
	// FlowControl: this end set Descriptor Flow Control Enabled: messages that consume a receive wait until the peer
	// has one (VT-3.2-M10).
	FlowControl bool
	// PeerFlowControl: the peer set it: this end tells what it has posted, by NOP if need be (VT-3.3-M3).
	PeerFlowControl bool
	// OutboundReads is how many RDMA Reads may be outstanding here, the window that the peer gave; zero allows none.
	OutboundReads uint16
	// InboundReads is how many the peer may have outstanding, the window that it was given. One more ends the connection.
	InboundReads uint16
	// Number and PeerNumber are the message numbers of the two ends' segments of establishment: the first messages have the
	// next ones.
	Number, PeerNumber uint32
	// Posted is the Rx Descriptors Posted that this end has told so far, PeerPosted what the peer has.
	Posted, PeerPosted uint16
	// Early are octets behind the last segment of connection establishment that were read with it. The endpoint copies
	// them.
	Early []byte

	// AllowWrite and AllowRead are the RDMA Write Enable and RDMA Read Enable attributes of this end's VI: what the peer
	// may do, in regions that allow it too (VI Architecture 3.2.2.2).
	AllowWrite, AllowRead bool

	// STags is the table where memory handles lead. A region takes part with wr.LocalRead|wr.LocalWrite, and
	// wr.RemoteRead and wr.RemoteWrite for its RDMA enables; VA-based, its addresses are the VI Consumer's.
	STags *stag.Table
	// User is who accesses memory: PD is the VI's protection tag, QP may be zero.
	User stag.User

	// SendDepth and ReceiveDepth are how many may be outstanding in each queue: 1024 if zero, 65,535 at most.
	SendDepth, ReceiveDepth int
	// Segment is the longest segment to send in octets, all included: 65,535 if zero, 256 at least.
	Segment int
	// Linger is how long the end of a connection may take: for the last segment to leave and for the peer to close too.
	// One second if zero; and one at least at ReliableReception if an error code is to be told or heard, which would be
	// lost otherwise.
	Linger time.Duration
	// Group serves a TCP connection, where package netpoll can (Linux): its pollers and waiters drive the endpoint. Nil is
	// a group of its own.
	Group *netpoll.Group
	// Handler is told about results; not nil.
	Handler Handler
	// Inventory is the object that the endpoint belongs to; nil for none.
	Inventory *inventory.Object
}

// MinSegment is the least that Config.Segment may be, in octets.
const MinSegment = 256

const (
	defaultDepth  = 1024
	maxDepth      = 1<<16 - 1 // Rx Descriptors Posted tells no more apart
	defaultLinger = time.Second
)

func (c Config) withDefaults() (Config, error) {
	c.SendDepth = cmp.Or(c.SendDepth, defaultDepth)
	c.ReceiveDepth = cmp.Or(c.ReceiveDepth, defaultDepth)
	c.Segment = cmp.Or(c.Segment, segment.MaxSegment)
	c.Linger = cmp.Or(c.Linger, defaultLinger)
	var bad string
	switch {
	case c.Level > segment.ReliableReception:
		bad = "there is no " + c.Level.String()
	case c.MTU == 0:
		bad = "MTU is zero"
	case c.STags == nil || c.Handler == nil:
		bad = "STags and Handler are needed"
	case c.SendDepth < 0 || c.SendDepth > maxDepth || c.ReceiveDepth < 0 || c.ReceiveDepth > maxDepth:
		bad = "depth out of range"
	case c.Segment < MinSegment || c.Segment > segment.MaxSegment:
		bad = "segment length out of range"
	case c.Linger < 0:
		bad = "linger is negative"
	default:
		return c, nil
	}
	return c, fmt.Errorf("%w: %s", ErrConfig, bad)
}

// Endpoint is one end of an established VI/TCP connection: it carries messages both
// ways until one end closes or something fails. All methods may be called at the
// same time.
//
// It has two sides: the reader (receive.go) owns rx, the writer (transmit.go) owns tx. They are the goroutine that drives
// the endpoint just now (drive.go). Everything else is guarded by mu, which is not held
// while waiting, while copying payload, or while the Handler runs.
type Endpoint struct {
	c    Config          // constant, as the next two
	sock *netpoll.Socket // the place in the group
	conn *netpoll.Conn
	done chan struct{}
	// As started and ended, for callers without mu.
	begun, over atomic.Bool

	tx transmitter // the writer's
	rx receiver    // the reader's

	mu   lockorder.Mutex[lockorder.Endpoint]
	calm sync.Cond // finish waits for the end of a delivery

	// Outbound.

	sq      fifo[*request]
	next    uint64       // request in sq that is framed now or next
	reads   fifo[uint64] // RDMA Reads that wait for their answers, places in sq
	acked   uint64       // Reception: first request in sq that no ACK covers
	sendOut int          // posted and without a result
	number  uint32       // of the last message begun (VT-3.2-M11)
	stopped bool         // nothing more is to be sent: the last message had a transmit error

	// Inbound.

	rq      fifo[*postedRecv]
	recvOut int
	inReads fifo[*inboundRead] // not all of their answers framed
	unsent  int                // inbound RDMA Reads whose answers have not left
	held    waitFor            // what the reader waits for before it goes on

	// Counts modulo 2^16 (3.2, Rx Descriptors Posted).

	posted, told, consumed uint16 // receives here: posted, as the peer knows, used up
	peerPosted, spent      uint16 // receives there: posted, used up by our messages

	// Message ACK, at Reliable Reception.

	ack, ackTold uint32            // last message received without error, as the peer knows
	ackHeld      bool              // it waits for company
	badNumber    uint32            // the message in error, if there is
	badCode      segment.ErrorCode // one

	// Life. See end.go.

	started, ended, closed bool
	draining               bool
	broken                 error // what the writer met, before the end
	cause                  Cause
	quiet                  bool // no memory is used any more
	lingerTimer            *time.Timer

	items      fifo[item]
	delivering bool
	untold     atomic.Bool // somebody has had enough of that
	current    item        // belongs to the thread that delivers

	kept    int // RDMA Reads that had their answers, and kept their place in the window
	counted *inventory.Object
}

// New returns an endpoint in the data transfer phase of a connection. It has
// begun nothing yet: receives may be posted, and Start begins. The endpoint owns conn
// from then on: Close closes it, Start or not. An error wraps ErrConfig, or says that the
// system has no descriptors left; conn is the caller's then.
func New(conn net.Conn, c Config) (*Endpoint, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Endpoint{
		c: c, done: make(chan struct{}),
		number: c.Number, told: c.Posted, peerPosted: c.PeerPosted,
		ack: c.PeerNumber, ackTold: c.PeerNumber,
	}
	e.calm.L = &e.mu
	if err := e.join(conn); err != nil {
		return nil, err
	}
	e.rx.init(c)
	e.tx.crc = c.CRC
	e.counted = inventory.Open(c.Inventory, "vitcp endpoint", conn.RemoteAddr(), e)
	return e, nil
}

// Count implements inventory.Counter.
func (e *Endpoint) Count(tell inventory.Tell) {
	e.mu.Lock()
	defer e.mu.Unlock()
	tell(e.sendOut, "request")
	tell(e.recvOut, "receive")
	tell(e.items.len(), "result")
	tell(e.kept, "window of RDMA Reads")
}

func (e *Endpoint) reliable() bool { return e.c.Level != segment.Unreliable }

// Start begins to receive and to send; once.
func (e *Endpoint) Start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started || e.ended {
		return
	}
	e.started = true
	e.begun.Store(true)
	e.sock.Begin()
	if len(e.rx.early) > 0 || e.tx.more.Load() {
		e.sock.Soon()
	}
}

// Abort ends the connection (CauseClosed) and does not wait. After an end it does
// nothing.
func (e *Endpoint) Abort() {
	e.mu.Lock()
	defer e.mu.Unlock()
	idle := !e.started && !e.ended
	e.end(CauseClosed, nil) // VA 4.2
	if idle {
		go func() {
			e.quiesce()
			e.leave()
		}()
	}
}

// Close ends the connection and waits until all results have been given and the
// goroutines and the net.Conn are gone: after it no memory is touched. Not to be
// called from a Handler. It may be called again, and after the connection has ended
// by itself.
func (e *Endpoint) Close() {
	e.Abort()
	<-e.done
}

// Done is closed when what Close waits for has come about.
func (e *Endpoint) Done() <-chan struct{} { return e.done }
