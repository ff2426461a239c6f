package rsocket

import (
	"context"

	"github.com/softrnic/softrnic/cm"
)

// Connection is what it runs over.
func (c *Conn) Connection() *cm.Conn { return c.cm }

// AcceptClosed is the rest of an Accept that had its Request before Close.
func AcceptClosed(l *Listener) error {
	r, err := l.l.Accept(context.Background())
	if err != nil {
		return err
	}
	l.close()
	_, err = l.accept(r)
	return err
}

// Grants is how much is told to the peer if it is due to be told what it may write.
func (c *Conn) Grants() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.said
	c.in.trigger = c.in.consumed
	c.update()
	return c.said - before
}

// Sleeping reports whether the reader and the writer wait.
func (c *Conn) Sleeping() (reader, writer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader == &c.reader || c.reader.asleep, c.leader == &c.writer || c.writer.asleep
}
