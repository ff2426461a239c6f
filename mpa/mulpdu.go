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
	sc, ok := c.(syscall.Conn)
	if !ok {
		return DefaultEMSS
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return DefaultEMSS
	}
	emss := 0
	if err := raw.Control(func(fd uintptr) { emss = maxSegment(fd) }); err != nil || emss <= 0 {
		return DefaultEMSS
	}
	return emss
}
