package mpa

import (
	"net"
	"syscall"
)

const (
	// MinMULPDU is the least MULPDU, in octets (RFC 5044 3).
	MinMULPDU = 128
	// MaxULPDU is the largest, and the longest ULPDU on the wire.
	MaxULPDU = 64768

	// DefaultEMSS is assumed for a connection that cannot tell its effective
	// maximum segment size: TCP over IPv4 on a 1500 octet link.
	DefaultEMSS = 1460
)

// MULPDU returns the longest ULPDU, in octets, whose FPDU fits a TCP segment of
// emss octets, with room for the worst case of markers if this side sends them
// (RFC 5044 4.5). The result is within MinMULPDU..MaxULPDU for any emss: below
// 128 octets the alignment of FPDUs to segments is given up.
func MULPDU(emss int, markers bool) int {
	emss = min(max(emss, 0), 2*MaxULPDU) // beyond both ends the result is a bound
	n := emss - (lengthLen + crcLen + emss%4)
	if markers {
		n -= markerLen * ((emss + markerPeriod - 1) / markerPeriod)
	}
	return min(max(n, MinMULPDU), MaxULPDU) // R5044-3-M3, R5044-4.5-M3
}

// EMSS returns the effective maximum segment size of c in octets, as its TCP
// stack states it now. It is DefaultEMSS if c is not a socket of this system,
// which includes wrapped connections such as TLS, or the system does not tell.
func EMSS(c net.Conn) int {
	m := Meter{raw: rawConn(c)}
	return m.measure()
}

// rawConn is the socket of c, nil if it is none.
func rawConn(c net.Conn) syscall.RawConn {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// Meter tells the MULPDU of a stream again and again, as it changes (R5041-3-M2).
// After the first time it allocates nothing. It is used by one goroutine at a time.
type Meter struct {
	fixed   int             // Stream.EMSS
	markers bool            // Stream.MarkersOut
	raw     syscall.RawConn // nil: not a socket
	ask     func(fd uintptr)
	emss    int // what ask has learnt
}

// Meter returns a Meter for what s sends.
func (s *Stream) Meter() Meter {
	return Meter{fixed: s.EMSS, markers: s.MarkersOut, raw: rawConn(s.Conn)}
}

// MULPDU is Stream.MULPDU.
func (m *Meter) MULPDU() int {
	emss := m.fixed
	if emss == 0 {
		emss = m.measure()
	}
	return MULPDU(emss, m.markers)
}

func (m *Meter) measure() int {
	if m.raw == nil {
		return DefaultEMSS
	}
	if m.ask == nil {
		m.ask = func(fd uintptr) { m.emss = maxSegment(fd) }
	}
	m.emss = 0
	if err := m.raw.Control(m.ask); err != nil || m.emss <= 0 {
		return DefaultEMSS
	}
	return m.emss
}
