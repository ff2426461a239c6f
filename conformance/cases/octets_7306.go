package cases

import (
	"encoding/binary"
	"fmt"
)

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
