package endpoint

import (
	"net"

	"github.com/softrnic/softrnic/internal/netpoll"
)

// Memory is held while octets are moved between it and the connection, and never while waiting.

// directAhead is how much is read along behind a segment whose payload goes to its memory: the next header, or two.
const directAhead = 512

// join gives the connection its place in the group. It is the endpoint's alone then.
func (e *Endpoint) join(c net.Conn) (err error) {
	if e.conn, err = netpoll.Own(c, nil); err != nil {
		return err
	}
	g := e.c.Group
	if g == nil {
		g = new(netpoll.Group)
	}
	if e.sock, err = e.conn.Join(g, (*member)(e)); err != nil {
		_ = e.conn.Close()
		return err
	}
	e.conn.Take()
	return nil
}

// readDirect reads into the sink of the segment that is diverted there, and what comes behind it into space. errRevoked
// says that the sink's memory is gone.
func (e *Endpoint) readDirect(space []byte) (n int, err error) {
	r := &e.rx
	ref, off, k := r.sink.here(uint64(r.away))
	if k == 0 || !ref.Hold() {
		return 0, errRevoked
	}
	defer ref.Release()
	defer clear(r.room[:])
	pieces := ref.Fill(r.room[:0:len(r.room)-1], off, k)
	left := r.away
	for _, p := range pieces {
		left -= len(p)
	}
	if left == 0 {
		pieces = append(r.room[:len(pieces)], space[:min(len(space), directAhead)])
	}
	n, err = e.conn.TryReadPieces(pieces)
	r.sink.skip(uint64(min(n, r.away)))
	return n, err
}

// push sends as much of b as the connection takes. ErrAgain says that the rest would have to wait, errRevoked that the
// memory of what is next is gone.
func (e *Endpoint) push(b *batch) error {
	for !b.Empty() {
		limit, held := b.Hold()
		limit = b.upTo(limit)
		if limit <= b.Sent() {
			held.Release()
			return errRevoked
		}
		n, err := e.conn.TryWrite(b.Next(), limit-b.Sent())
		held.Release()
		b.Advance(n)
		if err != nil {
			return err
		}
	}
	return nil
}
