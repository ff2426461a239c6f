package cases

import (
	"encoding/binary"
	"fmt"
)

// The octets of DDP segments, built here and not by the code under test. They are
// good ones; a case then spoils what it wants to.
//
//	tagged    C1 control  STag TO           payload    (RFC 5041 4.2)
//	untagged  41 control  0|STag QN MSN MO  payload    (RFC 5041 4.3)
//
// The first octet is 81 or 01 if another segment of the message follows.
const (
	lastTagged   = 0xC1
	moreTagged   = 0x81
	lastUntagged = 0x41
	moreUntagged = 0x01
)

// The control octets of RDMAP, version 1 (RFC 5040 4.1, figure 4).
const (
	opWrite        = 0x40
	opReadRequest  = 0x41
	opReadResponse = 0x42
	opSend         = 0x43
	opSendInv      = 0x44
	opSendSE       = 0x45
	opSendSEInv    = 0x46
	opTerminate    = 0x47
)

// tagged is a tagged segment.
func tagged(first, control byte, stag uint32, to uint64, payload []byte) []byte {
	b := []byte{first, control}
	b = binary.BigEndian.AppendUint32(b, stag)
	b = binary.BigEndian.AppendUint64(b, to)
	return append(b, payload...)
}

// untagged is an untagged segment. inv is the octets behind the control octet: an
// Invalidate STag, or zero.
func untagged(first, control byte, inv, qn, msn, mo uint32, payload []byte) []byte {
	b := []byte{first, control}
	for _, v := range []uint32{inv, qn, msn, mo} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return append(b, payload...)
}

// aWrite is a whole RDMA Write.
func aWrite(stag uint32, to uint64, payload []byte) []byte {
	return tagged(lastTagged, opWrite, stag, to, payload)
}

// aReadResponse is a whole RDMA Read Response.
func aReadResponse(stag uint32, to uint64, payload []byte) []byte {
	return tagged(lastTagged, opReadResponse, stag, to, payload)
}

// aSend is a whole Send.
func aSend(msn uint32, payload []byte) []byte {
	return untagged(lastUntagged, opSend, 0, 0, msn, 0, payload)
}

// aSendInv is a whole Send with Invalidate.
func aSendInv(msn, inv uint32, payload []byte) []byte {
	return untagged(lastUntagged, opSendInv, inv, 0, msn, 0, payload)
}

// aReadRequest is an RDMA Read Request.
func aReadRequest(msn uint32, r read) []byte {
	return untagged(lastUntagged, opReadRequest, 0, 1, msn, 0, r.header())
}

// read is an RDMA Read Request header (RFC 5040 4.4).
type read struct {
	sinkSTag uint32
	sinkTO   uint64
	size     uint32
	stag     uint32 // of the source
	to       uint64
}

func (r read) header() []byte {
	b := binary.BigEndian.AppendUint32(nil, r.sinkSTag)
	b = binary.BigEndian.AppendUint64(b, r.sinkTO)
	b = binary.BigEndian.AppendUint32(b, r.size)
	b = binary.BigEndian.AppendUint32(b, r.stag)
	return binary.BigEndian.AppendUint64(b, r.to)
}

// aTerminate is a Terminate Message (RFC 5040 4.8): layer<<12|type<<8|code, and of
// the segment at fault, if there is one, its length and its header; with readToo
// also the RDMA Read Request header behind that.
func aTerminate(code uint16, fault []byte, readToo bool) []byte {
	b := binary.BigEndian.AppendUint16(nil, code)
	var bits byte
	if fault != nil {
		bits = 0xC0 // M and D
	}
	if readToo {
		bits |= 0x20 // R
	}
	b = append(b, bits, 0)
	if fault != nil {
		b = binary.BigEndian.AppendUint16(b, uint16(len(fault)))
		n := either(fault[0]&0x80 != 0, 14, 18)
		b = append(b, fault[:n]...)
		if readToo {
			b = append(b, fault[n:n+28]...)
		}
	}
	return untagged(lastUntagged, opTerminate, 0, 2, 1, 0, b)
}

// ddpSegment is a DDP segment that came.
type ddpSegment struct {
	tagged, last     bool
	control          byte // RDMAP's control octet
	stag             uint32
	to               uint64
	inv, qn, msn, mo uint32 // of an untagged one
	header, payload  []byte
}

