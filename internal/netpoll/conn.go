package netpoll

import (
	"net"
	"sync/atomic"
	"syscall"
)

// Conn is the connection of a stream in a Group. Its reads and writes do not wait until HandToRuntime; from then on those
// of net.Conn may, until a deadline. TryRead and TryWrite go on then.
//
// One goroutine at a time reads, and one writes; Close, Reset and SetReadDeadline may be called at any time.
type Conn struct {
	link
	sock   *Socket     // nil until Join
	port   *Port       // what it goes through, or nil
	left   atomic.Bool // the group, and so the port
	shaped shaped
	asks   atomic.Bool      // TCP asks the peer: see Heard
	unmute func(fd uintptr) // has TCP be as it was before mute; guarded by Port.mu
}

// link is what carries the octets of a Conn: a socket (tcp_linux.go), or a net.Conn with two goroutines (pump.go).
type link interface {
	net.Conn     // its addresses are those of the one it was made of; Read, Write and deadlines are for after handToRuntime
	syscall.Conn // of the socket, that below other connections too if they have NetConn
	// join gives it its place in a group.
	join(*Group, Member) (*Socket, error)
	// take makes the net.Conn that it was made of the link's alone.
	take()
	tryRead(p []byte) (int, error)
	tryReadPieces(pieces [][]byte) (int, error)
	tryWrite(pieces [][]byte, limit int) (int, error)
	// pending is how many octets have come and were not read.
	pending() int
	dropped() bool
	handToRuntime()
	awaitWrite(try func() bool) error
	halfClose() (has bool, err error)
	reset()
	wait()
}

// ErrAgain is the error of a read or a write that would have to wait.
var ErrAgain error = syscall.EAGAIN

// Own makes the connection of a stream of c. It fails if the system has no descriptors left. Until Take c is as it was, and
// its owner's to close. Goroutines of the connection call wear, if it is not nil, with what they do.
func Own(c net.Conn, wear func(work string)) (*Conn, error) {
	l, err := newLink(c, wear)
	if err != nil {
		return nil, err
	}
	return &Conn{link: l}, nil
}

// Through has the stream go through p while it is in a group. It comes before Join; without it nothing is done to the stream.
func (c *Conn) Through(p *Port) { c.port = p }

// Join gives the stream of the connection its place in g.
func (c *Conn) Join(g *Group, s Member) (*Socket, error) {
	var err error
	if c.sock, err = c.link.join(g, s); err != nil {
		return nil, err
	}
	if c.port != nil {
		c.port.add(c)
	}
	return c.sock, nil
}

// leave undoes Join.
func (c *Conn) leave() {
	if c.sock == nil {
		return
	}
	c.sock.Remove()
	if c.port != nil {
		c.left.Store(true)
		c.port.remove(c)
	}
}

// shape is what the port does to the stream now, or nil.
func (c *Conn) shape() *shape {
	if s := c.port.now(); s != nil && !c.left.Load() {
		return s
	}
	return nil
}

// Take makes the net.Conn that it was the Conn's alone. It comes before Begin of the Socket.
func (c *Conn) Take() { c.take() }

// TryRead reads what has come into p, which is not empty. The error is ErrAgain if nothing has, io.EOF at the end.
func (c *Conn) TryRead(p []byte) (int, error) {
	if s := c.shape(); s != nil {
		return c.readShaped(s, func() (int, error) { return c.link.tryRead(p) })
	}
	return c.link.tryRead(p)
}

// TryReadPieces is TryRead into MaxReadPieces pieces at most, none of which is empty.
func (c *Conn) TryReadPieces(pieces [][]byte) (int, error) {
	if s := c.shape(); s != nil {
		return c.readShaped(s, func() (int, error) { return c.link.tryReadPieces(pieces) })
	}
	return c.link.tryReadPieces(pieces)
}

// TryWrite writes what is taken at once of the first limit octets of pieces, 1 at least: of as many pieces as one call of
// the system takes. The error is ErrAgain if nothing is.
func (c *Conn) TryWrite(pieces [][]byte, limit int) (int, error) {
	if s := c.shape(); s != nil {
		return c.writeShaped(s, pieces, limit)
	}
	return c.link.tryWrite(pieces, limit)
}

// Dropped reports whether there is no connection left behind an io.EOF: then it was no close of the peer's.
func (c *Conn) Dropped() bool { return c.link.dropped() }

// HandToRuntime leaves the group, for the end of a stream: deadlines work, and a goroutine may wait. It needs no other
// descriptor, and changes nothing if c has been closed. No other goroutine reads or writes meanwhile.
func (c *Conn) HandToRuntime() {
	c.leave()
	c.link.handToRuntime()
}

// AwaitWrite calls try, which calls TryWrite, and again when more may be taken, until it returns true or the deadline of
// writes has passed. It is for after HandToRuntime.
func (c *Conn) AwaitWrite(try func() bool) error { return c.link.awaitWrite(try) }

// HalfClose ends what this end sends, behind all that was taken. It is for after HandToRuntime, and may wait until the
// deadline of writes. A connection without a half-close is still open then, and has is false.
func (c *Conn) HalfClose() (has bool, err error) { return c.link.halfClose() }

// Close leaves the group first: the set keeps a socket that is open elsewhere. What was taken and is not sent is dropped by a
// connection that is no socket. Before Take it leaves what c was made of alone.
func (c *Conn) Close() error {
	c.leave()
	return c.link.Close()
}

// Reset drops the connection at once; TCP tells the peer with an RST. That below TLS is dropped first: to close TLS is to
// write, which may wait for the peer.
func (c *Conn) Reset() {
	c.leave()
	c.link.reset()
}

// Wait returns when the goroutines of a connection that has been closed are gone.
func (c *Conn) Wait() { c.link.wait() }
