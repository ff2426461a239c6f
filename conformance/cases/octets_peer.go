package cases

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// framing is what the startup agreed on, as the raw peer sees it. The zero value is a
// stream without CRC and markers.
type framing struct {
	crc bool // CRC fields are filled and checked
	// markersOut are those that the peer inserts, markersIn those that it is sent.
	markersOut, markersIn bool
	// patience bounds each wait for the other side; 0 stands for half a minute.
	patience time.Duration
}

// withCRC is what most streams agree on.
var withCRC = framing{crc: true}

// rawEnd is the raw peer's end of a stream in Full Operation, played by hand: it sends
// any FPDU, whole or damaged, and reads what comes back ULPDU by ULPDU, down to how the
// stream ends. It keeps no rule by itself. A read and a write may run
// side by side, else it is used from one goroutine at a time.
type rawEnd struct {
	Conn     net.Conn
	out, in  mpaLane
	early    []byte // read and not taken yet
	patience time.Duration
}

// newRawEnd makes one of a connection whose startup is over.
func newRawEnd(c net.Conn, f framing) *rawEnd {
	if f.patience <= 0 {
		f.patience = 30 * time.Second
	}
	return &rawEnd{
		Conn: c, patience: f.patience,
		out: mpaLane{crc: f.crc, markers: f.markersOut}, in: mpaLane{crc: f.crc, markers: f.markersIn},
	}
}

// Frame makes the next FPDU without sending it. Its length must stay what it is,
// or the markers behind it are off.
func (p *rawEnd) Frame(ulpdu []byte) []byte { return p.out.fpdu(ulpdu) }

// Send sends a ULPDU in a good FPDU. The error is the connection's.
func (p *rawEnd) Send(ulpdu []byte) error { return p.Raw(p.Frame(ulpdu)) }

// Raw sends octets as they are.
func (p *rawEnd) Raw(b []byte) error {
	_ = p.Conn.SetWriteDeadline(time.Now().Add(p.patience))
	_, err := p.Conn.Write(b)
	return err
}

// Take reads the next FPDU, which nothing overwrites. Errors: io.EOF (the other side closed its half
// between two FPDUs), io.ErrUnexpectedEOF (within one), what is wrong with an FPDU, or the
// connection's.
func (p *rawEnd) Take() (mpaFPDU, error) {
	for {
		if f, ok := p.in.parse(p.early); ok {
			p.early = p.early[len(f.octets):]
			return f, f.fault(p.in.crc)
		}
		k := len(p.early)
		if err := p.fill(); errors.Is(err, io.EOF) && k > 0 {
			return mpaFPDU{}, io.ErrUnexpectedEOF
		} else if err != nil {
			return mpaFPDU{}, err
		}
	}
}

// Next reads the next ULPDU: see Take.
func (p *rawEnd) Next() ([]byte, error) {
	f, err := p.Take()
	return f.ulpdu, err
}

// fill reads what there is.
func (p *rawEnd) fill() error {
	_ = p.Conn.SetReadDeadline(time.Now().Add(p.patience))
	k := len(p.early)
	if cap(p.early)-k < 4<<10 {
		p.early = append(make([]byte, 0, 2*k+128<<10), p.early...)
	}
	n, err := p.Conn.Read(p.early[k:cap(p.early)])
	p.early = p.early[:k+n]
	if n > 0 {
		return nil
	}
	return err
}

// streamEnd is how the other side ended its half of a stream.
type streamEnd string

// The ends.
const (
	endFIN   streamEnd = "FIN"            // between two FPDUs
	endCut   streamEnd = "FIN in an FPDU" // within one
	endReset streamEnd = "RST"
)

// End reads until the other side has ended the stream, and reports how, and how many
// whole FPDUs came before.
func (p *rawEnd) End() (end streamEnd, fpdus int, err error) {
	for {
		_, err := p.Next()
		switch {
		case err == nil:
			fpdus++
		case errors.Is(err, io.EOF):
			return endFIN, fpdus, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return endCut, fpdus, nil
		case errors.Is(err, syscall.ECONNRESET):
			return endReset, fpdus, nil
		default:
			return "", fpdus, err
		}
	}
}

// CloseWrite ends this half: TCP sends a FIN. A connection without half-close is closed.
func (p *rawEnd) CloseWrite() error {
	if c, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return p.Conn.Close()
}

// Reset drops the connection: TCP sends an RST.
func (p *rawEnd) Reset() error {
	if c, ok := p.Conn.(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0)
	}
	return p.Conn.Close()
}

// Close closes the connection.
func (p *rawEnd) Close() error { return p.Conn.Close() }

// tcpPair is two ends of a TCP connection over the loopback, which is closed with the
// case.
func tcpPair(t *conformance.T) (a, b net.Conn) {
	a, b, err := dialedPair()
	require.NoError(t, err, "a TCP connection over the loopback")
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

func dialedPair() (a, b net.Conn, err error) {
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
		return nil, nil, fmt.Errorf("accepting: %w", err)
	}
	return a, b, nil
}
