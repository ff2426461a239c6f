package ownsock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// MaxBody is the longest body of a Message, in octets.
const MaxBody = 1 << 17

// header is a type in one octet, and the length of the body in three, most significant first.
const header = 4

// Message is what one process says to another.
type Message struct {
	Type byte
	Body []byte
	// File is the descriptor that came with it, or nil. It belongs to its receiver.
	File *os.File
}

// Discard closes the descriptor, if there is one.
func (m *Message) Discard() {
	if m.File != nil {
		_ = m.File.Close()
	}
}

// Errors of what the other process sends, to compare with errors.Is. The Conn is of no use then.
var (
	// ErrTooLong: a body of more than MaxBody octets.
	ErrTooLong = errors.New("a message is too long")
	// ErrDescriptors: several descriptors with one message.
	ErrDescriptors = errors.New("several descriptors came with a message")
	// ErrNoDescriptors: this process may not have another descriptor, and the one that came is lost.
	ErrNoDescriptors = errors.New("no descriptor is left for one that came: close some, or raise the limit of this process (ulimit -n)")
)

// Malformed reports an error of Read that is of what the other process sends.
func Malformed(err error) bool { return errors.Is(err, ErrTooLong) || errors.Is(err, ErrDescriptors) }

// Conn is a connection over which two processes of one user send each other messages. One goroutine reads, any
// number may write.
type Conn struct {
	c        *net.UnixConn
	patience time.Duration

	write sync.Mutex
}

// NewConn makes one of c, which it owns, if the other end is a process of this user's; else it closes c. A write, and
// a read of a message that has begun, may take as long as patience.
func NewConn(c *net.UnixConn, patience time.Duration) (*Conn, error) {
	if err := sameUser(c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return &Conn{c: c, patience: patience}, nil
}

// SameUser is nil if the process at the other end is this user's; else it says whose it is.
func SameUser(c *net.UnixConn) error { return sameUser(c) }

// Close ends it, and a Read and Writes that are under way.
func (c *Conn) Close() error { return c.c.Close() }

// Read waits for the next message: for ever if within is 0. Errors: ErrTooLong, ErrDescriptors, ErrNoDescriptors;
// io.EOF; the system's.
func (c *Conn) Read(within time.Duration) (m Message, err error) {
	var head [header]byte
	var r receipt
	defer func() {
		if err != nil {
			r.discard()
		}
	}()
	if err = c.deadline(within); err == nil {
		err = c.fill(head[:1], &r)
	}
	if err == nil {
		err = c.deadline(c.patience)
	}
	if err == nil {
		err = c.fill(head[1:], &r)
	}
	if err != nil {
		return m, err
	}
	n := int(head[1])<<16 | int(head[2])<<8 | int(head[3])
	if n > MaxBody {
		return m, fmt.Errorf("%w: %d octets", ErrTooLong, n)
	}
	m = Message{Type: head[0], Body: make([]byte, n)}
	if err = c.fill(m.Body, &r); err != nil {
		return Message{}, err
	}
	m.File, err = r.file()
	return m, err
}

// deadline is for what is read from now on.
func (c *Conn) deadline(within time.Duration) error {
	if within == 0 {
		return c.c.SetReadDeadline(time.Time{})
	}
	return c.c.SetReadDeadline(time.Now().Add(within))
}

// frame is a message as it is sent.
func frame(kind byte, body []byte) []byte {
	b := make([]byte, 0, header+len(body))
	b = append(b, kind, byte(len(body)>>16), byte(len(body)>>8), byte(len(body)))
	return append(b, body...)
}

// Write sends a message, of a body of MaxBody octets at most, and with it a descriptor of the socket with, if that is
// not nil: the sender keeps its own. After an error the Conn has been closed.
func (c *Conn) Write(kind byte, body []byte, with SyscallConn) error {
	c.write.Lock()
	defer c.write.Unlock()
	err := c.c.SetWriteDeadline(time.Now().Add(c.patience))
	if err == nil {
		err = c.send(frame(kind, body), with)
	}
	if err != nil {
		_ = c.c.Close()
	}
	return err
}
