// Package rawpeer is a raw peer for tests: the other end of an iWARP stream, played
// by hand. It sends any FPDU, whole or damaged, and reads what comes back segment
// by segment, down to how the stream ends. It keeps no rule of the protocol that
// it is not asked to keep.
//
//	peer.go     the FPDU stream, and its end
//	message.go  the octets of each message
//	startup.go  the MPA startup, by frames or by octets
package rawpeer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
)

// DefaultPatience is how long a Peer waits for the other side.
const DefaultPatience = 30 * time.Second

// Options are what the startup agreed on. The zero value is a stream without CRC
// and markers.
type Options struct {
	// CRC fills and checks the CRC fields.
	CRC bool
	// MarkersOut inserts markers; MarkersIn expects them.
	MarkersOut, MarkersIn bool
	// Patience bounds each wait for the other side; 0 stands for
	// DefaultPatience.
	Patience time.Duration
}

// Peer is one end of a stream. It is used from one goroutine at a time; a read
// and a write may run side by side.
type Peer struct {
	// Conn is the connection, for what the methods do not offer.
	Conn net.Conn

	framer   mpa.Framer
	in       mpa.Deframer
	patience time.Duration
}

// New makes a Peer of a connection that has finished its startup.
func New(c net.Conn, o Options) *Peer {
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	p := &Peer{
		Conn: c, patience: o.Patience,
		framer: mpa.NewFramer(o.CRC, o.MarkersOut),
		in:     mpa.NewDeframer(o.CRC, o.MarkersIn),
	}
	p.in.SetBuffer(make([]byte, mpa.MinBuffer))
	return p
}

// Frame makes the next FPDU of the stream without sending it. Whoever sends it
// changed must keep its length, or the markers behind it are off.
func (p *Peer) Frame(ulpdu []byte) []byte { return p.framer.AppendFPDU(nil, ulpdu) }

// Send sends a ULPDU in a good FPDU. The error is the connection's.
func (p *Peer) Send(ulpdu []byte) error { return p.Raw(p.Frame(ulpdu)) }

// Raw sends octets as they are.
func (p *Peer) Raw(b []byte) error {
	_ = p.Conn.SetWriteDeadline(time.Now().Add(p.patience))
	_, err := p.Conn.Write(b)
	return err
}

// Next reads the next ULPDU, valid until the next call. Errors: io.EOF (the other
// side closed its half between two FPDUs), io.ErrUnexpectedEOF (within one),
// *mpa.Error (a bad FPDU), or the connection's.
func (p *Peer) Next() ([]byte, error) {
	for {
		ulpdu, ok, err := p.in.Next()
		if ok || err != nil {
			return ulpdu, err
		}
		_ = p.Conn.SetReadDeadline(time.Now().Add(p.patience))
		n, err := p.Conn.Read(p.in.Space())
		p.in.Advance(n)
		switch {
		case n > 0:
		case errors.Is(err, io.EOF) && p.in.Buffered() > 0:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
	}
}

// Segment is Next, parsed. A ULPDU that is no DDP segment is an error.
func (p *Peer) Segment() (ddp.Segment, error) {
	ulpdu, err := p.Next()
	if err != nil {
		return ddp.Segment{}, err
	}
	s, code := ddp.Parse(ulpdu)
	if code != ddp.CodeOK {
		return s, fmt.Errorf("wire: %v: % x", code, ulpdu)
	}
	return s, nil
}

// End is how the other side ended its half of the stream.
type End string

// The ends.
const (
	FIN   End = "FIN"           // between two FPDUs
	Cut   End = "FIN in a FPDU" // within one
	Reset End = "RST"
)

// End reads until the other side has ended the stream, and reports how, and how
// many whole FPDUs came before.
func (p *Peer) End() (end End, fpdus int, err error) {
	for {
		_, err := p.Next()
		switch {
		case err == nil:
			fpdus++
		case errors.Is(err, io.EOF):
			return FIN, fpdus, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return Cut, fpdus, nil
		case errors.Is(err, syscall.ECONNRESET):
			return Reset, fpdus, nil
		default:
			return "", fpdus, err
		}
	}
}

// Silent reports whether nothing at all comes within d.
func (p *Peer) Silent(d time.Duration) bool {
	if p.in.Buffered() > 0 {
		return false
	}
	_ = p.Conn.SetReadDeadline(time.Now().Add(d))
	n, err := p.Conn.Read(p.in.Space())
	p.in.Advance(n)
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// CloseWrite ends this half: TCP sends a FIN. A connection without half-close is
// closed.
func (p *Peer) CloseWrite() error {
	if c, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return p.Conn.Close()
}

// Reset drops the connection: TCP sends an RST.
func (p *Peer) Reset() error {
	if c, ok := p.Conn.(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0)
	}
	return p.Conn.Close()
}

// Close closes the connection.
func (p *Peer) Close() error { return p.Conn.Close() }

// Pair makes two ends of a TCP connection over the loopback.
func Pair() (a, b net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = l.Close() }()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	if b, err = l.Accept(); err != nil {
		_ = a.Close()
		return nil, nil, err
	}
	return a, b, nil
}
