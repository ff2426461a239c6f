package netpoll

import "github.com/softrnic/softrnic/internal/tcpsock"

// Heard is what TCP knows of the peer: see verbsinternal.HeardOf. ok is false without a socket, and once it is closed.
func (c *Conn) Heard(ask bool) (h tcpsock.Heard, ok bool) {
	c.control(func(fd uintptr) {
		if c.asks.Swap(ask) != ask {
			tcpsock.Ask(fd, ask)
		}
		h, ok = tcpsock.HeardOf(fd)
	})
	return h, ok
}

// Taken is how many octets TCP has taken of this end in all, by the count of Acked, while nobody writes. ok is false where it
// cannot be known.
func (c *Conn) Taken() (n uint64, ok bool) { return c.count(tcpsock.Taken) }

// Acked is how many octets the peer's system has acknowledged in all; ok as of Taken.
func (c *Conn) Acked() (n uint64, ok bool) { return c.count(tcpsock.Acked) }

func (c *Conn) count(of func(uintptr) (uint64, bool)) (n uint64, ok bool) {
	c.control(func(fd uintptr) { n, ok = of(fd) })
	return n, ok
}

// control calls f, if there is a socket.
func (c *Conn) control(f func(fd uintptr)) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(f)
	}
}

// mute has TCP ask nothing of the peer, or ask as before. The caller has Port.mu.
func (c *Conn) mute(on bool) {
	if on == (c.unmute != nil) {
		return
	}
	c.control(func(fd uintptr) {
		if on {
			c.unmute = tcpsock.Mute(fd)
		} else {
			c.unmute(fd)
		}
	})
	if !on {
		c.unmute = nil
	}
}
