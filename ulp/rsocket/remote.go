package rsocket

import (
	"errors"
	"fmt"
	"math"

	"github.com/softrnic/softrnic/verbs"
)

// mapped is a buffer that a side writes into by offset.
type mapped struct {
	offset uint64
	target
}

func (m mapped) put(b []byte) {
	order.PutUint64(b, m.offset)
	m.target.put(b[8:])
}

func parseMapped(b []byte) mapped {
	return mapped{offset: order.Uint64(b), target: parseTarget(b[8:])}
}

// at is where n octets from off on are, as far as this buffer has them.
func (m mapped) at(off uint64, n int) (target, bool) {
	if off < m.offset || off-m.offset >= uint64(m.length) {
		return target{}, false
	}
	into := off - m.offset
	return target{addr: m.addr + into, key: m.key, length: uint32(min(uint64(n), uint64(m.length)-into))}, true
}

// ErrNotMapped is matched by the error of WriteAt to an offset that the peer has mapped nothing to, and of Map where the peer has no place for it.
var ErrNotMapped = errors.New("rsocket: not mapped")

// Map lets the peer write into buf by itself, as its octets from offset on, until the connection is closed: it is riomap of rsockets. The peer has as many
// places as its Config.Mapped says. Nothing tells when it has written: that is for the two programs to agree on. buf is not to be moved or
// unmapped meanwhile. Errors: ErrNotMapped without a place, those of Write, and of verbs for memory that cannot be registered.
func (c *Conn) Map(buf []byte, offset int64) error {
	c.wr.Lock()
	defer c.wr.Unlock()
	switch {
	case len(c.maps) >= c.peer.mapped:
		return opError("map", c, fmt.Errorf("%w: the peer has places for %d buffers", ErrNotMapped, c.peer.mapped))
	case offset < 0 || len(buf) == 0 || int64(len(buf)) > math.MaxUint32:
		return opError("map", c, fmt.Errorf("%w: offset %d, %d octets", ErrNotMapped, offset, len(buf)))
	}
	mr, err := c.qp.PD().Register(buf, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
	if c.took(err) != nil {
		return opError("map", c, err)
	}
	at := mr.Remote(0)
	entry := make([]byte, mappedSize)
	mapped{uint64(offset), target{at.TO, uint32(at.STag), uint32(len(buf))}}.put(entry)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.leave(&c.writer)
	for {
		if err := c.awaitSlot(); err != nil {
			c.gave(mr.Deregister())
			return opError("map", c, err)
		}
		if c.out.credit() && c.smallFits(mappedSize) {
			break
		}
		c.wait(&c.writer)
	}
	i := len(c.maps)
	c.maps = append(c.maps, mr)
	c.exposed = true
	c.out.sequence++
	table := c.peer.list.addr + uint64(c.peer.list.length)*targetSize + uint64(i)*mappedSize
	c.send(entry, nil, 0, newMessage(opMap, uint32(i)), target{addr: table, key: c.peer.list.key})
	return nil
}

// WriteAt writes p into what the peer has mapped, as its octets from off on, without a message: it is riowrite of rsockets, and io.WriterAt. It returns when TCP
// has the octets, or a copy. What is written to the connection afterwards arrives later. Errors: ErrNotMapped; those of Write.
func (c *Conn) WriteAt(p []byte, off int64) (n int, err error) {
	c.wr.Lock()
	defer c.wr.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.leave(&c.writer)
	var mr *verbs.MR
	if len(p) >= direct {
		mr, err = c.qp.PD().Register(p, verbs.LocalRead)
		if err != nil {
			return 0, c.writeFailure(err)
		}
		defer func() { _ = mr.Deregister() }()
		defer c.settle()
	}
	for n < len(p) {
		k := len(p) - n
		if err := c.awaitSlot(); err != nil {
			return n, c.writeFailure(err)
		}
		at, ok := c.mappedAt(off+int64(n), k)
		if !ok {
			return n, c.writeFailure(fmt.Errorf("%w: the peer has mapped no buffer to offset %d", ErrNotMapped, off+int64(n)))
		}
		k = int(at.length)
		if mr == nil {
			if k = min(k, c.smallRoom()); k == 0 {
				c.wait(&c.writer)
				continue
			}
		}
		c.send(p[n:][:k], mr, n, none, at)
		n += k
	}
	return n, nil
}

func (c *Conn) mappedAt(off int64, n int) (target, bool) {
	c.poll()
	for _, m := range c.theirs {
		if at, ok := m.at(uint64(off), n); ok && off >= 0 {
			return at, true
		}
	}
	return target{}, false
}

// peerMapped takes a message that says that an entry of the table of mapped buffers was written.
func (c *Conn) peerMapped(entry uint32) error {
	if int64(entry) >= int64(c.config.Mapped) {
		return broken("it maps buffer %d of %d", entry, c.config.Mapped)
	}
	for len(c.theirs) <= int(entry) {
		c.theirs = append(c.theirs, mapped{})
	}
	c.theirs[entry] = parseMapped(c.mem.mapped[entry*mappedSize:])
	return c.in.skip()
}
