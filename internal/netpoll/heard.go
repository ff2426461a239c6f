package netpoll

import "github.com/softrnic/softrnic/internal/tcpsock"

// Heard is what TCP knows of the peer: see verbsinternal.HeardOf. ok is false without a socket, and once it is closed.
func (c *Conn) Heard(ask bool) (h tcpsock.Heard, ok bool) {
	raw, err := c.link.SyscallConn()
	if err != nil {
		return h, false
	}
	_ = raw.Control(func(fd uintptr) {
		if c.asks.Swap(ask) != ask {
			tcpsock.Ask(fd, ask)
		}
		h, ok = tcpsock.HeardOf(fd)
	})
	return h, ok
}

// mute has TCP ask nothing of the peer, or ask as before. The caller has Port.mu.
func (c *Conn) mute(on bool) {
	if on == (c.unmute != nil) {
		return
	}
	raw, err := c.link.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
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
