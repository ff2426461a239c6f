package conformance

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Direction says who sent the octets of a Mark.
type Direction string

// The directions.
const (
	Note     Direction = ""
	Sent     Direction = "sent"     // by the runner
	Received Direction = "received" // from the target
)

// Mark is one entry of a Trace: octets of a stream, or a note.
type Mark struct {
	At        time.Duration // since the case began
	Stream    int           // counts from 1; 0 for a note
	Direction Direction
	Octets    []byte
	Text      string
}

// traceLimit bounds the octets that one case's trace keeps. If there are more, older streams
// go, a whole one at a time: a case fails on its last ones. Of a stream that is longer
// than that the beginning is kept.
const traceLimit = 1 << 20

// Trace records what a case sends and receives. Its methods may be called from any
// goroutine.
type Trace struct {
	start time.Time

	mu      sync.Mutex
	marks   []Mark // guarded by mu, as all below
	octets  int    // in marks
	traffic Traffic
	dropped int // streams up to this one have left marks
}

// Traffic is how much went over the streams of a case, in octets.
type Traffic struct {
	Streams  int `json:"streams"`
	Sent     int `json:"sent"`
	Received int `json:"received"`
}

func newTrace() *Trace { return &Trace{start: time.Now()} }

// Note adds a note.
func (t *Trace) Note(text string) { t.add(Mark{Text: text}) }

func (t *Trace) add(m Mark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m.At = time.Since(t.start)
	switch m.Direction {
	case Sent:
		t.traffic.Sent += len(m.Octets)
	case Received:
		t.traffic.Received += len(m.Octets)
	case Note:
	}
	if m.Stream > 0 && m.Stream <= t.dropped {
		return
	}
	for t.octets+len(m.Octets) > traceLimit && t.dropped+1 < m.Stream {
		t.drop(t.dropped + 1)
	}
	if room := traceLimit - t.octets; len(m.Octets) > room {
		if room == 0 {
			return
		}
		m.Octets = m.Octets[:room]
		m.Text = "cut: the trace is full"
	}
	t.octets += len(m.Octets)
	t.marks = append(t.marks, m)
}

// drop leaves out a stream. t.mu is held.
func (t *Trace) drop(stream int) {
	t.dropped = stream
	t.marks = slices.DeleteFunc(t.marks, func(m Mark) bool {
		if m.Stream == stream {
			t.octets -= len(m.Octets)
		}
		return m.Stream == stream
	})
	t.marks = append(t.marks, Mark{At: time.Since(t.start), Text: fmt.Sprintf("stream %d is left out: the trace is full", stream)})
}

// Marks is what was recorded, in order.
func (t *Trace) Marks() []Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Mark(nil), t.marks...)
}

// Traffic is how much was recorded, also of what Marks has no room for.
func (t *Trace) Traffic() Traffic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.traffic
}

// Conn records what goes over c.
func (t *Trace) Conn(c net.Conn) net.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.traffic.Streams++
	return &tracedConn{Conn: c, trace: t, stream: t.traffic.Streams}
}

// tracedConn is a connection whose octets are recorded.
type tracedConn struct {
	net.Conn
	trace  *Trace
	stream int
	ended  atomic.Bool // what the other side sends
}

func (c *tracedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.record(Received, b[:n])
	switch {
	case errors.Is(err, io.EOF):
		c.end("FIN")
	case errors.Is(err, syscall.ECONNRESET):
		c.end("RST")
	}
	return n, err
}

func (c *tracedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.record(Sent, b[:n])
	return n, err
}

func (c *tracedConn) record(d Direction, b []byte) {
	if len(b) > 0 {
		c.trace.add(Mark{Stream: c.stream, Direction: d, Octets: append([]byte(nil), b...)})
	}
}

// end records once how the other side ended its half.
func (c *tracedConn) end(how string) {
	if c.ended.CompareAndSwap(false, true) {
		c.trace.add(Mark{Stream: c.stream, Direction: Received, Text: how})
	}
}

// CloseWrite passes a half-close on.
func (c *tracedConn) CloseWrite() error {
	c.trace.add(Mark{Stream: c.stream, Direction: Sent, Text: "FIN"})
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.Conn.Close()
}

// SetLinger passes on, so that a reset is one.
func (c *tracedConn) SetLinger(s int) error {
	if s == 0 {
		c.trace.add(Mark{Stream: c.stream, Direction: Sent, Text: "RST"})
	}
	if l, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(s)
	}
	return nil
}
