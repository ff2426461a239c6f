package rsocket

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/verbs"
)

// Conn is a connection: a net.Conn, a stream of octets each way. All methods may be called from any goroutine.
//
// Nothing moves but in the calls of either side: a side that does not read lets the peer fill its ring, and no more.
type Conn struct {
	config Config
	cm     *cm.Conn
	qp     *verbs.QP
	cq     *verbs.CQ
	mem    memory

	counted *inventory.Object
	taken   atomic.Int32 // what the RNIC has made for it and not been given back

	rd sync.Mutex // one reader at a time; taken before mu, as wr
	wr sync.Mutex // one writer at a time
	mu sync.Mutex

	// Guarded by mu.
	in             inbound
	out            outbound
	peer           hello
	receives       receives
	reader, writer waiter
	leader         *waiter // the goroutine that waits for completions
	interrupt      interrupt
	sent, done     uint64                 // messages with data: those that were begun, and those that TCP has
	lent           uint64                 // those that were begun up to the last out of the caller's memory
	said, heard    uint64                 // the same of the others
	octets         [dataSlots]int32       // of small writes, by slot
	smallAt        int                    // where the next small write goes
	smallUsed      int                    // octets of them that TCP does not have
	unsignaled     int                    // messages in a row that nobody is told of
	unsignaledSize int                    // octets of small writes among them
	completions    [16]verbs.Completion   // for Poll; guarded by mu
	waited         [2][8]verbs.Completion // for Wait, by reader and writer
	control        frame
	closed         bool   // Close
	readShut       bool   // CloseRead
	writeShut      bool   // CloseWrite
	disconnected   bool   // this side has said so
	finished       bool   // the peer has shut down its side, or all
	gone           bool   // the peer takes nothing any more
	mute           bool   // and sends nothing any more
	failure        error  // why the stream has ended, if not by a close
	flushed        bool   // completions say that the stream ends
	grants         uint32 // the entry of the peer's target list that is written next, modulo its length

	exposed bool     // Map
	theirs  []mapped // what the peer has mapped; guarded by mu

	// Guarded by wr.
	data frame
	maps []*verbs.MR // what this side has mapped
}

// frame is a message's requests, for PostSend.
type frame struct {
	reqs [2]verbs.Request
	sges [2]verbs.SGE
}

var _ net.Conn = (*Conn)(nil)

// slack is how long the program may do something else than read before the RNIC takes in what arrives; until then it stays in TCP, as with a net.Conn.
const slack = 200 * time.Millisecond

// newConn makes all that a connection needs before it is connected.
func newConn(config Config) (c *Conn, err error) {
	c = &Conn{config: config, in: newInbound(config.RecvBuffer, messages), receives: newReceives()}
	c.reader.told, c.writer.told = make(chan struct{}, 1), make(chan struct{}, 1)
	c.counted = inventory.Open(nil, "rsocket connection", nil, inventory.CounterFunc(c.count))
	defer func() {
		if err != nil {
			c.release()
		}
	}()
	c.cq, err = config.NIC.CreateCQ(verbs.CQConfig{Entries: sendDepth + recvDepth, Slack: slack})
	if c.took(err) != nil {
		return c, err
	}
	c.qp, err = config.NIC.CreateEndpoint(verbs.QPConfig{
		SendCQ: c.cq, RecvCQ: c.cq, SendDepth: sendDepth, RecvDepth: recvDepth, SendSGE: 1, WriteSGE: 1, RecvSGE: 1,
		NoReads: true, NoInboundRead: true, NoBind: true, Extensions: config.Immediate,
	})
	if c.took(err) != nil {
		return c, err
	}
	if c.mem, err = newMemory(c.qp.PD(), config, c.took); err != nil {
		return c, err
	}
	for id := range uint64(recvDepth) {
		if err = c.again(id); err != nil {
			return c, err
		}
	}
	return c, nil
}

// hello is what the peer is told.
func (c *Conn) hello() hello {
	ring, list := c.mem.open.Remote(0), c.mem.open.Remote(len(c.mem.ring))
	return hello{
		flags: flagMap, credits: messages, mapped: c.config.Mapped,
		list: target{list.TO, uint32(list.STag), uint32(len(c.mem.list) / targetSize)},
		data: target{ring.TO, uint32(ring.STag), uint32(c.in.half)},
	}
}

// begin makes it a connection, with what the peer has told.
func (c *Conn) begin(conn *cm.Conn, private []byte) error {
	h, err := parseHello(private)
	if err != nil {
		return err
	}
	c.cm, c.peer, c.out, c.grants = conn, h, newOutbound(h, c.mem.list), 1
	c.mu.Lock()
	defer c.mu.Unlock()
	c.update() // the other half of the ring
	return nil
}

// release gives back what newConn has made; it may have failed half way.
func (c *Conn) release() {
	defer c.counted.Close()
	if c.qp != nil {
		c.gave(c.qp.Destroy())
	}
	c.mem.release(c.gave)
	for _, mr := range c.maps {
		c.gave(mr.Deregister())
	}
	if c.cq != nil {
		c.gave(c.cq.Destroy())
	}
}

// took counts what the RNIC has made for the connection, unless that failed, and gave what it has been given back.
func (c *Conn) took(err error) error {
	if err == nil {
		c.taken.Add(1)
	}
	return err
}

func (c *Conn) gave(err error) {
	if err == nil || errors.Is(err, verbs.ErrInvalidRNIC) { // the RNIC was closed before: all has gone with it
		c.taken.Add(-1)
	}
}

// count is an inventory.CounterFunc.
func (c *Conn) count(tell inventory.Tell) { tell(int(c.taken.Load()), "object of the RNIC") }

// LocalAddr is this side's address, a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.cm.LocalAddr() }

// RemoteAddr is the peer's address, a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.cm.RemoteAddr() }
