package endpoint

import (
	"net"

	"github.com/softrnic/softrnic/internal/netpoll"
)

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

// push sends as much of b as the connection takes. ErrAgain says that the rest would have to wait.
func (e *Endpoint) push(b *batch) error {
	for b.left() {
		b.rest[0] = b.octets[b.sent:]
		n, err := e.conn.TryWrite(b.rest[:], len(b.rest[0]))
		b.sent += n
		if err != nil {
			return err
		}
	}
	return nil
}
