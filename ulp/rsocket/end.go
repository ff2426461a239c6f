package rsocket

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// learn finds out why the stream has ended, or is about to, and takes what had arrived by then. Nobody leads. It lets go of mu.
func (c *Conn) learn() {
	if !c.gone {
		c.mu.Unlock()
		<-c.cm.Done() // soon: completions have told of it
		err := c.cm.Err()
		c.mu.Lock()
		c.collect()
		c.over(err)
	}
	c.mute = true
}

// over takes the end of the stream, which is a good one without an error.
func (c *Conn) over(err error) {
	if c.gone {
		return
	}
	c.finished, c.gone = true, true
	if c.failure == nil {
		c.failure = err
	}
	c.wake(&c.reader)
	c.wake(&c.writer)
}

// fail ends the connection because of what the peer has sent.
func (c *Conn) fail(err error) {
	if c.failure != nil || c.gone {
		return
	}
	c.over(err)
	go func() { _ = c.cm.Abort() }()
}

// readError is why there is nothing to read, or nil if the reader is to wait; mu is held.
func (c *Conn) readError() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.reader.passed:
		return os.ErrDeadlineExceeded
	case c.readShut:
		return io.EOF
	case c.in.unread > 0:
		return nil
	case c.failure != nil:
		return c.failure
	case c.finished:
		return io.EOF
	}
	return nil
}

// writeError is why nothing can be written, or nil; mu is held.
func (c *Conn) writeError() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.writer.passed:
		return os.ErrDeadlineExceeded
	case c.writeShut:
		return syscall.EPIPE
	case c.failure != nil:
		return c.failure
	case c.gone:
		return syscall.ECONNRESET
	}
	return nil
}

// CloseWrite tells the peer that nothing more comes: it reads to the end of what was written. A Write under way ends with an error.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	if err := c.shut(); err != nil {
		c.mu.Unlock()
		return opError("close", c, err)
	}
	c.wake(&c.writer)
	c.mu.Unlock()
	c.wr.Lock() // behind all data
	defer c.wr.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished || c.readShut {
		c.disconnect()
	} else if !c.disconnected && !c.gone {
		c.say(newMessage(opState, stateShutdown), nil, target{})
	}
	return nil
}

func (c *Conn) shut() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.writeShut, c.failure != nil:
		return errors.Join(c.failure, syscall.ENOTCONN)
	}
	c.writeShut = true
	return nil
}

// CloseRead makes reading end. The peer is not told, and may fill the ring.
func (c *Conn) CloseRead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return opError("close", c, net.ErrClosed)
	}
	c.readShut = true
	c.wake(&c.reader)
	return nil
}

// disconnect tells the peer that this is the end, both ways; mu is held.
func (c *Conn) disconnect() {
	if c.disconnected || c.mute {
		return
	}
	c.disconnected = true
	c.say(newMessage(opState, stateDisconnect), nil, target{})
}

// Close ends both directions, and what waits in either. The peer gets all that was written: Close returns when TCP has it, or after
// Config.CloseTimeout. The rest happens behind its back: TCP's connection ends when the peer has seen the end too, or after Config.CloseTimeout again.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return opError("close", c, net.ErrClosed)
	}
	c.closed = true
	c.poll() // the peer may have said the same
	for _, w := range []*waiter{&c.reader, &c.writer} {
		c.setDeadline(w, time.Time{})
		c.wake(w)
	}
	ended := c.mute
	c.mu.Unlock()
	if !ended {
		c.wr.Lock() // behind all data
		c.mu.Lock()
		c.disconnect()
		c.mu.Unlock()
		c.wr.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), c.config.CloseTimeout)
		_ = c.qp.Drain(ctx)
		cancel()
	}
	go func() {
		c.linger()
		_ = c.cm.Close()
		c.release()
	}()
	return nil
}

// linger takes what the peer has sent before it knew of the end, until it says that nothing more comes. A message that arrived at a queue pair that
// is closing would make it a bad close (verbs draft 6.2.2.2): the stream would be reset, and what TCP still has for the peer lost. A peer that
// does not look at its connection is waited for no longer than CloseTimeout.
func (c *Conn) linger() {
	c.wr.Lock() // its place to wait is the writer's
	defer c.wr.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setDeadline(&c.writer, time.Now().Add(c.config.CloseTimeout))
	for !c.mute && !c.writer.passed {
		c.wait(&c.writer)
	}
	c.setDeadline(&c.writer, time.Time{})
}