// parseSegment reads a ULPDU. It has to be whole, of DDP version 1 and with reserved
// bits of zero (RFC 5041 4.1 to 4.3).
func parseSegment(u []byte) (ddpSegment, error) {
	if len(u) < 14 || u[0]&0x80 == 0 && len(u) < 18 {
		return ddpSegment{}, fmt.Errorf("a segment of %d octets: % x", len(u), u)
	}
	if u[0]&0x3F != 1 {
		return ddpSegment{}, fmt.Errorf("the reserved bits or the version in % x", u[:14])
	}
	be := binary.BigEndian
	s := ddpSegment{tagged: u[0]&0x80 != 0, last: u[0]&0x40 != 0, control: u[1]}
	if s.tagged {
		s.header, s.stag, s.to = u[:14:14], be.Uint32(u[2:]), be.Uint64(u[6:])
	} else {
		s.header, s.inv, s.qn = u[:18:18], be.Uint32(u[2:]), be.Uint32(u[6:])
		s.msn, s.mo = be.Uint32(u[10:]), be.Uint32(u[14:])
	}
	s.payload = u[len(s.header):]
	return s, nil
}

// parseRead reads an RDMA Read Request header, which has 28 octets.
func parseRead(h []byte) (read, error) {
	if len(h) != 28 {
		return read{}, fmt.Errorf("an RDMA Read Request header of %d octets: % x", len(h), h)
	}
	be := binary.BigEndian
	return read{be.Uint32(h), be.Uint64(h[4:]), be.Uint32(h[12:]), be.Uint32(h[16:]), be.Uint64(h[20:])}, nil
}

// The control octets of RFC 7306 (4, figure 2).
const (
	opImmediate      = 0x48
	opImmediateSE    = 0x49
	opAtomicRequest  = 0x4A
	opAtomicResponse = 0x4B
)

// The operations of an Atomic Request (RFC 7306 5.2.1 figure 5).
const (
	atomicFetchAdd = 0
	atomicCmpSwap  = 2
)

// anImmediate is an Immediate Data message, with opImmediate or opImmediateSE. It counts
// with the Sends (RFC 7306 6.1).
func anImmediate(control byte, msn uint32, data uint64) []byte {
	return untagged(lastUntagged, control, 0, 0, msn, 0, binary.BigEndian.AppendUint64(nil, data))
}

// atomicOp is an Atomic Request header (RFC 7306 5.2.1).
type atomicOp struct {
	op, id, stag         uint32 // op has 28 reserved bits above it
	to                   uint64
	data, mask           uint64 // to add or to swap in
	compare, compareMask uint64
}

func (a atomicOp) header() []byte {
	var b []byte
	for _, v := range []uint32{a.op, a.id, a.stag} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	for _, v := range []uint64{a.to, a.data, a.mask, a.compare, a.compareMask} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

// anAtomicRequest is an Atomic Request. It counts with the RDMA Read Requests.
func anAtomicRequest(msn uint32, a atomicOp) []byte {
	return untagged(lastUntagged, opAtomicRequest, 0, 1, msn, 0, a.header())
}

// anAtomicResponse is the answer, with the value that was there before. It is on queue 3
// (RFC 7306 5.2.2).
func anAtomicResponse(msn, id uint32, original uint64) []byte {
	b := binary.BigEndian.AppendUint32(nil, id)
	return untagged(lastUntagged, opAtomicResponse, 0, 3, msn, 0, binary.BigEndian.AppendUint64(b, original))
}

// parseAtomic reads an Atomic Request header, which has 52 octets.
func parseAtomic(h []byte) (atomicOp, error) {
	if len(h) != 52 {
		return atomicOp{}, fmt.Errorf("an Atomic Request header of %d octets: % x", len(h), h)
	}
	be := binary.BigEndian
	return atomicOp{
		be.Uint32(h), be.Uint32(h[4:]), be.Uint32(h[8:]), be.Uint64(h[12:]),
		be.Uint64(h[20:]), be.Uint64(h[28:]), be.Uint64(h[36:]), be.Uint64(h[44:]),
	}, nil
}

// parseAtomicResponse reads an Atomic Response header, which has 12 octets.
func parseAtomicResponse(h []byte) (id uint32, original uint64, err error) {
	if len(h) != 12 {
		return 0, 0, fmt.Errorf("an Atomic Response header of %d octets: % x", len(h), h)
	}
	return binary.BigEndian.Uint32(h), binary.BigEndian.Uint64(h[4:]), nil
}
