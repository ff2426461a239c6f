// Package mpa frames DDP segments for TCP: Marker PDU Aligned framing
// (RFC 5044) with enhanced connection establishment (RFC 6581).
//
// It has two halves that share no state. Full operation is a Framer, which
// appends FPDUs to a buffer, and a Deframer, which finds ULPDUs in the octets
// put into one. Neither does any I/O. Startup is Initiate and Await: they
// exchange the Request and Reply frames over a net.Conn and return a Stream,
// which says what was agreed.
//
// A Responder sends no FPDU until it has received and validated one (RFC 5044
// 7.1.2, rule 4). This package does not hold it back; the sender on a
// Stream whose Role is Responder does.
package mpa
